"""Makes entries of what `feed` tells, and files of them: one, or one for each session."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, cast

from acp_manifold.bridge.version import __version__
from acp_manifold.translators.narrow import JsonObject, as_int, as_list, as_object, as_str, is_object, obj, text

from .follow import Followed
from .format import Direction, Entry, Header, Leg, encode
from .scrub import Scrubber
from .writer import RecordingFile, write

KINDS: Final = ("home", "user", "token", "header", "email")
"""What is scrubbed."""

_VERSION_LIMIT: Final = 10.0
"""Seconds a CLI has to tell its version."""

_VERSION: Final = re.compile(r"\d+\.\d+\.\d+[\w.+-]*")


class _File:
    """A recording that is being written."""

    def __init__(self, path: Path, header: Header) -> None:
        self._path = path
        self._last = 0.0
        self._ordered = True
        """Whether no entry is older than the one before: of some it is known late where they belong."""
        self._file = RecordingFile(path)
        self._lines = [encode(header.to_wire())]

    def add(self, entry: Entry) -> None:
        self._ordered = self._ordered and entry.t >= self._last
        self._last = max(self._last, entry.t)
        self._lines.append(encode(entry.to_wire()))

    def flush(self) -> None:
        if self._lines:
            lines, self._lines = self._lines, []
            self._file.write(b"\n".join([*lines, b""]))

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._file.close()
        if not self._ordered:
            from .reader import read

            recording = read(self._path)
            write(self._path, recording.header, sorted(recording.entries, key=lambda entry: entry.t))


class _Place:
    """Where a line crossed, and the requests there that wait for an answer."""

    def __init__(self, told: JsonObject) -> None:
        self.leg: Leg = "client" if text(told, "leg") == "client" else "backend"
        self.backend = as_str(told.get("backend"))
        self.number = as_int(told.get("number"))
        self.session = as_str(told.get("of"))
        self.asked: dict[tuple[Direction, object], str | None] = {}
        """By the way of the request and its id, the session it is about."""


class Recorder:
    """A recording, or a folder of them, as it grows.

    Args:
        destination: The file; or the folder, which exists, or whose name ends in a slash.
        new_scrubber: Makes what scrubs one file.

    Every method raises OSError if a file can't be written.
    """

    def __init__(self, destination: str, new_scrubber: Callable[[], Scrubber]) -> None:
        self._path = Path(destination)
        self._folder = destination.endswith("/") or self._path.is_dir()
        self._scrubber = new_scrubber()
        self._clis: dict[str, str] = {}
        self._only: str | None = None
        self._places: dict[str, _Place] = {}
        self._files: dict[str | None, _File] = {}
        self._common: list[Entry] = []
        """In a folder: what belongs to no session, which every file gets."""
        self._held: dict[tuple[str, Direction, object], Entry] = {}
        """In a folder: requests of which only the answer will tell the session."""
        self._unknown: dict[str, list[Entry]] = {}
        """In a folder: entries of sessions that no client was told of, such as those that only think of a title."""
        self._followed: dict[str, Followed] = {}
        self._rest = b""
        self._meta: tuple[float, str, Direction] | None = None
        self._now = 0.0
        self._begun = time.monotonic()
        """When the recording began, by the clock of the machine, which is the same for all its processes."""

    def take(self, data: bytes) -> None:
        """Take what `feed` has said, cut anywhere; what is whole of it is in the files then."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._take_line(line)
        self._look_at_stores()
        for file in self._files.values():
            file.flush()

    def close(self) -> None:
        """There is no more."""
        self._look_at_stores()
        for entry in self._held.values():
            self._write(entry)
        for entry in (entry for entries in self._unknown.values() for entry in entries):
            for session, file in self._files.items():
                if session is not None:
                    file.add(entry)
        for file in self._files.values():
            file.close()

    def _take_line(self, line: bytes) -> None:
        if self._meta is not None:
            meta, self._meta = self._meta, None
            self._crossed(*meta, line)
        elif line.startswith(b"="):
            self._told(as_object(json.loads(line[1:])))
        else:
            at, key, way = line.decode().split(" ")
            self._now = float(at)
            self._meta = self._now, key, "in" if way == "in" else "out"

    def _told(self, told: JsonObject) -> None:
        if "begin" in told:
            self._only = as_str(told.get("only"))
            at = told.get("at")
            self._begun = at if isinstance(at, float) else time.monotonic()
            self._clis = {name: version for name, cli in obj(told, "begin").items() if (version := _version(cli))}
            if not self._folder:
                self._files[None] = _File(self._path, self._header(self._path.name.partition(".")[0], self._clis))
        elif "place" in told:
            key = text(told, "place")
            place = self._places.get(key)
            if place is None:
                self._places[key] = _Place(told)
            else:
                place.session = as_str(told.get("of"))
        elif "follow" in told:
            followed = Followed(Path(text(told, "root")), Path(text(told, "follow")))
            self._followed.setdefault(text(told, "follow"), followed).of = text(told, "backend"), text(told, "of")
        else:
            note = self._scrubber.fields(obj(told, "note"))
            t = told.get("t")
            self._now = float(t) if isinstance(t, int | float) else self._now
            of = as_str(told.get("of"))
            self._write(Entry(self._now, "bridge", backend=as_str(told.get("backend")), session=of, line=note))

    def _header(self, scenario: str, clis: dict[str, str]) -> Header:
        backend = next(iter(clis)) if len(clis) == 1 else None
        date = time.strftime("%Y-%m-%d")
        return Header(f"acp-manifold {__version__}", clis, backend, scenario, date, KINDS)

    def _crossed(self, t: float, key: str, way: Direction, line: bytes) -> None:
        place = self._places[key]
        raw = _decoded(line)
        session, waits = (place.session, None) if raw is None else _session(place, way, raw)
        conn, process = (place.number, None) if place.leg == "client" else (None, place.number)
        entry = Entry(t, place.leg, way, conn, place.backend, process, session)
        if raw is None:
            entry = entry._replace(text=self._scrubber.text(line.decode("utf-8", "replace")))
        else:
            clean = self._scrubber.line(line)
            entry = entry._replace(line=raw if clean == line else as_object(json.loads(clean)))
        if self._folder and raw is not None:
            self._file_by_answer(key, way, raw, entry, waits)
        else:
            self._write(entry)

    def _file_by_answer(self, key: str, way: Direction, raw: JsonObject, entry: Entry, waits: bool | None) -> None:
        """Write an entry, or hold it until the answer tells its session, or write what waited for this one."""
        number = _hashable(raw.get("id"))
        if waits:
            self._held[key, way, number] = entry
            return
        if waits is False and (held := self._held.pop((key, "out" if way == "in" else "in", number), None)) is not None:
            self._write(held._replace(session=entry.session))
        self._write(entry)

    def _write(self, entry: Entry) -> None:
        if self._only is not None and entry.session not in (None, self._only):
            return
        if not self._folder:
            self._files[None].add(entry)
        elif entry.session is None:
            self._common.append(entry)
            for file in self._files.values():
                file.add(entry)
        elif entry.leg == "client" or entry.session in self._files:
            waited = self._unknown.pop(entry.session, [])
            backend = next((line.backend for line in waited), None)
            file = self._file_of(entry.session, backend)
            for line in (*waited, entry):
                file.add(line)
        else:
            self._unknown.setdefault(entry.session, []).append(entry)

    def _file_of(self, session: str, backend: str | None) -> _File:
        file = self._files.get(session)
        if file is None:
            clis = {name: version for name, version in self._clis.items() if backend in (name, None)}
            # An id is not to be used as a path.
            name = re.sub(r"[^\w.-]", "_", session)
            file = self._files[session] = _File(self._path / f"{name}.jsonl", self._header(name, clis))
            for entry in self._common:
                if backend is None or entry.backend in (backend, None):
                    file.add(entry)
        return file

    def _look_at_stores(self) -> None:
        for followed in self._followed.values():
            backend, session = followed.of
            for name, line in followed.news():
                # When it was seen, which is a moment after it was written, never before.
                t, file = round(time.monotonic() - self._begun, 4), self._scrubber.text(name)
                entry = Entry(t, "store", "in", backend=backend, session=session, file=file)
                raw = _decoded(self._scrubber.line(line))
                words = None if raw is not None else self._scrubber.text(line.decode("utf-8", "replace"))
                self._write(entry._replace(line=raw, text=words))


