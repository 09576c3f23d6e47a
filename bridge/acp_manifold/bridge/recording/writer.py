"""Writes recordings: private files, plain, or gzip by their name."""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from .format import Entry, Header, encode

_GZIP: Final = 16 + zlib.MAX_WBITS
"""What makes zlib write a gzip file, without a name or a time in it: the same recording is the same file."""


class RecordingFile:
    """The file of a recording, open to be written; made, or emptied, for its owner's eyes alone.

    Args:
        path: Where; gzip if it ends in `.gz`. Missing folders are made.

    Raises:
        OSError: It can't be made.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._packer = zlib.compressobj(wbits=_GZIP) if path.suffix == ".gz" else None
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            if stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                os.fchmod(self._descriptor, 0o600)
        except OSError:
            os.close(self._descriptor)
            raise

    def write(self, data: bytes) -> None:
        """Write whole lines; they can be read from the file at once.

        Raises:
            OSError: They could not be written, or not all of them.
        """
        if self._packer is not None:
            data = self._packer.compress(data) + self._packer.flush(zlib.Z_SYNC_FLUSH)
        self._put(data)

    def close(self) -> None:
        """End it; raises what `write` raises, and is closed all the same."""
        try:
            if self._packer is not None:
                self._put(self._packer.flush())
        finally:
            os.close(self._descriptor)

    def _put(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


def write(path: Path, header: Header, entries: Iterable[Entry]) -> None:
    """Write a whole recording. What was there is gone when the new one is whole, not before.

    Args:
        path: Where to; gzip if it ends in `.gz`.
        header: Its first line.
        entries: What follows, in order.

    Raises:
        OSError: It can't be written; a file that was there is as it was.
    """
    lines = [encode(header.to_wire()), *(encode(entry.to_wire()) for entry in entries), b""]
    if path.exists() and not path.is_file():
        _write_into(path, lines)
        return
    place = path.resolve()
    beside = place.with_name(f".{os.getpid()}.{place.name}")
    try:
        _write_into(beside, lines)
        beside.replace(place)
    except OSError as exc:
        beside.unlink(missing_ok=True)
        exc.filename = str(path)
        raise


def _write_into(path: Path, lines: list[bytes]) -> None:
    file = RecordingFile(path)
    try:
        file.write(b"\n".join(lines))
    finally:
        file.close()
