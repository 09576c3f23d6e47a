"""Where a session's backend session sits: opened when needed, let go, opened again after a crash.

A slot knows one backend at a time. Its loop owns the context of the backend session, so that
entering and leaving it happen in one task; everybody else asks for the live one and waits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

import anyio

from .backend import Backend, BackendSession, SessionEvents, SessionSpec
from .errors import BackendFault, BridgeError, find_bridge_error

logger = logging.getLogger(__name__)


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
        self._live: BackendSession | None = None
        self._wanted = anyio.Event()
        self._settled = anyio.Event()
        self._error: BridgeError | None = None
        self._release = anyio.Event()
        self._closed = anyio.Event()
        self._closed.set()

    @property
    def live(self) -> BackendSession | None:
        """The live backend session, if there is one now."""
        return self._live

    async def get(self) -> BackendSession:
        """The live backend session, opened if need be.

        Raises:
            BridgeError: It can't be opened.
        """
        if self._live is not None:
            return self._live
        settled = self._settled
        self._wanted.set()
        await settled.wait()
        if self._live is None:
            raise self._error or BackendFault("the session was closed meanwhile")
        return self._live

    async def release(self) -> None:
        """Let the live one go, with all that is of it, and wait until it is gone."""
        self._live = None
        self._release.set()
        await self._closed.wait()

    async def run(self) -> None:
        """Open what is asked for, until cancelled."""
        try:
            while True:
                await self._wanted.wait()
                self._wanted = anyio.Event()
                await self._hold_once()
        finally:
            self._settle(BackendFault("the session was closed meanwhile"))

    async def _hold_once(self) -> None:
        try:
            await self._hold()
        except Exception as exc:
            self._fail(exc)
        finally:
            self._live = None
            self._closed.set()

    async def _hold(self) -> None:
        self._release = anyio.Event()
        self._closed = anyio.Event()
        backend, spec, resume = await self._opening()
        async with backend.session(spec, self._events, resume=resume) as live:
            self._opened(live)
            self._live = live
            self._settle()
            await self._until_over(live)
            self._live = None

    async def _until_over(self, live: BackendSession) -> None:
        async with anyio.create_task_group() as tg:

            async def watch() -> None:
                reason = await live.gone()
                logger.info("session %s: %s", live.id, reason.message)
                tg.cancel_scope.cancel()

            tg.start_soon(watch)
            await self._release.wait()
            tg.cancel_scope.cancel()

    def _settle(self, error: BridgeError | None = None) -> None:
        self._error = error
        settled, self._settled = self._settled, anyio.Event()
        settled.set()

    def _fail(self, exc: Exception) -> None:
        """Tell who waits; a failure with nobody waiting was told by the turn it hit."""
        error = find_bridge_error(exc)
        if error is None:
            logger.error("a backend session broke", exc_info=exc)
            error = BackendFault(f"the backend broke ({type(exc).__name__}); details are on the agent's stderr")
        elif self._live is not None:
            logger.warning("a backend session ended: %s", error.message)
        self._settle(error)
