"""What stands in a recording: one header, then entries, each a line of JSON. Values, and their spelling."""

from __future__ import annotations

import json
from typing import Final, Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.values import NamedTuple

FORMAT: Final = 2
"""The version of the layout that is written; older ones are migrated when they are read."""

Leg: TypeAlias = Literal["client", "backend", "store", "bridge"]
"""Where a line crossed: to the client or to a CLI, in a CLI's own file, or nowhere: a note of the bridge."""

Direction: TypeAlias = Literal["in", "out"]
"""`in` is towards the bridge, `out` is from it."""


class Header(NamedTuple):
    """What a recording says about itself."""

    tool: str
    """What recorded, with its version."""
    clis: dict[str, str]
    """The version of each CLI, by backend; empty for those that could not be asked."""
    backend: str | None
    """Whose lines the backend leg has, if they are of one alone."""
    scenario: str
    """What happens, in words."""
    date: str
    """The day, ISO."""
    scrubbed: tuple[str, ...] = ()
    """Kinds of text that placeholders stand for: `home`, `user`, `token`, `email`, `header`."""

    def to_wire(self) -> JsonObject:
        """The header as JSON."""
        return {
            "format": FORMAT,
            "tool": self.tool,
            "clis": self.clis,
            "backend": self.backend,
            "scenario": self.scenario,
            "date": self.date,
            "scrubbed": list(self.scrubbed),
        }


class Entry(NamedTuple):
    """One line that crossed, or one note."""

    t: float
    """Seconds since the header."""
    leg: Leg
    dir: Direction | None = None
    """None for a note of the bridge."""
    conn: int | None = None
    """The number of the connection, on the client leg."""
    backend: str | None = None
    """Which backend, on the legs that are one's."""
    process: int | None = None
    """Which of its processes, in order of start, on the backend leg."""
    session: str | None = None
    """The session, by the id its backend has for it, where it is known."""
    file: str | None = None
    """The CLI's file, below the root of its store, on the store leg."""
    line: JsonObject | None = None
    """What crossed."""
    text: str | None = None
    """What crossed, where it was no JSON object."""
    number: int = 0
    """The line of the file it was read from; the header's is 1. 0 for one that comes from no file."""

    def to_wire(self) -> JsonObject:
        """The entry as JSON, without what does not apply."""
        wire: JsonObject = {"t": self.t, "leg": self.leg}
        for key in _OPTIONAL:
            value: object = getattr(self, key)
            if value is not None:
                wire[key] = value
        return wire


_OPTIONAL: Final = ("dir", "conn", "backend", "process", "session", "file", "line", "text")

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def encode(wire: JsonObject) -> bytes:
    """One line of a recording, without its end. Halves of surrogate pairs, which UTF-8 can't hold, stay escaped."""
    line = _encode(wire)
    try:
        return line.encode()
    except UnicodeEncodeError:
        return "".join(_escaped(char) for char in line).encode()


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char
