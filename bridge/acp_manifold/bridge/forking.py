"""The fork and the exec of a CLI, and no more: it may be started before anything else is imported."""

from __future__ import annotations

import os
import subprocess

from acp_manifold.translators.values import NamedTuple

from .survivors import MARK_VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO


class Started(NamedTuple):
    """A program that was started; whoever holds it hands it to `process.spawn`, or ends it."""

    process: subprocess.Popen[bytes]
    mark: str
    """What its descendants bear in the environment."""


def fork(command: Sequence[str], cwd: str, env: Mapping[str, str]) -> Started:
    """Start a program as a group and a process session of its own, with non-blocking pipes to it.

    Args:
        command: The program and its arguments; found on the PATH in `env` if it has no slash.
        cwd: The directory to start it in.
        env: All of its environment, but for the mark that is added.

    Raises:
        OSError: It can't be started; `starting.start` has the words for it.
        ValueError: A null character is in one of them.
    """
    mark = os.urandom(16).hex()
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env={**env, MARK_VARIABLE: mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
    )
    for stream in (process.stdin, process.stdout, process.stderr):
        os.set_blocking(pipe(stream).fileno(), False)
    return Started(process, mark)


def pipe(stream: IO[bytes] | None) -> IO[bytes]:
    """A pipe of a started program; `fork` makes all three, which the type of Popen can't say."""
    assert stream is not None
    return stream
