"""What a process costs, read from /proc (Linux only): CPU time and proportional memory."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """User and system time of the process so far, its children's left out; in steps of a clock tick, 10 ms mostly."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS


def pss_mb(pid: int) -> float:
    """Proportional set size in MB: memory that several processes share is divided among them."""
    return _rollup_mb(pid, "Pss:")


def rss_mb(pid: int) -> float:
    """Resident set size in MB: memory that is shared counts whole."""
    return _rollup_mb(pid, "Rss:")


def _rollup_mb(pid: int, name: str) -> float:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    return 0.0


def descendants(pid: int) -> list[int]:
    """All living children of a process, theirs too."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            children.setdefault(int(_stat(int(folder.name))[1]), []).append(int(folder.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        kids = children.get(waiting.pop(), [])
        found += kids
        waiting += kids
    return found


def naming(pids: list[int], program: str) -> int:
    """How many of the processes have the program on their command line."""
    found = 0
    for pid in pids:
        with suppress(OSError):
            found += program.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return found


def descriptors(pid: int) -> int:
    """How many file descriptors the process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def total_pss_mb(pids: list[int]) -> float:
    """The sum for all that still live."""
    total = 0.0
    for pid in pids:
        with suppress(OSError):
            total += pss_mb(pid)
    return total


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on, which is behind a name that may hold anything."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
