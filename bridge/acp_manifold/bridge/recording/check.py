"""Looks a recording over: its lines, what answers what, and what should have been scrubbed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject, is_list, is_object
from acp_manifold.translators.updates import Unknown
from acp_manifold.translators.values import NamedTuple
from acp_manifold.translators.wire.acp import breaches
from acp_manifold.translators.wire.reading import Read, Reading, read

from .format import Entry
from .reader import Recording
from .schema import AcpSchema
from .scrub import Scrubber

Severity: TypeAlias = Literal["fault", "note"]


class Finding(NamedTuple):
    """Something about a recording that a person should know."""

    severity: Severity
    """A `fault` makes the recording a bad one; a `note` may well be as it should."""
    number: int
    """The line of the file; 0 for the whole."""
    what: str


_OTHERS_HOME: Final = re.compile(r"(?:/home/|/Users/|[A-Za-z]:\\+Users\\+)(?!user\b|<)([A-Za-z0-9._-]+)")
"""A home directory of somebody on another machine; `user` stands for nobody."""

_PLACEHOLDER: Final = re.compile(r"<([a-z]+)(?:-\d+)?>")


def check(
    recording: Recording, environ: Mapping[str, str], home: str, user: str, schema: AcpSchema | None = None
) -> list[Finding]:
    """All there is to say about a recording, in the order of its lines.

    Args:
        recording: One that could be read.
        environ: Where secrets of this machine are looked for, as the recorder does.
        home: The home directory of this machine.
        user: The name of its user.
        schema: Judges the lines of the client leg in full, if it is there.
    """
    entries = recording.entries
    whole = read([entry.to_wire() for entry in entries], recording.header.backend or "")
    scrubber = Scrubber(environ, home, user)
    findings = [
        *_times(entries),
        *_pairs(entries, whole),
        *(Finding("fault", 1, what) for what in unscrubbed(recording.header.to_wire(), scrubber)),
    ]
    for entry, reading in zip(entries, whole.readings, strict=True):
        findings += _line(entry, reading, schema)
        findings += [Finding("fault", entry.number, what) for what in unscrubbed(entry.to_wire(), scrubber)]
    if recording.cut:
        findings.append(Finding("fault", 0, f"the file is cut off: {recording.cut}"))
    return sorted(findings, key=lambda finding: finding.number or len(entries) + 2)


def unscrubbed(value: JsonObject, scrubber: Scrubber) -> Iterator[str]:
    """Where a line holds what a recorder would have scrubbed, and what kind of thing it is; never the thing itself."""
    for place, before, after in _texts(value, scrubber.value(value), ""):
        kinds = dict.fromkeys(kind for kind in _PLACEHOLDER.findall(after) if f"<{kind}" not in before)
        if before != after:
            yield f"{place} looks unscrubbed: {' and '.join(kinds) or 'a secret'}"
        elif _OTHERS_HOME.search(before):
            yield f"{place} looks unscrubbed: somebody's home directory"


def _texts(before: object, after: object, place: str) -> Iterator[tuple[str, str, str]]:
    """Every string of a value beside what became of it, with its place."""
    if isinstance(before, str) and isinstance(after, str):
        yield place, before, after
    elif is_object(before) and is_object(after):
        for (key, one), (new_key, other) in zip(before.items(), after.items(), strict=True):
            where = f"{place}.{new_key}" if place else new_key
            if key != new_key:
                yield f"the name of {where}", key, new_key
            yield from _texts(one, other, where)
    elif is_list(before) and is_list(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _texts(one, other, f"{place}[{index}]")


def _times(entries: Sequence[Entry]) -> Iterator[Finding]:
    latest = 0.0
    for entry in entries:
        if not entry.t >= latest:
            yield Finding("note", entry.number, f"t goes back from {latest:g} to {entry.t:g}")
        latest = max(latest, entry.t)


def _pairs(entries: Sequence[Entry], whole: Read) -> Iterator[Finding]:
    for at in whole.repeated:
        yield Finding("fault", entries[at].number, f"{whole.readings[at].name} has the id of an open request")
    for at in whole.stray:
        yield Finding("note", entries[at].number, "answers no request of this recording")
    for at in whole.waiting:
        yield Finding("note", entries[at].number, f"{whole.readings[at].name} has no answer in this recording")


def _line(entry: Entry, reading: Reading, schema: AcpSchema | None) -> Iterator[Finding]:
    if entry.leg == "client":
        yield from _client_line(entry, reading, schema)
    elif entry.leg == "bridge" and not reading.name:
        yield Finding("fault", entry.number, "is a note that says not of what")
    elif entry.leg == "backend" and entry.line is not None:
        yield from _backend_line(entry, reading)


def _client_line(entry: Entry, reading: Reading, schema: AcpSchema | None) -> Iterator[Finding]:
    inward = entry.dir == "in"
    if entry.line is None:
        # What a client sends is its own business; the agent sends JSON alone.
        yield Finding("note" if inward else "fault", entry.number, "is no JSON object")
        return
    for breach in breaches(inward, entry.line):
        yield Finding("fault" if breach.certain and not inward else "note", entry.number, breach.what)
    if schema is not None:
        for what in schema.faults(reading.name.partition(" ")[0], entry.line):
            yield Finding("note" if inward else "fault", entry.number, what)


def _backend_line(entry: Entry, reading: Reading) -> Iterator[Finding]:
    line = entry.line or {}
    if not reading.name and reading.kind == "news":
        yield Finding("note", entry.number, "has neither a method nor a type")
    elif entry.dir == "in" and "type" in line and "method" not in line:
        from acp_manifold.translators.claude.frames import parse

        if isinstance(parse(line), Unknown):
            yield Finding("note", entry.number, f"no translator knows {reading.name}")
