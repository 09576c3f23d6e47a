"""The guardian: a tiny process that ends a bridge's children if the bridge can't.

Claude Code 2.1.332 doesn't notice that its parent vanished, and a background shell of its own
session notices nothing at all. So this program holds the reading end of a pipe whose only writing
end is the bridge's. Over it come the lines `+ PID MARK` and `- PID MARK`; at its end, however the
bridge ended, what is left of the children named gets SIGTERM, then SIGKILL, and the guardian ends too.

It is a program of its own, `guard` starts it, and it imports next to nothing: it has to be small.
"""

from __future__ import annotations

import os
import signal
import time

from .survivors import signal_to, survivors

PATIENCE = 1.0
"""Seconds between SIGTERM and SIGKILL. Claude Code 2.1.332 needs 0.25 s, and a test waits 5 s for all."""

_POLL = 0.02
"""Seconds between two looks: there is no event for the end of processes that are no children of ours."""


def main() -> None:
    """Listen on stdin until the bridge has ended, then end what it left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    groups, marks = _listen()
    if marks:
        _end(groups, marks)


def _listen() -> tuple[set[int], set[str]]:
    wards: set[tuple[int, str]] = set()
    begun = b""
    while data := os.read(0, 4096):
        *lines, begun = (begun + data).split(b"\n")
        for line in lines:
            sign, pid, mark = line.decode().split()
            ward = int(pid), mark
            wards.add(ward) if sign == "+" else wards.discard(ward)
    return {pid for pid, _ in wards}, {mark for _, mark in wards}


def _end(groups: set[int], marks: set[str]) -> None:
    signal_to(survivors(groups, marks), signal.SIGTERM)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not survivors(groups, marks):
            return
        time.sleep(_POLL)
    # Twice: what was forked between the look and the kill is found by the second look.
    for _ in range(2):
        signal_to(survivors(groups, marks), signal.SIGKILL)
        time.sleep(_POLL)
