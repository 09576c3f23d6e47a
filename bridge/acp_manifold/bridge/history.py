"""The history of a session for a client that loads it: what its store has, then what that may not have yet.

For a session that is open, also in the middle of a turn. The store is read up to the first item that the
session keeps itself (`recent`); then that is told. Between the moment the history begins and its end
the client hears nothing of the session, so each item comes once and in order, and the turn goes on
behind the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from acp_manifold.translators.updates import OfSubagent, Update

from .errors import BridgeError

if TYPE_CHECKING:
    from .client import Replay
    from .recent import Recent
    from .session import Session


async def open_telling(session: Session, stored: str, replay: Replay) -> None:
    """Open a session of the store, and tell its history meanwhile, which is there long before the CLI is.

    The first piece is told before anything is imported or started to open the session.

    Args:
        session: Not open yet.
        stored: What the store calls it.
        replay: Who hears the history.

    Raises:
        BridgeError: It can't be opened, or not be told.
    """
    failure: BaseException | None = None
    begun = anyio.Event()

    async def room() -> None:
        begun.set()
        await replay.room()

    async with anyio.create_task_group() as tasks:

        async def tell() -> None:
            nonlocal failure
            try:
                await tell_history(session, stored, replay._replace(room=room))
            except BridgeError as exc:
                failure = exc
            finally:
                begun.set()

        tasks.start_soon(tell)
        await begun.wait()
        try:
            if failure is None:
                await session.open()
        except BridgeError as exc:
            # Carried past the task group, which would wrap it: the caller is to see it as it was raised.
            failure = exc
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def tell_history(session: Session, stored: str | None, replay: Replay) -> None:
    """Tell it whole.

    Args:
        session: Whose.
        stored: What the store calls it; None if it is in no store yet.
        replay: Who hears it.

    Raises:
        SessionNotFound: The store has lost the session meanwhile.
        BridgeError: The backend can't tell it.
    """
    recent = session.recent
    with recent.pinned():
        replay.begin()
        said = recent.items()
        if stored is not None:
            await session.backend.replay(stored, _UpTo(recent, replay).tell, replay.room)
        for update in said:
            replay.emit(update)
            await replay.room()


class _UpTo:
    """Passes on what the store has, up to the first item that the session keeps itself."""

    def __init__(self, recent: Recent, replay: Replay) -> None:
        self._recent = recent
        self._emit = replay.emit
        self._over = False

    def tell(self, update: Update) -> None:
        # Asked anew each time: what is begun meanwhile is told as it is said.
        held = self._recent.holds(update)
        if isinstance(update, OfSubagent):
            # A sub-agent may work on while the conversation that set it to work is far ahead of that.
            if not held and not self._over:
                self._emit(update)
            return
        self._over = self._over or held
        if not self._over:
            self._emit(update)
