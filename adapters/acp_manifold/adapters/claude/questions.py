"""Requests of a Claude Code process to its host: permission questions, and the refusal of all others.

A question is a task of its own, so that any number may be open and none holds up the stream. It
ends with the person's answer or, unanswered, when the CLI takes it back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio
from anyio.abc import TaskGroup

from acp_manifold.bridge.backend import SessionEvents
from acp_manifold.translators.claude import permissions
from acp_manifold.translators.claude.frames import ControlRequest
from acp_manifold.translators.claude.input import control_answer, control_refusal
from acp_manifold.translators.narrow import JsonObject, as_objects, text
from acp_manifold.translators.updates import ToolCallUpdate

logger = logging.getLogger(__name__)


class Questions:
    """The open questions of one session."""

    def __init__(
        self,
        tasks: TaskGroup,
        send: Callable[[JsonObject], None],
        events: SessionEvents,
        cwd: str,
        name: str,
        remember: Callable[[JsonObject], None],
    ) -> None:
        """
        Args:
            tasks: What they are asked in.
            send: Sends the CLI a message.
            events: Whom to ask.
            cwd: Where relative paths start.
            name: Whom log lines speak of.
            remember: Told each change of permissions that was chosen.
        """
        self._remember = remember
        self._tasks = tasks
        self._send = send
        self._events = events
        self._cwd = cwd
        self._name = name
        self._open: dict[str, anyio.CancelScope] = {}

    def asked(self, frame: ControlRequest) -> None:
        """Take in a request of the CLI's."""
        subtype = text(frame.request, "subtype")
        if subtype != "can_use_tool":
            logger.warning("%s: refused a request of kind %r", self._name, subtype)
            self._send(control_refusal(frame.id, f"This host does not serve {subtype or 'requests without a subtype'}"))
            return
        words = permissions.unanswerable(frame.request)
        if words is not None:
            self._send(control_answer(frame.id, {"behavior": "deny", "message": words}))
            return
        scope = self._open[frame.id] = anyio.CancelScope()
        self._tasks.start_soon(self._put, frame, scope)

    def withdrawn(self, request_id: str) -> None:
        """The CLI no longer wants an answer; a late one would be ignored, so none is sent."""
        scope = self._open.pop(request_id, None)
        if scope is not None:
            scope.cancel()

    async def _put(self, frame: ControlRequest, scope: anyio.CancelScope) -> None:
        with scope:
            asked = permissions.asked(frame.request, self._cwd)
            response = permissions.answer(asked, await self._ask(asked))
            # Withdrawn in this very moment: then the scope is cancelled, and nothing is sent.
            if self._open.pop(frame.id, None) is None:
                return
            if permissions.allows(response):
                self._events.update(ToolCallUpdate(asked.call_id, status="in_progress"))
            for change in as_objects(response.get("updatedPermissions")):
                self._remember(change)
            self._send(control_answer(frame.id, response))

    async def _ask(self, asked: permissions.Asked) -> str | None:
        try:
            return await self._events.ask(asked.question)
        except Exception:
            # Boundary: whatever broke on the way to the person, the CLI must get its answer.
            logger.exception("%s: a permission question failed and counts as refused", self._name)
            return permissions.REJECT
