"""Logins of Codex as people see them, and the endpoint that is configured."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.codex import CodexBackend
from acp_manifold.adapters.codex.config import thread_params
from acp_manifold.adapters.codex.endpoint import configured, shown
from acp_manifold.bridge.backend import SessionSpec, StdioServer
from acp_manifold.bridge.errors import BackendFault, LoginNeeded
from acp_manifold.translators.auth import Account, AuthStatus, Endpoint
from acp_manifold.translators.narrow import JsonObject, obj
from acp_manifold.translators.updates import Text
from tests.fakes.fake_codex import FakeCodex

from .scripted import ScriptedEvents, running

PROVIDER = '[model_providers.p]\nname = "p"\nbase_url = "https://me:s3cr3t@gateway/v1/"\n'


def token(claims: JsonObject) -> str:
    """A token as far as it is read: its middle."""
    body = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"x.{body}.y"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("config", "auth", "expected"),
    [
        ("", {"OPENAI_API_KEY": "s3cr3t"}, AuthStatus("authenticated", (Account("OpenAI API key"),))),
        (
            "",
            {
                "tokens": {
                    "id_token": token(
                        {
                            "email": "me@example.org",
                            "name": "Me",
                            "https://api.openai.com/auth": {"chatgpt_plan_type": "plus"},
                        }
                    ),
                    "access_token": "s3cr3t",
                }
            },
            AuthStatus("authenticated", (Account("ChatGPT Plus", name="Me", email="me@example.org"),)),
        ),
        ("", {"tokens": {"id_token": "s3cr3t"}}, AuthStatus("authenticated", (Account("OpenAI"),))),
        ("", None, AuthStatus("unauthenticated")),
        ('cli_auth_credentials_store = "keyring"\n', None, AuthStatus("unknown")),
        (f'model_provider = "p"\n{PROVIDER}', None, AuthStatus("not_required", (), "https://gateway/v1")),
        (
            f'model_provider = "p"\n{PROVIDER}env_key = "P_KEY"\n',
            None,
            AuthStatus("authenticated", (Account("Model provider p (P_KEY)"),), "https://gateway/v1"),
        ),
        (
            f'model_provider = "p"\n{PROVIDER}env_key = "NO_KEY"\n',
            {"OPENAI_API_KEY": "s3cr3t"},
            AuthStatus("unauthenticated", (), "https://gateway/v1"),
        ),
    ],
)
async def test_the_status_is_told_from_the_files(
    fake: FakeCodex, monkeypatch: pytest.MonkeyPatch, config: str, auth: JsonObject | None, expected: AuthStatus
) -> None:
    monkeypatch.setenv("P_KEY", "s3cr3t")
    monkeypatch.delenv("NO_KEY", raising=False)
    (fake.home / "config.toml").write_text(config)
    (fake.home / "auth.json").unlink()
    if auth is not None:
        (fake.home / "auth.json").write_text(json.dumps(auth))
    status = await CodexBackend().status()
    assert status == expected and "s3cr3t" not in repr(status)
    assert fake.starts() == []


@pytest.mark.anyio
async def test_a_key_that_codex_refuses_is_said_without_the_key(fake: FakeCodex) -> None:
    fake.replies("account/login/start", {"error": {"code": -32600, "message": "forbidden: sk-test-12345678"}})
    fake.replies("getAuthStatus", {"result": {"authMethod": None, "requiresOpenaiAuth": True}})
    (fake.home / "auth.json").unlink()
    with anyio.fail_after(10):
        async with running() as (backend, _):
            login, _, by_key = backend.auth_methods
            with pytest.raises(BackendFault, match="forbidden") as caught:
                await backend.authenticate(by_key, "sk-test-12345678")
            assert "12345678" not in caught.value.message
            with pytest.raises(LoginNeeded):
                await backend.authenticate(login, "sk-test-12345678")


@pytest.mark.anyio
async def test_a_thread_that_met_a_change_of_the_login_is_asked_for_again(fake: FakeCodex, work: Path) -> None:
    words = "failed to load configuration: application network permission was revoked"
    met: JsonObject = {"error": {"code": -32603, "message": words}}
    usual: JsonObject = {"usual": True}
    spec = SessionSpec(str(work))
    fake.replies("thread/start", met, usual)
    fake.replies("thread/resume", met, usual, met)
    with anyio.fail_after(20):
        async with running() as (backend, _):
            async with backend.session(spec, ScriptedEvents()) as session:
                await session.prompt((Text("hello"),))
            async with backend.session(spec, ScriptedEvents(), resume=session.id) as again:
                assert again.id == session.id
            with pytest.raises(BackendFault, match="network permission was revoked"):
                async with backend.session(spec, ScriptedEvents(), resume=session.id):
                    pass
    assert [len(fake.requests(f"thread/{how}")) for how in ("start", "resume")] == [2, 4]


def test_the_configured_endpoint_has_the_headers_that_codex_sends() -> None:
    provider: JsonObject = {
        "base_url": "https://gateway/v1/",
        "env_key": "KEY",
        "http_headers": {"X-A": "1"},
        "env_http_headers": {"X-B": "B", "X-C": "NONE"},
    }
    config: JsonObject = {"model_provider": "p", "model_providers": {"p": provider}}
    endpoint = configured(config, {"KEY": "k", "B": "2"})
    assert endpoint == Endpoint("openai", "https://gateway/v1", {"X-A": "1", "X-B": "2", "Authorization": "Bearer k"})
    assert configured({}, {}) is None and shown({"model_provider": "ollama"}) is None
    own = configured({"openai_base_url": "https://proxy/v1"}, {})
    assert own == Endpoint("openai", "https://proxy/v1", {})


def test_a_clients_endpoint_is_a_provider_of_the_thread_beside_its_mcp_servers() -> None:
    spec = SessionSpec(
        "/w", (StdioServer("s", "run", (), {}),), endpoint=Endpoint("openai", "https://gateway/v1", {"X-A": "s"})
    )
    params = thread_params(spec, {"s": "s"})
    config = obj(params, "config")
    name = str(params["modelProvider"])
    provider = obj(obj(config, "model_providers"), name)
    assert provider["base_url"] == "https://gateway/v1" and provider["http_headers"] == {"X-A": "s"}
    assert provider["requires_openai_auth"] is False and "s" in obj(config, "mcp_servers")
