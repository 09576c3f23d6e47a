"""The questions of one session: each goes to one client, and ends with an answer, a cancel or its client's end."""

from __future__ import annotations

import anyio

from acp_manifold.translators.updates import Question

from .client import Client


class Questions:
    """The open questions of a session."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._open: dict[anyio.CancelScope, Client] = {}

    async def ask(self, question: Question, client: Client | None) -> str | None:
        """Put the question to `client`; None counts as nobody there.

        Returns:
            The id of the chosen option, one of those offered; None for a refusal of any kind.
        """
        if client is None:
            return None
        chosen: str | None = None
        with anyio.CancelScope() as scope:
            self._open[scope] = client
            try:
                chosen = await client.ask(self._session_id, question)
            finally:
                del self._open[scope]
        return chosen if any(option.id == chosen for option in question.options) else None

    def withdraw(self, client: Client | None = None) -> None:
        """Take back every open question, or those put to `client`; each counts as refused."""
        for scope, asked in list(self._open.items()):
            if client is None or asked is client:
                scope.cancel()

    def __len__(self) -> int:
        return len(self._open)
