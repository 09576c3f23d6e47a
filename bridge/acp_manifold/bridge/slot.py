"""Where a session's backend session sits: opened when needed, let go, opened again after a crash.

A slot knows one backend at a time. Its loop owns the context of the backend session, so that
entering and leaving it happen in one task; everybody else asks for the live one and waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

import anyio

from .backend import Backend, BackendSession, SessionEvents, SessionSpec
from .errors import BackendFault, BridgeError, find_bridge_error

logger = logging.getLogger(__name__)

Phase: TypeAlias = Literal["empty", "opening", "live", "closing"]
"""What the slot is about; it goes round in this order, from opening also straight back to empty."""

_CLOSED = BackendFault("the session was closed meanwhile")


class Opening(Protocol):
    """How the slot is to open its backend session, asked anew each time."""

    async def __call__(self) -> tuple[Backend, SessionSpec, str | None]:
        """The backend, the spec, and the backend's id to resume (None: a new session)."""
        ...


class Slot:
    """At most one live backend session."""

    def __init__(self, events: SessionEvents, opening: Opening, opened: Callable[[BackendSession], None]) -> None:
        """
        Args:
            events: Whom the backend session tells.
            opening: What to open.
            opened: Called as soon as one is live, before anybody waiting gets it.
        """
        self._events = events
        self._opening = opening
        self._opened = opened
        self._phase: Phase = "empty"
        self._moved = anyio.Event()
        self._live: BackendSession | None = None
        self._wanted = anyio.Event()
        self._tried = anyio.Event()
        """Set, and made anew, when an attempt to open has succeeded or failed."""
        self._error: BridgeError = _CLOSED
        self._release = anyio.Event()
        self._over = False
        """Whether `run` has ended: nothing will be opened any more."""

    @property
    def live(self) -> BackendSession | None:
        """The live backend session, if there is one now."""
        return self._live

    @property
    def empty(self) -> bool:
        """Whether there is none, and none is being opened or let go."""
        return self._phase == "empty"

    async def current(self) -> BackendSession | None:
        """The live backend session, waiting for one that is being opened or let go; None if there is none."""
        await self._drop_lost()
        while self._live is None and (self._phase != "empty" or self._wanted.is_set()):
            await self._moved.wait()
        return self._live

    async def get(self) -> BackendSession:
        """The live backend session, opened if need be.

        Raises:
            BridgeError: It can't be opened.
        """
        await self._drop_lost()
        if self._live is not None:
            return self._live
        if self._over:
            raise self._error
        tried = self._tried
        if self._phase != "opening":
            # Else it would be opened once more, for nobody, when this one is let go.
            self._wanted.set()
        await tried.wait()
        if self._live is None:
            raise self._error
        return self._live

    async def release(self) -> None:
        """Let the live one go, with all that is of it, and wait until it is gone."""
        self._release.set()
        if self._phase == "live":
            self._move("closing")
        while self._phase in ("opening", "closing"):
            await self._moved.wait()

    async def _drop_lost(self) -> None:
        """A live one that its CLI has left is as good as none."""
        if self._live is not None and self._live.lost:
            await self.release()

    async def run(self) -> None:
        """Open what is asked for, until cancelled."""
        try:
            while True:
                await self._wanted.wait()
                self._wanted = anyio.Event()
                await self._hold_once()
        finally:
            self._over = True
            self._wanted = anyio.Event()
            self._move("empty")
            self._settle(_CLOSED)

    async def _hold_once(self) -> None:
        self._release = anyio.Event()
        self._move("opening")
        try:
            await self._hold()
        except Exception as exc:
            self._fail(exc)
        finally:
            self._move("empty")

    async def _hold(self) -> None:
        backend, spec, resume = await self._opening()
        async with backend.session(spec, self._events, resume=resume) as live:
            self._opened(live)
            self._live = live
            self._move("live")
            self._settle(_CLOSED)
            await self._until_over(live)
            self._move("closing")

    async def _until_over(self, live: BackendSession) -> None:
        async with anyio.create_task_group() as tg:

            async def watch() -> None:
                reason = await live.gone()
                logger.info("session %s: %s", live.id, reason.message)
                tg.cancel_scope.cancel()

            tg.start_soon(watch)
            await self._release.wait()
            tg.cancel_scope.cancel()

    def _move(self, phase: Phase) -> None:
        self._phase = phase
        if phase != "live":
            self._live = None
        moved, self._moved = self._moved, anyio.Event()
        moved.set()

    def _settle(self, error: BridgeError) -> None:
        """An attempt to open is over; `error` is for whom that leaves without a live one."""
        self._error = error
        tried, self._tried = self._tried, anyio.Event()
        tried.set()

    def _fail(self, exc: Exception) -> None:
        error = find_bridge_error(exc)
        if error is None:
            logger.error("a backend session broke", exc_info=exc)
            error = BackendFault(f"the backend broke ({type(exc).__name__}); details are on the agent's stderr")
        if self._phase == "opening":
            self._settle(error)
        else:
            # Nobody waits for this one: what it did to a turn, that turn has told.
            logger.info("a backend session ended: %s", error.message)

    def __repr__(self) -> str:
        return f"<Slot {self._phase}>"
