"""A client of ACP v2 on the bridge: the life of a prompt, alone and beside a client of v1. Every line is judged."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.errors import BackendFault
from acp_manifold.translators.forms import Choice as FormChoice
from acp_manifold.translators.forms import Field, Form, FormAnswer
from acp_manifold.translators.narrow import obj, text
from acp_manifold.translators.updates import (
    Notice,
    ToolCallUpdate,
)

from .editor import editors
from .scripted import QUESTION, ScriptedBackend
from .v2 import STATE, at_work, error_of, opened, states, stored, tags, took, v2_editor

pytestmark = pytest.mark.anyio


async def test_a_prompt_is_answered_when_it_is_taken_in_and_its_end_is_a_state(tmp_path: Path) -> None:
    async with opened(tmp_path) as (editor, session, cli):
        asked = editor.prompt(session, "hello")
        await cli.prompted()
        await editor.round_trip()
        assert not editor.settled(asked)
        took(cli, "hello")
        assert await editor.answer(asked) == {"messageId": "u1"}
        cli.say("one ")
        cli.say("two")
        cli.finish()
        assert await editor.idle(session) == {
            "sessionUpdate": "state_update",
            "state": "idle",
            "stopReason": "end_turn",
            "background": [],
        }
        assert [tag for tag in tags(editor, session) if tag != "config_option_update"] == [
            "user_message",
            "state_update",
            "agent_message_chunk",
            "agent_message_chunk",
            "state_update",
        ]
        (echo,) = editor.updates(session, "user_message")
        assert (echo["messageId"], echo["content"]) == ("u1", [{"type": "text", "text": "hello"}])
        answered = next(n for n, line in enumerate(editor.lines) if line.get("id") == asked)
        assert obj(obj(editor.lines[answered + 1], "params"), "update") == echo


async def test_a_cli_that_does_not_say_what_was_typed_takes_it_in_with_its_first_word(tmp_path: Path) -> None:
    async with opened(tmp_path) as (editor, session, cli):
        first = editor.prompt(session, "hello")
        await cli.prompted()
        cli.events.update(Notice("info", "Something else"))
        await editor.round_trip()
        assert not editor.settled(first)
        cli.say("hi")
        named = (await editor.answer(first))["messageId"]
        took(cli, "hello", "late")
        cli.finish()
        await editor.idle(session)
        second = editor.prompt(session, "again")
        await cli.prompted()
        cli.finish()
        silent = (await editor.answer(second))["messageId"]
        await editor.idle(session, 2)
        echoes = [(u["messageId"], u["content"]) for u in editor.updates(session, "user_message")]
        assert echoes == [
            (named, [{"type": "text", "text": "hello"}]),
            (silent, [{"type": "text", "text": "again"}]),
        ]
        assert text({"x": named}, "x") and named != silent
        assert editor.updates(session, "user_message_chunk") == []


async def test_what_was_not_taken_in_is_answered_with_an_error_and_changes_no_state(tmp_path: Path) -> None:
    async with opened(tmp_path) as (editor, session, cli):
        running, waiting, also = (editor.prompt(session, words) for words in ("one", "two", "three"))
        await cli.prompted()
        editor.tell("$/cancel_request", requestId=also)
        assert (await error_of(editor, also)).code == -32800
        editor.tell("session/cancel", sessionId=session)
        for asked in (running, waiting):
            assert (await error_of(editor, asked)).code == -32800
        failing = editor.prompt(session, "four")
        await cli.prompted()
        cli.fail(BackendFault("no"))
        assert (await error_of(editor, failing)).message == "no"
        assert states(editor, session) == []


@pytest.mark.parametrize("how", ["cancel", "fail"])
async def test_what_was_taken_in_ends_in_a_state_however_it_ends(tmp_path: Path, how: str) -> None:
    async with opened(tmp_path) as (editor, session, cli):
        running, waiting = editor.prompt(session, "one"), editor.prompt(session, "two")
        await cli.prompted()
        took(cli, "one")
        await editor.answer(running)
        if how == "cancel":
            editor.tell("session/cancel", sessionId=session)
            assert (await error_of(editor, waiting)).code == -32800
        else:
            cli.fail(BackendFault("it broke"))
        idle = await editor.idle(session)
        assert idle["stopReason"] == {"cancel": "cancelled", "fail": "error"}[how]
        if how == "fail":
            assert idle["error"] == {"code": -32603, "message": "it broke"}
            await cli.prompted()
            cli.finish()
            await editor.answer(waiting)
            assert (await editor.idle(session, 2))["stopReason"] == "end_turn"


@pytest.mark.parametrize("method", ["session/close", "session/archive", "session/delete"])
async def test_a_close_says_how_all_ended_ahead_of_its_answer(tmp_path: Path, method: str) -> None:
    async with opened(tmp_path) as (editor, session, cli):
        running, waiting = editor.prompt(session, "one"), editor.prompt(session, "two")
        await cli.prompted()
        took(cli, "one")
        cli.call("c")
        assert await editor.answer(running) == {"messageId": "u1"}
        answer = await editor.request(method, sessionId=session)
        assert (await error_of(editor, waiting)).code == -32800
        (answered,) = [n for n, line in enumerate(editor.lines) if line.get("result") is answer]
        told = [n for n, line in enumerate(editor.lines) if line.get("method") == "session/update"]
        assert told[-1] < answered
        *_, call, state = editor.updates(session)
        assert (call["toolCallId"], call["status"]) == ("c", "failed")
        assert state == {**STATE, "state": "idle", "stopReason": "cancelled"}


async def test_a_question_says_what_it_is_about_and_holds_the_session_up(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (editor, session, cli):
        took(cli, "go")
        cli.call("tool-1")
        chosen: list[object] = []

        async def ask() -> None:
            chosen.append(await cli.events.ask(QUESTION))

        async with anyio.create_task_group() as tg:
            tg.start_soon(ask)
            question = await editor.question()
            assert question.params == {
                "sessionId": session,
                "title": "rm -r build",
                "subject": {
                    "type": "tool_call",
                    "toolCall": {"toolCallId": "tool-1", "title": "rm -r build", "kind": "execute"},
                },
                "options": [
                    {"optionId": "yes", "name": "Allow once", "kind": "allow_once"},
                    {"optionId": "no", "name": "Refuse", "kind": "reject_once"},
                ],
            }
            assert states(editor, session) == ["running", "requires_action"]
            status = await editor.request("session/status", sessionId=session)
            assert (status["status"], obj(status, "state")["state"]) == ("open", "requires_action")
            question.answer("yes")
        assert chosen == ["yes"]
        cli.finish()
        await editor.idle(session)
        assert states(editor, session) == ["running", "requires_action", "running", "idle"]


async def test_a_turn_that_breaks_while_it_asks_says_why_it_ended(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (editor, session, cli):
        took(cli, "go")
        async with anyio.create_task_group() as tg:
            tg.start_soon(cli.events.ask, QUESTION)
            question = await editor.question()
            cli.die("the CLI is gone")
            idle = await editor.idle(session)
            assert idle["error"] == {"code": -32603, "message": "the CLI is gone"}
            await editor.wait_for(lambda line: line.get("method") == "$/cancel_request")
            question.answer("yes")
        await editor.round_trip()
        assert states(editor, session) == ["running", "requires_action", "idle"]


async def test_what_asks_in_the_background_holds_nothing_up(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (editor, session, cli):
        took(cli, "go")
        cli.finish()
        await editor.idle(session)
        async with anyio.create_task_group() as tg:
            tg.start_soon(cli.events.ask, QUESTION)
            question = await editor.question()
            cli.go_on_behind("t1", "c1")
            cli.end_behind("t1")
            # A turn that begins now is held up by it as far as anybody can tell.
            editor.prompt(session, "on")
            await cli.prompted()
            took(cli, "on", "u2")
            question.answer("yes")
        cli.finish()
        await editor.idle(session, 2)
        assert states(editor, session)[:2] == ["running", "idle"]
        assert states(editor, session)[-3:] == ["requires_action", "running", "idle"]
        assert set(states(editor, session)[2:-3]) <= {"idle"}


async def test_a_v1_and_a_v2_client_hear_the_same_turn_each_in_its_words(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    stored(alpha, tmp_path)
    async with editors(alpha, versions=(1, 2)) as (old, new):
        await old.request("session/load", sessionId="old", cwd=str(tmp_path), mcpServers=[])
        await new.request("session/resume", sessionId="old", cwd=str(tmp_path))
        cli = alpha.sessions[0]
        asked = old.prompt("old", "go")
        await cli.prompted()
        took(cli, "go", "u2")
        cli.say("hi", "m2")
        cli.call("c2")
        cli.events.update(ToolCallUpdate("c2", status="completed"))
        cli.finish()
        assert await old.answer(asked) == {"stopReason": "end_turn"}
        assert (await new.idle("old"))["stopReason"] == "end_turn"
        (echo,) = new.updates("old", "user_message")
        assert echo["messageId"] == "u2"
        assert new.said("old") == "hi" and old.said("old") == "one twohi"
        assert not {"state_update", "user_message"} & set(tags(old, "old"))
        assert len(old.updates("old", "tool_call")) == 2 and not new.updates("old", "tool_call")

        asked = new.prompt("old", "and you?")
        await cli.prompted()
        took(cli, "and you?", "u3")
        assert await new.answer(asked) == {"messageId": "u3"}
        cli.finish()
        await new.idle("old", 2)
        typed = old.updates("old", "user_message_chunk")[-1]
        assert (typed["messageId"], obj(typed, "content")["text"]) == ("u3", "and you?")
        assert "user_message_chunk" not in tags(new, "old")

        assert await new.request("session/set_title", sessionId="old", title=" From\nv2 ") == {"title": "From v2"}
        await old.update("old", "session_info_update", since=len(old.lines) - 1)
        assert old.titles("old")[-1] == "From v2"
        await old.request("session/set_title", sessionId="old", title="From v1")
        await new.round_trip()
        assert new.titles("old")[-1] == "From v1"


async def test_a_rename_by_prompt_is_a_turn_of_its_own(tmp_path: Path) -> None:
    async with v2_editor(ScriptedBackend()) as editor:
        session = await editor.new(tmp_path)
        answer = await editor.answer(editor.prompt(session, "/rename Better"))
        (echo,) = editor.updates(session, "user_message")
        assert echo["messageId"] == answer["messageId"]
        assert states(editor, session) == ["running", "idle"] and "Better" in editor.said(session)
        assert editor.titles(session) == ["Better"]


async def test_what_is_added_to_a_turn_is_told_as_typed_to_who_typed_it(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (editor, session, cli):
        took(cli, "go")
        more = [{"type": "text", "text": "and more"}]
        added = await editor.request("_session/steering", sessionId=session, prompt=more)
        assert added["outcome"] == "injected"
        took(cli, "and more", "u2")
        (chunk,) = [u for u in editor.updates(session, "user_message_chunk")] or [
            await editor.update(session, "user_message_chunk")
        ]
        assert (chunk["messageId"], obj(chunk, "content")["text"]) == ("u2", "and more")
        cli.finish()
        await editor.idle(session)


async def test_what_a_cli_takes_as_one_with_the_prompt_is_part_of_the_message(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2, 2, 1)) as (editor, other, old):
        session = await editor.new(tmp_path)
        await other.request("session/resume", sessionId=session, cwd=str(tmp_path))
        await old.request("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        cli = alpha.sessions[0]
        editor.prompt(session, "go")
        await cli.prompted()
        more = [{"type": "text", "text": "and more"}]
        await editor.request("_session/steering", sessionId=session, prompt=more)
        took(cli, "go")
        took(cli, "and more")
        cli.finish()
        await editor.idle(session)
        whole = [{"type": "text", "text": "go"}, *more]
        for client in (editor, other):
            echoes = client.updates(session, "user_message")
            assert [echo["messageId"] for echo in echoes] == ["u1", "u1"] and echoes[-1]["content"] == whole
            assert client.updates(session, "user_message_chunk") == []
        typed = [text(obj(u, "content"), "text") for u in old.updates(session, "user_message_chunk")]
        assert typed == ["go", "and more"]


async def test_a_form_is_put_as_one_and_holds_the_session_up(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2,), can={"elicitation": {"form": {}, "url": {}}}) as (editor,):
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        editor.prompt(session, "go")
        await cli.prompted()
        form = Form("f", "Which one?", (Field("which", "one", choices=(FormChoice("a", "A"), FormChoice("b", "B"))),))
        answers: list[FormAnswer] = []

        async def ask() -> None:
            answers.append(await cli.events.ask_form(form))

        async with anyio.create_task_group() as tg:
            tg.start_soon(ask)
            asked = await editor.form(session)
            assert states(editor, session) == ["running", "requires_action"]
            asked.reply({"action": "accept", "content": {"which": "b"}})
        assert (answers[0].action, answers[0].values) == ("accept", {"which": "b"})
        cli.finish()
        await editor.idle(session)
