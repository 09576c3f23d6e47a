"""What the page is told of a recording: lanes, sessions, and each message with what was read of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from acp_manifold.translators.narrow import JsonObject, obj, text
from acp_manifold.translators.wire.reading import Reading, read

_HALF = re.compile("[\ud800-\udfff]")
_FATES = {"dropped", "discarded"}


def json_text(value: object) -> str:
    """A value as JSON on one line that can be written as UTF-8; halves of surrogate pairs are escaped."""
    return _HALF.sub(
        lambda half: f"\\u{ord(half[0]):04x}", json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    )


def page_data(file: str, header: JsonObject, entries: Sequence[JsonObject], note: str = "") -> JsonObject:
    """What the page shows.

    Args:
        file: The name of the recording, for one that names no scenario.
        header: The first line.
        entries: All other lines, in their order.
        note: What the person should know of the whole, e.g. that the file is cut off.
    """
    readings = read(entries, text(header, "backend")).readings
    lanes = _lanes(readings)
    numbers = {lane: number for number, lane in enumerate(lanes)}
    titles = _last_titles(readings)
    return {
        "file": file,
        "header": header,
        "note": note,
        "lanes": [_lane(key, session, titles) for key, session in lanes.items()],
        "sessions": [{"id": id, "label": titles.get(id) or _short(id)} for id in _each(r.session for r in readings)],
        "messages": [
            _message(entry, reading, numbers.get(reading.lane, numbers[_BRIDGE]))
            for entry, reading in zip(entries, readings, strict=True)
        ],
    }


_BRIDGE = "bridge"


def _lanes(readings: Sequence[Reading]) -> dict[str, str]:
    """Clients, the bridge, backends, in the order in which they first appear; with the session that a lane is for."""
    clients = {reading.lane: "" for reading in readings if reading.leg == "client"}
    backends = {reading.lane: reading.session for reading in readings if reading.leg in {"backend", "store"}}
    return {**clients, _BRIDGE: "", **backends}


def _lane(key: str, session: str, titles: dict[str, str]) -> JsonObject:
    if key == _BRIDGE:
        return {"kind": "bridge", "label": "bridge"}
    backend, found, _ = key.partition(": ")
    if not found:
        return {"kind": "client" if key.partition(" ")[0] == "client" else "backend", "label": key}
    return {
        "kind": "backend",
        "label": titles.get(session) or backend,
        "detail": f"{backend} {_short(session)}",
        "session": session,
    }


def _message(entry: JsonObject, reading: Reading, lane: int) -> JsonObject:
    raw = entry.get("line")
    line = json_text(raw) if "line" in entry else text(entry, "text")
    message: JsonObject = {
        "t": entry.get("t", 0),
        "leg": reading.leg,
        "inward": reading.inward,
        "lane": lane,
        "session": reading.session,
        "kind": reading.kind,
        "name": reading.name or ("" if "line" in entry else "non-JSON"),
        "marks": _marks(entry, reading),
        "words": reading.words,
        "line": line,
    }
    if reading.joined is not None:
        message["joined"] = reading.joined
    if reading.piece:
        message["piece"] = True
    if reading.title is not None:
        message["title"] = {"text": reading.title.title, "origin": reading.title.origin, "deed": reading.title.deed}
    if "file" in entry:
        message["file"] = text(entry, "file")
    return message


def _marks(entry: JsonObject, reading: Reading) -> list[str]:
    title = reading.title
    dropped = reading.leg == "bridge" and reading.name in _FATES
    died = reading.leg == "bridge" and reading.name == "exit" and obj(entry, "line").get("asked") is False
    marks = {
        "title": title is not None,
        "question": reading.question,
        "error": reading.kind == "failure" or "line" not in entry or reading.name == "error" or died,
        "dropped": dropped or (title is not None and title.deed == "discarded"),
    }
    return [mark for mark, holds in marks.items() if holds]


def _last_titles(readings: Sequence[Reading]) -> dict[str, str]:
    """The title that each session has at the end: not one that was only asked for, or discarded."""
    holds = (r for r in readings if r.session and r.title is not None and r.title.deed not in {"asked", "discarded"})
    return {r.session: r.title.title for r in holds if r.title is not None}


def _each(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(filter(None, values)))


def _short(session: str) -> str:
    return session if len(session) <= 14 else f"{session[:8]}…{session[-4:]}"
