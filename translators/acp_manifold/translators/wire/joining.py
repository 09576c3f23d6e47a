"""Joins each answer with its request: by the direction it comes from, where it travels, and the id."""

from __future__ import annotations

from collections.abc import Hashable

from .shape import Shape


class Joining:
    """Requests that wait for their answers. Lines are fed in their order and called by any number."""

    def __init__(self) -> None:
        self._open: dict[tuple[Hashable, bool, str], int] = {}
        self.repeated: list[int] = []
        """Requests with an id that another one without an answer had already."""

    def feed(self, number: int, channel: Hashable, inward: bool, what: Shape) -> int | None:
        """The next line of a channel (one connection, one process).

        Returns:
            The request that it answers; None if it answers none.
        """
        if what.kind == "request":
            key = (channel, inward, what.id)
            if key in self._open:
                self.repeated.append(number)
            self._open[key] = number
        elif what.kind != "news":
            return self._open.pop((channel, not inward, what.id), None)
        return None

    def waiting(self) -> list[int]:
        """The requests that have no answer so far, in their order."""
        return sorted(self._open.values())
