"""The history of a session for a client that loads it: what its store has, then what that may not have yet.

For a session that is open, also in the middle of a turn. The store is read up to the first item that the
session keeps itself (`recent`); then that is told. Between the moment the history begins and its end
the client hears nothing of the session, so each item comes once and in order, and the turn goes on
behind the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_manifold.translators.updates import Update

if TYPE_CHECKING:
    from .client import Replay
    from .recent import Recent
    from .session import Session


async def tell_history(session: Session, replay: Replay | None) -> None:
    """Tell it whole; without a `replay`, nothing.

    Raises:
        SessionNotFound: The store has lost the session meanwhile.
        BridgeError: The backend can't tell it.
    """
    if replay is None:
        return
    recent = session.recent
    with recent.pinned():
        replay.begin()
        said = recent.items()
        key = session.key
        row = await session.backend.find(key.id) if key is not None else None
        if row is not None:
            await session.backend.replay(row.id, _UpTo(recent, replay).tell, replay.room)
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
        self._over = self._over or self._recent.holds(update)
        if not self._over:
            self._emit(update)
