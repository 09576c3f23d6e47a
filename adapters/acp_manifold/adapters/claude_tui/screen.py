"""What stands on the program's screen: its input box, a dialog in place of it, or neither yet. Pure.

`Screen` emulates the terminal (pyte) and keeps what is painted; `look` reads it. Layouts are those of
Claude Code 2.1.332: the input box lies between two rules, begins with `❯`, and what is only a hint in
it is painted faint. A dialog takes the place of the box. Nothing is ever decided by a screen that says
something about the conversation: that is what transcript, registry and hooks are for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import pyte

from acp_manifold.translators.values import NamedTuple

Kind: TypeAlias = Literal["trust", "key", "onboarding", "login", "mode", "offline", "permission", "unknown"]

_PROMPT: Final = "❯"
_RULE: Final = re.compile(r"─{20}")
_FAINT: Final = 2
_NOT_FAINT: Final = 22

_FOREIGN: Final = re.compile(rb"\x1b\[[<=>][0-9:;]*[@-~]")
"""Sequences that only ask the terminal for something: pyte 0.8 takes their ends for text, or for colours."""

_BEGUN: Final = re.compile(rb"\x1b(?:\[[<=>?]?[0-9:;]*)?\Z")

_MARKS: Final[tuple[tuple[Kind, re.Pattern[str]], ...]] = (
    ("trust", re.compile(r"Is this a project you created or one you trust|Do you trust the (?:files|contents)")),
    ("key", re.compile(r"Detected a custom API key in your environment")),
    ("login", re.compile(r"Select login method|Paste code here if prompted|Login (?:expired|required)")),
    ("offline", re.compile(r"Unable to connect to Anthropic services")),
    (
        "onboarding",
        re.compile(r"Choose the text style|Let's get started|Security notes:|terminal setup", re.IGNORECASE),
    ),
    ("mode", re.compile(r"Make auto mode your default|Enable auto mode\?")),
    ("permission", re.compile(r"Do you want to (?:proceed|make this edit|create|allow)|Would you like to proceed")),
)
"""What the dialogs are known by; the first that is found counts."""

_LEAVING: Final = re.compile(r"Press Ctrl-[CD] again to exit")

_MODE: Final = re.compile(r"\b(manual mode|accept edits|plan mode|auto mode|bypass permissions|don't ask) on\b")
_MODES: Final = {
    "manual mode": "default",
    "accept edits": "acceptEdits",
    "plan mode": "plan",
    "auto mode": "auto",
    "bypass permissions": "bypassPermissions",
    "don't ask": "dontAsk",
}
"""What the line below the input box calls the permission modes."""

_QUEUED: Final = "Press up to edit queued messages"
"""A hint in the input box, of which the letter below the cursor is not faint."""

_AT_WORK: Final = "esc to interrupt"
"""What the line below the input box says while Escape would stop something."""

_CHOICE: Final = re.compile(r"^\s*❯ \S")


class Dialog(NamedTuple):
    """Something that stands in the way of the input box."""

    kind: Kind
    text: str
    """Its lines, for people: the first ones, without rules."""


class Sight(NamedTuple):
    """What there is to see."""

    box: str | None
    """What is in the input box, hints left out; None if there is no box."""
    dialog: Dialog | None

    @property
    def ready(self) -> bool:
        """Whether the input box is there and nothing stands in its way."""
        return self.box is not None and self.dialog is None


class _Painted(pyte.Screen):
    """pyte 0.8 knows no faint text, which is kept as italics here, and breaks at private forms of a sequence."""

    def select_graphic_rendition(self, *attrs: int, private: bool = False) -> None:
        if not private:
            super().select_graphic_rendition(*_without_faint(attrs))


def _without_faint(attrs: Sequence[int]) -> list[int]:
    colour = next((place for place, attr in enumerate(attrs) if attr in (38, 48)), len(attrs))
    # What follows on a colour's number are numbers that mean other things.
    return [*({_FAINT: 3, _NOT_FAINT: 23}.get(attr, attr) for attr in attrs[:colour]), *attrs[colour:]]


class Screen:
    """The screen of one program."""

    def __init__(self, rows: int, columns: int) -> None:
        self._screen = _Painted(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._rows = [("", "")] * rows
        self._begun = b""
        """The beginning of an escape sequence whose rest is to come."""
        self.painted = 0
        """Bytes taken in so far: whoever waits for something to appear waits for more."""

    def feed(self, data: bytes) -> None:
        """Take in what the program wrote."""
        self.painted += len(data)
        data = _FOREIGN.sub(b"", self._begun + data)
        begun = _BEGUN.search(data)
        self._begun = data[begun.start() :] if begun is not None else b""
        self._stream.feed(data[: len(data) - len(self._begun)])

    @property
    def lines(self) -> list[str]:
        """What is painted, from top to bottom, without the space behind it."""
        return [line for line, _ in self._read()]

    @property
    def is_leaving(self) -> bool:
        """Whether one more Ctrl-C or Ctrl-D would end the program."""
        return any(_LEAVING.search(line) for line in self.lines[-4:])

    @property
    def mode(self) -> str | None:
        """The permission mode that is named below the input box; None if none is: the line may say something else."""
        lines = self.lines
        first, end = _box_rows(lines)
        found = _MODE.search("\n".join(lines[end:])) if first < end else None
        return _MODES[found[1]] if found is not None else None

    @property
    def is_at_work(self) -> bool:
        """Whether the line below the input box says that there is a turn to interrupt."""
        lines = self.lines
        _, end = _box_rows(lines)
        return any(_AT_WORK in line for line in lines[end:])

    def look(self) -> Sight:
        """What there is to see."""
        rows = self._read()
        first, end = _box_rows([line for line, _ in rows])
        return look([typed if first <= row < end else line for row, (line, typed) in enumerate(rows)])

    def _read(self) -> list[tuple[str, str]]:
        """Each line, and what of it is not faint; only those are read that have changed."""
        for row in self._screen.dirty:
            if row < len(self._rows):
                cells = self._screen.buffer[row]
                columns = [cells[column] for column in range(max(cells, default=-1) + 1)]
                line = "".join(cell.data for cell in columns).rstrip()
                typed = "".join(cell.data for cell in columns if not cell.italics).rstrip()
                if _QUEUED in line and len(typed) <= len(_PROMPT) + 2:
                    typed = _PROMPT
                self._rows[row] = (line, typed)
        self._screen.dirty.clear()
        return self._rows

    def last_words(self, count: int = 12) -> str:
        """The last lines that are not blank, for error messages."""
        return "\n".join([line for line in self.lines if line.strip()][-count:])


def look(lines: Sequence[str]) -> Sight:
    """Read a screen.

    Args:
        lines: From top to bottom; in the lines of an input box no hints.
    """
    first, end = _box_rows(lines)
    if first < end:
        rest = [lines[first][len(_PROMPT) :], *lines[first + 1 : end]]
        return Sight("\n".join(line.strip() for line in rest).strip(), None)
    shown = "\n".join(lines)
    for kind, mark in _MARKS:
        if mark.search(shown):
            return Sight(None, Dialog(kind, _words(lines)))
    if any(_CHOICE.match(line) for line in lines):
        return Sight(None, Dialog("unknown", _words(lines)))
    return Sight(None, None)


def _box_rows(lines: Sequence[str]) -> tuple[int, int]:
    """The first row of the input box and the one behind its last; nothing if there is no box.

    The rule above it bears the session's title, as long as the screen is wide. In shell mode the box begins
    with `!`: that is none to type a prompt into.
    """
    end = next((row for row in range(len(lines) - 1, 0, -1) if _RULE.match(lines[row])), 0)
    for row in range(end - 1, 0, -1):
        if lines[row].startswith(_PROMPT):
            return (row, end) if lines[row - 1].rstrip().endswith("─") else (0, 0)
    return 0, 0


def _words(lines: Sequence[str]) -> str:
    kept = [" ".join(line.split()) for line in lines if line.strip() and not _RULE.match(line)]
    return "\n".join(kept[:8])
