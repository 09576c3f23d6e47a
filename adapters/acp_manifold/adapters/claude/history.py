"""A transcript read from disk, piece by piece, and told as updates."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from anyio import lowlevel, to_thread

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.translators.claude.records import decode_line
from acp_manifold.translators.claude.transcript import History
from acp_manifold.translators.updates import Update

logger = logging.getLogger(__name__)

_FIRST: Final = 16 * 1024
"""Bytes of the first piece: what is in it is on its way before the second is read."""

_PIECE: Final = 256 * 1024
"""Bytes read, and at most about so many translated, before others get their turn."""


async def replay(path: Path, emit: Callable[[Update], None], room: Callable[[], Awaitable[None]]) -> None:
    """Tell the history in a transcript; the file is never held as a whole.

    Args:
        path: The transcript.
        emit: Takes the updates.
        room: Waits while whoever takes them is behind.

    Raises:
        OSError: It can't be read.
    """
    history = History()
    file = await to_thread.run_sync(open_to_read, path)
    try:
        rest: list[bytes] = []
        size = _FIRST
        while piece := await to_thread.run_sync(file.read, size):
            size = min(_PIECE, 2 * size)
            whole, newline, tail = piece.rpartition(b"\n")
            if not newline:
                rest.append(piece)
                continue
            for line in b"".join([*rest, whole]).split(b"\n"):
                _tell(history, line, emit, path)
            rest = [tail] if tail else []
            await room()
            await lowlevel.checkpoint()
        _tell(history, b"".join(rest), emit, path)
        for update in history.finish():
            emit(update)
    finally:
        file.close()


def _is_whole(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}") and b"}{" not in line


_TOLD: Final = (b'"assistant"', b'"user"', b'"queued_command"', b'"compact_boundary"')
"""What every line holds of which `History` makes anything."""


def _may_be_said(line: bytes) -> bool:
    """Whether a line may be a message: most of a transcript is what went to the model, and need not be parsed."""
    return any(mark in line for mark in _TOLD)


def _tell(history: History, line: bytes, emit: Callable[[Update], None], path: Path) -> None:
    if not line.strip() or (_is_whole(line) and not _may_be_said(line)):
        return
    records, clean = decode_line(line)
    if not clean:
        logger.warning("%s: a line could not be read and is left out", path)
    for record in records:
        for update in history.feed(record):
            emit(update)
