"""The questions of one session: each goes to one client, and ends with an answer, a cancel or its client's end."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, TypeVar

import anyio

from acp_manifold.translators.updates import Question

from .client import Client

if TYPE_CHECKING:
    from acp_manifold.translators.forms import Form, FormAnswer

    from .turn import Turn

_T = TypeVar("_T")

MOST_PAGES: Final = 32
"""How many pages of a session may be open and not done; of more, the oldest is no longer waited for."""


class Questions:
    """The open questions of a session."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._open: dict[anyio.CancelScope, tuple[Client, Turn | None]] = {}
        """Whom each is put to, and in which turn it was asked."""
        self._pages: dict[str, Client] = {}
        """Who has the page of a form open, by the form's id."""

    async def ask(self, question: Question, client: Client | None, turn: Turn | None = None) -> str | None:
        """Put the question to `client`; None counts as nobody there.

        Args:
            question: What is asked.
            client: Whom.
            turn: The turn that runs; None if it is asked in the background, or of the CLI's own accord.

        Returns:
            The id of the chosen option, one of those offered; None for a refusal of any kind.
        """
        if client is None:
            return None
        chosen = await self._put(client, turn, client.ask(self._session_id, question))
        return chosen if any(option.id == chosen for option in question.options) else None

    async def ask_form(self, form: Form, client: Client | None, turn: Turn | None = None) -> FormAnswer:
        """Put a form to `client`; see `ask`."""
        # Imported with the first form: few sessions ask any.
        from acp_manifold.translators.forms import NOBODY, WITHDRAWN

        if client is None:
            return NOBODY
        if form.url is not None:
            self._pages[form.id] = client
            if len(self._pages) > MOST_PAGES:
                del self._pages[next(iter(self._pages))]
        answer = WITHDRAWN
        try:
            answer = await self._put(client, turn, client.ask_form(self._session_id, form)) or WITHDRAWN
        finally:
            if answer.action != "accept":
                self._pages.pop(form.id, None)
        return answer

    def form_done(self, form_id: str) -> None:
        """The page of a form has done its work: whoever has it open is told."""
        client = self._pages.pop(form_id, None)
        if client is not None:
            client.form_done(self._session_id, form_id)

    async def _put(self, client: Client, turn: Turn | None, asking: Awaitable[_T]) -> _T | None:
        """What the client answers; None if the question was withdrawn."""
        with anyio.CancelScope() as scope:
            self._open[scope] = client, turn
            try:
                return await asking
            finally:
                del self._open[scope]
        return None

    def withdraw(self, client: Client | None = None) -> None:
        """Take back every open question, or those put to `client`; each counts as refused."""
        for scope, (asked, _) in list(self._open.items()):
            if client is None or asked is client:
                scope.cancel()
        if client is not None:
            self._pages = {form: asked for form, asked in self._pages.items() if asked is not client}

    def withdraw_of(self, turn: Turn | None) -> None:
        """Take back what was asked in a turn, or outside of any; each counts as refused."""
        for scope, (_, asked_in) in list(self._open.items()):
            if asked_in is turn:
                scope.cancel()

    def __len__(self) -> int:
        return len(self._open)
