"""A client of ACP v2 on the bridge: the life of a prompt, what it hears, what it may ask. Every line is judged."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.backend import SessionRow
from acp_manifold.bridge.errors import BackendFault
from acp_manifold.translators.forms import Choice as FormChoice
from acp_manifold.translators.forms import Field, Form, FormAnswer
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text
from acp_manifold.translators.updates import (
    Diff,
    Image,
    MessageChunk,
    Notice,
    Plan,
    PlanEntry,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
)

from .editor import Editor, Refused, editors
from .scripted import OPTIONS, QUESTION, ScriptedBackend, ScriptedSession

pytestmark = pytest.mark.anyio


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


def tags(editor: Editor, session: str) -> list[object]:
    return [update["sessionUpdate"] for update in editor.updates(session)]


def states(editor: Editor, session: str) -> list[object]:
    return [update["state"] for update in editor.updates(session, "state_update")]


def took(cli: ScriptedSession, words: str, message_id: str = "u1") -> None:
    """The CLI says what was typed, as the real ones do."""
    cli.events.update(MessageChunk("user", Text(words), message_id))


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


async def error_of(editor: Editor, asked: int) -> Refused:
    with pytest.raises(Refused) as caught:
        await editor.answer(asked)
    return caught.value


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


async def test_a_command_prints_into_a_terminal_each_byte_once(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (editor, session, cli):
        command = ToolCall("c1", "make", "execute", "in_progress", raw_input={"command": "make"}, runs_in="/src")
        cli.events.update(command)
        pieces = [f"line {n} ä\n" for n in range(200)]
        for piece in pieces:
            cli.events.update(ToolOutput("c1", piece))
        cli.events.update(ToolCallUpdate("c1", status="completed", content=(), exit_code=3))
        cli.events.update(ToolOutput("late", "x"))
        cli.finish()
        await editor.idle(session)
        begun, ended, late = editor.updates(session, "terminal_update")
        assert (begun["terminalId"], begun["command"], begun["cwd"]) == ("c1", "make", "/src")
        assert ended["exitStatus"] == {"exitCode": 3}
        chunks = [u for u in editor.updates(session, "terminal_output_chunk") if u["terminalId"] == "c1"]
        assert b"".join(b64decode(text(u, "data")) for u in chunks).decode() == "".join(pieces)
        terminal = {"type": "terminal", "terminalId": "c1"}
        assert [u.get("content") for u in editor.updates(session, "tool_call_update")] == [[terminal], [terminal]]
        (place,) = editor.updates(session, "tool_call_content_chunk")
        assert (place["toolCallId"], late["terminalId"]) == ("late", "late")
        assert place["content"] == {"type": "terminal", "terminalId": "late"}


async def test_everything_else_a_session_tells_has_its_form(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    alpha.options = OPTIONS
    async with v2_editor(alpha) as editor:
        result = await editor.request("session/new", cwd=str(tmp_path))
        session = text(result, "sessionId")
        offered = {option["configId"]: option for option in as_objects(result["configOptions"])}
        assert list(offered) == ["backend", "mode", "model", "fast"] and "modes" not in result
        assert offered["fast"]["type"] == "boolean" and offered["mode"]["category"] == "mode"
        cli = alpha.sessions[0]
        editor.prompt(session, "go")
        await cli.prompted()
        told = cli.events.update
        told(MessageChunk("thought", Text("hm"), "m"))
        told(MessageChunk("agent", Image("aGk=", "image/png"), "m"))
        told(MessageChunk("agent", Text("a notice")))
        told(Plan((PlanEntry("step", "pending"),)))
        told(ToolCall("e", "Edit", "edit", content=(Diff("/src/a b.txt", "1\n2\n3\n4\n5\n", "1\n2\n3\nfour\n5"),)))
        told(MessageChunk("agent", Text("another")))
        cli.finish()
        await editor.idle(session)
        (thought,) = editor.updates(session, "agent_thought_chunk")
        image, notice, another = editor.updates(session, "agent_message_chunk")
        ids = [u["messageId"] for u in (thought, image, notice, another)]
        assert ids[1] == "m" and len(set(ids)) == 4
        (plan,) = editor.updates(session, "plan_update")
        assert (obj(plan, "plan")["type"], obj(plan, "plan")["planId"]) == ("items", "plan")
        (edit,) = editor.updates(session, "tool_call_update")
        (diff,) = as_objects(edit["content"])
        assert diff["changes"] == [{"operation": "modify", "path": "/src/a b.txt"}]
        assert obj(diff, "patch")["text"] == (
            "diff --git a/src/a b.txt b/src/a b.txt\n--- a/src/a b.txt\n+++ b/src/a b.txt\n@@ -1,5 +1,5 @@\n"
            " 1\n 2\n 3\n-4\n-5\n+four\n+5\n\\ No newline at end of file\n"
        )


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


@pytest.mark.parametrize("replay", [False, True])
async def test_resume_tells_title_and_state_ahead_of_its_answer_and_the_history_if_asked(
    tmp_path: Path, replay: bool
) -> None:
    alpha = ScriptedBackend()
    stored(alpha, tmp_path)
    async with v2_editor(alpha) as editor:
        opening: JsonObject = {"sessionId": "old", "cwd": str(tmp_path)}
        wrong = {**opening, "replayFrom": {"type": "message", "messageId": "u1"}}
        assert (await refused(editor, "session/resume", **wrong)).data == {"field": "replayFrom.type"}
        place = {"type": "start"} if replay else None
        result = await editor.request("session/resume", **opening, replayFrom=place)
        assert list(result) == ["configOptions"]
        assert obj(editor.lines[-1], "result") == result
        *history, state = [u for u in editor.updates("old") if u["sessionUpdate"] != "session_info_update"]
        assert state == {"sessionUpdate": "state_update", "state": "idle", "background": []}
        info = editor.updates("old", "session_info_update")[-1]
        assert (info["title"], info["updatedAt"]) == ("Old", "2026-01-01T00:00:00.000Z")
        said = [(u["sessionUpdate"], u.get("messageId"), u.get("content")) for u in history]
        assert said[:7] == (
            [
                ("user_message", "u1", []),
                ("user_message_chunk", "u1", {"type": "text", "text": "hello"}),
                ("agent_thought", "m1-thought", []),
                ("agent_thought_chunk", "m1-thought", {"type": "text", "text": "hm"}),
                ("agent_message", "m1", []),
                ("agent_message_chunk", "m1", {"type": "text", "text": "one "}),
                ("agent_message_chunk", "m1", {"type": "text", "text": "two"}),
            ]
            if replay
            else []
        )
        assert [u["sessionUpdate"] for u in history[7:]] == (
            [
                "terminal_update",
                "tool_call_update",
                "terminal_output_chunk",
                "terminal_update",
                "tool_call_update",
            ]
            if replay
            else []
        )


async def test_a_history_in_mid_turn_is_followed_by_what_the_turn_says_on(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2, 2)) as (one, two):
        session = await one.new(tmp_path)
        cli = alpha.sessions[0]
        one.prompt(session, "go")
        await cli.prompted()
        took(cli, "go")
        cli.say("so far")
        place = {"type": "start"}
        await two.request("session/resume", sessionId=session, cwd=str(tmp_path), replayFrom=place)
        assert two.said(session) == "so far" and states(two, session) == ["running"]
        cli.say(", and on")
        cli.finish()
        await two.idle(session)
        assert two.said(session) == "so far, and on" == one.said(session)


async def test_background_work_stands_in_every_state_and_is_ended_by_itself(tmp_path: Path) -> None:
    async with at_work(tmp_path) as (editor, session, cli):
        cli.go_on_behind("task", "call")
        cli.events.update(ToolCallUpdate("call", status="in_progress"))
        cli.finish()
        idle = await editor.idle(session)
        assert idle["background"] == [{"type": "tool_call", "toolCallId": "call"}]
        assert [u["capabilities"] for u in editor.updates(session, "tool_call_update") if "capabilities" in u] == [
            {"cancel": {}}
        ]
        error = await refused(editor, "tool_call/cancel", sessionId=session, toolCallId="other")
        assert error.code == -32602
        assert await editor.request("terminal/cancel", sessionId=session, terminalId="call") == {}
        assert "task" not in cli.behind
        cli.events.update(ToolCallUpdate("call", status="failed"))
        last = await editor.wait_for(
            lambda line: obj(obj(line, "params"), "update") == {**STATE, "state": "idle"},
        )
        assert last


async def test_each_piece_of_background_work_is_listed_once_as_what_it_is_told_to_be(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2, 2)) as (one, late):
        session = await one.new(tmp_path)
        cli = alpha.sessions[0]
        cli.go_on_behind("t1", "c1", command=True)
        cli.go_on_behind("t2", "c2")
        cli.events.update(ToolCallUpdate("c2", status="in_progress"))
        cli.agent_works("t3", "c3")
        await one.round_trip()
        child = f"{session}.c3"
        listed: list[object] = [
            {"type": "terminal", "terminalId": "c1"},
            {"type": "tool_call", "toolCallId": "c2"},
            {"type": "subagent", "sessionId": child},
        ]
        assert one.updates(session, "state_update")[-1]["background"] == listed
        (given,) = one.updates(child, "session_message")
        assert (given["senderSessionId"], given["content"]) == (session, [{"type": "text", "text": "Look"}])

        # Who comes later is told of each before it is listed.
        await late.request("session/resume", sessionId=session, cwd=str(tmp_path))
        told = late.updates(session)
        (state,) = late.updates(session, "state_update")
        assert state["background"] == listed
        announced = told[: told.index(state)]
        assert {
            (u["sessionUpdate"], u.get("terminalId") or u.get("toolCallId") or u.get("sessionId")) for u in announced
        } >= {
            ("terminal_update", "c1"),
            ("tool_call_update", "c1"),
            ("tool_call_update", "c2"),
            ("subagent_update", child),
        }
        late.tell("session/cancel", sessionId=child)
        late.tell("session/cancel", sessionId=f"{session}.nobody")
        await late.round_trip()
        assert late.updates(session, "state_update")[-1]["background"] == listed[:2]
        agents = one.updates(session, "subagent_update")
        assert [u["capabilities"] for u in agents if "capabilities" in u] == [{"cancel": {}}, None]
        assert [obj(u, "state")["state"] for u in agents if "state" in u] == ["running", "idle"]


STATE: JsonObject = {"sessionUpdate": "state_update", "background": []}


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
