"""What a session keeps while no process serves it, beyond what its transcript holds."""

from __future__ import annotations


class Carried:
    """One for each session of ours, for all processes that serve it in turn."""

    def __init__(self) -> None:
        self.hidden: tuple[str, ...] = ()
        """Slash commands that only make sense in a terminal."""
        self._first: str | None = None
        self._mode: str | None = None

    def in_mode(self, mode: str) -> None:
        """The CLI tells the permission mode it is in."""
        self._first = self._first or mode
        self._mode = mode

    @property
    def mode(self) -> str | None:
        """The permission mode to resume in, if it is another than the one that the person's settings gave.

        `--resume` alone begins in that one again (Claude Code 2.1.332).
        """
        return self._mode if self._mode != self._first else None
