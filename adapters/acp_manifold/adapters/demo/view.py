"""What the demo shows, whatever it shows it on: two lanes, one per session, and a narrator between them."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

Lane: TypeAlias = Literal["claude", "codex"]

LANES: tuple[Lane, Lane] = ("claude", "codex")
LABELS: dict[Lane, str] = {"claude": "Claude Code", "codex": "Codex"}


class View(Protocol):
    """Where the demo is shown. All calls are synchronous and cheap; order of calls is order of events."""

    def narrate(self, words: str) -> None:
        """What the person at the editor does now."""
        ...

    def say(self, lane: Lane, words: str) -> None:
        """The agent's next words."""
        ...

    def note(self, lane: Lane, words: str) -> None:
        """Something that happened in the session: a tool call, a question, an answer, an end."""
        ...

    def title(self, lane: Lane, title: str) -> None:
        """The session's title, now."""
        ...

    def close(self) -> None:
        """No more lanes; what follows is printed below."""
        ...


class Marks:
    """The few signs used, in ASCII where the output's encoding has no others."""

    def __init__(self, encoding: str | None) -> None:
        try:
            "✓✗│─●…".encode(encoding or "ascii")
        except (UnicodeEncodeError, LookupError):
            self.yes, self.no, self.bar, self.line, self.dot, self.more = "ok", "no", "|", "-", "*", "..."
        else:
            self.yes, self.no, self.bar, self.line, self.dot, self.more = "✓", "✗", "│", "─", "●", "…"
