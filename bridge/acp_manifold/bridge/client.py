"""What a session knows of the connections attached to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from acp_manifold.translators.updates import Question, Update
from acp_manifold.translators.values import NamedTuple

if TYPE_CHECKING:
    from acp_manifold.translators.forms import Form, FormAnswer


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

    async def ask_form(self, session_id: str, form: Form) -> FormAnswer:
        """Put a form, in the way the client can; its values fit. Cancelling it withdraws the question."""
        ...

    def form_done(self, session_id: str, form_id: str) -> None:
        """What the page of a form is for is done, as far as the one who asked can tell; never blocks."""
        ...
