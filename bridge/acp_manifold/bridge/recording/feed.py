"""Hands what crosses to a process of its own, which scrubs it and writes it down.

Scrubbing costs more than all else that is done with a line, and a disk may be full or slow: neither is to be felt by a
session. So a line is only put into a list here, and a thread brings the list to the recorder's stdin, some twenty
times a second. The recorder goes on when we are killed, until it has written what it got.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from acp_manifold.bridge.backend import Backend
from acp_manifold.bridge.taps import Place, Tap, Way
from acp_manifold.translators.narrow import JsonObject

logger = logging.getLogger(__name__)

GATHER: Final = 0.05
"""Seconds for which lines are gathered before they are handed over."""

FULL: Final = 4_000_000
"""Pieces of lines that may wait for a recorder that is behind; past them the recording ends."""

TICK: Final = 0.0001
"""Seconds: what crosses within one of them bears one time."""

PATIENCE: Final = 5.0
"""Seconds the recorder has to write what it got, once there is no more."""


class Feed:
    """What listens for a recorder. It runs from its making to `close`.

    Args:
        destination: The file or the folder that is recorded into; a folder exists, or its name ends in a slash.
        backends: The command of each backend's CLI, or its version where that is known; by name.
        only: The one session to record, by its backend's id; None for all.
    """

    def __init__(
        self, destination: str, backends: Mapping[str, tuple[str, ...] | str], only: str | None = None
    ) -> None:
        self.on_request = False
        """Whether a client has asked for it, and may end it."""
        self._begun = time.monotonic()
        self._lines: list[bytes] = []
        self._tick = 0.0
        """When the time that lines bear is to be looked up again."""
        self._time = b""
        self._woken = False
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._over = False
        self._process = subprocess.Popen(
            (sys.executable, "-m", "acp_manifold.bridge.recording", destination),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            bufsize=0,
            start_new_session=True,
        )
        self._say({"begin": dict(backends), "at": self._begun, "only": only})
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._thread.start()

    def at(self, place: Place) -> Tap:
        """See `Listener.at`."""
        key = f"{place.leg[0]}{place.number}"
        self._say(
            {"place": key, "leg": place.leg, "backend": place.backend, "number": place.number, "of": place.session}
        )
        ways: dict[Way, bytes] = {"in": f" {key} in\n".encode(), "out": f" {key} out\n".encode()}
        lines, clock = self._lines, time.monotonic

        def tap(way: Way, line: bytes) -> None:
            now = clock()
            if now >= self._tick:
                self._tell_time(now)
            lines.extend((self._time, ways[way], line, b"\n"))
            if not self._woken:
                self._woken = True
                self._wake.set()

        return tap

    def _tell_time(self, now: float) -> None:
        self._tick = now + TICK
        self._time = b"%.4f" % (now - self._begun)
        if len(self._lines) > FULL:
            # Whoever brings them away is held up: what is too much for the memory is too much for the recording.
            self._over = True
        if self._over:
            self._lines.clear()

    def note(self, note: JsonObject, backend: str | None = None, session: str | None = None) -> None:
        """See `Listener.note`."""
        self._say({"t": self._now(), "note": note, "backend": backend, "of": session})

    def follow(self, backend: str, session: str, root: Path, path: Path) -> None:
        """See `Listener.follow`."""
        self._say({"follow": str(path), "root": str(root), "backend": backend, "of": session})

    def close(self) -> None:
        """Hand over what there is and wait, for a while, until it is written."""
        self._closing.set()
        self._wake.set()
        self._thread.join(PATIENCE)
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            logger.warning("the recording is still being written when the agent ends")

    def _now(self) -> float:
        return round(time.monotonic() - self._begun, 4)

    def _say(self, control: JsonObject) -> None:
        self._put(b"=" + json.dumps(control).encode() + b"\n")

    def _put(self, data: bytes) -> None:
        self._lines.append(data)
        self._woken = True
        self._wake.set()

    def _run(self) -> None:
        assert self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        try:
            while not (self._closing.is_set() and not self._lines):
                self._wake.wait()
                self._closing.wait(GATHER)
                self._wake.clear()
                self._woken = False
                if self._over:
                    raise BlockingIOError("it is too far behind")
                # Taken from the front, since others add to the end meanwhile.
                count = len(self._lines)
                rest = memoryview(b"".join(self._lines[:count]))
                del self._lines[:count]
                while rest:
                    rest = rest[os.write(pipe, rest) :]
        except OSError as exc:
            self._over = True
            self._lines.clear()
            # Straight to stderr: it must be told whatever is logged, and once.
            sys.stderr.write(f"acp-manifold: the recording ends here, the recorder takes no more: {exc}\n")
        finally:
            self._process.stdin.close()


def begin(destination: str, backends: Sequence[Backend], only: str | None = None) -> Feed:
    """Have somebody record what crosses to these backends; see `Feed`."""
    clis: dict[str, tuple[str, ...] | str] = {}
    for backend in backends:
        program = backend.program()
        if program is not None:
            clis[backend.name] = program.version or program.command
    return Feed(destination, clis, only)
