"""What is typed into a running turn of the interactive program, as Claude Code 2.1.332 records it."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.terminal import TerminalConversation
from acp_manifold.translators.claude.terminal_added import Message
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import MessageChunk, Text

MORE = (Text("more, please"),)
TOLD = [MessageChunk("user", MORE[0], "q1")]

DONE: JsonObject = {"type": "system", "subtype": "turn_duration", "uuid": "d1"}
INTERRUPTED: JsonObject = {"role": "user", "content": "[Request interrupted by user]"}


def user(words: str, uuid: str, prompt: str) -> JsonObject:
    return {"type": "user", "uuid": uuid, "promptId": prompt, "message": {"role": "user", "content": words}}


def queue(operation: str, content: str = "more, please") -> JsonObject:
    return {"type": "queue-operation", "operation": operation, "content": content}


@pytest.fixture
def message() -> Message:
    return Message("moreplease", MORE)


@pytest.fixture
def talk(message: Message) -> TerminalConversation:
    """One into whose turn a message was typed."""
    talk = TerminalConversation("/w")
    talk.expect((Text("go"),))
    talk.recorded(user("go", "u1", "p1"))
    talk.add(message)
    talk.recorded(queue("enqueue", "something else"))
    assert not talk.added.queued
    talk.recorded(queue("enqueue"))
    assert talk.added.queued and message.open
    return talk


def test_it_is_told_where_the_model_is_shown_it_with_the_results_of_tools(talk: TerminalConversation) -> None:
    attachment: JsonObject = {
        "type": "queued_command",
        "commandMode": "prompt",
        "prompt": "more, please",
        "source_uuid": "q1",
    }
    assert talk.recorded(queue("remove")) == []
    assert talk.recorded({"type": "attachment", "attachment": {**attachment, "commandMode": "bash"}}) == []
    assert talk.recorded({"type": "attachment", "attachment": attachment}) == TOLD
    assert talk.recorded({"type": "attachment", "attachment": attachment}) == []
    talk.recorded(DONE)
    assert talk.over


def test_behind_the_answer_it_is_a_cycle_of_the_same_turn(talk: TerminalConversation) -> None:
    talk.recorded(DONE)
    assert not talk.over
    assert talk.recorded(user("more, please", "q1", "p2")) == TOLD
    late: JsonObject = {"message_id": "d1", "index": 0, "delta": "late", "prompt_id": "p1"}
    assert talk.displayed(late) == [] and not talk.own
    talk.recorded(DONE)
    assert talk.over


def test_taken_back_it_is_no_part_of_the_turn_and_not_told(talk: TerminalConversation, message: Message) -> None:
    talk.recorded(queue("popAll"))
    assert not (talk.added.queued or talk.added.open or message.open)
    talk.recorded({"type": "user", "uuid": "i1", "message": INTERRUPTED})
    assert talk.over
    assert talk.recorded(user("more, please", "x1", "p3")) == [MessageChunk("user", MORE[0], "x1")]


def test_an_interrupt_that_leaves_it_in_the_queue_does_not_end_the_turn(talk: TerminalConversation) -> None:
    talk.recorded({"type": "user", "uuid": "i1", "message": INTERRUPTED})
    assert not talk.over
    assert talk.recorded(user("more, please", "q1", "p2")) == TOLD
    talk.recorded({"type": "user", "uuid": "i2", "message": INTERRUPTED})
    assert talk.over


def test_the_next_prompt_begins_without_what_was_never_answered(talk: TerminalConversation) -> None:
    talk.added.drop()
    talk.add(Message("other", (Text("other"),)))
    talk.expect((Text("next"),))
    talk.recorded(user("next", "u2", "p4"))
    talk.recorded(DONE)
    assert talk.over
