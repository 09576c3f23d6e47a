"""Logging in and out, the status of logins, and endpoints that clients set, over scripted backends."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from acp_manifold.bridge.errors import BackendFault
from acp_manifold.translators.narrow import JsonObject, as_objects, obj
from tests.bridge.editor import Editor, Refused, editor_on, editors
from tests.bridge.scripted import ScriptedBackend

pytestmark = pytest.mark.anyio

ENDPOINT = {"providerId": "alpha", "apiType": "openai", "baseUrl": "https://gateway/v1", "headers": {"A": "s3cr3t"}}


async def news(editor: Editor, since: int = 0) -> JsonObject:
    line = await editor.wait_for(lambda m: m.get("method") == "auth/status_update", since)
    return obj(line, "params")


@asynccontextmanager
async def two() -> AsyncGenerator[tuple[Editor, ScriptedBackend, ScriptedBackend]]:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    async with editor_on(alpha, beta) as editor:
        yield editor, alpha, beta


async def test_the_status_is_that_of_new_sessions_and_never_wants_a_login() -> None:
    async with two() as (editor, alpha, _):
        alpha.login_state = "out"
        told = await editor.request("auth/status")
        assert told["state"] == "unauthenticated"
        assert [account["label"] for account in as_objects(told["accounts"])] == ["Beta account"]
        states = {"alpha": "unauthenticated", "beta": "authenticated"}
        assert told["_meta"] == {"acp-manifold": {"backends": states}}


async def test_a_login_that_changes_is_told_once_to_clients_that_asked_and_to_no_other(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    alpha.login_file = tmp_path / "login"
    alpha.login_state = "out"
    async with editors(alpha, count=2) as (asks, silent):
        assert (await asks.request("auth/status"))["state"] == "unauthenticated"
        alpha.login_file.write_text("still nothing")
        alpha.login_state = "in"
        alpha.login_file.write_text("a login")
        assert (await news(asks))["state"] == "authenticated"
        since = len(asks.lines)
        await silent.request("logout")
        assert (await news(asks, since))["state"] == "unauthenticated"
        await asks.round_trip()
        updates = [line for line in asks.lines if line.get("method") == "auth/status_update"]
        assert [obj(line, "params")["state"] for line in updates] == ["authenticated", "unauthenticated"]
        assert not [line for line in silent.lines if line.get("method") == "auth/status_update"]


async def test_a_logout_ends_every_login_and_endpoint_and_says_what_it_could_not(tmp_path: Path) -> None:
    async with two() as (editor, alpha, beta):
        await editor.request("providers/set", **ENDPOINT)
        beta.refuses_logout = BackendFault("the keychain is locked")
        with pytest.raises(Refused, match="Beta: the keychain is locked"):
            await editor.request("logout")
        assert alpha.logouts == 1
        with pytest.raises(Refused) as caught:
            await editor.new(tmp_path)
        assert caught.value.code == -32000
        providers = as_objects((await editor.request("providers/list"))["providers"])
        assert all("current" not in provider for provider in providers)


async def test_a_key_sent_along_reaches_the_backend_of_the_method_alone() -> None:
    async with two() as (editor, alpha, beta):
        alpha.login_state = beta.login_state = "out"
        meta = {"api-key": {"apiKey": " k3y "}}
        assert await editor.request("authenticate", methodId="beta-key", _meta=meta) == {}
        assert (alpha.keys, beta.keys) == ([], ["k3y"])
        with pytest.raises(Refused) as caught:
            await editor.request("authenticate", methodId="alpha-login", _meta=meta)
        assert caught.value.code == -32000 and alpha.keys == []


async def test_sessions_opened_after_an_endpoint_was_set_get_it_and_open_ones_keep_theirs(tmp_path: Path) -> None:
    async with two() as (editor, alpha, beta):
        await editor.new(tmp_path)
        await editor.request("providers/set", **ENDPOINT)
        alpha.login_state = "out"
        await editor.new(tmp_path)
        await editor.new(tmp_path, "beta")
        await editor.request("providers/disable", providerId="alpha")
        alpha.login_state = "in"
        await editor.new(tmp_path)
        urls = [session.spec.endpoint and session.spec.endpoint.base_url for session in alpha.sessions]
        assert urls == [None, "https://gateway/v1", None]
        assert beta.sessions[0].spec.endpoint is None


async def test_a_session_that_changes_its_backend_gets_that_ones_endpoint(tmp_path: Path) -> None:
    async with two() as (editor, alpha, beta):
        await editor.request("providers/set", **ENDPOINT)
        session = await editor.new(tmp_path)
        assert alpha.sessions[0].spec.endpoint is not None
        await editor.request("session/set_config_option", sessionId=session, configId="backend", value="beta")
        assert beta.sessions[0].spec.endpoint is None


async def test_an_endpoint_counts_as_a_login_in_the_status() -> None:
    async with two() as (editor, alpha, _):
        alpha.login_state = "out"
        assert (await editor.request("auth/status"))["state"] == "unauthenticated"
        await editor.request("providers/set", **ENDPOINT)
        told = await news(editor)
        assert told["state"] == "authenticated" and "s3cr3t" not in str(told)
        assert "https://gateway/v1" in str(as_objects(told["accounts"])[0]["label"])
