"""Bytes in and out of a file descriptor without blocking the event loop.

Pipes, sockets and terminals are awaited. Regular files and `/dev/null` can't be (epoll refuses
them with EPERM) and needn't be: they never make anyone wait, so they are read and written directly.
The descriptors stay their owner's: nothing is closed here.
"""

from __future__ import annotations

# anyio has no lasting registration of a reader: its `wait_readable` registers and unregisters at
# each call, which costs 50 µs a message, measured, where this costs 16. Each streamed word pays it.
import asyncio
import errno
import os
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

READ_SIZE: Final = 64 * 1024
"""Bytes of one read: the capacity of a pipe, and small enough to be allocated cheaply."""

PIPE_MAX_SIZE: Final = 1024 * 1024
"""The most that a pipe holds without privileges (Linux, `/proc/sys/fs/pipe-max-size`)."""

_GONE: Final = (errno.EPIPE, errno.ECONNRESET, errno.EIO, errno.ENXIO, errno.EBADF, errno.ENOTCONN)


class Source:
    """The reading side of a descriptor, for one reader. Its blocking mode doesn't matter to `receive`.

    `close` has to be called before the descriptor is closed.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._watched: asyncio.AbstractEventLoop | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._direct = False

    async def receive(self) -> bytes:
        """The next bytes; none at the end, which is also when the other side of a terminal or socket is gone."""
        while True:
            await self._ready()
            try:
                return os.read(self._fd, READ_SIZE)
            except BlockingIOError:
                continue  # Somebody else who holds the same pipe has read what we were woken for.
            except OSError as exc:
                if exc.errno in _GONE:
                    return b""
                raise

    def left(self) -> bytes:
        """What lies in the pipe now, at most what a pipe can hold; the descriptor must be in non-blocking mode."""
        found = bytearray()
        while len(found) < PIPE_MAX_SIZE:
            try:
                data = os.read(self._fd, READ_SIZE)
            except OSError:
                break
            if not data:
                break
            found += data
        return bytes(found)

    def close(self) -> None:
        """Let go of the descriptor."""
        if self._watched is not None:
            self._watched.remove_reader(self._fd)
            self._watched = None

    async def _ready(self) -> None:
        if self._direct:
            await checkpoint()
            return
        loop = asyncio.get_running_loop()
        if self._watched is None:
            try:
                loop.add_reader(self._fd, self._on_readable)
            except PermissionError:
                self._direct = True
                await checkpoint()
                return
            self._watched = loop
        self._waiter = loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _on_readable(self) -> None:
        if self._waiter is None:
            self.close()  # Nobody wants the bytes now: `receive` registers again.
        elif not self._waiter.done():
            self._waiter.set_result(None)


class Sink:
    """The writing side of a descriptor, which must be in non-blocking mode."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def write(self, data: bytes) -> None:
        """Hand over all of the bytes.

        Raises:
            anyio.BrokenResourceError: Nobody reads any more.
        """
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                await anyio.wait_writable(self._fd)
            except OSError as exc:
                if exc.errno in _GONE:
                    raise anyio.BrokenResourceError from exc
                raise
