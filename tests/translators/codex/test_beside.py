"""What Codex tells beside words: notices, plans in words, compactions, reviews, changes of a patch, odd endings."""

from __future__ import annotations

import pytest

from acp_manifold.translators.codex.failures import stop_of
from acp_manifold.translators.codex.items import replayed
from acp_manifold.translators.codex.notices import of
from acp_manifold.translators.codex.turn import Stream
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    Compaction,
    Notice,
    PlanChunk,
    PlanText,
    ResourceLink,
    Text,
    ToolCall,
    ToolCallUpdate,
)


@pytest.mark.parametrize(
    ("method", "params", "notice"),
    [
        ("warning", {"message": "Slow\nvery"}, Notice("warning", "Slow", "very")),
        ("warning", {"message": "key sk-abcdefgh"}, Notice("warning", "key sk-...")),
        ("configWarning", {"summary": "Odd", "details": "line 3"}, Notice("warning", "Odd", "line 3")),
        ("model/rerouted", {"fromModel": "a", "toModel": "b"}, Notice("warning", "a gave way to b")),
        ("error", {"willRetry": False, "error": {"message": "x"}}, None),
        (
            "error",
            {"willRetry": True, "error": {"message": "Reconnecting... 1/5", "additionalDetails": "cut off"}},
            Notice("warning", "Reconnecting... 1/5", "cut off"),
        ),
        ("hook/completed", {"run": {"status": "completed", "eventName": "stop", "entries": []}}, None),
        (
            "hook/completed",
            {"run": {"status": "completed", "eventName": "stop", "entries": [{"kind": "warning", "text": "careful"}]}},
            Notice("warning", "A hook on stop has something to say", "careful"),
        ),
        ("account/rateLimits/updated", {"rateLimits": {"primary": {"usedPercent": 40}}}, None),
        (
            "account/rateLimits/updated",
            {"rateLimits": {"primary": {"usedPercent": 95, "windowDurationMins": 300, "resetsAt": 1796089886}}},
            Notice("warning", "The limit of 5 hours is close", "It resets at 2026-12-01 01:51 UTC"),
        ),
    ],
)
def test_what_a_person_should_see_is_a_notice(method: str, params: JsonObject, notice: Notice | None) -> None:
    assert of(method, params) == notice


def test_a_warning_of_every_turn_is_told_once() -> None:
    stream = Stream()
    told = [stream.translate("warning", {"message": "unknown model"}) for _ in range(3)]
    assert told == [(Notice("warning", "unknown model"),), (), ()]


def test_a_proposed_plan_is_told_in_pieces_and_whole() -> None:
    stream, item = Stream(), {"type": "plan", "id": "p", "text": "# Dig and fill"}
    assert stream.translate("item/started", {"item": {**item, "text": ""}}) == ()
    assert stream.translate("item/plan/delta", {"itemId": "p", "delta": "# Dig "}) == (PlanChunk("p", "# Dig "),)
    ended = stream.translate("item/completed", {"item": item})
    assert ended == (PlanChunk("p", "and fill"), PlanText("p", "# Dig and fill"))
    assert replayed(dict(item)) == (PlanChunk("p", "# Dig and fill"), PlanText("p", "# Dig and fill"))


def test_a_compaction_begins_and_ends_whatever_is_missing() -> None:
    item: JsonObject = {"item": {"type": "contextCompaction", "id": "c"}}
    stream = Stream()
    both = (Compaction("c", "in_progress"), Compaction("c", "completed"))
    assert (*stream.translate("item/started", item), *stream.translate("item/completed", item)) == both
    assert Stream().translate("item/completed", item) == both
    stream.translate("item/started", item)
    assert stream.end_turn(interrupted=False) == (Compaction("c", "cancelled"),)
    assert stream.end_open("failed") == ()


def test_a_review_is_a_call_with_its_reasons() -> None:
    stream = Stream()
    begun = stream.translate("item/autoApprovalReview/started", {"reviewId": "1", "review": {"status": "inProgress"}})
    (call,) = begun
    assert isinstance(call, ToolCall) and call.status == "in_progress"
    review = {"status": "denied", "riskLevel": "high", "rationale": "It deletes all"}
    ended = stream.translate("item/autoApprovalReview/completed", {"reviewId": "1", "review": review})
    assert ended == (ToolCallUpdate(call.id, status="failed", content=(Text("Denied. Risk: high. It deletes all"),)),)


def test_what_a_search_found_and_what_agents_said_is_shown() -> None:
    stream = Stream()
    results = [{"url": "https://a.test", "title": "A"}, {"other": 1}]
    search = {"type": "webSearch", "id": "w", "query": "q", "results": results}
    *_, found = stream.translate("item/completed", {"item": search})
    assert isinstance(found, ToolCallUpdate) and found.content == (ResourceLink("https://a.test", "A"),)
    states = {"t1": {"status": "completed", "message": "Two bugs"}, "t2": {"status": "running", "message": None}}
    waited = {"type": "collabAgentToolCall", "id": "c", "tool": "wait", "status": "completed", "agentsStates": states}
    *_, said = stream.translate("item/completed", {"item": waited})
    assert isinstance(said, ToolCallUpdate) and said.content == (Text("Two bugs"),)


@pytest.mark.case("A02")
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"message": "Incomplete response returned, reason: max_output_tokens"}, "max_tokens"),
        ({"message": "stream disconnected: Incomplete response returned, reason: content_filter"}, "refusal"),
        ({"message": "no", "codexErrorInfo": "cyberPolicy"}, "refusal"),
        ({"message": "no", "codexErrorInfo": "usageLimitExceeded"}, None),
        ({"message": "bad", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 500}}}, None),
        ({}, None),
    ],
)
def test_refusals_and_limits_are_stop_reasons_and_faults_are_not(error: JsonObject, reason: str | None) -> None:
    assert stop_of(error) == reason
