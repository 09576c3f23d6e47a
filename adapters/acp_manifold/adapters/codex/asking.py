"""The questions a thread has put to its person and that have no answer yet.

Each lives in a task of the session. It ends by the answer, by Codex taking it back
(`serverRequest/resolved`), or by the turn being cancelled; an answer after that reaches nobody (case P02).
"""

from __future__ import annotations

import logging

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from acp_manifold.bridge.backend import SessionEvents
from acp_manifold.bridge.errors import METHOD_NOT_FOUND
from acp_manifold.translators.codex.approvals import Approval, Items, approval_of, polite_refusal
from acp_manifold.translators.narrow import JsonObject

from .client import Client, RequestId

logger = logging.getLogger(__name__)


class _Open:
    """A question that is with the person."""

    __slots__ = ("approval", "scope")

    def __init__(self, approval: Approval) -> None:
        self.approval = approval
        self.scope = anyio.CancelScope()


class Asking:
    """The open questions of one thread."""

    def __init__(self, client: Client, events: SessionEvents, tasks: TaskGroup) -> None:
        """
        Args:
            client: Where the answers go.
            events: Whom to ask.
            tasks: The session's task group.
        """
        self._client = client
        self._events = events
        self._tasks = tasks
        self._open: dict[RequestId, _Open] = {}

    def ask(self, request_id: RequestId, method: str, params: JsonObject, items: Items) -> None:
        """Put a request of the server to the person, or decline what can't be put."""
        approval = approval_of(method, params, items)
        if approval is None:
            self._decline(request_id, method, params)
            return
        entry = self._open[request_id] = _Open(approval)
        self._tasks.start_soon(self._put, request_id, entry)

    def refuse(self, request_id: RequestId, method: str, params: JsonObject, items: Items) -> None:
        """Refuse a request without asking anybody: its turn is over or being cancelled."""
        approval = approval_of(method, params, items)
        if approval is None:
            self._decline(request_id, method, params)
        else:
            self._client.answer(request_id, approval.abort)

    def _decline(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        result = polite_refusal(method, params)
        logger.info("codex: %s was declined: it can't be put to a person yet", method)
        if result is not None:
            self._client.answer(request_id, result)
        else:
            self._client.refuse(request_id, METHOD_NOT_FOUND, f"nobody here answers {method}")

    async def _put(self, request_id: RequestId, entry: _Open) -> None:
        with entry.scope:
            chosen = await self._events.ask(entry.approval.question)
            if chosen is None:
                # A cancel takes the question back first and interrupts in the same breath: let that come first,
                # so that the turn is stopped and not merely told no.
                await anyio.lowlevel.checkpoint()
            if self._open.pop(request_id, None) is not None:
                self._client.answer(request_id, entry.approval.answer(chosen))

    def resolved(self, request_id: object) -> None:
        """Codex wants no answer any more."""
        if isinstance(request_id, int | str):
            entry = self._open.pop(request_id, None)
            if entry is not None:
                entry.scope.cancel()

    def abort(self) -> None:
        """Take all questions back and have Codex stop what they are about."""
        for request_id, entry in self._take_all():
            self._client.answer(request_id, entry.approval.abort)

    def drop(self) -> None:
        """Take all questions back; nobody is there to be answered."""
        self._take_all()

    def _take_all(self) -> list[tuple[RequestId, _Open]]:
        taken = list(self._open.items())
        self._open.clear()
        for _, entry in taken:
            entry.scope.cancel()
        return taken
