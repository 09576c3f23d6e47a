"""A CLI that is a recording: what a `Transport` needs, with nothing behind it that runs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from acp_manifold.adapters.replay.steps import Ended
from acp_manifold.bridge.process import last_words
from acp_manifold.bridge.taps import NOWHERE, Place, taps
from acp_manifold.translators.narrow import JsonObject, as_object

_PIDS: Final = itertools.count(1 << 30)
"""Numbers that no process has: Linux gives out less than half a million by default, and 4 million at most."""

ROOM: Final = 32
"""Lines between two looks whether there is room for more."""


class Replayed:
    """The base of both CLIs' transports. See `bridge.transport.Transport` for what each member promises.

    Args:
        name: Whom log lines speak of.
        speed: How many times as fast as it was; None: no time passes.
    """

    def __init__(self, name: str, speed: float | None) -> None:
        self.name = name
        self.place: Place = NOWHERE
        self.unused = False
        self._speed = speed
        self._pid = next(_PIDS)
        self._ended = Ended(0.0, 0, "was ended", "")
        self._exited = anyio.Event()
        self._said: list[JsonObject] = []
        """What we said and nobody has looked at yet."""
        self._stirred = anyio.Event()
        self._on_line: Callable[[bytes], None] = _unheard

    @property
    def pid(self) -> int:
        """A number that no process has."""
        return self._pid

    @property
    def exited(self) -> bool:
        """Whether it has ended."""
        return self._exited.is_set()

    @property
    def stderr_tail(self) -> str:
        """What it said for people before it ended by itself."""
        return self._ended.stderr

    def send(self, line: bytes) -> None:
        """Say one line."""
        if not self.exited:
            if self.place.tap is not None:
                self.place.tap("out", line)
            self._said.append(as_object(json.loads(line)))
            self._stirred.set()

    def belongs(self, session_id: str) -> None:
        """See `Transport.belongs`."""
        if self.place is not NOWHERE:
            taps.belongs(self.place, session_id)

    def be_guarded(self) -> None:
        """Nothing: there is no process to be left behind."""

    async def read(
        self, on_line: Callable[[bytes], None], *, room: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Play, and hand every line to `on_line`, until the end."""
        self._on_line = on_line
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            tasks.start_soon(self._listen)
            self._begin()
            await self._exited.wait()
            tasks.cancel_scope.cancel()

    async def wait(self) -> int:
        """Wait for its end."""
        await self._exited.wait()
        return 0

    def last_words(self) -> str:
        """The last of that, to stand behind a sentence; "" for nothing."""
        return last_words(self._ended.stderr)

    @property
    def how(self) -> str:
        """How it ended, as the end of a sentence, without what it said."""
        return self._ended.how

    def describe_exit(self) -> str:
        """How it ended, as the end of a sentence, and the last it said on stderr."""
        return f"{self.how}{self.last_words()}"

    async def kill(self) -> None:
        """End it at once."""
        self.end()

    def end(self, ended: Ended | None = None) -> None:
        """End it, as it was recorded, or because it is no longer wanted."""
        if not self.exited:
            self._ended = ended or self._ended
            self._exited.set()

    def say(self, line: bytes) -> None:
        """A line of the CLI."""
        if self.place.tap is not None:
            self.place.tap("in", line)
        self._on_line(line)

    def say_all(self, lines: list[JsonObject]) -> None:
        """Lines of the CLI."""
        for line in lines:
            self.say(json.dumps(line, separators=(",", ":")).encode())

    def say_after(self, seconds: float, line: JsonObject) -> None:
        """A line of the CLI that took it so long."""
        if self._speed is None:
            self.say_all([line])
        else:
            self._tasks.start_soon(self._later, seconds / self._speed, line)

    async def _later(self, seconds: float, line: JsonObject) -> None:
        await anyio.sleep(seconds)
        self.say_all([line])

    async def _listen(self) -> None:
        while True:
            self._stirred = anyio.Event()
            said, self._said = self._said, []
            for line in said:
                self.heard(line)
            if not self._said:
                await self._stirred.wait()

    def heard(self, line: JsonObject) -> None:
        """We have said a line."""
        raise NotImplementedError

    def _begin(self) -> None:
        """Everything is there to play."""


def _unheard(line: bytes) -> None:
    """Nobody reads yet."""
