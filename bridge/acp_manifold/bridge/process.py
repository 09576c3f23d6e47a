"""A CLI as a child process: started, fed, read, and gone when its scope ends.

The child leads a process session of its own, so that a terminal's Ctrl-C doesn't reach it and its
group can be signalled as one. Its stderr is always drained, into a tail that is kept for error
messages (case K04). Nothing here knows what the lines mean.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

import anyio
from anyio import to_thread

from .descriptors import Sink, Source, readable
from .forking import pipe
from .framing import LINE_LIMIT, Framed, LineFramer, TooLong
from .guard import guard
from .outbound import Outbound
from .shutdown import climb
from .starting import Launch, start
from .survivors import signal_to, survivors
from .taps import NOWHERE, Place, taps

logger = logging.getLogger(__name__)

STDERR_TAIL: Final = 64 * 1024
"""Bytes kept of what a child says on stderr: the last ones."""

_ESCAPE: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""A terminal's colour or cursor sequence: codex-cli 0.163.0 colours its stderr, whoever reads it."""

_BACKTRACE: Final = re.compile(r"^.*stack backtrace:(?:\n\s+(?:\d+:|at ).*)*\n?", re.IGNORECASE | re.MULTILINE)
"""The frames of a Rust panic: codex-cli 0.163.0 prints a page of them, without names."""

_TOLD_LINES: Final = 12
_TOLD_WIDTH: Final = 400
"""How many lines of the tail an error message repeats, and how many characters of each."""

_NOTED: Final = 8 * 1024
"""Characters of the tail that a recording has of a child that ended by itself."""

_KILL_WAIT: Final = 1.0
"""Seconds for a killed child to be reaped."""


