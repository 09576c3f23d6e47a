"""Reading a transcript for its list row: a piece of the head, a piece of the tail, seldom more.

Real transcripts hold long records between few messages, so the tail grows until it holds a message.
Titles may stand anywhere, and the first prompt may be longer than the head: behind the head they are
looked for only when a row is to be shown.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import datetime
from pathlib import Path
from typing import BinaryIO, Final

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.translators.claude.listing import Facts
from acp_manifold.translators.claude.records import TITLE_MARK, Title, decode_line, title_of
from acp_manifold.translators.narrow import as_object, as_str, text

logger = logging.getLogger(__name__)

PIECE: Final = 64 * 1024
"""Bytes read of the head, and first of the tail."""

SEARCH_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of a transcript up to which all of it is searched for a title; also how far the first prompt is
looked for from its start, and the last message from its end."""

_USER_MARK: Final = b'"user"'
"""Bytes that every line with a record of a person's words holds."""


def scan(path: Path) -> Facts:
    """What the head and the tail of a transcript tell.

    Raises:
        OSError: It can't be read.
    """
    with open_to_read(path) as file:
        size = file.seek(0, 2)
        facts = Facts()
        if size <= 2 * PIECE:
            _add(facts, _lines(file, 0, size), path)
            return facts
        _add(facts, _whole_lines(file, 0, PIECE, size), path)
        length = PIECE
        while not _add_tail(facts, file, length, size, path) and length < min(size, SEARCH_LIMIT):
            length = min(length * 4, size, SEARCH_LIMIT)
        return facts


def search(path: Path, facts: Facts) -> None:
    """Look between head and tail too, for titles and, if there is none, for what a person typed first.

    Raises:
        OSError: It can't be read.
    """
    with open_to_read(path) as file:
        size = file.seek(0, 2)
        if size <= 2 * PIECE:
            return
        if size <= SEARCH_LIMIT and _custom_title_in(file, size - PIECE, size) is None:
            for line in _lines(file, 0, size):
                for title in _title_records(line):
                    facts.add_title(title)
        if facts.title is None and facts.first_typed is None:
            facts.first_typed = _first_typed(file)


def _first_typed(file: BinaryIO) -> str | None:
    file.seek(0)
    head, left = Facts(), SEARCH_LIMIT
    while head.first_typed is None and (line := file.readline(left)):
        left -= len(line)
        if _USER_MARK in line:
            for record in decode_line(line)[0]:
                head.add(record)
    return head.first_typed


def titles_after(path: Path, offset: int) -> list[Title]:
    """Every title record behind the first `offset` bytes, in order, as far as `SEARCH_LIMIT` from the end goes.

    Raises:
        OSError: It can't be read.
    """
    with open_to_read(path) as file:
        size = file.seek(0, 2)
        lines = _lines(file, max(offset, size - SEARCH_LIMIT), size)
    return [title for line in lines for title in _title_records(line)]


def custom_title_after(path: Path, offset: int) -> str | None:
    """The last custom title written behind the first `offset` bytes; None without one.

    Raises:
        OSError: It can't be read.
    """
    with open_to_read(path) as file:
        size = file.seek(0, 2)
        return _custom_title_in(file, offset, size)


def _custom_title_in(file: BinaryIO, start: int, end: int) -> str | None:
    found: str | None = None
    for line in _lines(file, start, end):
        for title in _title_records(line):
            if title.origin == "user":
                found = title.text
    return found


def _title_records(line: bytes) -> list[Title]:
    if TITLE_MARK not in line:
        return []
    records, _ = decode_line(line)
    return [title for record in records if (title := title_of(record)) is not None]


def _lines(file: BinaryIO, start: int, end: int) -> list[bytes]:
    file.seek(start)
    return file.read(max(0, end - start)).split(b"\n")


def _whole_lines(file: BinaryIO, start: int, end: int, size: int) -> list[bytes]:
    """The lines that lie whole between two places, neither of which need be a line's end."""
    lines = _lines(file, start, end)
    first = 0 if start == 0 else 1
    return lines[first:] if end >= size else lines[first:-1]


def _add_tail(facts: Facts, file: BinaryIO, length: int, size: int, path: Path) -> bool:
    """Add the last `length` bytes; whether a message was among them."""
    tail = Facts(cwd=facts.cwd, has_message=facts.has_message)
    _add(tail, _whole_lines(file, size - length, size, size), path)
    if tail.updated_at is None and length < min(size, SEARCH_LIMIT):
        return False
    facts.custom = tail.custom or facts.custom
    facts.generated = tail.generated or facts.generated
    facts.updated_at = max(filter(None, (facts.updated_at, tail.updated_at)), default=None)
    facts.has_message = tail.has_message
    facts.cwd = tail.cwd
    return True


def _add(facts: Facts, lines: list[bytes], path: Path) -> None:
    bad = 0
    for line in lines:
        if not line.strip():
            continue
        records, clean = decode_line(line)
        bad += not clean
        for record in records:
            facts.add(record)
    if bad:
        logger.info("%s: %d lines could not be read", path, bad)


def is_near_end(path: Path, words: str) -> bool:
    """Whether the last `SEARCH_LIMIT` bytes of a file hold some words.

    Raises:
        OSError: It can't be read.
    """
    with open_to_read(path) as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - SEARCH_LIMIT))
        return words.encode() in file.read(SEARCH_LIMIT)


def beside(path: Path) -> tuple[str | None, float]:
    """The title in `custom-title.json` beside a transcript, and when it was set, in seconds since 1970.

    Claude Code 2.1.332 writes it when it is told a title, and not when it appends an old one again.
    None and 0 if there is no such file, or none that can be read.
    """
    try:
        with open_to_read(path.with_suffix("") / "custom-title.json") as file:
            told = as_object(json.loads(file.read()))
        return as_str(told.get("customTitle")), datetime.fromisoformat(text(told, "at")).timestamp()
    except (OSError, ValueError, RecursionError):
        return None, 0.0
