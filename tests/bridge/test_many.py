"""Sixty-four sessions on one connection, all streaming at once: everything arrives, in order, nobody waits long."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from acp_manifold.bridge.outbound import LANE_HIGH_WATER
from acp_manifold.translators.updates import ToolCall

from .editor import editor_on
from .scripted import ScriptedBackend, ScriptedSession

pytestmark = pytest.mark.anyio

SESSIONS = 64
UPDATES = 100
END_TURN = {"stopReason": "end_turn"}


async def stream(cli: ScriptedSession, marks: list[str]) -> None:
    await cli.prompted()
    for number in range(UPDATES):
        cli.say(f"{number} ")
        if number % 10 == 0:
            cli.events.update(ToolCall(f"{cli.id}-{number}", "read"))
        await cli.events.room()
        await checkpoint()
    marks.append(cli.id)
    cli.finish()


async def test_sixty_four_sessions_stream_at_once(tmp_path: Path) -> None:
    alpha, done = ScriptedBackend(), list[str]()
    async with editor_on(alpha) as editor, anyio.create_task_group() as tg:
        sessions = [await editor.new(tmp_path) for _ in range(SESSIONS)]
        for cli in alpha.sessions:
            tg.start_soon(stream, cli, done)
        asked = [editor.prompt(session, "go") for session in sessions]
        for session, request in zip(sessions, asked, strict=True):
            assert await editor.answer(request) == END_TURN
            assert editor.said(session) == "".join(f"{number} " for number in range(UPDATES))
            calls = [update["toolCallId"] for update in editor.updates(session, "tool_call")]
            assert calls == [f"{session}-{number}" for number in range(0, UPDATES, 10)]
        assert sorted(done) == sorted(sessions)


async def test_a_session_that_floods_leaves_room_for_the_others(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor, anyio.create_task_group() as tg:
        flooding, calm = await editor.new(tmp_path), await editor.new(tmp_path)
        flood, other = alpha.sessions
        editor.stop_reading()
        told = 0

        async def tell_on() -> None:
            nonlocal told
            for number in range(400):
                flood.events.update(ToolCall(f"call-{number}", "x" * 10_000))
                await flood.events.room()
                told += 1

        tg.start_soon(tell_on)
        for _ in range(400):
            await checkpoint()
        assert 0 < told * 10_000 < 2 * LANE_HIGH_WATER
        with anyio.fail_after(1):
            await other.events.room()
        other.say("calm")
        editor.read_on()
        await editor.update(calm, "agent_message_chunk")
        await editor.wait_for(lambda line: "call-399" in str(line))
        calls = [update["toolCallId"] for update in editor.updates(flooding, "tool_call")]
        assert calls == [f"call-{number}" for number in range(400)]
