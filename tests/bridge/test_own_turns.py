"""What a CLI does of its own accord: the session runs meanwhile, for clients of both versions."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.translators.narrow import JsonObject, text
from acp_manifold.translators.updates import MessageChunk, OwnTurn, Text, TurnEnd

from .editor import Editor, editors
from .scripted import QUESTION, ScriptedBackend

pytestmark = pytest.mark.anyio


def states(editor: Editor, session: str) -> list[object]:
    return [update["state"] for update in editor.updates(session, "state_update")]


async def test_it_is_running_until_it_says_how_it_ended(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2, 1)) as (new, old):
        session = await new.new(tmp_path)
        await old.request("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        tell = alpha.sessions[0].events.update
        tell(OwnTurn(running=True))
        tell(MessageChunk("agent", Text("The build is done"), "m"))
        status = await new.request("session/status", sessionId=session)
        assert status["state"] == {"state": "running", "background": []}
        tell(OwnTurn(False, TurnEnd("end_turn")))
        await new.idle(session)
        tell(OwnTurn(running=True))
        tell(OwnTurn(False, failure="no credit"))
        failed = await new.idle(session, 2)
        assert (failed["stopReason"], failed["error"]) == ("error", {"code": -32603, "message": "no credit"})
        assert states(new, session) == ["running", "idle"] * 2
        assert [update["title"] for update in new.updates(session, "notice")] == ["no credit"]
        assert old.said(session).split("\n")[0] == "The build is done" and "no credit" in old.said(session)


async def test_begun_right_behind_a_turn_it_is_told_behind_the_end_of_that(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2,)) as (editor,):
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        editor.prompt(session, "go")
        await cli.prompted()
        cli.say("Gone")
        cli.finish()
        # The CLI has gone on before whoever waits for the end of the turn has come to hear of it.
        cli.events.update(OwnTurn(running=True))
        await editor.idle(session)
        cli.events.update(OwnTurn(False, TurnEnd("end_turn")))
        await editor.idle(session, 2)
        assert states(editor, session) == ["running", "idle", "running", "idle"]


async def test_a_cancel_stops_it_with_its_question(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2,)) as (editor,):
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        editor.prompt(session, "go")
        await cli.prompted()
        cli.finish()
        await editor.idle(session)
        cli.events.update(OwnTurn(running=True))
        chosen: list[str | None] = []

        async def ask() -> None:
            chosen.append(await cli.events.ask(QUESTION))

        async with anyio.create_task_group() as tg:
            tg.start_soon(ask)
            await editor.question()
            editor.tell("session/cancel", sessionId=session)
            await cli.interrupted()
        assert chosen == [None]
        cli.events.update(OwnTurn(False, TurnEnd("cancelled")))
        assert (await editor.idle(session, 2))["stopReason"] == "cancelled"
        assert states(editor, session)[2:] == ["running", "requires_action", "running", "idle"]


@pytest.mark.parametrize("method", ["session/close", "session/archive"])
async def test_a_close_ends_it_and_says_so_ahead_of_its_answer(tmp_path: Path, method: str) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2,)) as (editor,):
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        editor.prompt(session, "go")
        await cli.prompted()
        cli.finish()
        await editor.idle(session)
        cli.events.update(OwnTurn(running=True))
        answer = await editor.request(method, sessionId=session)
        assert (await editor.idle(session, 2))["stopReason"] == "cancelled"
        (answered,) = [n for n, line in enumerate(editor.lines) if line.get("result") is answer]
        told = [n for n, line in enumerate(editor.lines) if line.get("method") == "session/update"]
        assert told[-1] < answered


async def test_a_prompt_behind_the_cancel_begins_when_it_is_over(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2,)) as (editor,):
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        cli.events.update(OwnTurn(running=True))
        editor.tell("session/cancel", sessionId=session)
        asked = editor.prompt(session, "and now this")
        await cli.interrupted()
        await editor.round_trip()
        assert cli.prompts == []
        cli.events.update(OwnTurn(False, TurnEnd("cancelled")))
        await cli.prompted()
        cli.finish()
        assert "messageId" in await editor.answer(asked)


async def test_a_cli_that_does_not_stop_holds_no_prompt_up_for_long(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2,), grace=0.1) as (editor,):
        session = await editor.new(tmp_path)
        alpha.sessions[0].events.update(OwnTurn(running=True))
        editor.tell("session/cancel", sessionId=session)
        editor.prompt(session, "and now this")
        await alpha.sessions[0].prompted()


async def test_a_prompt_meanwhile_is_not_taken_in_by_what_it_says(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2,)) as (editor,):
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        cli.events.update(OwnTurn(running=True))
        asked = editor.prompt(session, "and you?")
        await cli.prompted()
        cli.say("still busy")
        await editor.round_trip()
        assert not editor.settled(asked)
        # One CLI says that the one is over before it takes the other, another adds to it.
        cli.events.update(MessageChunk("user", Text("and you?"), "u1"))
        assert await editor.answer(asked) == {"messageId": "u1"}
        cli.events.update(OwnTurn(running=False))
        cli.finish()
        ended: JsonObject = await editor.idle(session)
        assert text(ended, "stopReason") == "end_turn"
        assert states(editor, session) == ["running", "running", "idle"]
