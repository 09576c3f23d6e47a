"""Opening a file of the store without ever waiting for it: a FIFO of a transcript's name would hold us up for good."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def is_regular(status: os.stat_result) -> bool:
    """Whether it is that of a file that is read from its start to its end, links followed."""
    return stat.S_ISREG(status.st_mode)


def open_descriptor(path: Path | str, flags: int) -> int:
    """A descriptor of a regular file that is there.

    Raises:
        FileNotFoundError: It is not there.
        OSError: It is no regular file, or can't be opened.
    """
    if not is_regular(os.stat(path)):
        raise OSError(errno.EINVAL, "Not a regular file", str(path))
    # O_NONBLOCK, which a regular file heeds not, for what may have taken its place in this moment.
    return os.open(path, flags | os.O_NONBLOCK)


@contextmanager
def opened(path: Path | str) -> Generator[int]:
    """A descriptor of a file that was seen to be regular, open to be read for as long as the context is.

    Raises:
        OSError: It is no regular file any more, or can't be opened.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not is_regular(os.fstat(descriptor)):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        yield descriptor
    finally:
        os.close(descriptor)


def open_to_read(path: Path) -> BinaryIO:
    """A regular file, open to be read; raises what `open_descriptor` raises."""
    return os.fdopen(open_descriptor(path, os.O_RDONLY), "rb")
