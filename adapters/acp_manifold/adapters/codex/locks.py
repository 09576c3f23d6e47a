"""Who has which thread: Codex' writer locks, looked at in the kernel's list, never touched.

While a thread is loaded, its process has a kernel lock on `thread-writer-locks/<id>.lock`; the file
stays when the lock goes (codex-cli 0.163.0). To try the lock would be to have it for a moment, and
Codex would be refused meanwhile. Linux tells all locks in `/proc/locks`; elsewhere nothing is known.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from acp_manifold.bridge.backend import Held

from .ids import is_thread_id

logger = logging.getLogger(__name__)

LOCKS = Path("/proc/locks")


def holder_of(home: Path, thread_id: str, locks: Path = LOCKS) -> int | None:
    """The process that has a thread loaded; None if none has, or that can't be told."""
    try:
        status = (home / "thread-writer-locks" / f"{thread_id}.lock").stat()
        table = locks.read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    return _holders(table).get((os.major(status.st_dev), os.minor(status.st_dev), status.st_ino))


def held_threads(home: Path, locks: Path = LOCKS) -> tuple[Held, ...] | None:
    """The threads that a process has loaded; None where that can't be told."""
    try:
        table = locks.read_text(encoding="ascii", errors="replace")
    except OSError as exc:
        logger.debug("%s can't be read: %s", locks, exc.strerror)
        return None
    pids = _holders(table)
    return tuple(Held(name, pids[file], _name(pids[file])) for name, file in _lock_files(home) if file in pids)


def _lock_files(home: Path) -> list[tuple[str, tuple[int, int, int]]]:
    """Each thread that ever had a lock, and device (major, minor) and number of the lock's file."""
    found: list[tuple[str, tuple[int, int, int]]] = []
    for path in sorted((home / "thread-writer-locks").glob("*.lock")):
        if is_thread_id(path.stem):
            try:
                status = path.stat()
            except OSError:
                continue  # Gone by now: held by nobody.
            found.append((path.stem, (os.major(status.st_dev), os.minor(status.st_dev), status.st_ino)))
    return found


def _holders(table: str) -> dict[tuple[int, int, int], int]:
    """File -> the process that has a lock on it, of lines like `7: FLOCK ADVISORY WRITE 4711 fd:01:393 0 EOF`."""
    found: dict[tuple[int, int, int], int] = {}
    for line in table.splitlines():
        fields = line.split()
        if len(fields) < 6 or fields[1] == "->":  # `->`: who waits for one
            continue
        device = fields[5].split(":")
        try:
            major, minor, number = int(device[0], 16), int(device[1], 16), int(device[2])
            found[major, minor, number] = int(fields[4])
        except (ValueError, IndexError):
            continue
    return found


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip() or "a process"
    except OSError:
        return "a process"
