"""The guardian: a tiny process that ends a bridge's children if the bridge can't.

Claude Code 2.1.332 doesn't notice that its parent vanished, and a background shell of its own
session notices nothing at all. So this program holds the reading end of a pipe whose only writing
end is the bridge's. Over it come lines that begin with `+` or `-`: `child PID MARK`, `folder PATH` (in
hexadecimal). At its end, however the bridge ended, what is left of the children named gets SIGTERM, then
SIGKILL, the folders named go with the files in them, and the guardian ends too.

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
    wards = _listen()
    children = [(int(pid), mark) for pid, mark in (ward[1:] for ward in wards if ward[0] == "child")]
    if children:
        _end({pid for pid, _ in children}, {mark for _, mark in children})
    for ward in wards:
        if ward[0] == "folder":
            _remove(bytes.fromhex(ward[1]))


def _listen() -> set[tuple[str, ...]]:
    wards: set[tuple[str, ...]] = set()
    begun = b""
    while data := os.read(0, 4096):
        *lines, begun = (begun + data).split(b"\n")
        for line in lines:
            sign, *words = line.decode().split()
            ward = tuple(words)
            wards.add(ward) if sign == "+" else wards.discard(ward)
    return wards


def _remove(folder: bytes) -> None:
    try:
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)
    except OSError:
        # It is gone, or somebody else has put something into it: nobody is left who could be told.
        pass


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
