"""Conversations as plain text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acp_manifold.translators.plain import Conversation, Entry, one_line, printable, render
from acp_manifold.translators.updates import (
    Image,
    MessageChunk,
    Plan,
    ResourceLink,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
    Update,
    Usage,
)

DAY: list[Update] = [
    MessageChunk("user", Text("look at "), "u1"),
    MessageChunk("user", ResourceLink("file:///n.md", "n.md"), "u1"),
    MessageChunk("thought", Text("hm"), "t"),
    MessageChunk("agent", Text("I "), "a1"),
    MessageChunk("agent", Text("see.\n"), "a1"),
    ToolCall("t1", "ls", "execute", "in_progress"),
    ToolCall("t2", "cat\x1b[2J x\ny", "execute"),
    ToolOutput("t1", "not shown"),
    ToolCallUpdate("t1", title="ls -l", status="completed", content=(Text("not shown"),)),
    ToolCallUpdate("elsewhere", status="failed"),
    Usage(1, 2),
    Plan(()),
    MessageChunk("agent", Text("Done."), "a2"),
    MessageChunk("user", Image("AAAA", "image/png"), "u2"),
]


def test_a_conversation_is_what_was_said_and_a_line_for_each_thing_done() -> None:
    conversation = Conversation()
    for update in DAY:
        conversation.feed(update)
    entries = conversation.entries()
    assert entries == [
        Entry("user", "look at [n.md](file:///n.md)"),
        Entry("agent", "I see.\n"),
        Entry("tool", "ls -l", "completed"),
        Entry("tool", "cat\x1b[2J x\ny", "pending"),
        Entry("agent", "Done."),
        Entry("user", "[image image/png]"),
    ]
    assert "\n".join(render(entries)) == (
        "\n--- you\nlook at [n.md](file:///n.md)"
        "\n\n--- agent\nI see."
        "\n\n  * ls -l (completed)\n  * cat x y (pending)"
        "\n\nDone."
        "\n\n--- you\n[image image/png]"
    )


def test_messages_of_one_speaker_stay_apart_and_empty_ones_are_left_out() -> None:
    conversation = Conversation()
    for text, message in (("one", "a"), ("", "b"), ("two", "c")):
        conversation.feed(MessageChunk("agent", Text(text), message))
    assert conversation.entries() == [Entry("agent", "one"), Entry("agent", "two")]
    assert list(render(conversation.entries())) == ["", "--- agent", "one", "", "two"]


def test_escapes_go_whole_and_lines_and_tabs_stay() -> None:
    assert printable("a\x1b]0;title\x07b\r\nc\td\x1b[31m!\x00\u202e\ud800") == "ab\nc\td!"
    assert one_line(" a\n\tb\x1b[2J ") == "a b"


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text: str) -> None:
    assert all(char in "\n\t" or (char >= " " and not "\x7f" <= char <= "\x9f") for char in printable(text))
