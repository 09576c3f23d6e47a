"""A command's output as a client of ACP v1 is told it."""

from __future__ import annotations

import pytest

from acp_manifold.translators.acp.output import SHOWN_LIMIT, ToolOutputs
from acp_manifold.translators.updates import Text, ToolCall, ToolCallUpdate, ToolOutput, Update


def shown_text(update: Update | None) -> str:
    assert isinstance(update, ToolCallUpdate) and update.content is not None
    last = update.content[-1]
    assert isinstance(last, Text)
    return last.text


def test_output_is_shown_at_once_and_whole_at_the_end() -> None:
    outputs = ToolOutputs()
    assert outputs.shown(ToolCall("t", "make")) == ToolCall("t", "make")
    assert shown_text(outputs.shown(ToolOutput("t", "one\n"))) == "```console\none\n```"
    assert outputs.shown(ToolOutput("t", "2\n")) is None
    final = outputs.shown(ToolCallUpdate("t", status="completed"))
    assert shown_text(final) == "```console\none\n2\n```"
    assert outputs.shown(ToolCallUpdate("t", title="x")) == ToolCallUpdate("t", title="x")


def test_output_stands_behind_the_content_the_call_has() -> None:
    outputs, what_for = ToolOutputs(), Text("builds it")
    outputs.shown(ToolCall("t", "make", kind="execute", content=(what_for,)))
    update = outputs.shown(ToolOutput("t", "done"))
    assert isinstance(update, ToolCallUpdate) and update.content == (what_for, Text("```console\ndone\n```"))


def test_output_stands_behind_content_that_came_once_the_call_was_known() -> None:
    outputs, what_for = ToolOutputs(), Text("builds it")
    outputs.shown(ToolCall("t", "Bash", kind="execute"))
    outputs.shown(ToolCallUpdate("t", title="make", kind="execute", content=(what_for,)))
    for update in (ToolOutput("t", "done"), ToolCallUpdate("t", status="completed")):
        shown = outputs.shown(update)
        assert isinstance(shown, ToolCallUpdate) and shown.content == (what_for, Text("```console\ndone\n```"))


def test_a_fence_in_the_output_does_not_end_the_block() -> None:
    text = shown_text(ToolOutputs().shown(ToolOutput("t", "a\n```\nb")))
    assert text == "````console\na\n```\nb\n````"


@pytest.mark.case("S02")
def test_what_is_sent_is_linear_in_the_output_and_capped_with_a_note() -> None:
    outputs, sent = ToolOutputs(), 0
    for index in range(5000):
        update = outputs.shown(ToolOutput("t", f"{index:04d}" + "x" * 1020))
        sent += len(shown_text(update)) if update is not None else 0
    text = shown_text(outputs.shown(ToolCallUpdate("t", status="failed")))
    assert sent + len(text) < 15_000_000
    assert len(text) < SHOWN_LIMIT + 200
    assert text.startswith("```console\n[4071424 earlier characters left out]\n") and "4999xxx" in text
    assert len(text) + 4071424 > 5000 * 1024


def test_two_calls_at_once_keep_their_own_output() -> None:
    outputs = ToolOutputs()
    outputs.shown(ToolOutput("a", "of a"))
    outputs.shown(ToolOutput("b", "of b"))
    assert "of a" in shown_text(outputs.shown(ToolCallUpdate("a", status="completed")))
    assert "of b" in shown_text(outputs.shown(ToolCallUpdate("b", status="completed")))
