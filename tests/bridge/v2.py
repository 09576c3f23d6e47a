"""What tests of ACP v2 on the bridge begin with, and look at. Every line an editor gets is judged."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from acp_manifold.bridge.backend import SessionRow
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    MessageChunk,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
)

from .editor import Editor, Refused, editors
from .scripted import ScriptedBackend, ScriptedSession

STATE: JsonObject = {"sessionUpdate": "state_update", "background": []}
"""What every state is told with, while nothing goes on in the background."""


@asynccontextmanager
async def v2_editor(*backends: ScriptedBackend, grace: float = 10.0) -> AsyncGenerator[Editor]:
    async with editors(*backends, versions=(2,), grace=grace) as (editor,):
        yield editor


@asynccontextmanager
async def opened(cwd: Path) -> AsyncGenerator[tuple[Editor, str, ScriptedSession]]:
    """An editor, its session, and that as its CLI sees it."""
    alpha = ScriptedBackend()
    async with v2_editor(alpha) as editor:
        yield editor, await editor.new(cwd), alpha.sessions[0]


@asynccontextmanager
async def at_work(cwd: Path) -> AsyncGenerator[tuple[Editor, str, ScriptedSession]]:
    """The same, with a prompt, `go`, that the CLI has been given."""
    async with opened(cwd) as (editor, session, cli):
        editor.prompt(session, "go")
        await cli.prompted()
        yield editor, session, cli


async def refused(editor: Editor, method: str, **params: object) -> Refused:
    with pytest.raises(Refused) as caught:
        await editor.request(method, **params)
    return caught.value


async def error_of(editor: Editor, asked: int) -> Refused:
    with pytest.raises(Refused) as caught:
        await editor.answer(asked)
    return caught.value


def tags(editor: Editor, session: str) -> list[object]:
    return [update["sessionUpdate"] for update in editor.updates(session)]


def states(editor: Editor, session: str) -> list[object]:
    return [update["state"] for update in editor.updates(session, "state_update")]


def took(cli: ScriptedSession, words: str, message_id: str = "u1") -> None:
    """The CLI says what was typed, as the real ones do."""
    cli.events.update(MessageChunk("user", Text(words), message_id))


def stored(backend: ScriptedBackend, cwd: Path, session_id: str = "old") -> None:
    backend.stored[session_id] = SessionRow(session_id, str(cwd), "2026-01-01T00:00:00.000Z", "Old", "user")
    backend.history[session_id] = [
        MessageChunk("user", Text("hello"), "u1"),
        MessageChunk("thought", Text("hm"), "m1"),
        MessageChunk("agent", Text("one "), "m1"),
        MessageChunk("agent", Text("two"), "m1"),
        ToolCall("c1", "make", "execute", "in_progress", runs_in="/src"),
        ToolOutput("c1", "done"),
        ToolCallUpdate("c1", status="completed"),
    ]
