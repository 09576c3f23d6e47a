"""The shutdown ladder: how a child process is brought to its end, in a bounded time.

Each rung is tried only if the one before left something alive: its input is closed (one that never had
anything to do is sent SIGTERM instead); the process group, and what still bears the child's mark, gets
SIGTERM; then SIGKILL. The whole takes at most `LADDER_LIMIT` and can't be cancelled, since whoever
leaves a scope in a hurry leaves nothing behind either.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Final, Protocol

import anyio

from .descriptors import readable
from .survivors import signal_to, survivors

INPUT_CLOSED_WAIT: Final = 1.0
"""Seconds for a child to end by itself once its input is closed. codex-cli 0.163.0 takes 0.05 s; Claude Code
2.1.332 takes 0.1 s when idle, and would wait minutes for its background work: that is what the next rung is for."""

TERMINATE_WAIT: Final = 1.5
"""Seconds after SIGTERM. Claude Code 2.1.332 ends its tasks, writes its records and is gone in 0.25 s."""

KILL_WAIT: Final = 1.0
"""Seconds after SIGKILL, which nobody can refuse: only for the system to clear the processes away."""

LADDER_LIMIT: Final = 3.8
"""Seconds for all of it: case K02 leaves 5 s for everything to be gone."""

_POLL: Final = 0.02
"""Seconds between two looks where the system has no event for the end of somebody else's process."""


class Target(Protocol):
    """The child as the ladder sees it."""

    @property
    def pid(self) -> int:
        """Its process id, which is its group's too."""
        ...

    @property
    def mark(self) -> str:
        """What its descendants bear in their environment."""
        ...

    @property
    def exited(self) -> bool:
        """Whether it ended and was reaped."""
        ...

    def close_input(self) -> None:
        """Close its stdin once all that is queued is written."""
        ...

    async def wait_exited(self) -> None:
        """Wait until it ended and was reaped."""
        ...


async def climb(target: Target, *, unused: bool = False) -> None:
    """Bring `target` and all that came of it to an end.

    Args:
        target: The child.
        unused: Whether it never had anything to do, so that it has nothing to finish.
    """
    with anyio.move_on_after(LADDER_LIMIT, shield=True):
        if unused and not target.exited:
            signal_to([target.pid], signal.SIGTERM)
        else:
            target.close_input()
        with anyio.move_on_after(INPUT_CLOSED_WAIT):
            await target.wait_exited()
        if await _signal(target, signal.SIGTERM, TERMINATE_WAIT):
            return
        # Twice: what was forked between the look and the kill is found by the second look.
        if not await _signal(target, signal.SIGKILL, KILL_WAIT):
            await _signal(target, signal.SIGKILL, KILL_WAIT)


async def _signal(target: Target, number: signal.Signals, patience: float) -> bool:
    """Signal what is left, wait until it is gone; True if there was nothing left."""
    left = survivors({target.pid}, {target.mark})
    if target.exited and not left:
        return True
    signal_to(left, number)
    with anyio.move_on_after(patience):
        await target.wait_exited()
        for pid in left:
            await _gone(pid)
    return False


async def _gone(pid: int) -> None:
    """Wait until a process that need not be a child of ours has ended."""
    if sys.platform == "linux":
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            await readable(fd)
        finally:
            os.close(fd)
    else:
        while survivors({-pid}, set()):  # noqa: ASYNC110 - there is no event to wait for
            await anyio.sleep(_POLL)
