"""Background commands of the interactive program, as Claude Code 2.1.332 records them."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.terminal import TerminalConversation
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import BackgroundTask, Text, ToolCallUpdate, Update, Usage

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
