"""The demo on a terminal: two columns side by side that fill while both agents speak."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field

from .view import LABELS, LANES, Lane, Marks

NARROWEST = 64
"""Columns below which lanes make no sense."""
WIDEST = 120
TALLEST = 16
"""Rows of a lane, at most."""

_RESET = "\x1b[0m"
_DIM = "\x1b[2m"
_BOLD = "\x1b[1m"
_YELLOW = "\x1b[33m"
_LANE_COLOURS: dict[Lane, str] = {"claude": "\x1b[38;5;173m", "codex": "\x1b[38;5;74m"}
_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_CLEAR_LINE = "\x1b[2K"


@dataclass(slots=True)
class _Paragraph:
    words: str
    style: str = ""


@dataclass(slots=True)
class _Column:
    title: str = ""
    paragraphs: list[_Paragraph] = field(default_factory=lambda: list[_Paragraph]())


class Lanes:
    """A `View` that draws itself again, in place, at every event.

    Args:
        write: Puts text on the terminal as it is.
        columns: The terminal's width.
        rows: Its height.
        colour: Whether to use colours; without them only bold and dim.
        marks: The signs to use.
    """

    def __init__(self, write: Callable[[str], None], columns: int, rows: int, *, colour: bool, marks: Marks) -> None:
        self._write = write
        self._width = (min(columns, WIDEST) - 3) // 2
        self._height = max(4, min(TALLEST, rows - 16))
        self._colour = colour
        self._marks = marks
        self._columns: dict[Lane, _Column] = {lane: _Column() for lane in LANES}
        self._narration = ""
        self._drawn = 0
        """Rows that the last drawing took."""

    def narrate(self, words: str) -> None:
        """Say under the lanes what the person does now."""
        self._narration = words
        self._draw()

    def say(self, lane: Lane, words: str) -> None:
        """Let the agent's last paragraph grow."""
        paragraphs = self._columns[lane].paragraphs
        if not paragraphs or paragraphs[-1].style:
            paragraphs.append(_Paragraph(""))
        paragraphs[-1].words += words
        self._draw()

    def note(self, lane: Lane, words: str) -> None:
        """Put what happened on a line of its own."""
        self._columns[lane].paragraphs.append(_Paragraph(words, _YELLOW if self._colour else _BOLD))
        self._draw()

    def title(self, lane: Lane, title: str) -> None:
        """Change the head of the lane."""
        self._columns[lane].title = title
        self._draw()

    def close(self) -> None:
        """Leave the last picture and give the cursor back."""
        self._narration = ""
        self._draw()
        self._write(_SHOW_CURSOR)

    def _draw(self) -> None:
        rows = self._picture()
        up = f"\x1b[{self._drawn}A" if self._drawn else _HIDE_CURSOR
        self._write(up + "".join(f"{_CLEAR_LINE}{row}\n" for row in rows))
        self._drawn = len(rows)

    def _picture(self) -> list[str]:
        left, right = (self._column(lane) for lane in LANES)
        bar = f" {_DIM}{self._marks.bar}{_RESET} "
        rows = [f"{a}{bar}{b}" for a, b in zip(left, right, strict=True)]
        narration = textwrap.shorten(self._narration, 2 * self._width, placeholder=self._marks.more)
        return [*rows, "", f"  {_BOLD}{narration}{_RESET}" if narration else ""]

    def _column(self, lane: Lane) -> list[str]:
        column = self._columns[lane]
        tint = _LANE_COLOURS[lane] if self._colour else _BOLD
        title = textwrap.shorten(column.title or "(no title yet)", self._width, placeholder=self._marks.more)
        lines = [
            (wrapped, paragraph.style)
            for paragraph in column.paragraphs
            for wrapped in textwrap.wrap(paragraph.words, self._width)
        ][-self._height :]
        lines += [("", "")] * (self._height - len(lines))
        return [
            self._cell(f"{self._marks.dot} {LABELS[lane]}", tint),
            self._cell(title, _BOLD if column.title else _DIM),
            self._cell(self._marks.line * self._width, _DIM),
            *(self._cell(words, style) for words, style in lines),
        ]

    def _cell(self, words: str, style: str) -> str:
        padded = words.ljust(self._width)
        return f"{style}{padded}{_RESET}" if style else padded
