"""Turns that no recording holds: frames made by hand."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.background import Tasks
from acp_manifold.translators.claude.endings import Failure
from acp_manifold.translators.claude.frames import TaskEnded, TasksRunning, TaskStarted, parse
from acp_manifold.translators.claude.turn import Conversation
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    MessageChunk,
    OfSubagent,
    OwnTurn,
    Text,
    ToolCallUpdate,
    ToolEnd,
    ToolOutput,
    TurnEnd,
    Unknown,
    Update,
)
from tests.translators.claude.recorded import tell

IDLE: JsonObject = {"type": "system", "subtype": "session_state_changed", "state": "idle"}


def feed(conversation: Conversation, *lines: JsonObject) -> list[Update]:
    return [update for line in lines for update in conversation.feed(parse(line))]


def begun(uuid: str = "u1") -> Conversation:
    conversation = Conversation("/w")
    conversation.begin(uuid)
    return conversation


def says(words: str, message_id: str = "m1") -> JsonObject:
    block: JsonObject = {"type": "text", "text": words}
    return {"type": "assistant", "message": {"id": message_id, "model": "x", "content": [block]}}


def uses(call_id: str, name: str, tool_input: JsonObject) -> JsonObject:
    block: JsonObject = {"type": "tool_use", "id": call_id, "name": name, "input": tool_input}
    return {"type": "assistant", "message": {"id": "m1", "model": "x", "content": [block]}}


def returns(call_id: str, content: object, **more: object) -> JsonObject:
    block: JsonObject = {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}
    return {"type": "user", "message": {"role": "user", "content": [block]}}


def result(**fields: object) -> JsonObject:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "", **fields}


def delta(words: str) -> JsonObject:
    event: JsonObject = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}}
    return {"type": "stream_event", "event": event}


def start(message_id: str) -> JsonObject:
    return {"type": "stream_event", "event": {"type": "message_start", "message": {"id": message_id}}}


RUNNING: JsonObject = {**IDLE, "state": "running"}


def lifecycle(state: str) -> JsonObject:
    return {"type": "command_lifecycle", "command_uuid": "u1", "state": state}


def test_a_prompt_behind_a_turn_of_the_clis_own_is_typed_when_that_is_over() -> None:
    conversation = Conversation("/w")
    assert feed(conversation, RUNNING, says("Noted")) == [
        OwnTurn(running=True),
        MessageChunk("agent", Text("Noted"), "m1"),
    ]
    conversation.begin("u1", (Text("go"),))
    own = [lifecycle("queued"), says("on", "m2"), result(origin={"kind": "task-notification"})]
    assert feed(conversation, *own) == [MessageChunk("agent", Text("on"), "m2")]
    assert (conversation.stirred, conversation.outcome) == (False, None)
    assert feed(conversation, lifecycle("started")) == [
        OwnTurn(False, TurnEnd("end_turn")),
        MessageChunk("user", Text("go"), "u1"),
    ]
    feed(conversation, result(user_message_uuids=["u1"]), IDLE)
    assert (conversation.own, conversation.outcome) == (False, TurnEnd("end_turn"))


@pytest.mark.parametrize("state", ["cancelled", "completed"])
def test_a_prompt_that_never_began_behind_a_turn_of_the_clis_own_was_not_typed(state: str) -> None:
    conversation = Conversation("/w")
    feed(conversation, RUNNING)
    conversation.begin("u1", (Text("go"),))
    typed = [
        update
        for update in feed(conversation, lifecycle("queued"), lifecycle(state))
        if not isinstance(update, OwnTurn)
    ]
    assert typed == ([] if state == "cancelled" else [MessageChunk("user", Text("go"), "u1")])
    assert conversation.outcome == TurnEnd("cancelled" if state == "cancelled" else "end_turn")
    assert conversation.own == (state == "cancelled")


def test_a_turn_of_the_clis_own_that_fails_says_why_and_ends_with_the_process_at_the_latest() -> None:
    conversation = Conversation("/w")
    failed = result(is_error=True, result="API Error: 500", origin={"kind": "task-notification"})
    assert feed(conversation, RUNNING, failed, IDLE) == [
        OwnTurn(running=True),
        OwnTurn(False, failure="API Error: 500"),
    ]
    feed(conversation, RUNNING)
    assert conversation.abandon("failed") == [OwnTurn(running=False)]
    assert conversation.abandon("failed") == []


def test_a_finished_block_adds_only_what_was_not_streamed() -> None:
    told = feed(begun(), start("m1"), delta("Hel"), says("Hello"), says("Another block"))
    assert [tell(update) for update in told] == ["agent: Hel", "agent: lo", "agent: Another block"]


def test_a_message_without_stream_events_is_said_whole() -> None:
    assert feed(begun(), says("All green")) == [MessageChunk("agent", Text("All green"), "m1")]


@pytest.mark.case("M05")
def test_a_result_of_a_task_notice_is_not_the_prompts() -> None:
    conversation = begun()
    feed(conversation, result(origin={"kind": "task-notification"}, num_turns=0))
    assert conversation.outcome is None
    feed(conversation, says("All green"), result())
    assert conversation.outcome == TurnEnd("end_turn")


@pytest.mark.case("M05")
def test_a_result_that_names_another_message_is_not_the_prompts() -> None:
    conversation = begun("u2")
    feed(conversation, result(user_message_uuids=["u1"]))
    assert conversation.outcome is None
    feed(conversation, result(user_message_uuids=["u1", "u2"]))
    assert conversation.outcome == TurnEnd("end_turn")


@pytest.mark.case("M05")
def test_what_comes_between_prompts_is_told_and_ends_nothing() -> None:
    conversation = begun()
    feed(conversation, result())
    assert [tell(u) for u in feed(conversation, says("By the way"), result())] == ["agent: By the way"]
    conversation.begin("u2")
    assert conversation.outcome is None


@pytest.mark.case("A02")
@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"is_error": True, "result": "Usage limit reached, resets 3am"}, "failed"),
        ({"is_error": True, "result": "Please run /login"}, "login"),
        ({"result": "Invalid API key · Please run /login"}, "login"),
        ({"is_error": True, "result": "no", "api_error_status": 401}, "login"),
        ({"is_error": True, "subtype": "error_during_execution", "errors": ["No conversation found"]}, "not_found"),
        ({"is_error": True, "subtype": "error_max_budget_usd"}, "failed"),
        ({"is_error": True}, "failed"),
    ],
)
def test_a_result_that_is_an_error_is_never_an_end(fields: JsonObject, kind: str) -> None:
    conversation = begun()
    feed(conversation, result(**fields))
    assert isinstance(conversation.outcome, Failure)
    assert conversation.outcome.kind == kind and conversation.outcome.text


def test_an_answer_that_speaks_of_logins_is_an_answer() -> None:
    conversation = begun()
    feed(conversation, says("Please run /login first"), result(result="Please run /login first"))
    assert conversation.outcome == TurnEnd("end_turn")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"stop_reason": "max_tokens"}, "max_tokens"),
        ({"stop_reason": "refusal"}, "refusal"),
        ({"stop_reason": "end_turn"}, "end_turn"),
        ({"subtype": "error_max_turns", "is_error": True}, "max_turn_requests"),
        ({"subtype": "error_during_execution", "is_error": True, "terminal_reason": "aborted_tools"}, "cancelled"),
    ],
)
def test_a_result_tells_why_the_turn_stopped(fields: JsonObject, reason: str) -> None:
    conversation = begun()
    feed(conversation, result(**fields))
    assert isinstance(conversation.outcome, TurnEnd) and conversation.outcome.stop_reason == reason


@pytest.mark.case("C03")
@pytest.mark.parametrize("last", [result(result="x"), result(is_error=True, result="y"), IDLE])
def test_whatever_comes_after_an_interrupt_is_cancelled(last: JsonObject) -> None:
    conversation = begun()
    feed(conversation, says("Working"))
    conversation.interrupt()
    feed(conversation, last)
    assert conversation.outcome is not None
    assert isinstance(conversation.outcome, TurnEnd) and conversation.outcome.stop_reason == "cancelled"


def test_the_idle_of_the_turn_before_does_not_end_an_interrupted_prompt() -> None:
    conversation = begun()
    conversation.interrupt()
    feed(conversation, IDLE)
    assert conversation.outcome is None
    conversation.interrupt_answered(["u1"])
    feed(conversation, IDLE)
    assert conversation.outcome is None
    feed(conversation, {"type": "command_lifecycle", "command_uuid": "u1", "state": "cancelled"})
    assert conversation.outcome == TurnEnd("cancelled")


def test_a_call_without_a_result_fails_with_the_turn() -> None:
    conversation = begun()
    told = feed(conversation, uses("t1", "Bash", {"command": "ls"}), result())
    assert told[-1] == ToolCallUpdate("t1", status="failed")


STOPPED: JsonObject = {
    "is_error": True,
    "content": "The user doesn't want to proceed with this tool use.",
}


@pytest.mark.parametrize(
    ("kind", "status"),
    [("user-rejected", "cancelled"), ("interrupted", "cancelled"), ("permission-rule", "failed"), (None, "failed")],
)
def test_a_call_is_cancelled_if_the_turn_was_stopped_and_has_failed_if_it_was_refused(
    kind: str | None, status: str
) -> None:
    conversation = begun()
    feed(conversation, uses("t1", "Read", {"file_path": "/w/a"}), uses("t2", "Read", {"file_path": "/w/b"}))
    about = [{"id": "t1", "non_execution_kind": kind}, {"id": "t2", "permission_decision": {"decision": "accept"}}]
    blocks = [{"type": "tool_result", "tool_use_id": call, **STOPPED} for call in ("t1", "t2")]
    told = feed(conversation, {"type": "user", "message": {"content": blocks}, "tool_result_meta": about})
    ends = {update.id: update.status for update in told if isinstance(update, ToolCallUpdate)}
    assert ends == {"t1": status, "t2": "failed"}


@pytest.mark.parametrize("status", ["failed", "cancelled"])
def test_what_is_open_ends_as_the_process_has_with_the_calls_of_sub_agents_and_work_in_the_background(
    status: ToolEnd,
) -> None:
    conversation = begun()
    agent = uses("a", "Task", {"description": "Look", "prompt": "p"})
    inner = {**uses("i", "Read", {"file_path": "/w/a"}), "parent_tool_use_id": "a"}
    background: tuple[JsonObject, ...] = (
        {"type": "system", "subtype": "background_tasks_changed", "tasks": [{"task_id": "b", "description": "x"}]},
        {"type": "system", "subtype": "task_started", "task_id": "b", "tool_use_id": "t1"},
    )
    feed(conversation, uses("t1", "Bash", {"command": "sleep"}), *background, uses("t2", "Bash", {}), agent, inner)
    told = [update.update if isinstance(update, OfSubagent) else update for update in conversation.abandon(status)]
    ends = {update.id: update.status for update in told if isinstance(update, ToolCallUpdate)}
    assert ends == dict.fromkeys(("t1", "t2", "a", "i"), status)
    assert conversation.abandon(status) == []


def test_a_task_that_is_being_stopped_is_cancelled_however_it_ends_unless_it_was_done() -> None:
    tasks = Tasks()
    for task_id, status in (("1", "failed"), ("2", "completed")):
        tasks.listed(TasksRunning({task_id: "x"}))
        tasks.started(TaskStarted(task_id, f"call {task_id}"), "make")
        tasks.stopping(task_id)
        told = tasks.ended(TaskEnded(task_id, "failed" if status == "failed" else "completed"))
        assert told == [ToolCallUpdate(f"call {task_id}", status="cancelled" if status == "failed" else "completed")]
    tasks.stopping("nobody's")
    assert tasks.ended(TaskEnded("nobody's", "failed")) == []


def test_todos_are_a_plan_and_no_call() -> None:
    todos: JsonObject = {"todos": [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "odd"}]}
    told = feed(begun(), uses("t1", "TodoWrite", todos), returns("t1", "done"), result())
    assert [tell(update) for update in told] == ["plan in_progress a, pending b"]


@pytest.mark.case("S02")
def test_a_huge_output_is_told_once_and_unchanged() -> None:
    output = "0123456789abcdef" * (20 * 1024 * 1024 // 16)
    told = feed(begun(), uses("t1", "Bash", {"command": "x"}), returns("t1", output))
    assert told[1:] == [ToolOutput("t1", output), ToolCallUpdate("t1", status="completed", exit_code=0)]


def test_a_result_in_words_alone_is_said() -> None:
    told = feed(begun(), result(result="Renamed", uuid="r1"))
    assert told == [MessageChunk("agent", Text("Renamed"), "r1")]


NOVEL: list[JsonObject] = [{"type": "novel"}, {"type": "system", "subtype": "novel"}, {}, {"type": 5}]

BROKEN: list[JsonObject] = [{}, {"message": 3, "event": 1, "subtype": None}, {"message": {"content": [1, {"type": 2}]}}]


@pytest.mark.parametrize("line", NOVEL)
def test_an_unknown_line_is_kept_and_harms_nothing(line: JsonObject) -> None:
    conversation = begun()
    assert feed(conversation, line) == []
    assert conversation.unknown == Unknown(line)


@pytest.mark.parametrize(
    "kind", ["assistant", "user", "stream_event", "system", "command_lifecycle", "rate_limit_event"]
)
@pytest.mark.parametrize("broken", BROKEN)
def test_a_line_of_the_wrong_shape_says_nothing_and_ends_nothing(kind: str, broken: JsonObject) -> None:
    conversation = begun()
    assert feed(conversation, {"type": kind, **broken}) == []
    assert conversation.outcome is None
