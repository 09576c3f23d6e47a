"""As much HTTP/1.1 as the CLIs need: read requests off one connection, answer them one after another."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import anyio
from anyio.abc import ByteStream

_READ = 256 * 1024


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it came."""

    method: str
    path: str
    """Without the query."""
    body: bytes
    headers: Mapping[str, str]
    """By name in small letters."""


class HttpConnection:
    """One connection from a CLI: its requests, and the answers to them, in turn."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._buffer = bytearray()

    async def next(self) -> HttpRequest | None:
        """The next request, or None when the other side is done.

        Raises:
            ValueError: What came is no HTTP request.
        """
        try:
            head = await self._until(b"\r\n\r\n")
            first, *rest = head.decode("latin-1").split("\r\n")
            method, target, _ = first.split(" ", 2)
            headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
            body = await self._body(headers)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return None
        return HttpRequest(method, target.partition("?")[0], body, headers)

    async def hung_up(self) -> None:
        """Wait until the other side closes the connection; what it sends meanwhile is kept for `next`."""
        try:
            while True:
                self._buffer += await self._stream.receive(_READ)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return

    async def answer(self, status: int, body: Mapping[str, object]) -> None:
        """Answer with one JSON object."""
        data = json.dumps(body).encode()
        head = f"HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
        await self._stream.send(head.encode() + data)

    async def begin(self, content_type: str) -> None:
        """Begin an answer in pieces."""
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\r\n"
        await self._stream.send(head.encode())

    async def piece(self, data: bytes) -> None:
        """The next piece; never empty."""
        await self._stream.send(b"%x\r\n%b\r\n" % (len(data), data))

    async def end(self) -> None:
        """The answer in pieces is complete."""
        await self._stream.send(b"0\r\n\r\n")

    async def _body(self, headers: Mapping[str, str]) -> bytes:
        if "chunked" in headers.get("transfer-encoding", ""):
            return await self._chunks()
        return await self._exactly(int(headers.get("content-length", "0")))

    async def _chunks(self) -> bytes:
        body = bytearray()
        while size := int((await self._until(b"\r\n")).partition(b";")[0], 16):
            body += await self._exactly(size)
            await self._until(b"\r\n")
        await self._until(b"\r\n")
        return bytes(body)

    async def _until(self, mark: bytes) -> bytes:
        searched = 0
        while (at := self._buffer.find(mark, searched)) < 0:
            searched = max(0, len(self._buffer) - len(mark))
            self._buffer += await self._stream.receive(_READ)
        return self._take(at, len(mark))

    async def _exactly(self, size: int) -> bytes:
        while len(self._buffer) < size:
            self._buffer += await self._stream.receive(_READ)
        return self._take(size, 0)

    def _take(self, size: int, skip: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[: size + skip]
        return taken
