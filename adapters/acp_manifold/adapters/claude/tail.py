"""Titles heard as they are appended to a transcript, whoever appends them.

Only complete lines are read (case W01): a piece of a line, or of a character, waits for its rest.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.translators.claude.records import TITLE_MARK, Title, decode_line, title_of

logger = logging.getLogger(__name__)

_PIECE: Final = 1024 * 1024
"""Bytes read in one go."""


class TitleTail:
    """Follows one transcript from the size it has now; `changed` reads what has come since."""

    def __init__(self, path: Path, heard: Callable[[Title], None]) -> None:
        self._path = path
        self._heard = heard
        self._offset = _size(path)
        self._rest: list[bytes] = []
        self._last: dict[str, str] = {}

    def changed(self) -> None:
        """Read what was appended and tell the titles in it; does nothing while the file is missing."""
        try:
            with open_to_read(self._path) as file:
                if file.seek(0, 2) < self._offset:
                    # Another file of the same name: all of it is new.
                    self._offset, self._rest = 0, []
                file.seek(self._offset)
                while piece := file.read(_PIECE):
                    self._offset += len(piece)
                    self._take(piece)
        except FileNotFoundError:
            self._offset, self._rest = 0, []
        except OSError as exc:
            logger.info("%s can't be read: %s", self._path, exc.strerror)

    def _take(self, piece: bytes) -> None:
        whole, newline, rest = piece.rpartition(b"\n")
        if not newline:
            self._rest.append(piece)
            return
        lines = b"".join([*self._rest, whole]).split(b"\n")
        self._rest = [rest] if rest else []
        for line in lines:
            if TITLE_MARK in line:
                self._read(line)

    def _read(self, line: bytes) -> None:
        records, clean = decode_line(line)
        if not clean:
            logger.info("%s: a line could not be read", self._path)
        for record in records:
            title = title_of(record)
            # The CLI appends its titles again and again; only a change is worth telling.
            if title is not None and self._last.get(title.origin) != title.text:
                self._last[title.origin] = title.text
                self._heard(title)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
