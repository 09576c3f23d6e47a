"""Bytes in and out of a file descriptor without blocking the event loop.

Pipes, sockets and terminals are awaited. Regular files and `/dev/null` can't be (epoll refuses
them with EPERM) and needn't be: they never make anyone wait, so they are read and written directly.
The descriptors stay their owner's: nothing is closed here.
"""

from __future__ import annotations

# anyio has no lasting registration of a reader: its `wait_readable` registers and unregisters at
# each call, which costs 50 µs a message, measured, where this costs 16. Each streamed word pays it.
import asyncio
import logging
import os
from collections.abc import Callable
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

logger = logging.getLogger(__name__)

READ_SIZE: Final = 64 * 1024
"""Bytes of one read: the capacity of a pipe, and small enough to be allocated cheaply."""

PIPE_MAX_SIZE: Final = 1024 * 1024
"""The most that a pipe holds without privileges (Linux, `/proc/sys/fs/pipe-max-size`)."""


async def readable(fd: int) -> None:
    """Wait until a descriptor can be read; a pidfd can when its process has ended."""
    loop = asyncio.get_running_loop()
    await _called(lambda ready: loop.add_reader(fd, ready), lambda: loop.remove_reader(fd))


async def writable(fd: int) -> None:
    """Wait until a descriptor can be written to."""
    loop = asyncio.get_running_loop()
    await _called(lambda ready: loop.add_writer(fd, ready), lambda: loop.remove_writer(fd))


async def _called(add: Callable[[Callable[[], None]], None], remove: Callable[[], object]) -> None:
    # Not anyio's functions of this kind: the first use of them imports all of its sockets and TLS, 6 ms.
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    add(lambda: None if waiter.done() else waiter.set_result(None))
    try:
        await waiter
    finally:
        remove()


class Source:
    """The reading side of a descriptor, for one reader; its blocking mode doesn't matter to `receive`.

    `close` has to be called before the descriptor is closed.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._watched: asyncio.AbstractEventLoop | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._got: bytes | None = None
        self._direct = False

    async def receive(self) -> bytes:
        """The next bytes; none at the end, which is also when the other side of a terminal or socket is gone."""
        if self._direct or (self._got is None and not self._watch()):
            await checkpoint()
            return self._read() or b""
        if self._got is None:
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        got, self._got = self._got, None
        return got or b""

    def left(self) -> bytes:
        """What lies in the pipe now, at most what a pipe can hold; the descriptor must be in non-blocking mode."""
        found = bytearray(self._got or b"")
        self._got = None
        while len(found) < PIPE_MAX_SIZE and (data := self._read()):
            found += data
        return bytes(found)

    def close(self) -> None:
        """Let go of the descriptor."""
        if self._watched is not None:
            self._watched.remove_reader(self._fd)
            self._watched = None

    def _watch(self) -> bool:
        """Have the loop call `_on_readable`; False if this is a descriptor that is always ready."""
        if self._watched is None:
            loop = asyncio.get_running_loop()
            try:
                loop.add_reader(self._fd, self._on_readable)
            except PermissionError:
                self._direct = True
                return False
            self._watched = loop
        return True

    def _on_readable(self) -> None:
        # The read is done here, at once: a moment later the loop's word could be out of date, and a
        # descriptor in blocking mode would stop everything. The bytes are kept on the object, so
        # that none are lost if the reader is cancelled between now and its waking.
        if self._waiter is None or self._got is not None:
            self.close()  # Nobody wants more now: `receive` registers again.
            return
        self._got = self._read()
        if self._got is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _read(self) -> bytes | None:
        """What is there; no bytes at the end; None if somebody else who holds the same pipe was faster."""
        try:
            return os.read(self._fd, READ_SIZE)
        except BlockingIOError:
            return None
        except OSError as exc:
            # A terminal that hung up says EIO, a socket ECONNRESET: whatever it is, nothing more will come.
            logger.debug("descriptor %d can't be read any more: %s", self._fd, exc)
            return b""


class Sink:
    """The writing side of a descriptor, which must be in non-blocking mode."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def write_now(self, data: bytes) -> int:
        """Hand over what the system takes at once; how many bytes that were. A fault is for `write` to find."""
        try:
            return os.write(self._fd, data)
        except OSError:
            return 0

    async def write(self, data: bytes) -> None:
        """Hand over all of the bytes.

        Raises:
            anyio.BrokenResourceError: Nobody reads any more, or a file can't grow; the cause is attached.
        """
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                await writable(self._fd)
            except OSError as exc:
                raise anyio.BrokenResourceError from exc
