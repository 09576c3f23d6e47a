"""Titles that other programs give: the lines they append to `$CODEX_HOME/session_index.jsonl`.

Codex appends `{"id", "thread_name", "updated_at"}` for every rename, from whatever process, before
it answers (codex-cli 0.163.0). Another app-server tells us nothing, so the file is how we hear it.
When a thread is deleted, Codex writes the file anew without its lines, and puts it in the place of
the old one: what was read before is then all there again. So only the newest line of a thread
counts, and only if it says something else than what the thread was last known to be called.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from acp_manifold.bridge.backend import Host
from acp_manifold.translators.narrow import as_object, as_str

logger = logging.getLogger(__name__)

_TAIL = 256
"""Bytes before the place read up to that are remembered: the number of a deleted file is soon given to a new one."""


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
        self._known: dict[str, str] = {}
        """What the followed threads were last known to be called."""
        self._file: tuple[int, int] | None = None
        """Device and number of the file that was read."""
        self._offset = 0
        """Up to where it was read: the end of a line."""
        self._tail = b""
        """What is just before that."""
        self._unwatch: Callable[[], None] | None = None

    @contextmanager
    def follow(self, thread_id: str) -> Generator[None]:
        """Report titles of a thread for as long as the context is open; what is in the file by now is history."""
        self.changed()
        if thread_id not in self._followers:
            self._note(thread_id, _last_title(self._history(), thread_id))
        self._followers[thread_id] = self._followers.get(thread_id, 0) + 1
        if self._unwatch is None:
            self._unwatch = self._host.watch(self._path, self.changed)
        try:
            yield
        finally:
            self._followers[thread_id] -= 1
            if not self._followers[thread_id]:
                del self._followers[thread_id]
                self._known.pop(thread_id, None)
            if not self._followers and self._unwatch is not None:
                self._unwatch()
                self._unwatch = None

    def told(self, thread_id: str, title: str) -> None:
        """Codex itself told us a title: its line in the file is no news."""
        if thread_id in self._followers:
            self._note(thread_id, title)

    def changed(self) -> None:
        """Look for new titles, up to the last whole line (case W01)."""
        lines = self._read()
        if not self._followers:
            return
        newest: dict[str, str] = {}
        for line in lines.split(b"\n"):
            thread_id, title = _record(line) if line.strip() else (None, None)
            if thread_id in self._followers and thread_id and title:
                newest[thread_id] = title
        for thread_id, title in newest.items():
            if self._known.get(thread_id) != title:
                self._note(thread_id, title)
                self._heard(thread_id, title)

    def _note(self, thread_id: str, title: str | None) -> None:
        if title is not None:
            self._known[thread_id] = title

    def _read(self) -> bytes:
        """The whole lines that are new; all of them if another file took the place of the one read before."""
        try:
            with self._path.open("rb") as file:
                if not self._is_same(file):
                    self._offset, self._tail = 0, b""
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return b""
        except OSError as exc:
            logger.warning("codex: can't read %s: %s", self._path, exc.strerror)
            return b""
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        self._tail = whole[-_TAIL:] or self._tail
        return whole

    def _is_same(self, file: BinaryIO) -> bool:
        """Whether this is the file that was read before, grown or not."""
        status = os.fstat(file.fileno())
        before, self._file = self._file, (status.st_dev, status.st_ino)
        if before != self._file:
            return False
        file.seek(self._offset - len(self._tail))
        return file.read(len(self._tail)) == self._tail

    def _history(self) -> bytes:
        """All that was read so far."""
        try:
            with self._path.open("rb") as file:
                return file.read(self._offset)
        except OSError:
            return b""


def _record(line: bytes) -> tuple[str | None, str | None]:
    """The thread and the title of a line."""
    try:
        record = as_object(json.loads(line))
    except (ValueError, RecursionError):
        logger.info("codex: skipped a damaged line of the session index")
        return None, None
    return as_str(record.get("id")), as_str(record.get("thread_name"))


def _last_title(lines: bytes, thread_id: str) -> str | None:
    """The newest title of one thread. Its lines are found from the end, since the file may be long."""
    end = len(lines)
    while (place := lines.rfind(thread_id.encode(), 0, end)) >= 0:
        end = lines.rfind(b"\n", 0, place) + 1
        found, title = _record(lines[end : lines.find(b"\n", place)])
        if found == thread_id and title:
            return title
    return None
