"""What a live session keeps of what was said last (`recent`)."""

from __future__ import annotations

import pytest

from acp_manifold.bridge.recent import LIMIT, Recent
from acp_manifold.translators.updates import (
    Image,
    MessageChunk,
    Plan,
    PlanEntry,
    Role,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
    Update,
    Usage,
)


def chunk(text: str, message_id: str = "m", role: Role = "agent") -> MessageChunk:
    return MessageChunk(role, Text(text), message_id)


def kept(*updates: Update) -> Recent:
    recent = Recent()
    for update in updates:
        recent.add(update)
    return recent


def test_pieces_of_a_message_are_one_and_messages_keep_their_order() -> None:
    pieces = [chunk("hi", "u", "user"), *(chunk(f"{n} ", "a") for n in range(3000)), chunk("done", "b")]
    whole = "".join(f"{n} " for n in range(3000))
    assert kept(*pieces).items() == [chunk("hi", "u", "user"), chunk(whole, "a"), chunk("done", "b")]


def test_a_call_is_told_as_it_is_now_where_it_began() -> None:
    call = ToolCall("t", "make", "execute", "in_progress", (Text("$ make"),))
    recent = kept(
        call,
        ToolOutput("t", "one\n"),
        chunk("meanwhile"),
        ToolOutput("t", "two\n"),
        ToolCallUpdate("t", title="make all"),
        ToolCallUpdate("t", status="completed"),
    )
    patch = ToolCallUpdate("t", title="make all", status="completed")
    assert recent.items() == [call, ToolOutput("t", "one\ntwo\n"), patch, chunk("meanwhile")]


def test_what_is_known_about_a_session_is_no_history() -> None:
    plan = Plan((PlanEntry("step", "pending"),))
    picture = MessageChunk("user", Image("aGk=", "image/png"), "u")
    assert kept(Usage(1, 2), plan, picture).items() == [plan, picture]


def test_items_are_known_by_message_and_role_or_by_call() -> None:
    recent = kept(chunk("x", "m"), ToolCall("t", "ls"))
    assert recent.holds(chunk("y", "m")) and recent.holds(ToolCallUpdate("t"))
    assert not recent.holds(chunk("y", "m", "thought")) and not recent.holds(MessageChunk("agent", Text("?")))


def test_the_oldest_are_dropped_and_no_message_is_split() -> None:
    half = "x" * (LIMIT // 2)
    recent = kept(chunk(half, "a"), ToolCall("t", "ls", status="completed"), chunk(half, "a"), chunk(half, "b"))
    assert not recent.holds(chunk("", "a")) and not recent.holds(ToolCallUpdate("t"))
    assert recent.items() == [chunk(half, "b")]
    recent.add(ToolCallUpdate("t", status="failed"))
    assert recent.items() == [chunk(half, "b")], "what was dropped does not come back in pieces"


def test_a_call_that_goes_on_is_kept_with_all_behind_it() -> None:
    recent = kept(ToolCall("t", "sleep", status="in_progress"), *(chunk("x" * LIMIT, f"{n}") for n in range(3)))
    assert recent.holds(ToolCallUpdate("t"))
    recent.add(ToolCallUpdate("t", status="completed"))
    recent.add(chunk("x" * LIMIT, "last"))
    assert not recent.holds(ToolCallUpdate("t"))


def test_nothing_is_dropped_while_a_history_is_told() -> None:
    recent = kept(chunk("a", "a"))
    with recent.pinned():
        for number in range(4):
            recent.add(chunk("x" * LIMIT, str(number)))
        assert recent.holds(chunk("", "a"))
    recent.add(chunk("b", "b"))
    assert not recent.holds(chunk("", "a"))


@pytest.mark.parametrize("size", [10, LIMIT])
def test_it_can_be_forgotten_whole(size: int) -> None:
    recent = kept(chunk("x" * size), ToolCall("t", "ls"))
    recent.clear()
    assert recent.items() == [] and not recent.holds(chunk(""))
