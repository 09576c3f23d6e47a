"""The background commands of one program: what they print, read from the file they print into, and their end.

The program can end one only from a dialog of its own. So its processes are ended, which are those of the group
whose standard output is that file (Claude Code 2.1.332 starts each command as a process session); the program then
tells the model that the command has failed.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Final

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.bridge.survivors import signal_to, survivors
from acp_manifold.translators.updates import TaskOutput

KEPT: Final = 256 * 1024
"""Bytes of what a command has printed that are told: the last ones."""


def printed(path: Path) -> TaskOutput:
    """What a command has printed into its file.

    Raises:
        OSError: It can't be read.
    """
    with open_to_read(path) as file:
        total = file.seek(0, 2)
        file.seek(max(total - KEPT, 0))
        return TaskOutput(file.read().decode("utf-8", "replace"), total)


def groups_printing_into(path: Path, program: int, mark: str) -> set[int]:
    """The process groups that print into a file, among what a program has started. None where there is no `/proc`.

    Args:
        path: The file.
        program: The program, whose own group is never one of them.
        mark: What its descendants bear in the environment.
    """
    found: set[int] = set()
    for pid in survivors(set(), {mark}):
        try:
            if os.readlink(f"/proc/{pid}/fd/1") == str(path):
                found.add(os.getpgid(pid))
        except OSError:
            continue  # It has ended meanwhile.
    return found - {program, os.getpgrp()}


def end(groups: set[int], *, at_once: bool) -> None:
    """Ask process groups to end, or end them."""
    signal_to([-group for group in groups], signal.SIGKILL if at_once else signal.SIGTERM)
