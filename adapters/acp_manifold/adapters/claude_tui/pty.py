"""A program in a pseudo-terminal of its own: started, drained, typed into, and gone when its scope ends.

It leads a process session whose controlling terminal is the pseudo-terminal, so the end of our process
hangs it up (Claude Code 2.1.332 then ends in order); the guardian sees to what that doesn't reach. Its
output is read all the time, since a terminal nobody reads stops the program. Nothing here knows what
the bytes mean.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import IO, Final, cast

import anyio
import ptyprocess  # pyright: ignore[reportMissingTypeStubs]
from anyio import to_thread

from acp_manifold.bridge.descriptors import Sink, Source, readable
from acp_manifold.bridge.errors import BackendGone
from acp_manifold.bridge.guard import guard
from acp_manifold.bridge.shutdown import climb
from acp_manifold.bridge.survivors import MARK_VARIABLE, signal_to, survivors

logger = logging.getLogger(__name__)

ROWS: Final = 240
COLUMNS: Final = 160
"""Wide enough that no dialog is cut, and so high that a long prompt is seen whole: the input box takes less than
half of the screen (2.1.332)."""

_KILL_WAIT: Final = 1.0
"""Seconds for a killed program to be reaped."""


class Terminal:
    """A running program and the terminal it has. Made by `terminal`, which also owns its end."""

    def __init__(self, pid: int, descriptor: int, name: str, mark: str) -> None:
        self.name = name
        """Whom log lines speak of."""
        self.pid = pid
        """The process id, which is the id of its group and its process session too."""
        self.mark = mark
        """What its descendants bear in the environment."""
        self.farewell: Callable[[], bytes | None] = _no_words
        """What to type so that it ends by itself; None: it is not in a state in which it would."""
        self._sink = Sink(descriptor)
        self._source = Source(descriptor)
        self._writing = anyio.Lock()
        self._status: int | None = None
        self._exited = anyio.Event()

    @property
    def exited(self) -> bool:
        """Whether it has ended and was reaped."""
        return self._exited.is_set()

    @property
    def status(self) -> int | None:
        """Its exit status, or the negative number of the signal that ended it; None while it runs."""
        return self._status

    async def write(self, data: bytes) -> None:
        """Type something; all of it is taken when this returns. Nothing happens once the program is gone."""
        async with self._writing:
            if self.exited:
                return
            try:
                await self._sink.write(data)
            except anyio.BrokenResourceError as exc:
                logger.debug("%s: typed into a terminal that is gone: %s", self.name, exc)

    def close_input(self) -> None:
        """Have it end: by what is typed for that or, where that would not end it, by SIGTERM. For the ladder."""
        words = self.farewell()
        if words is None or self._sink.write_now(words) != len(words):
            signal_to([self.pid], signal.SIGTERM)

    async def wait_exited(self) -> None:
        """Wait until it has ended and was reaped."""
        await self._exited.wait()

    def describe_exit(self) -> str:
        """How it ended, as the end of a sentence."""
        if self._status is None:
            return "is still running"
        if self._status >= 0:
            return f"exited with status {self._status}"
        return f"was killed by signal {-self._status}"

    async def kill(self) -> None:
        """Kill its process group at once and wait until it is reaped."""
        signal_to(survivors({self.pid}, set()), signal.SIGKILL)
        with anyio.move_on_after(_KILL_WAIT, shield=True):
            await self._exited.wait()

    async def live(self, on_output: Callable[[bytes], None]) -> None:
        """Drain it until its end, and see that end. For `terminal` only."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._drain, on_output, tasks.cancel_scope)
            self._status = await _reaped(self.pid)
            logger.debug("%s %s", self.name, self.describe_exit())
            self._exited.set()
            # A process it left behind may hold the terminal open for as long as it likes.
            on_output(self._source.left())
            tasks.cancel_scope.cancel()

    async def _drain(self, on_output: Callable[[bytes], None], scope: anyio.CancelScope) -> None:
        while data := await self._source.receive():
            on_output(data)

    def release(self) -> None:
        """Let go of the descriptor. For `terminal` only."""
        self._source.close()


@asynccontextmanager
async def terminal(
    command: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    name: str,
    on_output: Callable[[bytes], None],
) -> AsyncGenerator[Terminal]:
    """Run a program in a terminal for as long as the context is open; at its end the shutdown ladder is climbed.

    Args:
        command: The program and its arguments.
        cwd: The directory to start it in.
        env: All of its environment, but for the mark and the kind of terminal that are added.
        name: Whom log lines speak of.
        on_output: Called with all that it writes, as it is read.

    Raises:
        BackendGone: It can't be started; the message names the program and the cause.
    """
    mark = os.urandom(16).hex()
    process = _start(command, cwd, {**env, "TERM": "xterm-256color", MARK_VARIABLE: mark})
    os.set_blocking(process.fd, False)
    running = Terminal(process.pid, process.fd, name, mark)
    guard.add(running.pid, mark)
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope(shield=True)

        async def live() -> None:
            with scope:
                await running.live(on_output)

        tasks.start_soon(live)
        try:
            yield running
        except Exception as exc:
            # Carried past the task group, which would wrap it: the caller is to see it as it was raised.
            failure = exc
        finally:
            await climb(running)
            scope.cancel()
            running.release()
            _close(process)
            guard.remove(running.pid, mark)
    if failure is not None:
        raise failure


class _Process:
    """What is used of `ptyprocess.PtyProcess`, which has no types."""

    pid: int
    fd: int
    fileobj: IO[bytes]
    """Owns `fd`."""
    closed: bool


def _start(command: Sequence[str], cwd: str, env: Mapping[str, str]) -> _Process:
    if not os.path.isdir(cwd):
        what = "is not a directory" if os.path.exists(cwd) else "does not exist"
        raise BackendGone(f"Can't start {command[0]}: the working directory {cwd} {what}")
    try:
        # Entered by a function of ours: ptyprocess 0.7 lets the error of its own `chdir` loose in the forked child.
        spawned: object = ptyprocess.PtyProcess.spawn(  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
            list(command), env=dict(env), preexec_fn=lambda: os.chdir(cwd), dimensions=(ROWS, COLUMNS)
        )
    except OSError as exc:
        raise BackendGone(f"Can't start {command[0]} in {cwd}: {_why_not(exc)}") from exc
    except Exception as exc:  # noqa: BLE001
        # ptyprocess re-raises what its child met under whatever name it had there.
        raise BackendGone(f"Can't start {command[0]} in {cwd}: {exc}") from exc
    return cast("_Process", spawned)


def _why_not(exc: OSError) -> str:
    if exc.errno == errno.EAGAIN:
        return "there are too many processes or terminals"
    return exc.strerror or str(exc)


def _close(process: _Process) -> None:
    """Close the terminal. ptyprocess' own `close` sleeps, and ends what `climb` has ended."""
    process.fileobj.close()
    process.closed = True


def _no_words() -> bytes | None:
    return None


async def _reaped(pid: int) -> int:
    """Wait for the end of a child of ours, reap it, and give its exit status or the negative number of a signal."""
    if sys.platform == "linux":
        descriptor = os.pidfd_open(pid)
        try:
            await readable(descriptor)
        finally:
            os.close(descriptor)
        _, status = os.waitpid(pid, 0)  # noqa: ASYNC222 - it has ended
    else:
        _, status = await to_thread.run_sync(os.waitpid, pid, 0, abandon_on_cancel=True)
    return os.waitstatus_to_exitcode(status)
