"""The demo as plain lines, each with its lane in front: for pipes, files and narrow terminals."""

from __future__ import annotations

from collections.abc import Callable

from .view import LANES, Lane

_WIDTH = 72
"""Characters of agent text that make a line."""


class Lines:
    """A `View` that only ever adds lines."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._begun: dict[Lane, str] = dict.fromkeys(LANES, "")
        self._titles: dict[Lane, str] = dict.fromkeys(LANES, "")

    def narrate(self, words: str) -> None:
        """Print what the person does, words of agents begun before it first."""
        self._flush_all()
        self._write(f"{'you':<7}| {words}")

    def say(self, lane: Lane, words: str) -> None:
        """Print whole lines of what the agent has said; keep the rest."""
        text = self._begun[lane] + words
        while len(text) > _WIDTH:
            cut = text.rfind(" ", 0, _WIDTH + 1)
            cut = cut if cut > 0 else _WIDTH
            self._print(lane, text[:cut].rstrip())
            text = text[cut:].lstrip()
        self._begun[lane] = text

    def note(self, lane: Lane, words: str) -> None:
        """Print what happened."""
        self._flush(lane)
        self._print(lane, f"[{words}]")

    def title(self, lane: Lane, title: str) -> None:
        """Print the title if it is a new one."""
        if title == self._titles[lane]:
            return
        self._titles[lane] = title
        self._flush(lane)
        self._print(lane, f"[title: {title}]")

    def close(self) -> None:
        """Print what was begun."""
        self._flush_all()

    def _print(self, lane: Lane, words: str) -> None:
        self._write(f"{lane:<7}| {words}")

    def _flush(self, lane: Lane) -> None:
        if words := self._begun[lane].strip():
            self._print(lane, words)
        self._begun[lane] = ""

    def _flush_all(self) -> None:
        for lane in LANES:
            self._flush(lane)
