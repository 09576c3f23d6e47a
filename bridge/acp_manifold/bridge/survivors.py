"""Which processes are left of a child: its process group, and whatever else bears its mark.

A group kill doesn't reach a CLI's background shells, which are process sessions of their own
(Claude Code 2.1.332). But they inherit the environment, so each child's holds a mark of its own.
Only the standard library's core is imported: the guardian uses this file too, and has to be small.
"""

from __future__ import annotations

import os

MARK_VARIABLE = "ACP_MANIFOLD_CHILD"
"""The environment variable that holds the mark."""

_CHUNK = 64 * 1024


def survivors(groups: set[int], marks: set[str]) -> list[int]:
    """Living processes of these groups and marks, as targets for `os.kill`.

    Zombies don't count: they are dead, and whoever should reap them may never do so. Where there
    is no `/proc` (macOS), groups are given as a whole, by negative numbers, and marks can't be seen.
    """
    try:
        names = os.listdir("/proc")
    except OSError:
        return [-group for group in groups if _answers(-group)]
    entries = [f"{MARK_VARIABLE}={mark}".encode() for mark in marks]
    ours = str(os.getpid())
    return [int(name) for name in names if name.isdigit() and name != ours and _belongs(name, groups, entries)]


def signal_to(targets: list[int], number: int) -> None:
    """Send a signal to each target; one that is gone by now is no error."""
    for target in targets:
        try:
            os.kill(target, number)
        except (ProcessLookupError, PermissionError):
            continue


def _belongs(name: str, groups: set[int], entries: list[bytes]) -> bool:
    try:
        # The command's name stands in parentheses and may hold any character; state, parent and group follow.
        state, _, group = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()[:3]
        if state in b"ZX":
            return False
        if int(group) in groups:
            return True
        environment = _read(f"/proc/{name}/environ")
    except (OSError, ValueError):
        return False  # It is gone, or it is another user's.
    return any(entry in environment for entry in entries)


def _read(path: str) -> bytes:
    # Plain calls: a file object costs five times as much, and a scan reads two files a process.
    fd = os.open(path, os.O_RDONLY)
    try:
        read = data = os.read(fd, _CHUNK)
        while len(data) == _CHUNK:
            data = os.read(fd, _CHUNK)
            read += data
        return read
    finally:
        os.close(fd)


def _answers(target: int) -> bool:
    try:
        os.kill(target, 0)
    except OSError:
        return False
    return True
