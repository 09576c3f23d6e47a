"""The recorder as a process: reads from stdin what `feed` tells, and writes the recording its command line names."""

from __future__ import annotations

import getpass
import os
import signal
import sys
from pathlib import Path

from .recorder import Recorder
from .scrub import Scrubber

READ_SIZE = 1 << 20


def main() -> None:
    """Record until stdin ends. A fault costs one note on stderr, and the rest of what comes is read and dropped."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    destination = sys.argv[1]
    recorder = Recorder(destination, new_scrubber)
    failed = False
    while data := os.read(0, READ_SIZE):
        if not failed:
            failed = not _tried(recorder, data, destination)
    if not failed:
        _tried(recorder, None, destination)


def new_scrubber() -> Scrubber:
    """What scrubs a recording of this person's."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    return Scrubber(os.environ, str(Path.home()), user)


def _tried(recorder: Recorder, data: bytes | None, destination: str) -> bool:
    try:
        if data is None:
            recorder.close()
        else:
            recorder.take(data)
    except OSError as exc:
        sys.stderr.write(f"acp-manifold: nothing more is recorded: {exc.filename or destination}: {exc.strerror}\n")
        return False
    return True


main()
