"""Requests of ours to a Claude Code process: ids, the table of those unanswered, and their end.

Every request ends in one of: its answer, a refusal, a limit of time, the end of the process.
"""

from __future__ import annotations

from collections.abc import Callable

import anyio

from acp_manifold.bridge.errors import BackendFault, BackendGone
from acp_manifold.translators.claude.frames import ControlResponse
from acp_manifold.translators.claude.input import control_request
from acp_manifold.translators.narrow import JsonObject


class Pending:
    """A request on its way."""

    __slots__ = ("answer", "answered", "done", "error", "id", "subtype")

    def __init__(self, id: str, subtype: str, answered: Callable[[JsonObject], None] | None = None) -> None:
        self.id = id
        self.subtype = subtype
        self.answered = answered
        self.done = anyio.Event()
        self.answer: JsonObject | None = None
        self.error: BackendFault | None = None


class Control:
    """The host's side of the control protocol of one process."""

    def __init__(self, send: Callable[[JsonObject], None]) -> None:
        self._send = send
        self._pending: dict[str, Pending] = {}
        self._count = 0
        self._gone: str | None = None

    def post(self, request: JsonObject, answered: Callable[[JsonObject], None] | None = None) -> Pending:
        """Send a request now; `settle` waits for its answer.

        Args:
            request: Its `subtype` and what goes with it.
            answered: Called with the answer as it is read, before the next line of the CLI is.
        """
        self._count += 1
        pending = Pending(f"host-{self._count}", str(request.get("subtype")), answered)
        if self._gone is not None:
            self._fail(pending, BackendGone(self._gone))
            return pending
        self._pending[pending.id] = pending
        self._send(control_request(pending.id, request))
        return pending

    async def settle(self, pending: Pending, limit: float) -> JsonObject:
        """Wait for the answer, `limit` seconds at most.

        Raises:
            BackendGone: The process ended.
            BackendFault: The CLI refused, in its words, or gave no answer in time.
        """
        try:
            with anyio.move_on_after(limit):
                await pending.done.wait()
        finally:
            self._pending.pop(pending.id, None)
        if pending.error is not None:
            raise pending.error
        if pending.answer is None:
            raise BackendFault(f"Claude Code gave no answer to {pending.subtype} within {limit:g} s")
        return pending.answer

    async def request(self, request: JsonObject, limit: float) -> JsonObject:
        """Send a request and wait for its answer; raises what `settle` raises."""
        return await self.settle(self.post(request), limit)

    def answered(self, frame: ControlResponse) -> bool:
        """Take in an answer; False if nothing waits for it."""
        pending = self._pending.pop(frame.id, None)
        if pending is None:
            return False
        if frame.error is not None:
            self._fail(pending, BackendFault(f"Claude Code refused {pending.subtype}: {frame.error}"))
        else:
            pending.answer = frame.response
            if pending.answered is not None:
                pending.answered(frame.response)
            pending.done.set()
        return True

    def close(self, reason: str) -> None:
        """The process is gone: nothing waiting will be answered, nor anything sent from now on."""
        self._gone = reason
        pending, self._pending = self._pending, {}
        for request in pending.values():
            self._fail(request, BackendGone(reason))

    @staticmethod
    def _fail(pending: Pending, error: BackendFault) -> None:
        pending.error = error
        pending.done.set()
