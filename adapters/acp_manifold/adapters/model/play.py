"""Plays one step of a script into one reply, at the script's pace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio

from .control import Gate
from .reply import Reply
from .script import CLOSING_REPLY, Action, AtGate, Fail, Hold, Piece, Reason, Say, Step, Text, numbered, pieces

_BATCH = 16 * 1024
"""Bytes gathered before they are sent when the script sets no pace: a burst is a burst."""

Send = Callable[[bytes], Awaitable[None]]


class ScriptedFailure(Exception):
    """The script says that this request fails."""

    def __init__(self, status: int) -> None:
        super().__init__(f"scripted failure {status}")
        self.status = status


class Player:
    """One step on its way into one reply.

    Nothing is sent before the first byte of the answer is due, so that a step which only waits
    and then fails can still become an error answer.
    """

    def __init__(self, step: Step, reply: Reply, send: Send, gate: Callable[[str], Gate]) -> None:
        self._step = step
        self._reply = reply
        self._send = send
        self._gate = gate
        self._buffer = bytearray()
        self._begun = False
        self._words = 0

    async def play(self, *, tools: bool) -> None:
        """Play the step to its end; calls are left out where the request offers no tools.

        Raises:
            ScriptedFailure: The step fails; whether something was sent before, the sender knows.
        """
        for action in self._step.actions:
            await self._act(action)
        calls = self._step.calls if tools else ()
        if not self._begun and not calls:
            await self._say([CLOSING_REPLY])
        for call in calls:
            self._put(self._reply.call(call))
        self._put(self._reply.end(self._step.stop, self._step.tokens))
        await self._flush()

    async def _act(self, action: Action) -> None:
        match action:
            case Say(count):
                first, self._words = self._words, self._words + count
                await self._say(numbered(first, count, lines=self._step.lines))
            case Text(text):
                await self._say(pieces(text))
            case Reason(text):
                self._put(self._reply.reason(text))
            case Piece(piece):
                self._put(self._reply.piece(piece))
            case Hold(seconds):
                await self._flush()
                await anyio.sleep(seconds)
            case AtGate(name):
                await self._flush()
                await self._gate(name).cross()
            case Fail(status):
                await self._flush()
                raise ScriptedFailure(status)

    async def _say(self, words: Sequence[str]) -> None:
        for word in words:
            if self._step.delay:
                await self._flush()
                await anyio.sleep(self._step.delay)
            self._put(self._reply.text(word))
            if len(self._buffer) >= _BATCH:
                await self._flush()
        if self._step.delay:
            await self._flush()

    def _put(self, data: bytes) -> None:
        if not self._begun:
            self._begun = True
            self._buffer += self._reply.begin()
        self._buffer += data

    async def _flush(self) -> None:
        if self._buffer:
            data, self._buffer = bytes(self._buffer), bytearray()
            await self._send(data)
