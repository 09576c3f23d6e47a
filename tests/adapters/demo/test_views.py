"""The demo's two ways to be shown: plain lines, and lanes on a terminal."""

from __future__ import annotations

import re

from acp_manifold.adapters.demo.lanes import Lanes
from acp_manifold.adapters.demo.lines import Lines
from acp_manifold.adapters.demo.view import Marks

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def test_plain_lines_carry_their_lane_and_lose_no_word() -> None:
    printed: list[str] = []
    view = Lines(printed.append)
    story = " ".join(f"word{n}" for n in range(40))
    for word in story.split():
        view.say("claude", word + " ")
    view.title("codex", "A title")
    view.title("codex", "A title")
    view.note("claude", "turn ended")
    view.narrate("now")
    view.close()
    assert " ".join(line[9:] for line in printed if line.startswith("claude | word")) == story
    assert [line for line in printed if "word" not in line] == [
        "codex  | [title: A title]",
        "claude | [turn ended]",
        "you    | now",
    ]


def test_lanes_are_drawn_side_by_side_in_place() -> None:
    drawn: list[str] = []
    view = Lanes(drawn.append, 80, 40, colour=True, marks=Marks("utf-8"))
    view.say("claude", "left words")
    view.title("codex", "Its title")
    view.say("codex", "right words " * 20)
    view.close()
    frames = ["".join(ESCAPE.sub("", text)) for text in drawn]
    last = frames[-2].splitlines()
    assert last[0].split() == ["●", "Claude", "Code", "│", "●", "Codex"]
    assert last[1].split("│")[1].strip() == "Its title"
    assert last[3].startswith("left words")
    assert last[3].split("│")[1].strip() == "right words right words right words"
    assert {len(row) for row in last[:-2]} == {2 * 38 + 3}
    assert drawn[1].startswith(f"\x1b[{len(last)}A")


def test_marks_fall_back_to_ascii() -> None:
    assert Marks("utf-8").yes == "✓"
    assert Marks("latin-1").yes == Marks(None).yes == "ok"
