"""Finds processes by a mark in their environment: what a session started and did not end.

Reads /proc, so it sees nothing on systems without it; the tests that need it say so.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import anyio


def bearing(mark: str) -> dict[int, str]:
    """All living processes but this one whose environment holds `mark`: pid -> command line."""
    found: dict[int, str] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.name != str(os.getpid()) and mark.encode() in (folder / "environ").read_bytes():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[int(folder.name)] = command[:200]
    return found


async def none_left(mark: str, limit: float) -> dict[int, str]:
    """What still bears `mark` after `limit` seconds, killed by then; nothing when all went by themselves."""
    with anyio.move_on_after(limit):
        while left := bearing(mark):
            for pid in left:
                await end_of(pid)
    left = bearing(mark)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return left


async def end_of(pid: int) -> None:
    """Wait until a process has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)
