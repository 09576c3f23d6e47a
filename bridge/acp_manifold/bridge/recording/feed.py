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

FULL: Final = 256 * 1024 * 1024
"""Bytes that may wait for a recorder that is behind; past them the recording ends."""

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
        self._waiting = 0
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
        begun, clock = self._begun, time.monotonic

        def tap(way: Way, line: bytes) -> None:
            self._put(b"%.4f%b%b\n" % (clock() - begun, ways[way], line))

        return tap

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
        if self._over:
            return
        self._lines.append(data)
        self._waiting += len(data)
        if not self._wake.is_set():
            self._wake.set()

    def _run(self) -> None:
        assert self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        try:
            while not (self._closing.is_set() and not self._lines):
                self._wake.wait()
                self._closing.wait(GATHER)
                self._wake.clear()
                if self._waiting > FULL:
                    raise BlockingIOError("it is too far behind")
                lines, self._lines = self._lines, []
                rest = memoryview(b"".join(lines))
                self._waiting -= len(rest)
                while rest:
                    rest = rest[os.write(pipe, rest) :]
        except OSError as exc:
            self._over = True
            self._lines = []
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
