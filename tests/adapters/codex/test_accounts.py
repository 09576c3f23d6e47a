"""Logins of Codex as people see them, and the endpoint that is configured."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.codex.backend import CodexBackend
from acp_manifold.adapters.codex.config import thread_params
from acp_manifold.adapters.codex.endpoint import at_its_provider, configured, shown
from acp_manifold.bridge.backend import SessionSpec, StdioServer
from acp_manifold.bridge.errors import BackendFault, InvalidRequest, LoginNeeded
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


LOST = (
    "Model provider `acp-manifold` not found",  # codex-cli 0.163.0
    "This chat uses model provider “acp-manifold”, which is no longer configured. Restore it",
)


def refusal(words: str) -> JsonObject:
    return {"error": {"code": -32600, "message": words}}


@pytest.mark.anyio
@pytest.mark.parametrize("words", LOST)
async def test_a_thread_of_an_endpoint_that_is_gone_goes_on_where_the_person_has_configured(
    fake: FakeCodex, work: Path, words: str
) -> None:
    config = Path(fake.env["CODEX_HOME"]) / "config.toml"
    config.write_text('model_provider = "p"\n' + PROVIDER)
    fake.replies("thread/resume", refusal(words), {"usual": True})
    with anyio.fail_after(20):
        async with running() as (backend, _):
            async with backend.session(SessionSpec(str(work)), ScriptedEvents()) as session:
                await session.prompt((Text("hello"),))
            async with backend.session(SessionSpec(str(work)), ScriptedEvents(), resume=session.id):
                pass
    first, second = fake.requests("thread/resume")
    assert "config" not in first and "modelProvider" not in second
    own = obj(obj(second, "config"), "model_providers")
    assert own == {"acp-manifold": {"name": "p", "base_url": "https://me:s3cr3t@gateway/v1/"}}


@pytest.mark.anyio
async def test_a_thread_that_keeps_its_provider_is_not_led_to_the_clients_endpoint(fake: FakeCodex, work: Path) -> None:
    """What is said of a configured provider is joined with it: the person's own key would go there too."""
    words = "failed to load configuration: Cannot change this thread's model provider from `p` to `acp-manifold`"
    fake.replies("thread/resume", refusal(words))
    with anyio.fail_after(20):
        async with running() as (backend, _):
            async with backend.session(SessionSpec(str(work)), ScriptedEvents()) as session:
                await session.prompt((Text("hello"),))
            spec = SessionSpec(str(work), endpoint=Endpoint("openai", "https://gateway/v1", {"X-A": "1"}))
            with pytest.raises(InvalidRequest, match="go on with a copy") as refused:
                async with backend.session(spec, ScriptedEvents(), resume=session.id):
                    pass
    assert refused.value.data == {"reason": "model_provider", "sessionId": session.id}
    assert len(fake.requests("thread/resume")) == 1


def test_openais_own_provider_is_said_as_codex_has_it_and_one_that_it_brings_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    params: JsonObject = {"threadId": "t", "config": {"mcp_servers": {}}}
    config = obj(at_its_provider(params), "config")
    own: JsonObject = {"name": "OpenAI", "wire_api": "responses", "requires_openai_auth": True}
    assert config == {"mcp_servers": {}, "model_providers": {"acp-manifold": own}}
    (tmp_path / "config.toml").write_text('openai_base_url = "https://proxy/v1"\n')
    config = obj(at_its_provider(params), "config")
    assert obj(config, "model_providers")["acp-manifold"] == {**own, "base_url": "https://proxy/v1"}
    (tmp_path / "config.toml").write_text('model_provider = "ollama"\n')
    assert at_its_provider(params) == {**params, "modelProvider": "ollama"}


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
