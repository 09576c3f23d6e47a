"""Endpoints that a client sets: what is taken, and what is refused without repeating a secret."""

from __future__ import annotations

import pytest

from acp_manifold.translators.acp.providers import provider_setting, providers_result
from acp_manifold.translators.acp.requests import BadParams
from acp_manifold.translators.auth import Endpoint
from acp_manifold.translators.narrow import JsonObject

SECRET = "s3cr3t-of-the-client"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"providerId": "nobody"}, "providerId"),
        ({"providerId": None}, "providerId"),
        ({"apiType": "vertex"}, "apiType"),
        ({"baseUrl": "127.0.0.1:80"}, "baseUrl"),
        ({"baseUrl": "ftp://x"}, "baseUrl"),
        ({"baseUrl": f"http://me:{SECRET}@x"}, "baseUrl"),
        ({"headers": {"X-A": f"{SECRET}\nInjected: yes"}}, "headers.X-A"),
        ({"headers": {"X A": SECRET}}, "headers"),
        ({"headers": [SECRET]}, "headers"),
    ],
)
def test_a_wrong_endpoint_is_refused_by_its_field_and_repeats_no_secret(change: JsonObject, field: str) -> None:
    params: JsonObject = {"providerId": "codex", "apiType": "openai", "baseUrl": "http://127.0.0.1:1/v1", **change}
    with pytest.raises(BadParams) as caught:
        provider_setting(params, {"codex": ("openai",)})
    assert caught.value.field == field and SECRET not in str(caught.value)


def test_an_endpoint_shows_its_secrets_neither_in_a_list_nor_in_a_log() -> None:
    params: JsonObject = {
        "providerId": "codex",
        "apiType": "openai",
        "baseUrl": "https://x/v1/",
        "headers": {"A": SECRET},
    }
    name, endpoint = provider_setting(params, {"codex": ("openai",)})
    assert (name, endpoint) == ("codex", Endpoint("openai", "https://x/v1", {"A": SECRET}))
    assert endpoint.header("a") == SECRET and SECRET not in repr(endpoint)
    told = providers_result({"codex": ("openai",), "claude": ("anthropic",)}, {name: endpoint})
    assert told["providers"] == [
        {
            "providerId": "codex",
            "supported": ["openai"],
            "required": False,
            "current": {"apiType": "openai", "baseUrl": "https://x/v1"},
        },
        {"providerId": "claude", "supported": ["anthropic"], "required": False},
    ]
