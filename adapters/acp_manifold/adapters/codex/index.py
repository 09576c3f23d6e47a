"""Titles that other programs give: the lines they append to `$CODEX_HOME/session_index.jsonl`.

Codex appends `{"id", "thread_name", "updated_at"}` for every rename, from whatever process, before
it answers (codex-cli 0.163.0). Another app-server tells us nothing, so the file is how we hear it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from acp_manifold.bridge.backend import Host
from acp_manifold.translators.narrow import as_object, as_str

logger = logging.getLogger(__name__)


class TitleIndex:
    """One watch on the file, shared by all who follow a thread."""

    def __init__(self, path: Path, host: Host, heard: Callable[[str, str], None]) -> None:
        """
        Args:
            path: The index file, which may not exist yet.
            host: Who watches.
            heard: Told the thread and its title, for threads that are followed.
        """
        self._path = path
        self._host = host
        self._heard = heard
        self._followers: dict[str, int] = {}
        self._offset = 0
        self._unwatch: Callable[[], None] | None = None

    @contextmanager
    def follow(self, thread_id: str) -> Generator[None]:
        """Report titles of a thread for as long as the context is open."""
        self._followers[thread_id] = self._followers.get(thread_id, 0) + 1
        if self._unwatch is None:
            self._offset = self._size()
            self._unwatch = self._host.watch(self._path, self.changed)
        try:
            yield
        finally:
            self._followers[thread_id] -= 1
            if not self._followers[thread_id]:
                del self._followers[thread_id]
            if not self._followers and self._unwatch is not None:
                self._unwatch()
                self._unwatch = None

    def changed(self) -> None:
        """Read what was appended, up to the last whole line (case W01)."""
        if self._size() < self._offset:
            self._offset = 0  # another file took its place
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return
        except OSError as exc:
            logger.warning("codex: can't read %s: %s", self._path, exc.strerror)
            return
        whole = data.rfind(b"\n") + 1
        self._offset += whole
        for line in data[:whole].split(b"\n"):
            if line.strip():
                self._line(line)

    def _line(self, line: bytes) -> None:
        try:
            record = as_object(json.loads(line))
        except (ValueError, RecursionError):
            logger.info("codex: skipped a damaged line of %s", self._path)
            return
        thread_id, title = as_str(record.get("id")), as_str(record.get("thread_name"))
        if thread_id in self._followers and thread_id and title:
            self._heard(thread_id, title)

    def _size(self) -> int:
        try:
            return self._path.stat().st_size
        except OSError:
            return 0
