"""An event loop in which waiting takes no time: its clock goes on to the next timer whenever nothing is to be done.

For what waits for timers alone: what another thread or process does would find its time run out at once.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Mapping
from selectors import SelectorKey

import anyio


class _Selector(selectors.DefaultSelector):
    """Tells how long nothing came that would have been waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        found = super().select(0)
        if not found:
            self.passed += max(0.0, timeout)
        return found


class Loop(asyncio.SelectorEventLoop):
    """See the module."""

    def __init__(self) -> None:
        self._waits = _Selector()
        super().__init__(self._waits)

    def time(self) -> float:
        """Seconds, all of them waited for."""
        return self._waits.passed


async def passes(seconds: float) -> None:
    """So much time passes, for which nobody waits."""
    with anyio.move_on_after(seconds):
        await anyio.Event().wait()


BACKEND: tuple[str, Mapping[str, object]] = ("asyncio", {"loop_factory": Loop})
"""For the fixture `anyio_backend`."""
