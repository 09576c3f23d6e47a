"""What was appended, since the last look, to a session's file in a CLI's store and to those in the folder beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


class Followed:
    """A file that may not be there yet, and the folder beside it.

    Args:
        root: Of the store: names of files are told from there.
        path: The file.
    """

    def __init__(self, root: Path, path: Path) -> None:
        self.of: tuple[str, str] = ("", "")
        """Whose it is: backend and session."""
        self._root = root
        self._path = path
        self._read: dict[Path, int] = {}

    def news(self) -> Iterator[tuple[str, bytes]]:
        """Each whole line that is new, with the name of its file; a file that can't be read has none."""
        inside = sorted(self._path.with_suffix("").rglob("*.jsonl"))
        for path in (self._path, *inside):
            name = os.path.relpath(path, self._root)
            for line in self._new_lines(path):
                yield name, line

    def _new_lines(self, path: Path) -> list[bytes]:
        begun = self._read.get(path, 0)
        try:
            if path.stat().st_size == begun:
                return []
            with path.open("rb") as file:
                file.seek(begun)
                *lines, _ = file.read().split(b"\n")
        except OSError:
            return []
        self._read[path] = begun + sum(len(line) + 1 for line in lines)
        return [line for line in lines if line.strip()]
