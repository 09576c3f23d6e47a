"""Our own stdin and stdout as a link; stdout carries protocol and nothing else (case F03).

The real stdout moves to a private descriptor, and descriptor 1 becomes stderr: a stray print, of
ours, of a library or of a child that inherits it, can't reach the client. Editors hand us pipes
(Python, Rust) or Unix sockets (Node), a person's shell a terminal, a script a file; all work.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

from .descriptors import Sink, Source

Link: TypeAlias = tuple[Callable[[], Awaitable[bytes]], Callable[[bytes], Awaitable[None]]]
"""`receive`, which gives no bytes at the end, and `write`, as `Peer` and `Outbound` want them."""


@asynccontextmanager
async def open_stdio() -> AsyncGenerator[Link]:
    """Take over stdin and stdout for as long as the context is open."""
    sys.stdout.flush()
    private = _private_stdout()
    # The mode belongs to the pipe, not to us: whoever else holds it gets it back as it was.
    blocking = os.get_blocking(private)
    os.set_blocking(private, False)
    source = Source(0)
    try:
        yield source.receive, Sink(private).write
    finally:
        source.close()
        sys.stdout.flush()
        os.set_blocking(private, blocking)
        os.dup2(private, 1)
        os.close(private)


def _private_stdout() -> int:
    private = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError as exc:
        if exc.errno != errno.EBADF:
            raise
        # There is no stderr; what would go there goes nowhere.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        if nowhere > 1:
            os.close(nowhere)
    return private
