"""A transcript read from disk, piece by piece, and told as updates."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from anyio import lowlevel, to_thread

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.translators.claude.records import decode_line
from acp_manifold.translators.claude.transcript import History
from acp_manifold.translators.updates import Update

logger = logging.getLogger(__name__)

_PIECE: Final = 256 * 1024
"""Bytes read, and at most about so many translated, before others get their turn."""


async def replay(path: Path, emit: Callable[[Update], None]) -> None:
    """Tell the history in a transcript; the file is never held as a whole.

    Raises:
        OSError: It can't be read.
    """
    history = History()
    file = await to_thread.run_sync(open_to_read, path)
    try:
        rest: list[bytes] = []
        while piece := await to_thread.run_sync(file.read, _PIECE):
            whole, newline, tail = piece.rpartition(b"\n")
            if not newline:
                rest.append(piece)
                continue
            for line in b"".join([*rest, whole]).split(b"\n"):
                _tell(history, line, emit, path)
            rest = [tail] if tail else []
            await lowlevel.checkpoint()
        _tell(history, b"".join(rest), emit, path)
        for update in history.finish():
            emit(update)
    finally:
        file.close()


def _tell(history: History, line: bytes, emit: Callable[[Update], None], path: Path) -> None:
    if not line.strip():
        return
    records, clean = decode_line(line)
    if not clean:
        logger.warning("%s: a line could not be read and is left out", path)
    for record in records:
        for update in history.feed(record):
            emit(update)
