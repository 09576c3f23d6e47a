"""A whole recording, read: for each entry its lane, its session, what it is, what it is joined with, what it says.

Entries are those of the recording format, as JSON. What an entry doesn't tell of itself is taken from
its line, from the line it is joined with, or, where a process serves one session alone, from its others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from acp_manifold.translators.narrow import JsonObject, as_int, as_object, is_object, obj, text
from acp_manifold.translators.values import NamedTuple

from .joining import Joining
from .shape import Kind, Shape, is_piece, is_question, shape
from .titles import Said, title_noted, title_said
from .words import shortened, words

NO_LINE = Shape("news", "")


class Reading(NamedTuple):
    """One entry."""

    leg: str
    """`client`, `backend`, `store`, or `bridge` for a note of the bridge's own."""
    inward: bool
    """Whether it goes to the bridge."""
    lane: str
    """Who is at the other end: a client, a session of a backend, or a backend's process where no session is known."""
    session: str
    """Which session it is about, "" where none is known."""
    kind: Kind
    name: str
    """As in `Shape`; of an answer the name of its request, of a note what it notes."""
    joined: int | None
    """Of a request its answer, of an answer its request."""
    question: bool
    """Whether it, or what it answers, asks a person."""
    piece: bool
    """Whether it is one of many pieces of a text."""
    title: Said | None
    words: str


class Read(NamedTuple):
    """All of a recording."""

    readings: list[Reading]
    stray: list[int]
    """Answers to no request of the recording."""
    waiting: list[int]
    """Requests without an answer in it."""
    repeated: list[int]
    """Requests with the id of another that had no answer yet."""


def read(entries: Sequence[JsonObject], backend: str = "") -> Read:
    """Read the entries of a recording, in their order.

    Args:
        entries: All but the header.
        backend: That of the header, for entries that name none.
    """
    if backend:
        entries = [entry if "backend" in entry else {**entry, "backend": backend} for entry in entries]
    joining = Joining()
    shapes = [shape(_line(entry)) if _line(entry) else NO_LINE for entry in entries]
    joined: dict[int, int] = {}
    stray: list[int] = []
    for number, (entry, what) in enumerate(zip(entries, shapes, strict=True)):
        if entry.get("leg") in {"client", "backend"}:
            request = joining.feed(number, _channel(entry), entry.get("dir") == "in", what)
            if request is not None:
                joined[number], joined[request] = request, number
            elif what.kind in {"answer", "failure"}:
                stray.append(number)
    sessions = _sessions(entries, joined)
    readings = [
        _reading(entry, what, session, joined.get(number), shapes)
        for number, (entry, what, session) in enumerate(zip(entries, shapes, sessions, strict=True))
    ]
    return Read(_whose(readings), stray, joining.waiting(), joining.repeated)


def _reading(entry: JsonObject, what: Shape, session: str, joined: int | None, shapes: list[Shape]) -> Reading:
    leg, inward, line = text(entry, "leg"), entry.get("dir") == "in", _line(entry)
    if leg == "bridge":
        return _note(entry, line, session)
    asked = shapes[joined].name if joined is not None and what.kind != "request" else what.name
    return Reading(
        leg,
        inward,
        _client(entry) if leg == "client" else _lane(entry, session),
        session,
        what.kind,
        asked,
        joined,
        is_question(asked),
        is_piece(asked),
        title_said(leg, inward, asked, line),
        words(line) if line else shortened(text(entry, "text")),
    )


def _whose(readings: list[Reading]) -> list[Reading]:
    """Titles whose line doesn't tell whose they are get the origin that an earlier line of the session told.

    So do those that the bridge knew already: its note has who would have made it, were it news.
    """
    known: dict[tuple[str, str], str] = {}
    told: list[Reading] = []
    for reading in readings:
        said = reading.title
        if said is not None:
            before = known.get((reading.session, said.title))
            if before and (not said.origin or said.deed == "known"):
                reading = reading._replace(title=said._replace(origin=before))
            elif said.origin:
                known[reading.session, said.title] = said.origin
        told.append(reading)
    return told


def _note(entry: JsonObject, line: JsonObject, session: str) -> Reading:
    note, said = text(line, "note"), title_noted(line)
    told = {key: value for key, value in line.items() if key != "note"}
    return Reading("bridge", False, _lane(entry, session), session, "news", note, None, False, False, said, words(told))


def _line(entry: JsonObject) -> JsonObject:
    return as_object(entry.get("line"))


def _channel(entry: JsonObject) -> tuple[object, ...]:
    """Where ids are of one count: a connection, or a process."""
    if entry.get("leg") == "client":
        return ("client", entry.get("conn"))
    process = entry.get("process")
    return ("backend", entry.get("backend"), str(process) if process is not None else None)


def _client(entry: JsonObject) -> str:
    number = as_int(entry.get("conn"))
    return "client" if number is None else f"client {number}"


def _process(entry: JsonObject) -> str:
    parts = (entry.get("backend"), entry.get("process"))
    return " ".join(str(part) for part in parts if part is not None) or "backend"


def _lane(entry: JsonObject, session: str) -> str:
    return f"{text(entry, 'backend') or 'backend'}: {session}" if session else _process(entry)


def _sessions(entries: Sequence[JsonObject], joined: dict[int, int]) -> list[str]:
    found = [text(entry, "session") or _own_session(_line(entry)) for entry in entries]
    for number, partner in joined.items():
        found[number] = found[number] or found[partner]
    served: defaultdict[tuple[object, ...], set[str]] = defaultdict(set)
    for entry, session in zip(entries, found, strict=True):
        if session and entry.get("leg") == "backend":
            served[_channel(entry)].add(session)
    return [
        session or _only(served[_channel(entry)] if entry.get("leg") == "backend" else set())
        for entry, session in zip(entries, found, strict=True)
    ]


def _only(sessions: set[str]) -> str:
    return next(iter(sessions)) if len(sessions) == 1 else ""


def _own_session(line: JsonObject) -> str:
    """The session that a line names itself, in ACP's, Claude Code's or Codex' spelling."""
    params, result = obj(line, "params"), line.get("result")
    places = [params, obj(params, "thread"), line]
    if is_object(result):
        places += [result, obj(result, "thread")]
    for place, keys in zip(places, (_NAMES, ("id",), _NAMES, _NAMES, ("id",)), strict=False):
        for key in keys:
            if session := text(place, key):
                return session
    return ""


_NAMES = ("sessionId", "threadId", "session_id")
