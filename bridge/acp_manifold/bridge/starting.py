"""Starting a CLI, and the words for why it can't be started."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence

from acp_manifold.translators.values import NamedTuple

from .errors import BackendGone
from .forking import Started, fork

_NO_PROGRAM = (errno.ENOEXEC, getattr(errno, "EBADARCH", errno.ENOEXEC))
"""What Linux, and macOS, say of a file that is no program of theirs."""


class Launch(NamedTuple):
    """What is to be run, and how; for `process.spawn` and what stands in its place."""

    command: Sequence[str]
    """The program and its arguments; found on the PATH in `env` if it has no slash."""
    cwd: str
    """The directory to start it in."""
    env: Mapping[str, str]
    """All of its environment, but for the mark that is added."""
    name: str
    """Whom log lines speak of: `claude 1234abcd`."""
    started: Started | None = None
    """The same program, if it was started before there was an event loop to run this in."""
    guarded: bool = True
    """Whether `Child.be_guarded` is called for it at once; for one that ends with its stdin it can wait until it has
    something to start that would not."""
    backend: str | None = None
    """Whose lines cross to it, for who listens; None for a program that is asked one thing and no more."""
    session: str | None = None
    """The one session that it serves, if it is for one alone."""


def start(command: Sequence[str], cwd: str, env: Mapping[str, str]) -> Started:
    """Start a program; see `forking.fork`.

    Raises:
        BackendGone: It can't be started; the message names the program and the cause.
    """
    if not os.path.isdir(cwd):
        what = "is not a directory" if os.path.exists(cwd) else "does not exist"
        raise BackendGone(f"Can't start {command[0]}: the working directory {cwd} {what}")
    try:
        return fork(command, cwd, env)
    except (OSError, ValueError) as exc:
        raise BackendGone(f"Can't start {command[0]}: {_why_not(exc, command[0], cwd)}") from exc


def _why_not(exc: OSError | ValueError, program: str, cwd: str) -> str:
    if isinstance(exc, FileNotFoundError):
        if os.path.exists(program):
            return "the interpreter named in its first line does not exist"
        return "no such program" if os.sep in program else "no such program on the PATH"
    if isinstance(exc, PermissionError):
        if not os.access(cwd, os.X_OK):
            return f"the working directory {cwd} may not be entered"
        return "it is not executable"
    if isinstance(exc, OSError) and exc.errno in _NO_PROGRAM:
        return "it is no program for this machine: another architecture's, damaged, or a script without its first line"
    if isinstance(exc, OSError) and exc.errno == errno.E2BIG:
        return "its arguments and environment are too long"
    return exc.strerror or str(exc) if isinstance(exc, OSError) else str(exc)
