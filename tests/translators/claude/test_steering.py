"""Messages that were added to a turn: when the turn ends, and how."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.turn import Conversation
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import MessageChunk, Text, TurnEnd

from .recorded import tell
from .test_turn import IDLE, begun, delta, feed, result, returns, start, uses


def life(uuid: str, state: str) -> JsonObject:
    return {"type": "command_lifecycle", "command_uuid": uuid, "state": state}


def ends(*uuids: str, **fields: object) -> JsonObject:
    return result(user_message_uuids=list(uuids), **fields)


def steered(conversation: Conversation, *uuids: str) -> Conversation:
    for uuid in uuids:
        conversation.steer(uuid)
    return conversation


def test_a_message_breaks_off_an_answer_but_no_tool_call() -> None:
    conversation = begun()
    assert conversation.steer("a") == "now"
    feed(conversation, uses("call", "Bash", {"command": "sleep 9"}))
    assert conversation.steer("b") == "next"
    feed(conversation, returns("call", "done"))
    assert conversation.steer("c") == "now"


def test_a_message_is_told_as_typed_when_it_is_taken_and_not_if_it_is_taken_back() -> None:
    conversation = begun("p")
    conversation.steer("a", (Text("and this"),))
    conversation.steer("b", (Text("not this"),))
    told = feed(conversation, life("a", "queued"), life("b", "queued"), life("b", "cancelled"), life("a", "started"))
    assert told == [MessageChunk("user", Text("and this"), "a")]
    assert feed(conversation, life("a", "completed"), ends("p", "a")) == []


def test_one_result_for_the_prompt_and_what_was_added_ends_the_turn() -> None:
    conversation = steered(begun("p"), "a")
    feed(conversation, life("a", "queued"), life("a", "started"), life("a", "completed"))
    assert conversation.outcome is None
    feed(conversation, ends("p", "a"))
    assert conversation.outcome == TurnEnd("end_turn")


def test_a_turn_of_two_cycles_ends_with_the_second_and_the_tokens_of_both() -> None:
    conversation = steered(begun("p"), "a")
    broken_off = ends("p", terminal_reason="aborted_streaming", usage={"input_tokens": 5, "output_tokens": 1})
    feed(conversation, life("a", "queued"), broken_off, life("p", "cancelled"), life("a", "started"))
    assert conversation.outcome is None
    told = feed(conversation, start("m2"), delta("second"), ends("a", usage={"input_tokens": 7, "output_tokens": 2}))
    assert [tell(update) for update in told] == ["agent: second"]
    assert conversation.outcome == TurnEnd("end_turn", 12, 3)


def test_a_message_that_comes_too_late_for_the_turn_is_still_answered_in_it() -> None:
    conversation = steered(begun("p"), "a")
    feed(conversation, ends("p"), life("p", "completed"), IDLE)
    assert conversation.outcome is None
    feed(conversation, life("a", "queued"), life("a", "started"), ends("a"), life("a", "completed"), IDLE)
    assert conversation.outcome == TurnEnd("end_turn")


def test_a_failure_before_the_last_cycle_is_said_and_the_turn_goes_on() -> None:
    conversation = steered(begun("p"), "a")
    told = feed(conversation, ends("p", is_error=True, result="API Error: 400 too long"))
    assert [tell(update) for update in told] == ["agent: API Error: 400 too long"]
    feed(conversation, ends("a", result="Fine"))
    assert conversation.outcome == TurnEnd("end_turn")


@pytest.mark.parametrize("before", [(), (ends("p"),)])
def test_a_message_that_is_taken_back_holds_up_nothing(before: tuple[JsonObject, ...]) -> None:
    conversation = steered(begun("p"), "a")
    feed(conversation, life("a", "queued"), *before)
    assert conversation.outcome is None
    feed(conversation, life("a", "cancelled"), *(() if before else (ends("p"),)))
    assert conversation.outcome == TurnEnd("end_turn")


def test_an_idle_cli_that_has_the_message_is_done_with_it() -> None:
    conversation = steered(begun("p"), "a")
    feed(conversation, life("a", "queued"), ends("p"), IDLE)
    assert conversation.outcome == TurnEnd("end_turn")
