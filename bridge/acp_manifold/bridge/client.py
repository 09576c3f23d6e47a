"""What a session knows of the connections attached to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from acp_manifold.translators.updates import Question, Update


class Replay(NamedTuple):
    """Where the history of a session goes: to one client, which hears nothing else of the session meanwhile."""

    begin: Callable[[], None]
    """From now on what is said in the session waits, for this client, until the history is told."""
    emit: Callable[[Update], None]
    """Tells a piece of the history."""
    room: Callable[[], Awaitable[None]]
    """Waits while the client is behind."""


class Client(Protocol):
    """One attached client. Sessions speak to it in canonical updates; it renders its own protocol version."""

    def deliver(self, session_id: str, update: Update) -> None:
        """Tell the client; never blocks, keeps the order of calls."""
        ...

    async def room(self, session_id: str) -> None:
        """Wait while the client is too far behind with what it was told of a session, or with everything."""
        ...

    async def ask(self, session_id: str, question: Question) -> str | None:
        """Put a question; the chosen option's id, or None. Cancelling it withdraws the question."""
        ...
