"""What an adapter has of the CLI that serves it: lines both ways, and an end. A process, or one that is replayed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from .starting import Launch
from .taps import Place


class Transport(Protocol):
    """A running CLI, or one that has ended; see `process.Child`, which says what each member promises."""

    name: str
    place: Place
    unused: bool

    @property
    def pid(self) -> int:
        """Its number among all processes; one that is no process has a number that no process has."""
        ...

    @property
    def exited(self) -> bool:
        """Whether it has ended."""
        ...

    @property
    def stderr_tail(self) -> str:
        """The last that it said for people."""
        ...

    def send(self, line: bytes) -> None:
        """Send it one line."""
        ...

    def belongs(self, session_id: str) -> None:
        """All its lines are of this session from now on."""
        ...

    def be_guarded(self) -> None:
        """Have it ended when we can't do it ourselves."""
        ...

    async def read(
        self, on_line: Callable[[bytes], None], *, room: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        """Hand every line that it says to `on_line`, until it ends."""
        ...

    async def wait(self) -> int:
        """Wait for its end."""
        ...

    def describe_exit(self) -> str:
        """How it ended, as the end of a sentence."""
        ...

    def last_words(self) -> str:
        """The last it said on stderr, to stand behind a sentence; "" for nothing."""
        ...

    async def kill(self) -> None:
        """End it at once."""
        ...


Spawn: TypeAlias = Callable[[Launch], AbstractAsyncContextManager[Transport]]
"""Runs a CLI for as long as the context is open; see `process.spawn`."""
