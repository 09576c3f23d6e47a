"""Bytes to lines: the framing of every link of ours, to clients and to CLIs.

A message is one line that ends with the byte 0x0A and nothing else does (case F02): U+2028,
U+0085 and their kind are text. Lines may be long (case F01), so the work stays linear in the
bytes fed, however they were cut, and an over-long line is never held in memory.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from acp_manifold.translators.values import NamedTuple

LINE_LIMIT: Final = 64 * 1024 * 1024
"""64 MiB: the longest line taken from a client or a CLI, in bytes, without its newline."""


class TooLong(NamedTuple):
    """Stands where a line over the limit was; reported once, as soon as it is known."""

    size: int
    """How many bytes of it had come by then; the rest is thrown away unseen."""


Framed: TypeAlias = bytes | TooLong
"""A line without its line end, or the place of one that was too long."""


class LineFramer:
    """Cuts a byte stream into lines. One trailing carriage return is taken off; blank lines are left out."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._begun = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[Framed]:
        """Take the next bytes and give the lines that they complete, in order."""
        framed: list[Framed] = []
        pieces = data.split(b"\n")
        rest = pieces.pop()
        for piece in pieces:
            self._end_line(piece, framed)
        if rest:
            self._begin_line(rest, framed)
        return framed

    def finish(self) -> list[Framed]:
        """Take the end of the stream: give the last line if it lacks its newline."""
        framed: list[Framed] = []
        self._end_line(b"", framed)
        return framed

    def _end_line(self, piece: bytes, framed: list[Framed]) -> None:
        if self._skipping:
            self._skipping = False
            return
        if self._begun:
            self._begun += piece
            piece = bytes(self._begun)
            self._begun = bytearray()
        if len(piece) > self._limit:
            framed.append(TooLong(len(piece)))
            return
        if piece.endswith(b"\r"):
            piece = piece[:-1]
        if piece and not piece.isspace():
            framed.append(piece)

    def _begin_line(self, rest: bytes, framed: list[Framed]) -> None:
        if self._skipping:
            return
        size = len(self._begun) + len(rest)
        if size > self._limit:
            framed.append(TooLong(size))
            self._skipping = True
            self._begun = bytearray()
            return
        self._begun += rest
