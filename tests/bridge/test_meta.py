"""`_meta` that nobody here knows, of whatever shape and wherever: it changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.bridge.link_v1 import LinkV1
from acp_manifold.translators.acp.requests import TITLE_METHODS
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .editor import Editor, editors
from .scripted import ScriptedBackend
from .test_options import with_options

pytestmark = pytest.mark.anyio

INDEX: JsonObject = {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionIndex"]}}}

SHAPES: list[object] = [
    {"traceparent": "00-1", "vendor": {"deep": [{"er": None}]}},
    {"sessionId": "EVIL", "session_id": "EVIL", "cwd": "/evil", "title": "EVIL", "prompt": []},
    {"jetbrains": {"air": {"list": None, "fork": 5}}, "steering": None, "acp-manifold": None, "claudeCode": 7},
    {"jetbrains": [], "steering": "x", "acp-manifold": [], "claudeCode": {"options": "x"}},
    {},
    None,
    5,
    [],
    "text",
]


class Calls:
    """One good call of every method, each with the `_meta` in question wherever the protocol lets it stand."""

    def __init__(self, editor: Editor, backend: ScriptedBackend, cwd: str, meta: object) -> None:
        self._editor = editor
        self._backend = backend
        self._cwd = cwd
        self._meta: JsonObject = {"_meta": meta}
        self.called: set[str] = set()

    async def call(self, method: str, **params: object) -> JsonObject:
        self.called.add(method)
        return await self._editor.request(method, **params, **self._meta)

    async def all(self) -> str:
        """Call them all; gives the id of the session that was prompted."""
        server = {"name": "s", "command": "true", "args": [], "env": [{"name": "A", "value": "b", **self._meta}]}
        setup: JsonObject = {"cwd": self._cwd, "mcpServers": [{**server, **self._meta}]}
        session = text(await self.call("session/new", **setup), "sessionId")
        live = await self._backend.opened()
        await self.call("session/set_config_option", sessionId=session, configId="backend", value="alpha")
        link = {"type": "resource_link", "uri": "file:///x", "name": "x", **self._meta}
        prompt = [{"type": "text", "text": "hello", **self._meta}, link]
        await self.call("session/set_mode", sessionId=session, modeId="plan")
        await self.call("session/set_model", sessionId=session, modelId="small")
        self.called.add("session/prompt")
        turn = self._editor.ask("session/prompt", sessionId=session, prompt=prompt, **self._meta)
        assert len(await live.prompted()) == 2
        live.go_on_behind("task", "call")
        assert (await self.call("_session/steering", sessionId=session, prompt=prompt))["outcome"] == "injected"
        live.finish()
        assert (await self._editor.answer(turn))["stopReason"] == "end_turn"
        await self._titles_and_tasks(session)
        await self._lists(session)
        await self._moves(session, setup)
        return session

    async def _titles_and_tasks(self, session: str) -> None:
        for method, key in TITLE_METHODS.items():
            await self.call(method, sessionId=session, **{key: method})
        await self.call("_acp-manifold/background/list", sessionId=session)
        await self.call("_acp-manifold/background/output", sessionId=session, taskId="task")
        await self.call("_acp-manifold/background/stop", sessionId=session, taskId="task")
        await self.call("_session/async_task/stop", sessionId=session, asyncTaskId="task")
        await self.call("_acp-manifold/record", sessionId=session, path=f"{self._cwd}/recorded.jsonl")
        await self.call("_acp-manifold/record")

    async def _lists(self, session: str) -> None:
        (row,) = as_objects((await self.call("session/list", cwd=self._cwd))["sessions"])
        assert (row["sessionId"], row["title"]) == (session, list(TITLE_METHODS)[-1])
        assert await self.call("_session/batch_get", sessionIds=[session]) == {"sessions": [row]}
        followed = await self.call("_session/list/subscribe", cwd=self._cwd)
        await self.call("_session/list/unsubscribe", **followed)
        await self.call("session/status", sessionId=session)

    async def _moves(self, session: str, setup: JsonObject) -> None:
        self._editor.tell("session/cancel", sessionId=session, **self._meta)
        await self.call("session/load", sessionId=session, **setup)
        await self.call("session/fork", sessionId=session, **setup)
        await self.call("session/close", sessionId=session)
        await self.call("session/resume", sessionId=session, **setup)
        for place in ("session", "_session"):
            await self.call(f"{place}/archive", sessionId=session)
            await self.call(f"{place}/unarchive", sessionId=session)
        await self.call("session/delete", sessionId=session)
        await self.call("authenticate", methodId="alpha-login")
        await self.call("auth/status")
        await self.call("providers/list")
        headers = {"X-Team": "one"}
        url = "http://127.0.0.1:9/v1"
        await self.call("providers/set", providerId="alpha", apiType="openai", baseUrl=url, headers=headers)
        await self.call("providers/disable", providerId="alpha")
        await self.call("logout")


@pytest.mark.parametrize("meta", SHAPES, ids=[str(number) for number in range(len(SHAPES))])
async def test_meta_that_nobody_knows_changes_no_method(tmp_path: Path, meta: object) -> None:
    backend = with_options()
    async with editors(backend, initialize=False) as (editor,):
        capabilities: JsonObject = {"fs": {"_meta": meta}, "_meta": INDEX}
        await editor.request("initialize", protocolVersion=1, clientCapabilities=capabilities, _meta=meta)
        calls = Calls(editor, backend, str(tmp_path), meta)
        session = await calls.all()
        assert not {*LinkV1.methods} - calls.called, "a method has no call here: add one"
        assert {key for key, row in backend.stored.items() if row.cwd != str(tmp_path)} == set()
        assert "EVIL" not in str(editor.lines) and session
        assert all("_meta" not in obj(line, "error") for line in editor.lines)


async def test_meta_of_capabilities_of_a_wrong_shape_asks_for_nothing(tmp_path: Path) -> None:
    for meta in SHAPES:
        async with editors(ScriptedBackend(), initialize=False) as (editor,):
            greeting = await editor.request("initialize", protocolVersion=1, clientCapabilities={"_meta": meta})
            assert "jetbrains" not in obj(greeting, "_meta")
