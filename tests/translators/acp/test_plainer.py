"""What only some clients take, for those who do and for those who don't."""

from __future__ import annotations

from acp_manifold.translators.acp import v1
from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.acp.plainer import plainer
from acp_manifold.translators.updates import (
    Compaction,
    MessageChunk,
    Notice,
    OfSubagent,
    PlanChunk,
    PlanText,
    Subagent,
    Text,
    ToolCall,
    ToolCallUpdate,
    Update,
)

ALL = ClientCapabilities(notices=True, compaction=True)
NONE = ClientCapabilities()


def rendered(update: Update, can: ClientCapabilities) -> object:
    shown = plainer(update, can)
    return None if shown is None else v1.update_params("s", shown)["update"]


def test_a_notice_goes_as_one_to_clients_that_take_it() -> None:
    assert rendered(Notice("warning", "Slow", "Wait a little"), ALL) == {
        "sessionUpdate": "notice",
        "severity": "warning",
        "title": "Slow",
        "description": "Wait a little",
    }


def test_of_notices_others_are_told_errors_alone_each_as_a_message_of_its_own() -> None:
    assert plainer(Notice("warning", "Slow"), NONE) is None
    assert plainer(Notice("info", "Fine"), NONE) is None
    first, again, other = (
        plainer(Notice("error", title, "Start it"), NONE) for title in ("No server", "No server", "No tool")
    )
    assert isinstance(first, MessageChunk) and isinstance(other, MessageChunk)
    assert first == again and first.content == Text("\n\nNo server\n\nStart it\n\n")
    assert first.message_id and other.message_id and first.message_id != other.message_id


def test_a_compaction_is_an_update_of_its_own_or_else_a_tool_call() -> None:
    begins, ends = Compaction("c", "in_progress"), Compaction("c", "completed", "They fixed a bug")
    assert rendered(begins, ALL) == {
        "sessionUpdate": "compaction_update",
        "compactionId": "c",
        "status": "in_progress",
    }
    assert rendered(ends, ALL) == {
        "sessionUpdate": "compaction_update",
        "compactionId": "c",
        "status": "completed",
        "summary": [{"type": "text", "text": "They fixed a bug"}],
    }
    assert plainer(begins, NONE) == ToolCall("c", "Compact the conversation", "think", "in_progress", name="compact")
    assert plainer(ends, NONE) == ToolCallUpdate("c", status="completed", content=(Text("They fixed a bug"),))
    assert rendered(Compaction("c", "cancelled"), NONE) == {
        "sessionUpdate": "tool_call_update",
        "toolCallId": "c",
        "status": "failed",
    }


def test_what_everybody_takes_stays_as_it_is() -> None:
    call = ToolCall("t", "ls")
    assert plainer(call, NONE) is call


def test_a_plan_in_words_is_a_plan_or_else_a_message() -> None:
    chunk, whole = PlanChunk("p", "# Dig"), PlanText("p", "# Dig")
    assert plainer(chunk, NONE) == MessageChunk("agent", Text("# Dig"), "p")
    assert plainer(whole, NONE) is None
    assert plainer(chunk, ClientCapabilities(plan=True)) is None
    assert rendered(whole, ClientCapabilities(plan=True)) == {
        "sessionUpdate": "plan_update",
        "plan": {"type": "markdown", "planId": "p", "content": "# Dig"},
    }


def test_a_sub_agent_is_a_session_or_else_its_calls_name_the_one_that_began_it() -> None:
    said = OfSubagent("t", MessageChunk("agent", Text("I look"), "m"))
    nested = OfSubagent("t", Subagent("u", "running", "Look"))
    call = OfSubagent("t", ToolCall("c", "ls"))
    assert plainer(said, NONE) is None and plainer(nested, NONE) is None
    assert rendered(call, NONE) == {
        "sessionUpdate": "tool_call",
        "toolCallId": "c",
        "title": "ls",
        "kind": "other",
        "status": "pending",
        "_meta": {"claudeCode": {"parentToolUseId": "t"}},
    }
    can = ClientCapabilities(subagents=True)
    for update in (said, nested, call):
        assert plainer(update, can) is update
        assert v1.update_params("s", update)["sessionId"] == "s.t"
    about = v1.update_params("s", Subagent("t", "idle"))
    assert about == {
        "sessionId": "s",
        "update": {"sessionUpdate": "subagent_update", "sessionId": "s.t", "state": {"state": "idle"}},
    }
