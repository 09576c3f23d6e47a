"""Reads recordings: plain or gzip, of any format so far, whole or cut off in the middle of a line."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Final, cast

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from acp_manifold.bridge.errors import BridgeError
from acp_manifold.translators.narrow import JsonObject, as_int, as_str, is_object
from acp_manifold.translators.values import NamedTuple

from .format import FORMAT, Entry, Header
from .migrate import migrate

_GZIP_MAGIC: Final = b"\x1f\x8b"

_LEGS: Final = ("client", "backend", "store", "bridge")

_SHOWN: Final = 60
"""Characters of what was wrong that a message repeats."""


class BadRecording(BridgeError):
    """A file that is no recording, or a damaged one; the message names file, line and fault."""


class Recording(NamedTuple):
    """A recording that was read."""

    path: Path
    header: Header
    entries: tuple[Entry, ...]
    cut: str | None = None
    """What is missing at its end, in words; None if it is whole."""


class _Header(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)

    format: Annotated[int, Field(ge=1)]
    tool: str
    clis: dict[str, str]
    backend: str | None = None
    scenario: str
    date: str
    scrubbed: list[str] = []


_checked: Final = TypeAdapter(_Header)


def read(path: Path) -> Recording:
    """Read a whole recording.

    Args:
        path: A `.jsonl` file, plain or gzip, which is told by what is in it.

    Raises:
        BadRecording: It can't be read, is no recording, is of a format yet to come, or a line in it is damaged. A last
            line that is cut off is no fault: `Recording.cut` tells of it.
    """
    try:
        with _opened(path) as file:
            lines = _lines(file)
            header = _header(path, next(lines, b""))
            entries, cut = _entries(path, lines)
    except OSError as exc:
        raise BadRecording(f"{path} can't be read: {exc.strerror or exc}") from exc
    return Recording(path, header, entries, cut)


def read_header(path: Path) -> Header:
    """Read the first line of a recording alone; raises what `read` raises."""
    try:
        with _opened(path) as file:
            return _header(path, next(_lines(file), b""))
    except OSError as exc:
        raise BadRecording(f"{path} can't be read: {exc.strerror or exc}") from exc


def _opened(path: Path) -> BufferedReader | gzip.GzipFile:
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP_MAGIC
    return gzip.GzipFile(path) if packed else path.open("rb")


def _lines(file: BufferedReader | gzip.GzipFile) -> Iterator[bytes]:
    """The lines of a file with their ends; a gzip file that was cut off gives what is there of the last one."""
    begun = b""
    while True:
        try:
            block = file.read1(1 << 20)
        except (EOFError, zlib.error):
            block = b""
        if not block:
            break
        *whole, begun = (begun + block).split(b"\n")
        yield from (line + b"\n" for line in whole)
    if begun:
        yield begun


def _header(path: Path, line: bytes) -> Header:
    raw = _object(line)
    if raw is None or "format" not in raw:
        raise BadRecording(f"{path} is no recording: its first line is no header of one")
    version = as_int(raw.get("format"))
    if version is not None and version > FORMAT:
        raise BadRecording(
            f"{path} is a recording of format {version}, and this acp-manifold reads formats up to {FORMAT}: update it"
        )
    try:
        header = _checked.validate_python(migrate(raw))
    except ValidationError as exc:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in exc.errors())
        raise BadRecording(f"{path}, line 1: the header is not as it should be: {faults}") from exc
    return Header(header.tool, header.clis, header.backend, header.scenario, header.date, tuple(header.scrubbed))


def _entries(path: Path, lines: Iterator[bytes]) -> tuple[tuple[Entry, ...], str | None]:
    entries: list[Entry] = []
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        raw = _object(line)
        if raw is None and not line.endswith(b"\n"):
            return tuple(entries), f"line {number} is cut off after {len(line)} bytes"
        try:
            entries.append(_entry(raw, number))
        except ValueError as exc:
            raise BadRecording(f"{path}, line {number}: {exc}") from exc
    return tuple(entries), None


def _object(line: bytes) -> JsonObject | None:
    try:
        value = cast(object, json.loads(line))
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def _entry(raw: JsonObject | None, number: int) -> Entry:
    if raw is None:
        raise ValueError("is no JSON object")
    leg, way, t = raw.get("leg"), raw.get("dir"), raw.get("t")
    if leg not in _LEGS:
        raise ValueError(f"leg: must be one of {', '.join(_LEGS)}, and is {_short(leg)}")
    if way not in ("in", "out") and (way is not None or leg != "bridge"):
        raise ValueError(f"dir: must be in or out, and is {_short(way)}")
    if not isinstance(t, int | float) or isinstance(t, bool):
        raise ValueError(f"t: must be a number of seconds, and is {_short(t)}")
    line, text = raw.get("line"), as_str(raw.get("text"))
    if not is_object(line):
        if text is None:
            raise ValueError("has neither a JSON object in `line` nor a string in `text`")
        line = None
    return Entry(
        float(t),
        leg,
        way,
        as_int(raw.get("conn")),
        as_str(raw.get("backend")),
        as_int(raw.get("process")),
        as_str(raw.get("session")),
        as_str(raw.get("file")),
        line,
        text,
        number,
    )


def _short(value: object) -> str:
    shown = "missing" if value is None else repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
