"""What a client of ACP v2 asks for otherwise than one of v1, or not at all. Every line is judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.translators.narrow import as_objects

from .scripted import OPTIONS, ScriptedBackend
from .v2 import refused, tags, v2_editor

pytestmark = pytest.mark.anyio


async def test_options_are_set_by_id_or_as_switches_and_the_type_is_said(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    alpha.options = OPTIONS
    async with v2_editor(alpha) as editor:
        session = await editor.new(tmp_path)
        setting = {"sessionId": session, "configId": "mode", "value": "plan"}
        assert (await refused(editor, "session/set_config_option", **setting)).data == {"field": "type"}
        assert (await refused(editor, "session/set_config_option", **setting, type="boolean")).data == {
            "field": "value"
        }
        result = await editor.request("session/set_config_option", **setting, type="id")
        held = {o["configId"]: o["currentValue"] for o in as_objects(result["configOptions"])}
        assert held == {"backend": "alpha", "mode": "plan", "model": "small", "fast": False}
        switch = {"sessionId": session, "configId": "fast", "type": "boolean", "value": True}
        await editor.request("session/set_config_option", **switch)
        assert alpha.sessions[0].sets == [("mode", "plan"), ("fast", True)]
        assert "current_mode_update" not in tags(editor, session)


async def test_what_v2_does_not_have_is_not_served_and_what_is_advertised_is(tmp_path: Path) -> None:
    async with v2_editor(ScriptedBackend()) as editor:
        gone = ("session/load", "session/set_mode", "session/set_model", "authenticate", "logout", "session/nonsense")
        for method in gone:
            assert (await refused(editor, method, sessionId="x")).code == -32601
        of_session = ("resume", "fork", "set_title", "setTitle", "close", "archive", "unarchive", "status", "prompt")
        for method in (*(f"session/{name}" for name in of_session), "tool_call/cancel", "terminal/cancel"):
            error = await refused(editor, method, sessionId="x", cwd=str(tmp_path), title="t", toolCallId="c")
            assert error.code == -32002, method
        assert await editor.request("session/delete", sessionId="x") == {}
        assert (await editor.request("auth/status"))["state"] == "authenticated"
        assert await editor.request("auth/login", methodId="alpha") == {}
        assert await editor.request("auth/logout") == {}
        assert "providers" in await editor.request("providers/list")


async def test_mcp_servers_say_their_type_and_none_speaks_sse(tmp_path: Path) -> None:
    async with v2_editor(ScriptedBackend()) as editor:
        for server, field in (
            ({"name": "a", "command": "/bin/a"}, "mcpServers[0].type"),
            ({"name": "a", "type": "stdio", "command": "a"}, "mcpServers[0].command"),
            ({"name": "a", "type": "sse", "url": "http://x"}, "mcpServers[0].type"),
        ):
            error = await refused(editor, "session/new", cwd=str(tmp_path), mcpServers=[server])
            assert (error.code, error.data["field"]) == (-32602, field)
