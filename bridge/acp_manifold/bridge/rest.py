"""When a session's backend may be let go: after a time in which nothing happened, unless something still goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio


class Rest:
    """The idle clock of one session."""

    def __init__(self, after: float, may_rest: Callable[[], bool], let_go: Callable[[], Awaitable[None]]) -> None:
        """
        Args:
            after: Seconds without an event; 0 means never.
            may_rest: Whether there is a backend, and nothing that it still does.
            let_go: Lets the backend go.
        """
        self._after = after
        self._may_rest = may_rest
        self._let_go = let_go
        self._stirred_at = 0.0
        self._resting: anyio.Event | None = None
        """Set by the next event, while the clock stands still."""

    def stir(self) -> None:
        """Something happened."""
        self._stirred_at = anyio.current_time()
        if self._resting is not None:
            self._resting.set()

    async def run(self) -> None:
        """Let the backend go whenever it has been idle for long enough; until cancelled."""
        if not self._after:
            return
        self._stirred_at = anyio.current_time()
        while True:
            due = self._stirred_at + self._after
            await anyio.sleep_until(due)
            if self._stirred_at + self._after > due:
                continue
            if not self._may_rest():
                # Nothing tells the end of work in the background, but nothing hurries either.
                self._stirred_at = anyio.current_time()
                continue
            self._resting = anyio.Event()
            await self._let_go()
            await self._resting.wait()
            self._resting = None
