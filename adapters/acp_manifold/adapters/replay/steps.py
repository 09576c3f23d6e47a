"""What happened in one session, one thing after the other, made of the entries of a recording. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeAlias

from acp_manifold.adapters.replay.dialect import Dialect, Id, Said
from acp_manifold.bridge.recording.format import Entry
from acp_manifold.translators.narrow import JsonObject, flag, text
from acp_manifold.translators.values import NamedTuple


class Heard(NamedTuple):
    """A line of the CLI."""

    t: float
    number: int
    """Of the entry."""
    raw: bytes
    line: JsonObject
    """Empty for one that was no JSON object."""
    answers: Id | None
    """Which request of ours it answers."""
    ends: bool
    """Whether a turn is over with it."""
    asks: bool
    """Whether it is a question, which waits for a person."""
    turn: str | None
    """The id of the turn that it says has begun."""


class Spoken(NamedTuple):
    """A line of ours that has its place."""

    t: float
    number: int
    said: Said


class Stored(NamedTuple):
    """A record that appeared in a file of the store."""

    t: float
    file: str
    record: JsonObject


class Ended(NamedTuple):
    """The process ended by itself."""

    t: float
    number: int
    how: str
    stderr: str
    """The last that it said there."""


Step: TypeAlias = Heard | Spoken | Stored | Ended


class Aside(NamedTuple):
    """A question that may come at any time, and its answer."""

    said: Said
    answer: JsonObject
    seconds: float
    """It took so long."""


class Story(NamedTuple):
    """All of one session, or of what belongs to none."""

    steps: tuple[Step, ...]
    asides: tuple[Aside, ...]


def story(entries: Iterable[Entry], dialect: Dialect) -> Story:
    """Make one of the entries of the backend leg, the store leg and the bridge, in order."""
    steps: list[Step] = []
    asides: list[Aside] = []
    asked: dict[tuple[int | None, Id], tuple[float, Said]] = {}
    talked: set[tuple[int | None, Id]] = set()
    for entry in entries:
        if entry.leg == "store" and entry.line is not None:
            steps.append(Stored(entry.t, entry.file or "", entry.line))
        elif entry.leg == "bridge":
            note = entry.line or {}
            if text(note, "note") == "exit" and not flag(note, "asked"):
                steps.append(Ended(entry.t, entry.number, text(note, "how", "ended"), text(note, "stderr")))
        elif entry.dir == "out":
            said = dialect.said(entry.line or {})
            if said.kind == "talk":
                steps.append(Spoken(entry.t, entry.number, said))
                if said.id is not None:
                    talked.add((entry.process, said.id))
            elif said.kind == "aside" and said.id is not None:
                asked[entry.process, said.id] = entry.t, said
        elif entry.leg == "backend":
            line = entry.line or {}
            number = dialect.answered(line)
            question = asked.pop((entry.process, number), None) if number is not None else None
            if question is not None:
                asides.append(Aside(question[1], line, entry.t - question[0]))
            elif number is None or (entry.process, number) in talked:
                about = dialect.ends(line), dialect.asks(line), dialect.turn_in(line)
                steps.append(Heard(entry.t, entry.number, _raw(entry), line, number, *about))
    return Story(tuple(steps), tuple(asides))


def _raw(entry: Entry) -> bytes:
    if entry.line is None:
        return (entry.text or "").encode("utf-8", "replace")
    return json.dumps(entry.line, separators=(",", ":")).encode()
