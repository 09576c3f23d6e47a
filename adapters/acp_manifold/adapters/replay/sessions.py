"""The sessions in a recording: who they are, where they worked, and what belongs to each. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from acp_manifold.bridge.recording.format import Entry
from acp_manifold.bridge.recording.reader import Recording
from acp_manifold.translators.narrow import JsonObject, as_str, obj, text
from acp_manifold.translators.titles import normalise
from acp_manifold.translators.values import NamedTuple

ALL = ""
"""What stands for the session of lines that belong to none."""


class Recorded(NamedTuple):
    """A session in a recording."""

    id: str
    backend: str
    where: str
    """The recording, for messages."""
    cwd: str | None
    """Where it worked, if that is known."""
    new: bool
    """Whether it was begun in the recording; else it was there before."""
    known: bool
    """Whether a client was told of it."""
    entries: tuple[Entry, ...]
    titles: tuple[str, ...]
    """Those that clients gave."""
    cut: str | None
    """What the end of the recording lacks."""


def sessions_of(recording: Recording, backend: str) -> list[Recorded]:
    """The sessions of one backend, in the order in which they were begun; `ALL` last, for what belongs to none."""
    entries = [entry for entry in recording.entries if _backend(entry, recording) == backend]
    entries.sort(key=lambda entry: entry.t)
    owners = _owners(entries)
    grouped: dict[str, list[Entry]] = {}
    for entry in entries:
        session = owners.get(session_of(entry), session_of(entry))
        grouped.setdefault(session, []).append(entry)
    opened, begun = _opened(recording.entries)
    titles = _titles(recording.entries)
    order = {session: place for place, session in enumerate(opened)}
    found = [
        Recorded(
            session,
            backend,
            str(recording.path),
            opened.get(session) or _cwd(of_it),
            session in begun or session not in opened,
            session in opened,
            tuple(of_it),
            titles,
            recording.cut,
        )
        for session, of_it in grouped.items()
    ]
    return sorted(found, key=lambda session: (session.id == ALL, order.get(session.id, len(order))))


def session_of(entry: Entry) -> str:
    """The session of an entry, or `ALL`: in older recordings it stands in the line alone."""
    if entry.session is not None:
        return entry.session
    line = entry.line or {}
    for place in (line, obj(line, "params")):
        for key in ("session_id", "threadId"):
            named = as_str(place.get(key))
            if named:
                return named
    return ALL


def _backend(entry: Entry, recording: Recording) -> str | None:
    if entry.leg == "client":
        return None
    return entry.backend or recording.header.backend


def _owners(entries: Iterable[Entry]) -> dict[str, str]:
    """By session, the one it goes on from: a process that is for one session alone may have several, one by one."""
    firsts: dict[int, str] = {}
    shared: set[int] = set()
    owners: dict[str, str] = {}
    for entry in entries:
        if entry.leg != "backend" or entry.process is None:
            continue
        if entry.session is None:
            # A process with lines of no session serves many.
            shared.add(entry.process)
        first = firsts.setdefault(entry.process, entry.session or ALL)
        if entry.session is not None and first != ALL and entry.session != first and entry.process not in shared:
            owners[entry.session] = owners.get(first, first)
    return owners


def _opened(entries: Iterable[Entry]) -> tuple[dict[str, str | None], set[str]]:
    """By session, in the order of opening, the folder that the client opened it in; and those that were new."""
    asked: dict[tuple[int | None, object], tuple[str, JsonObject]] = {}
    opened: dict[str, str | None] = {}
    begun: set[str] = set()
    for entry in entries:
        line = entry.line or {}
        if entry.leg != "client":
            continue
        number = line.get("id")
        key = entry.conn, number if isinstance(number, str | int) else None
        if entry.dir == "in" and text(line, "method") in ("session/new", "session/load", "session/resume"):
            asked[key] = text(line, "method"), obj(line, "params")
        elif entry.dir == "out" and "method" not in line and key in asked:
            method, params = asked.pop(key)
            session = as_str(obj(line, "result").get("sessionId")) or as_str(params.get("sessionId"))
            if session is not None and "error" not in line:
                opened.setdefault(session, as_str(params.get("cwd")))
                if method == "session/new":
                    begun.add(session)
    return opened, begun


def _titles(entries: Iterable[Entry]) -> tuple[str, ...]:
    """The titles that clients gave, whichever spelling they used, in their normal form."""
    asked = [obj(entry.line or {}, "params") for entry in entries if entry.leg == "client" and entry.dir == "in"]
    return tuple(normalise(title) for params in asked for key in ("title", "name") if (title := text(params, key)))


def _cwd(entries: Iterable[Entry]) -> str | None:
    for entry in entries:
        line = entry.line or {}
        for place in (line, obj(line, "params"), obj(obj(line, "result"), "thread")):
            cwd = as_str(place.get("cwd"))
            if cwd:
                return cwd
    return None
