"""Commands as terminals, for clients that show one from `_meta`."""

from __future__ import annotations

import json

import pytest

from acp_manifold.translators.acp.terminals import Terminals
from acp_manifold.translators.narrow import JsonObject, obj
from acp_manifold.translators.updates import Diff, Text, ToolCall, ToolCallUpdate, ToolOutput, Update

SHOWN = {"type": "terminal", "terminalId": "t"}


def told(*updates: Update) -> list[JsonObject]:
    terminals = Terminals()
    rendered = (terminals.render("s", update) for update in updates)
    return [obj(params, "update") for params in rendered if params is not None]


def test_a_command_is_a_terminal_with_its_output_and_its_exit() -> None:
    begun, first, second, ended = told(
        ToolCall("t", "make", "execute", runs_in="/w"),
        ToolOutput("t", "one\n"),
        ToolOutput("t", "two\n"),
        ToolCallUpdate("t", status="failed", exit_code=2),
    )
    assert (begun["content"], begun["_meta"]) == ([SHOWN], {"terminal_info": {"terminal_id": "t", "cwd": "/w"}})
    assert [obj(obj(piece, "_meta"), "terminal_output")["data"] for piece in (first, second)] == ["one\n", "two\n"]
    assert "content" not in first and "content" not in ended
    assert ended["status"] == "failed"
    assert ended["_meta"] == {"terminal_exit": {"terminal_id": "t", "exit_code": 2, "signal": None}}


def test_what_else_a_command_shows_stands_before_its_terminal() -> None:
    _, known = told(ToolCall("t", "Bash", runs_in="/w"), ToolCallUpdate("t", title="make", content=(Text("builds"),)))
    assert known["content"] == [{"type": "content", "content": {"type": "text", "text": "builds"}}, SHOWN]
    assert "_meta" not in known


def test_other_calls_and_their_output_stay_as_they_are() -> None:
    call = ToolCall("e", "Edit a", "edit", content=(Diff("/a", None, "x"),))
    begun, piece = told(call, ToolOutput("e", "done\n"))
    assert "_meta" not in begun and "_meta" not in piece
    assert piece["content"] == [{"type": "content", "content": {"type": "text", "text": "```console\ndone\n```"}}]


@pytest.mark.case("S02")
def test_output_is_told_once_whatever_its_size() -> None:
    pieces = [ToolOutput("t", "x" * 1024) for _ in range(5000)]
    lines = told(ToolCall("t", "yes", runs_in="/"), *pieces, ToolCallUpdate("t", status="completed"))
    size = len(json.dumps(lines))
    assert 5_000 * 1024 < size < 1.2 * 5_000 * 1024
