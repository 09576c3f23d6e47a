"""Background work of the interactive program, and turns that it begins itself, as Claude Code 2.1.332 records them."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.terminal import TerminalConversation
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    BackgroundTask,
    MessageChunk,
    OfSubagent,
    OwnTurn,
    Subagent,
    Text,
    ToolCall,
    ToolCallUpdate,
    TurnEnd,
    Update,
    Usage,
)

OUTPUT = "/tmp/claude 0/s/tasks/b1.output"


def result(call: str, said: str, structured: JsonObject) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": call, "content": said, "is_error": False}
    return {"type": "user", "message": {"role": "user", "content": [block]}, "toolUseResult": structured}


def notice(status: str, task: str = "b1") -> JsonObject:
    content = f"<task-notification>\n<task-id>{task}</task-id>\n<status>{status}</status>\n</task-notification>"
    return {"type": "queue-operation", "operation": "enqueue", "content": content}


@pytest.fixture
def talk() -> TerminalConversation:
    """One in which a command goes on in the background."""
    talk = TerminalConversation("/w")
    talk.expect((Text("go"),))
    talk.recorded({"type": "user", "uuid": "u1", "message": {"role": "user", "content": "go"}})
    call: JsonObject = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make"}}
    talk.recorded({"type": "assistant", "uuid": "a1", "message": {"id": "m1", "content": [call]}})
    said = f"Command running in background with ID: b1. Output is being written to: {OUTPUT}. You will be notified"
    told = talk.recorded(result("t1", said, {"backgroundTaskId": "b1"}))
    assert statuses(told) == ["in_progress"]
    return talk


def statuses(updates: list[Update]) -> list[str | None]:
    return [update.status for update in updates if isinstance(update, ToolCallUpdate)]


def test_a_command_goes_on_behind_the_result_of_its_call_and_its_turn(talk: TerminalConversation) -> None:
    assert talk.tasks.all() == (BackgroundTask("b1", "make", "t1", command=True),)
    assert talk.outputs == {"b1": OUTPUT}
    assert statuses(talk.finish(interrupted=False)) == []
    assert talk.tasks.holds("t1")


@pytest.mark.parametrize(
    ("status", "told"), [("completed", "completed"), ("failed", "failed"), ("killed", "cancelled")]
)
def test_its_end_is_told_once(talk: TerminalConversation, status: str, told: str) -> None:
    assert talk.recorded(notice(status, "b2")) == []
    assert statuses(talk.recorded(notice(status))) == [told]
    assert talk.recorded(notice(status)) == [] and talk.tasks.all() == ()


def test_one_that_is_stopped_from_here_is_cancelled_though_the_program_says_that_it_failed(
    talk: TerminalConversation,
) -> None:
    talk.tasks.stopping("b1")
    assert statuses(talk.recorded(notice("failed"))) == ["cancelled"]


def test_one_that_the_model_stops_ends_with_that_call(talk: TerminalConversation) -> None:
    call: JsonObject = {"type": "tool_use", "id": "t2", "name": "TaskStop", "input": {"task_id": "b1"}}
    talk.recorded({"type": "assistant", "uuid": "a2", "message": {"id": "m2", "content": [call]}})
    told = talk.recorded(result("t2", "{}", {"message": "Successfully stopped task: b1 (make)", "task_id": "b1"}))
    assert {u.id: u.status for u in told if isinstance(u, ToolCallUpdate)} == {"t1": "cancelled", "t2": "completed"}


def test_context_and_cost_are_what_the_status_line_is_told_and_each_is_told_once(talk: TerminalConversation) -> None:
    window: JsonObject = {"context_window_size": 1000, "current_usage": None}
    assert talk.measured({"context_window": window, "cost": {"total_cost_usd": 0}}) == []
    window = {**window, "current_usage": {"input_tokens": 10, "output_tokens": 20}}
    status: JsonObject = {"context_window": window, "cost": {"total_cost_usd": 0.5}}
    assert talk.measured(status) == [Usage(30, 1000, 0.5)]
    assert talk.measured(status) == []


ASKED: JsonObject = {"description": "look", "prompt": "p", "subagent_type": "claude"}


def agent_begun(talk: TerminalConversation) -> list[Update]:
    """A sub-agent is set to work by the call t9, and goes on in the background."""
    call: JsonObject = {"type": "tool_use", "id": "t9", "name": "Task", "input": ASKED}
    told = talk.recorded({"type": "assistant", "uuid": "a9", "message": {"id": "m9", "content": [call]}})
    launched: JsonObject = {"status": "async_launched", "agentId": "x1", "description": "look"}
    return told + talk.recorded(result("t9", "Async agent launched", launched))


def by_agent(*blocks: JsonObject, kind: str = "assistant") -> JsonObject:
    return {"type": kind, "uuid": "i1", "agentId": "x1", "message": {"id": "i1", "role": kind, "content": [*blocks]}}


def test_a_sub_agent_goes_on_behind_its_call_and_what_it_does_is_its_own(talk: TerminalConversation) -> None:
    told = agent_begun(talk)
    assert [type(update) for update in told] == [ToolCall, Subagent, ToolCallUpdate]
    assert statuses(told) == ["in_progress"] and talk.has_agent("t9") and talk.has_agents
    assert talk.tasks.all()[1:] == (BackgroundTask("x1", "look", "t9", agent="t9"),)

    told = talk.recorded_of("x1", "t9", by_agent({"type": "text", "text": "p"}, kind="user"))
    assert told == []
    told = talk.recorded_of("x1", "t9", by_agent({"type": "text", "text": "inner"}))
    assert told == [OfSubagent("t9", MessageChunk("agent", Text("inner"), "i1"))]
    # A call that is asked about before its record is told once, in the agent's conversation.
    command: JsonObject = {"command": "ls"}
    talk.about_to_call({"tool_name": "Bash", "tool_input": command, "tool_use_id": "t10", "agent_id": "x1"})
    asked = talk.asked_about({"tool_name": "Bash", "tool_input": command, "agent_id": "x1"})
    (begun,) = talk.begin_asked(asked)
    assert isinstance(begun, OfSubagent) and isinstance(begun.update, ToolCall) and begun.id == "t9"
    call: JsonObject = {"type": "tool_use", "id": "t10", "name": "Bash", "input": command}
    assert talk.recorded_of("x1", "t9", by_agent(call)) == []
    placed = talk.placed(ToolCallUpdate("t10", status="in_progress"))
    assert placed == OfSubagent("t9", ToolCallUpdate("t10", status="in_progress"))

    ends = talk.recorded(notice("completed", "x1"))
    assert Subagent("t9", "idle", stop_reason="end_turn") in ends and not talk.has_agents and not talk.has_agent("t9")
    assert ends[-1] == ToolCallUpdate("t9", status="completed", content=(Text("inner"),))


def test_with_a_sub_agent_at_work_the_end_of_the_turn_is_known_by_its_record(talk: TerminalConversation) -> None:
    agent_begun(talk)
    assert talk.at_work
    talk.recorded({"type": "system", "subtype": "turn_duration", "uuid": "d1"})
    assert talk.over and not talk.at_work


def own(uuid: str = "o1") -> JsonObject:
    content = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>"
    origin: JsonObject = {"kind": "task-notification"}
    message: JsonObject = {"role": "user", "content": content}
    return {"type": "user", "uuid": uuid, "promptId": "p9", "origin": origin, "message": message}


DONE: JsonObject = {"type": "system", "subtype": "turn_duration", "uuid": "d1"}


def says(words: str) -> JsonObject:
    block: JsonObject = {"type": "text", "text": words}
    return {"type": "assistant", "uuid": "a5", "message": {"id": "m5", "content": [block], "stop_reason": "end_turn"}}


def owns(updates: list[Update]) -> list[OwnTurn]:
    return [update for update in updates if isinstance(update, OwnTurn)]


@pytest.mark.parametrize("hook_first", [False, True])
def test_what_the_program_begins_itself_is_a_turn_of_its_own(talk: TerminalConversation, hook_first: bool) -> None:
    talk.finish(interrupted=False)
    shown: JsonObject = {"message_id": "d1", "index": 0, "delta": "own words", "prompt_id": "p9"}
    told = talk.displayed(shown) if hook_first else talk.recorded(own())
    assert owns(told) == [OwnTurn(running=True)]
    more = (talk.recorded(own()) if hook_first else talk.displayed(shown)) + talk.recorded(says("own words"))
    assert owns(more) == []
    assert sum(isinstance(update, MessageChunk) for update in told + more) == 1
    assert owns(talk.recorded(DONE)) == [OwnTurn(False, TurnEnd("end_turn"))] and not talk.own
    assert talk.end_own() == []
    # A call of the hook may come behind the record that says that all is over.
    assert talk.displayed({**shown, "index": 1, "delta": ""}) == [] and not talk.own


def test_one_right_behind_our_turn_is_told_though_that_has_not_ended_here(talk: TerminalConversation) -> None:
    assert owns(talk.recorded(own("o0"))) == [], "part of the turn that runs"
    talk.recorded(DONE)
    assert owns(talk.recorded(own())) == [OwnTurn(running=True)]
    assert owns(talk.finish(interrupted=False)) == []
    interrupted: JsonObject = {"role": "user", "content": "[Request interrupted by user]"}
    told = talk.recorded({"type": "user", "uuid": "o2", "message": interrupted})
    assert owns(told) == [OwnTurn(False, TurnEnd("cancelled"))]


def test_one_that_fails_says_why_and_one_that_leaves_no_record_ends_with_the_next_prompt(
    talk: TerminalConversation,
) -> None:
    talk.finish(interrupted=False)
    talk.recorded(own())
    talk.recorded({**says("Overloaded"), "isApiErrorMessage": True, "error": "overloaded"})
    assert owns(talk.recorded(DONE)) == [OwnTurn(False, failure="Overloaded")]
    talk.recorded(own("o2"))
    talk.expect((Text("next"),))
    told = talk.recorded({"type": "user", "uuid": "u2", "message": {"role": "user", "content": "next"}})
    assert owns(told) == [OwnTurn(running=False)] and told[-1] == MessageChunk("user", Text("next"), "u2")
