"""The one writer of one link: everything that goes out, in the order it was said.

Sending never blocks and never fails: it queues. One task, `Outbound.run`, writes. While the
other side keeps up, every message is a line of its own; when it has fallen behind, adjoining
text chunks of one message are merged, so that a slow reader gets fewer and larger chunks
instead of an ever longer queue. Within a lane nothing is reordered, and no text is lost.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

import anyio

from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.values import NamedTuple

from .messages import encode
from .taps import NOWHERE, Place

logger = logging.getLogger(__name__)

BLOCK_SIZE: Final = 256 * 1024
"""Bytes that are joined into one write, as far as the lines allow; a pipe takes 64 KiB at once, a socket some more."""

MERGE_SIZE: Final = 256 * 1024
"""Characters up to which text chunks are merged into one."""

HIGH_WATER: Final = 8 * 1024 * 1024
"""Queued bytes above which a producer that can wait should await `room`."""

LANE_HIGH_WATER: Final = 1024 * 1024
"""The same for one lane: what one of them floods with keeps the others waiting for no more than this."""

_TEXT_OVERHEAD: Final = 160
"""What the JSON around a text chunk weighs, roughly: the real line is made only when it is written."""


class _Line(NamedTuple):
    """A message that is rendered already."""

    lane: Hashable
    line: bytes


class _Text:
    """A text chunk that is not rendered yet."""

    __slots__ = ("key", "lane", "parts", "render", "size")

    def __init__(self, lane: Hashable, key: Hashable, text: str, render: Callable[[str], bytes]) -> None:
        self.lane = lane
        self.key = key
        self.parts = [text]
        self.render = render
        self.size = len(text)


class Outbound:
    """The queue of one link and its writer.

    Args:
        write: Returns when the system has taken all of the bytes. Raises a `ConnectionError` or
            one of anyio's resource errors when nobody reads any more.
        on_broken: Called once, by the writer, when nobody reads any more.
        write_now: Takes as many bytes as go out at once and gives their number. With it a line that finds the
            queue empty leaves before `send_line` returns, not when the writer next has its turn.
    """

    def __init__(
        self,
        write: Callable[[bytes], Awaitable[None]],
        on_broken: Callable[[], None] | None = None,
        write_now: Callable[[bytes], int] | None = None,
    ) -> None:
        self.on_broken = on_broken
        """Called once when the link breaks; may be set at any time before."""
        self.place: Place = NOWHERE
        """Where its lines cross; may be set at any time."""
        self._write = write
        self._write_now = write_now
        self._queue: deque[_Line | _Text] = deque()
        self._growing: dict[Hashable, _Text] = {}
        """The chunk each lane ended with, while it is queued and nothing of the lane is behind it."""
        self._pending = 0
        self._of_lane: dict[Hashable, int] = {}
        """How much of `_pending` is each lane's."""
        self._closed = False
        self._writing = False
        self._wake: anyio.Event | None = None
        self._relief: anyio.Event | None = None
        self._broken = anyio.Event()

    @property
    def pending(self) -> int:
        """Bytes that are queued or being written, roughly."""
        return self._pending

    @property
    def broken(self) -> bool:
        """Whether the link broke or was abandoned: what is sent now goes nowhere."""
        return self._broken.is_set()

    def send(self, obj: JsonObject, lane: Hashable = None) -> None:
        """Queue a message.

        Args:
            obj: The message.
            lane: What its order counts for, such as a session; None for everything.

        Raises:
            TypeError: It holds something that is no JSON; nothing is queued.
        """
        self.send_line(encode(obj), lane)

    def send_line(self, line: bytes, lane: Hashable = None) -> None:
        """Queue a line that is encoded already; its newline is added. For `lane` see `send`."""
        if self._closed:
            return
        if lane is None:
            self._growing.clear()
        else:
            self._growing.pop(lane, None)
        if self._write_now is not None and not self._queue and not self._writing:
            taken = self._write_now(line + b"\n")
            if taken > len(line):
                return
            line = line[taken:]
        self._queue.append(_Line(lane, line))
        self._weigh(lane, len(line) + 1)
        if self._wake is not None:
            self._wake.set()

    def send_text(self, lane: Hashable, key: Hashable, text: str, render: Callable[[str], bytes]) -> None:
        """Queue a chunk of text.

        Args:
            lane: What its order counts for: chunks that adjoin there may be merged, whatever other lanes say between.
            key: Chunks with the same one may be merged: `render` must put the same around their text.
            text: What is new.
            render: Makes the line, without newline, when it is written.
        """
        if self._closed:
            return
        if self._writing and self._merge(lane, key, text):
            return
        chunk = self._growing[lane] = _Text(lane, key, text, render)
        self._queue.append(chunk)
        self._weigh(lane, len(text) + _TEXT_OVERHEAD)
        if self._wake is not None:
            self._wake.set()

    def close(self) -> None:
        """Take nothing more; `run` ends when all that is queued is written."""
        self._closed = True
        if self._wake is not None:
            self._wake.set()

    def abandon(self) -> None:
        """Drop what is queued and take nothing more: nobody will read it. `run` ends, a write in progress aside."""
        self._queue.clear()
        self._growing.clear()
        self._of_lane.clear()
        self._pending = 0
        self._broken.set()
        self.close()
        self._relieve()

    async def room(self, lane: Hashable) -> None:
        """Wait while more is queued than `LANE_HIGH_WATER` in a lane, or `HIGH_WATER` in all; not on a broken link."""
        while self._of_lane.get(lane, 0) > LANE_HIGH_WATER or self._pending > HIGH_WATER:
            if self._relief is None:
                self._relief = anyio.Event()
            await self._relief.wait()

    async def wait_broken(self) -> None:
        """Wait until nobody reads any more; forever if that never happens."""
        await self._broken.wait()

    async def run(self) -> None:
        """Write until `close` was called and all is written, or until nobody reads any more. Run it once."""
        while True:
            if self._queue:
                if not await self._write_block():
                    return
            elif self._closed:
                return
            else:
                self._wake = anyio.Event()
                await self._wake.wait()
                self._wake = None

    def _merge(self, lane: Hashable, key: Hashable, text: str) -> bool:
        last = self._growing.get(lane)
        if last is None or last.key != key or last.size + len(text) > MERGE_SIZE:
            return False
        last.parts.append(text)
        last.size += len(text)
        self._weigh(lane, len(text))
        return True

    def _weigh(self, lane: Hashable, weight: int) -> None:
        self._pending += weight
        if lane is not None:
            self._of_lane[lane] = self._of_lane.get(lane, 0) + weight

    async def _write_block(self) -> bool:
        block, weights = self._take()
        self._writing = True
        try:
            await self._write(block)
        except (ConnectionError, anyio.BrokenResourceError, anyio.ClosedResourceError) as exc:
            logger.debug("nobody reads any more: %r", exc.__cause__ or exc)
            self.abandon()
            if self.on_broken is not None:
                self.on_broken()
            return False
        finally:
            self._writing = False
        for lane, weight in weights:
            self._lighten(lane, weight)
        self._relieve()
        return True

    def _lighten(self, lane: Hashable, weight: int) -> None:
        if self.broken:
            return
        self._pending -= weight
        if lane is not None:
            left = self._of_lane.pop(lane, 0) - weight
            if left > 0:
                self._of_lane[lane] = left

    def _take(self) -> tuple[bytes, list[tuple[Hashable, int]]]:
        """The next lines as one block, and what each weighed for its lane."""
        lines: list[bytes] = []
        weights: list[tuple[Hashable, int]] = []
        size = 0
        while self._queue and size < BLOCK_SIZE:
            item = self._queue.popleft()
            if isinstance(item, _Text):
                if self._growing.get(item.lane) is item:
                    del self._growing[item.lane]
                weights.append((item.lane, item.size + _TEXT_OVERHEAD))
                line = self._render(item)
                if line is None:
                    continue
            else:
                line = item.line
                weights.append((item.lane, len(line) + 1))
            if self.place.tap is not None:
                self.place.tap("out", line)
            lines.append(line)
            size += len(line) + 1
        lines.append(b"")
        return b"\n".join(lines), weights

    def _render(self, item: _Text) -> bytes | None:
        try:
            return item.render("".join(item.parts))
        except Exception:
            logger.exception("a text chunk could not be rendered and is lost")
            return None

    def _relieve(self) -> None:
        if self._relief is not None:
            self._relief.set()
            self._relief = None