class Child:
    """A running CLI, or one that has ended. Made by `spawn`, which also owns its end."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, mark: str) -> None:
        self.name = name
        """Whom log lines speak of."""
        self.mark = mark
        """What its descendants bear in the environment."""
        self.place: Place = NOWHERE
        """Where its lines cross."""
        self.unused = False
        """Whether it has nothing to finish, since it never had anything to do: then it is ended by a signal."""
        self._process = process
        self._input = pipe(process.stdin)
        self._output = pipe(process.stdout)
        self._errors = pipe(process.stderr)
        sink = Sink(self._input.fileno())
        self._outbound = Outbound(sink.write, write_now=sink.write_now)
        self._tail = bytearray()
        self._exited = anyio.Event()
        self._ended = anyio.Event()
        self._live_scope = anyio.CancelScope(shield=True)
        self._stderr_scope = anyio.CancelScope()
        self._read_scope: anyio.CancelScope | None = None
        self._read_done = anyio.Event()
        self._guarded = False

    @property
    def pid(self) -> int:
        """The process id, which is the id of its group and its process session too."""
        return self._process.pid

    @property
    def exited(self) -> bool:
        """Whether it has ended and was reaped."""
        return self._exited.is_set()

    @property
    def stderr_tail(self) -> str:
        """The last `STDERR_TAIL` bytes it said on stderr; what is no UTF-8 is replaced."""
        return self._tail.decode("utf-8", "replace")

    def send(self, line: bytes) -> None:
        """Write one line to its stdin, or queue what doesn't go at once; the newline is added.

        Nothing happens once the child is gone.
        """
        if self.place.tap is not None and not self.exited:
            self.place.tap("out", line)
        self._outbound.send_line(line)

    def belongs(self, session_id: str) -> None:
        """All its lines are of this session from now on."""
        if self.place is not NOWHERE:
            taps.belongs(self.place, session_id)

    def be_guarded(self) -> None:
        """Have it and what it starts ended when we can't do it ourselves; from the start on if `spawn` was told so."""
        if not self._guarded and not self.exited:
            self._guarded = True
            guard.add(self.pid, self.mark)

    def close_input(self) -> None:
        """Close its stdin as soon as all that is queued is written."""
        self._outbound.close()

    async def read(
        self,
        on_line: Callable[[bytes], None],
        *,
        limit: int = LINE_LIMIT,
        room: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Hand every line of its stdout to `on_line` until it ends. To be called once.

        All that the child wrote before its end is delivered, also when it was killed; what a
        process it left behind writes later to the same pipe is not.

        Args:
            on_line: Called with each line, without its line end; blank lines are left out.
            limit: Bytes of the longest line taken; a longer one is skipped, with a note in the log.
            room: Awaited before more is read: while it waits, the child is held up by its full pipe.
        """
        framer = LineFramer(limit)
        source = Source(self._output.fileno())

        def deliver(framed: list[Framed]) -> None:
            for line in framed:
                if isinstance(line, TooLong):
                    logger.warning("%s: skipped a line of more than %d bytes", self.name, limit)
                else:
                    if self.place.tap is not None:
                        self.place.tap("in", line)
                    on_line(line)

        try:
            with anyio.CancelScope() as self._read_scope:
                if self.exited:
                    self._read_scope.cancel()
                while data := await source.receive():
                    deliver(framer.feed(data))
                    if room is not None:
                        await room()
            deliver(framer.feed(source.left()))
            deliver(framer.finish())
        finally:
            source.close()
            self._read_scope = None
            self._read_done.set()

    async def wait(self) -> int:
        """Wait for its end; its exit status, or the negative number of the signal that killed it.

        By then `stderr_tail` holds all that it said.
        """
        await self._ended.wait()
        status = self._process.poll()
        return -signal.SIGKILL if status is None else status

    async def wait_exited(self) -> None:
        """Wait until it has ended and was reaped, no more."""
        await self._exited.wait()

    @property
    def how(self) -> str:
        """How it ended, as the end of a sentence, without what it said."""
        return _how(self._process.returncode)

    def describe_exit(self) -> str:
        """How it ended, as the end of a sentence, and the last it said on stderr."""
        return f"{_how(self._process.returncode)}{self.last_words()}"

    def last_words(self) -> str:
        """See `last_words`."""
        return last_words(self.stderr_tail)

    async def kill(self) -> None:
        """Kill its process group at once and wait until it is reaped."""
        signal_to(survivors({self.pid}, set()), signal.SIGKILL)
        with anyio.move_on_after(_KILL_WAIT, shield=True):
            await self._ended.wait()

    async def live(self) -> None:
        """Feed, drain and watch the child until `release`. For `spawn` only."""
        with self._live_scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._feed)
                tasks.start_soon(self._drain_errors)
                await self._watch()

    async def release(self) -> None:
        """Stop all that `live` does and close the pipes. For `spawn` only."""
        self._live_scope.cancel()
        if self._read_scope is not None:
            self._read_scope.cancel()
            with anyio.move_on_after(_KILL_WAIT, shield=True):
                await self._read_done.wait()
        for end in (self._input, self._output, self._errors):
            end.close()
        if self._guarded:
            guard.remove(self.pid, self.mark)
        self._ended.set()

    async def _feed(self) -> None:
        try:
            await self._outbound.run()
        finally:
            self._outbound.close()
            self._input.close()

    async def _drain_errors(self) -> None:
        source = Source(self._errors.fileno())
        try:
            with self._stderr_scope:
                while data := await source.receive():
                    self._keep(data)
        finally:
            source.close()
        await self._exited.wait()
        self._keep(source.left())
        self._ended.set()

    def _keep(self, data: bytes) -> None:
        self._tail += data
        del self._tail[:-STDERR_TAIL]

    async def _watch(self) -> None:
        await _process_end(self._process)
        logger.debug("%s %s", self.name, _how(self._process.returncode))
        self._exited.set()
        self._outbound.abandon()
        self._stderr_scope.cancel()
        if self._read_scope is not None:
            self._read_scope.cancel()


@asynccontextmanager
async def spawn(launch: Launch) -> AsyncGenerator[Child]:
    """Run a program for as long as the context is open; at its end the shutdown ladder is climbed.

    Raises:
        BackendGone: It can't be started; the message names the program and the cause.
    """
    begun = launch.started or start(launch.command, launch.cwd, launch.env)
    child = Child(begun.process, launch.name, begun.mark)
    if launch.backend is not None:
        child.place = taps.open("backend", launch.backend, launch.session, launch.command)
        taps.note(child.place, {"note": "start"})
    if launch.guarded:
        child.be_guarded()
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(child.live)
        try:
            yield child
        except Exception as exc:
            # Carried past the task group, which would wrap it: the caller is to see it as it was raised.
            failure = exc
        finally:
            asked = not child.exited
            await climb(child, unused=child.unused)
            await child.release()
            if launch.backend is not None:
                said = "" if asked else child.stderr_tail[-_NOTED:]
                taps.ended(child.place, child.how, asked=asked, said=said)
    if failure is not None:
        raise failure


def last_words(stderr: str) -> str:
    """The last that was said on stderr, without the frames of a panic, to stand behind a sentence; "" for nothing."""
    said = _BACKTRACE.sub("", _ESCAPE.sub("", stderr)).split("\n")
    lines = [line.rstrip()[-_TOLD_WIDTH:] for line in said if line.strip()]
    return "; last on stderr:\n" + "\n".join(lines[-_TOLD_LINES:]) if lines else ""


def _how(status: int | None) -> str:
    if status is None:
        return "is still running"
    if status >= 0:
        return f"exited with status {status}"
    try:
        return f"was killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"was killed by signal {-status}"


async def _process_end(process: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a child of ours and reap it."""
    if sys.platform == "linux":
        fd = os.pidfd_open(process.pid)
        try:
            await readable(fd)
        finally:
            os.close(fd)
        process.wait()
    else:
        # No descriptor tells the end of a process there; a thread waits for each.
        await to_thread.run_sync(process.wait, abandon_on_cancel=True)
