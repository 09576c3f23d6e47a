"""That Codex' list may have changed: its table of threads and its list of renames, as files.

Every Codex process writes the threads into `state_5.sqlite` beside `session_index.jsonl`, and the
renames into the latter (codex-cli 0.163.0). The database tells nobody which thread it was; the last
lines of the other file do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from acp_manifold.bridge.backend import Host
from acp_manifold.translators.narrow import as_object, as_str

_DATABASE = "state_"
_RENAMES = "session_index.jsonl"
_LAST = 2048
"""Bytes at the end of the renames that are looked at: some lines."""


@contextmanager
def follow_threads(home: Path, host: Host, changed: Callable[[str | None], None]) -> Generator[None]:
    """Call `changed` when threads may have changed, with the id of the thread if that is known.

    Args:
        home: `$CODEX_HOME`.
        host: Who watches.
        changed: Who wants to know.
    """

    def touched(path: Path | None) -> None:
        if path is not None and path.name == _RENAMES:
            for thread_id in _renamed(path):
                changed(thread_id)
        elif path is None or (path.name.startswith(_DATABASE) and not path.name.endswith("-shm")):
            changed(None)

    stop = host.watch_folder(home, touched)
    try:
        yield
    finally:
        stop()


def _renamed(path: Path) -> set[str]:
    """The threads of the last lines of the renames."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - _LAST))
            lines = file.read().split(b"\n")
    except OSError:
        return set()  # It went meanwhile; the database tells the rest.
    return {thread_id for line in lines if (thread_id := _thread_of(line)) is not None}


def _thread_of(line: bytes) -> str | None:
    try:
        return as_str(as_object(json.loads(line)).get("id"))
    except (ValueError, RecursionError):
        return None  # The first line is seldom whole.
