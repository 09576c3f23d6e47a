"""Requests of a Claude Code process to its host: permissions, questions to the person, and the refusal of all others.

A question is a task of its own, so that any number may be open and none holds up the stream. It
ends with the person's answer or, unanswered, when the CLI takes it back.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio.abc import TaskGroup

from acp_manifold.bridge.backend import SessionEvents
from acp_manifold.translators.claude import permissions
from acp_manifold.translators.claude.frames import ControlRequest, PageDone
from acp_manifold.translators.claude.input import REFUSAL_DIALOG, control_answer, control_refusal
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text
from acp_manifold.translators.updates import Notice, ToolCallUpdate, Update

if TYPE_CHECKING:
    from acp_manifold.translators.claude.questions import Inquiry

logger = logging.getLogger(__name__)

_DISMISSED: JsonObject = {"behavior": "cancelled"}
"""The answer to a dialog that was not answered."""

_Ask: TypeAlias = Callable[[], Awaitable[JsonObject]]
"""Asks the person, and gives the answer for the CLI."""


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
        only_call: Callable[[str], str | None],
        placed: Callable[[ToolCallUpdate], Update],
    ) -> None:
        """
        Args:
            tasks: What they are asked in.
            send: Sends the CLI a message.
            events: Whom to ask.
            cwd: Where relative paths start.
            name: Whom log lines speak of.
            remember: Told each change of permissions that was chosen.
            only_call: The one open call of a tool whose name begins so, if there is just one.
            placed: What is told of a call, in the conversation that it belongs to.
        """
        self._placed = placed
        self._remember = remember
        self._tasks = tasks
        self._send = send
        self._events = events
        self._cwd = cwd
        self._name = name
        self._only_call = only_call
        self._open: dict[str, anyio.CancelScope] = {}

    def asked(self, frame: ControlRequest) -> None:
        """Take in a request of the CLI's."""
        subtype = text(frame.request, "subtype")
        if subtype == "elicitation":
            self._begin(frame, partial(self._elicited, frame), {"action": "cancel"})
        elif subtype == "request_user_dialog" and text(frame.request, "dialog_kind") == REFUSAL_DIALOG:
            self._begin(frame, partial(self._refused, frame), _DISMISSED)
        elif subtype != "can_use_tool":
            self._not_served(frame, subtype)
        elif text(frame.request, "tool_name") == permissions.QUESTION_TOOL:
            self._begin(frame, partial(self._inquired, frame.request), permissions.FAILED)
        else:
            self._begin(frame, partial(self._permitted, frame.request), permissions.FAILED)

    def _not_served(self, frame: ControlRequest, subtype: str) -> None:
        """Refuse what nobody here serves, and say so: the turn goes on."""
        kind = text(frame.request, "dialog_kind") if subtype == "request_user_dialog" else ""
        logger.warning("%s: refused a request of kind %r %s", self._name, subtype, kind)
        if kind:
            # Of a kind that no host has said to show, so none should come. An error leaves a dialog open, and some
            # have no deadline (Claude Code 2.1.332): it counts as dismissed, by the only host there is.
            self._send(control_answer(frame.id, _DISMISSED))
        else:
            self._send(control_refusal(frame.id, f"This host does not serve {subtype or 'requests without a subtype'}"))
        what = f"a dialog ({kind})" if kind else f"`{subtype}`"
        words = "It was declined, and the turn goes on. In a terminal, Claude Code can show it."
        self._events.update(Notice("warning", f"Claude Code asked for {what}, which can't be shown here", words))

    def withdrawn(self, request_id: str) -> None:
        """The CLI no longer wants an answer; a late one would be ignored, so none is sent."""
        scope = self._open.pop(request_id, None)
        if scope is not None:
            scope.cancel()

    def page_done(self, frame: PageDone) -> None:
        """An MCP server has what it had a page opened for."""
        from acp_manifold.translators.claude.questions import page_id

        self._events.form_done(page_id(frame.server, frame.elicitation_id))

    def _begin(self, frame: ControlRequest, ask: _Ask, broken: JsonObject) -> None:
        scope = self._open[frame.id] = anyio.CancelScope()
        self._tasks.start_soon(self._put, frame, scope, ask, broken)

    async def _put(self, frame: ControlRequest, scope: anyio.CancelScope, ask: _Ask, broken: JsonObject) -> None:
        with scope:
            try:
                response = await ask()
            except Exception:
                # Boundary: whatever broke on the way to the person, the CLI must get its answer.
                logger.exception("%s: a question failed and counts as refused", self._name)
                response = broken
            # Withdrawn in this very moment: then the scope is cancelled, and nothing is sent.
            if self._open.pop(frame.id, None) is None:
                return
            if permissions.allows(response):
                begun = ToolCallUpdate(text(frame.request, "tool_use_id"), status="in_progress")
                self._events.update(self._placed(begun))
            for change in as_objects(response.get("updatedPermissions")):
                self._remember(change)
            self._send(control_answer(frame.id, response))

    async def _permitted(self, request: JsonObject) -> JsonObject:
        asked = permissions.asked(request, self._cwd)
        return permissions.answer(asked, await self._events.ask(asked.question))

    async def _inquired(self, request: JsonObject) -> JsonObject:
        """The model's own questions."""
        # Imported with the first question, as is all that knows of forms.
        from acp_manifold.translators.claude import questions

        inquiry = questions.of_model(request, permissions.call_of(request, self._cwd))
        return await self._answered(inquiry) if isinstance(inquiry, questions.Inquiry) else inquiry

    async def _elicited(self, frame: ControlRequest) -> JsonObject:
        """The questions of an MCP server."""
        from acp_manifold.adapters.claude import elicitations
        from acp_manifold.translators.claude.questions import tools_of

        call_id = self._only_call(tools_of(text(frame.request, "mcp_server_name")))
        return await elicitations.put(frame.request, frame.id, call_id, self._events, self._name)

    async def _refused(self, frame: ControlRequest) -> JsonObject:
        """A model has refused, and another may be asked."""
        from acp_manifold.translators.claude import questions
        from acp_manifold.translators.form_schemas import Unshowable

        try:
            inquiry = questions.of_refusal(obj(frame.request, "payload"), frame.id)
        except Unshowable as exc:
            logger.warning("%s: a dialog was dismissed: %s", self._name, exc)
            return _DISMISSED
        return await self._answered(inquiry)

    async def _answered(self, inquiry: Inquiry) -> JsonObject:
        return inquiry.respond(await self._events.ask_form(inquiry.form))
