"""The questions a thread has put to its person and that have no answer yet.

Each lives in a task of the session. It ends by the answer, by Codex taking it back
(`serverRequest/resolved`), or by the turn being cancelled; an answer after that reaches nobody (case P02).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from time import time
from typing import TYPE_CHECKING, TypeAlias

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup

from acp_manifold.bridge.backend import SessionEvents
from acp_manifold.bridge.errors import METHOD_NOT_FOUND
from acp_manifold.translators.codex.approvals import INQUIRIES, Approval, Items, approval_of, polite_refusal
from acp_manifold.translators.narrow import JsonObject, text
from acp_manifold.translators.updates import Notice

from .client import Client, RequestId

if TYPE_CHECKING:
    from acp_manifold.translators.codex.questions import Inquiry

logger = logging.getLogger(__name__)

CLOCK = "currentTime/read"
"""A request for the time, in whole seconds, where Codex is configured to ask its client (codex-cli 0.163.0)."""

_Ask: TypeAlias = Callable[[], Awaitable[JsonObject]]
"""Asks the person, and gives the result for Codex."""


class _Open:
    """A question that is with the person."""

    __slots__ = ("abort", "scope", "thread")

    def __init__(self, abort: JsonObject, thread: str) -> None:
        self.abort = abort
        """The result when the turn is being cancelled, or the question broke on its way."""
        self.thread = thread
        """Who asks: the session's own thread, or that of a sub-agent."""
        self.scope = anyio.CancelScope()


class Asking:
    """The open questions of one session: of its thread, and of those of its sub-agents."""

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
        self._pages: list[str] = []
        """Forms whose page the person has opened in this turn."""

    def ask(self, request_id: RequestId, method: str, params: JsonObject, items: Items) -> None:
        """Put a request of the server to the person, or decline what can't be put."""
        approval = approval_of(method, params, items)
        if approval is not None:
            self._begin(request_id, params, approval.abort, partial(self._consent, approval))
            return
        inquiry = self._inquiry(request_id, method, params, items)
        if isinstance(inquiry, str):
            self._note(params, inquiry)
        elif inquiry is not None:
            self._begin(request_id, params, self._aborted(inquiry), partial(self._inquire, inquiry))
            return
        if method == CLOCK:
            self._client.answer(request_id, {"currentTimeAt": int(time())})
            return
        if not isinstance(inquiry, str):
            words = "It was declined, and the turn goes on."
            self._events.update(Notice("warning", f"Codex asked for `{method}`, which can't be had here", words))
        self._decline(request_id, method, params)

    def refuse(self, request_id: RequestId, method: str, params: JsonObject, items: Items) -> None:
        """Refuse a request without asking anybody: its turn is over or being cancelled."""
        approval = approval_of(method, params, items)
        if approval is not None:
            self._client.answer(request_id, approval.abort)
            return
        inquiry = self._inquiry(request_id, method, params, items)
        if inquiry is None or isinstance(inquiry, str):
            self._decline(request_id, method, params)
        else:
            self._client.answer(request_id, self._aborted(inquiry))

    def turn_over(self) -> None:
        """The turn has ended: pages it had opened are no longer waited for; Codex never tells that one is done."""
        pages, self._pages = self._pages, []
        for page in pages:
            self._events.form_done(page)

    @staticmethod
    def _inquiry(request_id: RequestId, method: str, params: JsonObject, items: Items) -> Inquiry | str | None:
        """The form in a request; why it can't be asked; None if it is nothing to ask a person."""
        if method not in INQUIRIES:
            return None
        # Imported with the first question, as is all that knows of forms.
        from acp_manifold.translators.codex.questions import inquiry_of
        from acp_manifold.translators.form_schemas import Unshowable

        try:
            return inquiry_of(method, params, request_id, items)
        except Unshowable as exc:
            return str(exc)

    @staticmethod
    def _aborted(inquiry: Inquiry) -> JsonObject:
        from acp_manifold.translators.forms import FormAnswer

        return inquiry.respond(FormAnswer("cancel"))

    def _note(self, params: JsonObject, why: str) -> None:
        from acp_manifold.bridge.forms import not_asked

        self._events.update(not_asked(text(params, "message") or "a question of the agent's", why))

    def _decline(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        result = polite_refusal(method, params)
        logger.info("codex: %s was declined: it can't be put to a person", method)
        if result is not None:
            self._client.answer(request_id, result)
        else:
            self._client.refuse(request_id, METHOD_NOT_FOUND, f"nobody here answers {method}")

    def _begin(self, request_id: RequestId, params: JsonObject, abort: JsonObject, ask: _Ask) -> None:
        entry = self._open[request_id] = _Open(abort, text(params, "threadId"))
        self._tasks.start_soon(self._put, request_id, entry, ask)

    async def _put(self, request_id: RequestId, entry: _Open, ask: _Ask) -> None:
        with entry.scope:
            try:
                result = await ask()
            except Exception:
                # Boundary: whatever broke on the way to the person, Codex must get its answer.
                logger.exception("codex: a question failed and counts as refused")
                result = entry.abort
            if self._open.pop(request_id, None) is not None:
                self._client.answer(request_id, result)

    async def _consent(self, approval: Approval) -> JsonObject:
        chosen = await self._events.ask(approval.question)
        if chosen is None:
            await self._let_cancel_come_first()
        return approval.answer(chosen)

    async def _inquire(self, inquiry: Inquiry) -> JsonObject:
        answer = await self._events.ask_form(inquiry.form)
        if answer.action == "cancel":
            await self._let_cancel_come_first()
        elif answer.action == "accept" and inquiry.form.url is not None:
            self._pages.append(inquiry.form.id)
        return inquiry.respond(answer)

    async def _let_cancel_come_first(self) -> None:
        """A cancel takes the question back and interrupts in the same breath: it stops the turn, and is no mere no."""
        await anyio.lowlevel.checkpoint()

    def resolved(self, request_id: object) -> None:
        """Codex wants no answer any more."""
        if isinstance(request_id, int | str):
            entry = self._open.pop(request_id, None)
            if entry is not None:
                entry.scope.cancel()

    def abort(self, but: Collection[str] = ()) -> None:
        """Take all questions back, but those of some threads, and have Codex stop what they are about."""
        for request_id, entry in self._take_all(but):
            self._client.answer(request_id, entry.abort)

    def drop(self) -> None:
        """Take all questions back; nobody is there to be answered."""
        self._take_all()

    def _take_all(self, but: Collection[str] = ()) -> list[tuple[RequestId, _Open]]:
        taken = [(request_id, entry) for request_id, entry in self._open.items() if entry.thread not in but]
        for request_id, entry in taken:
            del self._open[request_id]
            entry.scope.cancel()
        return taken
