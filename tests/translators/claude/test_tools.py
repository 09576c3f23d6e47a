"""How calls and their results are shown."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.tools import describe, fenced, outcome
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import Diff, Image, Location, Text, ToolCallUpdate


@pytest.mark.parametrize(
    ("name", "tool_input", "title", "kind"),
    [
        ("Bash", {"command": "ls -la"}, "ls -la", "execute"),
        ("Read", {"file_path": "/w/a/b.py", "offset": 10, "limit": 5}, "Read a/b.py (10 - 14)", "read"),
        ("Read", {"file_path": "/etc/hosts"}, "Read /etc/hosts", "read"),
        ("Grep", {"pattern": "x+", "path": "/w/src"}, "Search for x+ in src", "search"),
        ("Glob", {"pattern": "*.py"}, "Find *.py", "search"),
        ("WebFetch", {"url": "https://example.org"}, "Fetch https://example.org", "fetch"),
        ("WebSearch", {"query": "tea"}, "Search the web for tea", "fetch"),
        ("Task", {"description": "Look around"}, "Look around", "think"),
        ("ExitPlanMode", {"plan": "# Plan"}, "Ready to code?", "switch_mode"),
        ("mcp__files__read_all", {}, "files: read_all", "other"),
        ("Novel", {}, "Novel", "other"),
        ("Bash", {"command": 3}, "Bash", "execute"),
        ("Edit", {}, "Edit", "edit"),
    ],
)
def test_a_call_has_a_title_and_a_kind(name: str, tool_input: JsonObject, title: str, kind: str) -> None:
    view = describe(name, tool_input, "/w")
    assert (view.title, view.kind) == (title, kind)


def test_edits_of_one_call_are_a_diff_each() -> None:
    edits: JsonObject = {
        "file_path": "a.py",
        "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "", "new_string": "3"}],
    }
    view = describe("MultiEdit", edits, "/w")
    assert view.content == (Diff("/w/a.py", "1", "2"), Diff("/w/a.py", None, "3"))
    assert view.locations == (Location("/w/a.py"),)


def test_a_picture_in_a_result_is_shown() -> None:
    image: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    block: JsonObject = {"type": "tool_result", "content": [{"type": "text", "text": "Here"}, image]}
    assert outcome("t1", "Screenshot", block, None, "/w") == [
        ToolCallUpdate("t1", status="completed", content=(Text("Here"), Image("QUJD", "image/png")))
    ]


def test_an_edit_of_all_places_changes_all_places() -> None:
    structured = {"filePath": "/w/a", "oldString": "x", "newString": "y", "originalFile": "x x", "replaceAll": True}
    (update,) = outcome("t1", "Edit", {"content": "ok"}, structured, "/w")
    assert isinstance(update, ToolCallUpdate) and update.content == (Diff("/w/a", "x x", "y y"),)


def test_a_big_file_is_shown_by_its_changed_piece() -> None:
    structured = {"filePath": "/w/a", "oldString": "x", "newString": "y", "originalFile": "x" + "z" * 300_000}
    (update,) = outcome("t1", "Edit", {"content": "ok"}, structured, "/w")
    assert isinstance(update, ToolCallUpdate) and update.content == (Diff("/w/a", "x", "y"),)


def test_a_passage_of_a_big_file_is_whole_lines_and_says_where_it_is() -> None:
    before = "row\n" * 100_000 + "a = 1  # b\n" + "row\n" * 100_000
    structured = {"filePath": "/w/a", "oldString": "= 1", "newString": "= 2\n+ 3", "originalFile": before}
    (update,) = outcome("t1", "Edit", {"content": "ok"}, structured, "/w")
    assert isinstance(update, ToolCallUpdate)
    assert update.content == (Diff("/w/a", "a = 1  # b\n", "a = 2\n+ 3  # b\n", line=100_001),)


def test_a_fence_is_longer_than_any_in_the_text() -> None:
    assert fenced("a") == "```\na\n```"
    assert fenced("````\nx\n````\n") == "`````\n````\nx\n````\n`````"