def _session(place: _Place, way: Direction, raw: JsonObject) -> tuple[str | None, bool | None]:
    """The session of a line, and whether it asks for one not known yet (True) or is the answer to that (False)."""
    number = _hashable(raw.get("id"))
    if place.session is not None:
        return place.session, None
    if isinstance(raw.get("method"), str):
        session = _named(obj(raw, "params"))
        if "id" in raw:
            place.asked[way, number] = session
            return session, session is None
        return session, None
    asked = place.asked.pop(("out" if way == "in" else "in", number), None) if "id" in raw else None
    return asked or _named(obj(raw, "result")), asked is None


def _named(params: JsonObject) -> str | None:
    """The session that parameters, or a result, are about, as ACP and the CLIs name one."""
    for key in ("sessionId", "threadId"):
        named = as_str(params.get(key))
        if named is not None:
            return named
    return as_str(obj(params, "thread").get("id"))


def _hashable(value: object) -> str | int | None:
    return value if isinstance(value, str | int) else None


def _decoded(line: bytes) -> JsonObject | None:
    try:
        value = cast(object, json.loads(line))
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def _version(told: object) -> str | None:
    """The version of a CLI: as it was told, or as the command tells it."""
    if isinstance(told, str):
        return told
    command = [word for word in as_list(told) if isinstance(word, str)]
    try:
        done = subprocess.run(
            [*command, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_VERSION_LIMIT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(done.stdout.decode("utf-8", "replace"))
    return found[0] if found else None
