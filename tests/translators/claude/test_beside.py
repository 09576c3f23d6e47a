"""What Claude Code tells beside words: notices, plans by task, sub-agents, searches, compactions, odd endings."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.frames import parse
from acp_manifold.translators.claude.turn import Conversation
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    Compaction,
    MessageChunk,
    Notice,
    OfSubagent,
    Plan,
    PlanEntry,
    ResourceLink,
    Subagent,
    Text,
    ToolCall,
    ToolCallUpdate,
    TurnEnd,
    Unknown,
    Update,
)


def system(subtype: str, **fields: object) -> JsonObject:
    return {"type": "system", "subtype": subtype, "uuid": "u", **fields}


def agent(*blocks: JsonObject, **fields: object) -> JsonObject:
    return {"type": "assistant", "message": {"id": "m", "content": list(blocks)}, **fields}


def calls(call_id: str, name: str, **tool_input: object) -> JsonObject:
    return {"type": "tool_use", "id": call_id, "name": name, "input": tool_input}


def returns(call_id: str, structured: object = None, parent: str | None = None, words: str = "ok") -> JsonObject:
    block = {"type": "tool_result", "tool_use_id": call_id, "content": words}
    frame: JsonObject = {"type": "user", "message": {"content": [block]}, "tool_use_result": structured}
    return {**frame, "parent_tool_use_id": parent}


def result(**fields: object) -> JsonObject:
    return {"type": "result", "subtype": "success", "user_message_uuid": "p", **fields}


def feed(*lines: JsonObject) -> tuple[Conversation, list[Update]]:
    conversation = Conversation("/w")
    conversation.begin("p")
    return conversation, [update for line in lines for update in conversation.feed(parse(line))]


@pytest.mark.parametrize(
    ("line", "notice"),
    [
        (system("informational", content="One\nTwo", level="warning"), Notice("warning", "One", "Two")),
        (system("informational", content="One", level="notice"), Notice("info", "One")),
        (system("informational", content="Blocked", prevent_continuation=True), None),
        (system("notification", text="Look", priority="high"), Notice("warning", "Look")),
        (system("notification", text="Look", priority="low"), None),
        (
            system("api_retry", attempt=2, max_retries=10, retry_delay_ms=600, error_status=529),
            Notice("warning", "The model's API answered with 529", "Trying again in 0.6 s (try 2 of 10)"),
        ),
        (
            {
                "type": "rate_limit_event",
                "rate_limit_info": {
                    "status": "allowed_warning",
                    "rateLimitType": "five_hour",
                    "utilization": 0.9,
                    "resetsAt": 1796089886,
                },
            },
            Notice("warning", "The five-hour limit is close (90% used)", "It resets at 2026-12-01 01:51 UTC"),
        ),
        ({"type": "rate_limit_event", "rate_limit_info": {"status": "allowed"}}, None),
        (system("model_refusal_fallback", fallback_model="m2"), Notice("warning", "The model refused; m2 goes on")),
        (system("hook_response", outcome="success"), None),
        (
            system("hook_response", outcome="error", hook_name="Stop", stderr="x"),
            Notice("warning", "Hook Stop failed", "x"),
        ),
        (system("hook_started"), None),
    ],
)
def test_what_a_person_should_see_is_a_notice(line: JsonObject, notice: Notice | None) -> None:
    conversation, told = feed(line)
    assert told == ([notice] if notice is not None else [])
    assert conversation.unknown is None


def test_a_line_of_an_unknown_kind_is_known_as_such() -> None:
    conversation, told = feed(system("of_tomorrow"))
    assert told == [] and isinstance(conversation.unknown, Unknown)


def test_a_compaction_begins_once_and_ends() -> None:
    begins = system("status", status="compacting")
    _, told = feed(begins, begins, system("status", status=None, compact_result="success"))
    assert told == [Compaction("u", "in_progress"), Compaction("u", "completed")]
    _, told = feed(begins, system("status", status=None, compact_result="failed", compact_error="too long"))
    assert told[-1] == Compaction("u", "failed", error="too long")
    _, told = feed(begins, result())
    assert told[-1] == Compaction("u", "cancelled")


def test_tasks_make_a_plan_and_no_tool_calls() -> None:
    _, told = feed(
        agent(calls("1", "TaskCreate", subject="Dig"), calls("2", "TaskCreate", subject="Fill")),
        returns("1", {"task": {"id": "1", "subject": "Dig"}}),
        returns("2", {"task": {"id": "2", "subject": "Fill"}}),
        agent(calls("3", "TaskUpdate", taskId="1", status="in_progress")),
        returns("3", {"success": True, "taskId": "1"}),
        agent(calls("4", "TaskUpdate", taskId="2", status="deleted")),
        returns("4", {"success": True, "taskId": "2"}),
        agent(calls("5", "TaskUpdate", taskId="9", status="completed")),
        returns("5", {"success": False}),
    )
    assert told == [
        Plan((PlanEntry("Dig", "pending"),)),
        Plan((PlanEntry("Dig", "pending"), PlanEntry("Fill", "pending"))),
        Plan((PlanEntry("Dig", "in_progress"), PlanEntry("Fill", "pending"))),
        Plan((PlanEntry("Dig", "in_progress"),)),
    ]


def test_with_a_sub_agent_that_is_stopped_its_calls_are_cancelled() -> None:
    block: JsonObject = {"type": "tool_result", "tool_use_id": "t", "content": "No", "is_error": True}
    about: JsonObject = {"id": "t", "non_execution_kind": "user-rejected"}
    _, told = feed(
        agent(calls("t", "Task", description="Look", prompt="p", subagent_type="x")),
        agent(calls("i", "Read", file_path="/w/a"), parent_tool_use_id="t"),
        {"type": "user", "message": {"content": [block]}, "tool_result_meta": [about]},
    )
    assert told[-3:-1] == [
        OfSubagent("t", ToolCallUpdate("i", status="cancelled")),
        Subagent("t", "idle", stop_reason="cancelled"),
    ]
    final = told[-1]
    assert isinstance(final, ToolCallUpdate) and final.status == "cancelled"


def test_a_sub_agent_has_a_conversation_of_its_own() -> None:
    inner: JsonObject = {"parent_tool_use_id": "t"}
    _, told = feed(
        agent(calls("t", "Task", description="Look", prompt="p", subagent_type="x")),
        agent({"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look"}, **inner),
        agent(calls("i", "Read", file_path="/w/a"), calls("j", "Read", file_path="/w/b"), **inner),
        returns("i", parent="t"),
        returns("t", words="Done"),
    )
    call, begun, thought, words, *_, ended, over, final = told
    assert isinstance(call, ToolCall) and isinstance(final, ToolCallUpdate) and final.status == "completed"
    assert begun == Subagent("t", "running", "Look", "x", "p")
    assert thought == OfSubagent("t", MessageChunk("thought", Text("hm"), "m"))
    assert words == OfSubagent("t", MessageChunk("agent", Text("I look"), "m"))
    inside = [update.update for update in told if isinstance(update, OfSubagent)]
    assert [update.title for update in inside if isinstance(update, ToolCall)] == ["Read a", "Read b"]
    assert ended == OfSubagent("t", ToolCallUpdate("j", status="failed"))
    assert over == Subagent("t", "idle", stop_reason="end_turn")


def test_an_agent_in_the_background_ends_its_call_with_its_last_words() -> None:
    inner: JsonObject = {"parent_tool_use_id": "t"}
    running = {"tasks": [{"task_id": "a", "description": "Look"}]}
    _, told = feed(
        agent(calls("t", "Task", description="Look", prompt="p")),
        system("background_tasks_changed", **running),
        system("task_started", task_id="a", tool_use_id="t"),
        returns("t", words="Launched"),
        result(),
        agent({"type": "text", "text": "I look"}, **inner),
        agent({"type": "text", "text": "Two bugs"}, **inner),
        system("task_updated", task_id="a", patch={"status": "completed"}),
    )
    assert [update.status for update in told if isinstance(update, ToolCallUpdate)] == ["in_progress", "completed"]
    assert told[-2:] == [
        Subagent("t", "idle", stop_reason="end_turn"),
        ToolCallUpdate("t", status="completed", content=(Text("Two bugs"),)),
    ]


def test_a_search_that_runs_with_the_model_ends_with_what_it_found() -> None:
    page = {"type": "web_search_result", "url": "https://a.test", "title": "A"}
    asks: JsonObject = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "acp"}}
    _, told = feed(
        agent(asks), agent({"type": "web_search_tool_result", "tool_use_id": "s", "content": [page]}), result()
    )
    assert told[1:] == [ToolCallUpdate("s", status="completed", content=(ResourceLink("https://a.test", "A"),))]
    error = {"type": "web_search_tool_result_error", "error_code": "unavailable"}
    _, told = feed(agent(asks), agent({"type": "web_search_tool_result", "tool_use_id": "s", "content": error}))
    assert told[1:] == [ToolCallUpdate("s", status="failed", content=(Text("unavailable"),))]


@pytest.mark.case("A02")
@pytest.mark.parametrize(
    ("error", "stop_reason", "reason"),
    [("max_output_tokens", "stop_sequence", "max_tokens"), ("invalid_request", "refusal", "refusal")],
)
def test_a_refusal_and_a_limit_are_stop_reasons_with_the_words_of_the_cli(
    error: str, stop_reason: str, reason: str
) -> None:
    conversation, told = feed(
        agent({"type": "text", "text": "half"}),
        agent({"type": "text", "text": "API Error: no"}, error=error),
        result(is_error=True, stop_reason=stop_reason, result="API Error: no"),
    )
    assert isinstance(conversation.outcome, TurnEnd) and conversation.outcome.stop_reason == reason
    assert [update.content for update in told if isinstance(update, MessageChunk)] == [
        Text("half"),
        Text("API Error: no"),
    ]
