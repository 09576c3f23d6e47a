"""What a client of ACP v2 is told: updates, histories, work in the background. Every line is judged."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text
from acp_manifold.translators.updates import (
    Command,
    Commands,
    Diff,
    Image,
    MessageChunk,
    Plan,
    PlanEntry,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
)

from .editor import editors
from .scripted import OPTIONS, ScriptedBackend
from .v2 import STATE, at_work, refused, states, stored, took, v2_editor

pytestmark = pytest.mark.anyio


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


async def test_commands_that_are_known_stand_in_the_answer_and_nowhere_else(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, versions=(2, 2, 1)) as (first, second, old):
        session = await first.new(tmp_path)
        alpha.sessions[0].events.update(Commands((Command("go", "goes", "where"),)))
        await first.round_trip()
        (told,) = first.updates(session, "available_commands_update")
        for editor in (first, second):
            answer = await editor.request("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
            assert answer["availableCommands"] == told["availableCommands"]
        assert len(first.updates(session, "available_commands_update")) == 1
        assert second.updates(session, "available_commands_update") == []
        answer = await old.request("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert "availableCommands" not in answer
        await old.round_trip()
        assert len(old.updates(session, "available_commands_update")) == 1
        alpha.sessions[0].events.update(Commands(()))
        for editor in (first, second, old):
            await editor.round_trip()
            assert editor.updates(session, "available_commands_update")[-1]["availableCommands"] == []


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
