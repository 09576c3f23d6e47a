"""Reading a transcript for its list row: a piece of its end, later one of its start, seldom more.

Real transcripts hold long records between few messages, so a piece grows until it holds a message.
Titles may stand anywhere, and the first prompt may be behind long records: between the pieces they
are looked for only when a row is to be shown, from the end backwards, since the last title counts.
All that is read is remembered by its place, so that no byte of a growing transcript is read for
the same purpose twice.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from acp_manifold.adapters.claude.regular import opened
from acp_manifold.translators.claude.listing import COST, Facts
from acp_manifold.translators.claude.records import TITLE_MARK, Title, decode_line, title_of
from acp_manifold.translators.narrow import JsonObject

logger = logging.getLogger(__name__)

SMALL: Final = 4 * 1024
"""Bytes first read of the end and of the start: what follows the last message is 1 KB long (Claude Code 2.1.332)."""

PIECE: Final = 64 * 1024
"""Bytes up to which a start is read for what it tells, and first for a title."""

SEARCH_LIMIT: Final = 8 * 1024 * 1024
"""Bytes read for one row at most before it is shown: of the end up to the last message, of the start up to
the first prompt. Longer lines are passed over."""

_MOST: Final = 1024 * 1024
"""Bytes read in one go at most; also what a file may grow by and still be searched for titles at once."""

_COST_MARK: Final = f'"{COST}"'.encode()

_ANCHOR: Final = 128
"""Bytes before the place that was read up to: while they are the same, so is what was read before."""


@dataclass(slots=True)
class Reading:
    """What was read of one transcript, and how far; `file` is always its descriptor."""

    path: str
    facts: Facts = field(default_factory=Facts)
    size: int = 0
    """Bytes that were there."""
    end: int = 0
    """Where the last whole line of them ends."""
    anchor: bytes = b""
    """What stands just before that."""
    searched: int = 0
    """From here to the end all titles that count are known; where a line begins."""
    head: int = 0
    """Where the line begins from which the start is to be read on."""
    sought: int = 0
    """Up to where the start was read: into the line at `head`, if that is a long one."""

    @property
    def is_begun(self) -> bool:
        """Whether what the start tells is known, or not worth more reading for a list."""
        return self.facts.has_start or self.sought >= min(self._start_limit, self.size)

    @property
    def is_whole(self) -> bool:
        """Whether the row is all that it can be."""
        return self._is_searched and not self._lacks_prompt

    @property
    def _is_searched(self) -> bool:
        return self.searched <= max(self.facts.custom_at, 0)

    @property
    def _lacks_prompt(self) -> bool:
        facts = self.facts
        return not (facts.has_start or facts.title or facts.first_typed or self.sought >= min(SEARCH_LIMIT, self.size))

    @property
    def _start_limit(self) -> int:
        return PIECE if self.facts.last_cwd is not None else SEARCH_LIMIT

    def catch_up(self, file: int) -> bool:
        """Read what has come since; False if what was read before is there no more.

        Of a transcript that is new to us that is the end, and the start too if the end does not tell the time.
        """
        size = os.lseek(file, 0, os.SEEK_END)
        anchor, end, searched, is_new = self.anchor, self.end, self.searched, self.size == 0
        if end > size or (anchor and os.pread(file, len(anchor), end - len(anchor)) != anchor):
            return False
        self.size = size
        self._read_end(file, end)
        if is_new and self.facts.updated_at is None:
            self._read_start(file, self._start_limit, self.facts.add)
        elif not is_new and size - end <= _MOST:
            self._search(file, end)
            self.searched = searched
        return True

    def begin(self, file: int) -> None:
        """Read the start, as far as that is worth it for a list."""
        if not self.is_begun:
            self._read_start(file, self._start_limit, self.facts.add_first)

    def look(self, file: int, budget: int) -> int:
        """Search on for what is missing of the row; gives the bytes read, about `budget` of them at most."""
        before, sought = self.searched, self.sought
        if self._lacks_prompt:
            self._read_start(file, min(SEARCH_LIMIT, sought + budget), self.facts.add_first)
        left = budget - (self.sought - sought)
        if not self._is_searched and left > 0:
            self._search(file, before - left)
        return (before - self.searched) + (self.sought - sought)

    def _read_end(self, file: int, floor: int) -> None:
        """Read back from the end to the last message; `floor` is where to stop without one."""
        facts, rest_at = self.facts, -1
        found = False
        for at, line in _backwards(file, self.size, floor, SMALL):
            if rest_at < 0:
                rest_at = at
            elif self.end < rest_at:
                self.end, self.anchor = rest_at, line[1 - _ANCHOR :] + b"\n"
            self.searched = at
            if b'"assistant"' in line or b'"user"' in line or TITLE_MARK in line or _COST_MARK in line:
                for record in decode_line(line)[0]:
                    found = facts.add_last(record, at) or found
            if (found or self.size - at >= SEARCH_LIMIT) and at < rest_at:
                break

    def _search(self, file: int, floor: int) -> None:
        """Look for titles before those that are known, back to `floor` or to a custom title."""
        facts = self.facts
        if self.searched <= floor:
            return
        for at, line in _backwards(file, self.searched, max(0, facts.custom_at), PIECE):
            for title in title_records(line):
                facts.add_title(title, at)
            self.searched = at
            if at <= max(floor, facts.custom_at):
                break

    def _read_start(self, file: int, limit: int, add: Callable[[JsonObject, int], object]) -> None:
        """Give the records of the start to `add`, until all is known that they can tell."""
        facts = self.facts
        for at, line, sought in _forwards(file, self.head, limit):
            self.head, self.sought = at, sought
            records, clean = decode_line(line) if line.strip() else ([], True)
            if not clean and at < self.end:
                logger.info("%s: the line at byte %d could not be read", self.path, at)
            for record in records:
                add(record, at)
            if facts.has_start:
                break


def read(path: str, before: Reading | None) -> Reading:
    """What the end of a transcript tells, if need be its start too.

    Args:
        path: The transcript.
        before: What was read of this file when it was no longer than it is now. If it only grew, that still
            holds and is read on from; the same object comes back then.

    Raises:
        OSError: It can't be read.
    """
    with opened(path) as file:
        if before is not None and before.catch_up(file):
            return before
        reading = Reading(path)
        reading.catch_up(file)
        return reading


def custom_title_after(path: Path, offset: int) -> str | None:
    """The last custom title written behind the first `offset` bytes; None without one.

    Raises:
        OSError: It can't be read.
    """
    with opened(path) as file:
        for _, line in _backwards(file, os.fstat(file).st_size, offset, PIECE):
            for title in reversed(title_records(line)):
                if title.origin == "user":
                    return title.text
    return None


def is_near_end(path: Path, words: str) -> bool:
    """Whether the last `SEARCH_LIMIT` bytes of a file hold some words.

    Raises:
        OSError: It can't be read.
    """
    with opened(path) as file:
        start = max(0, os.fstat(file).st_size - SEARCH_LIMIT)
        return words.encode() in os.pread(file, SEARCH_LIMIT, start)


def title_records(line: bytes) -> list[Title]:
    """The titles in a line, checked by the type of its record; mostly none."""
    if TITLE_MARK not in line:
        return []
    records, _ = decode_line(line)
    return [title for record in records if (title := title_of(record)) is not None]


def _backwards(file: int, start: int, floor: int, length: int) -> Iterator[tuple[int, bytes]]:
    """Lines before `start`, the last one first, each with its place, back to the line that begins at `floor`.

    What stands behind the last line break is a line too, an empty one mostly. Pieces begin with
    `length` bytes and grow. Lines longer than `SEARCH_LIMIT` come empty.
    """
    rest: list[bytes] = []
    held = 0
    while start > floor:
        taken = min(length, start - floor)
        start -= taken
        data = os.pread(file, taken, start)
        lines = data.split(b"\n")
        if len(lines) > 1:
            at = start + len(data) - len(lines[-1])
            yield at, lines[-1] + b"".join(reversed(rest)) if held <= SEARCH_LIMIT else b""
            for line in reversed(lines[1:-1]):
                at -= len(line) + 1
                yield at, line
            rest, held = [], 0
        held += len(lines[0])
        rest = [*rest, lines[0]] if held <= SEARCH_LIMIT else []
        length = min(length * 4, _MOST)
    yield floor, b"".join(reversed(rest)) if held <= SEARCH_LIMIT else b""


def _forwards(file: int, start: int, limit: int) -> Iterator[tuple[int, bytes, int]]:
    """Lines from the one at `start` on, each with its place and how far was read, up to about `limit` bytes.

    One that is cut off by the end of the file is given too, of one that is longer than that nothing.
    """
    length, rest = SMALL, b""
    at = place = start
    while place < limit:
        data = os.pread(file, length, place)
        place += len(data)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield at, line, place
            at += len(line) + 1
        if not data:
            yield at, rest, place
            return
        length = min(length * 4, _MOST)
    yield at, b"", place
