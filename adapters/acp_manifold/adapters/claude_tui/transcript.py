"""A transcript followed as the program appends to it: whole lines, each once, in order (case W01)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.translators.claude.records import decode_line
from acp_manifold.translators.narrow import JsonObject

logger = logging.getLogger(__name__)

_PIECE: Final = 1024 * 1024
"""Bytes read in one go."""


class Follower:
    """Follows one transcript from the size it has now; `read` hands on what has come since."""

    def __init__(self, path: Path, take: Callable[[JsonObject], None], *, begun: bool = False) -> None:
        """
        Args:
            path: The transcript; it need not be there yet.
            take: Gets each record.
            begun: Whether what is in it already counts too.
        """
        self._path = path
        self._take = take
        self._offset = 0 if begun else _size(path)
        self._rest = b""

    def read(self) -> bool:
        """Hand on every record that was completed since the last time; whether there was any."""
        if _size(self._path) == self._offset:
            return False
        lines: list[bytes] = []
        try:
            with open_to_read(self._path) as file:
                if file.seek(0, 2) < self._offset:
                    # Another file of the same name: all of it is new.
                    self._offset, self._rest = 0, b""
                file.seek(self._offset)
                while piece := file.read(_PIECE):
                    self._offset += len(piece)
                    *whole, self._rest = (self._rest + piece).split(b"\n")
                    lines += whole
        except FileNotFoundError:
            self._offset, self._rest = 0, b""
        except OSError as exc:
            logger.info("%s can't be read: %s", self._path, exc.strerror)
        for line in lines:
            records, clean = decode_line(line) if line.strip() else ([], True)
            if not clean:
                logger.warning("%s: a line could not be read", self._path)
            for record in records:
                self._take(record)
        return bool(lines)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
