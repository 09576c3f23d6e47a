"""Questions of the program, put to the person: the hook `PermissionRequest`, and `Elicitation` for MCP servers.

The program paints its own dialog at the same time; whichever is answered first counts (Claude Code
2.1.332). When the dialog goes first the hook's connection is closed, which cancels the call, and the
question is withdrawn.
"""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final

from acp_manifold.adapters.claude.carried import Carried
from acp_manifold.adapters.claude_tui.readiness import Standing
from acp_manifold.bridge.backend import SessionEvents
from acp_manifold.translators.claude import permissions
from acp_manifold.translators.claude.terminal import TerminalConversation
from acp_manifold.translators.narrow import JsonObject, as_objects, text
from acp_manifold.translators.updates import ToolCallUpdate, Update

logger = logging.getLogger(__name__)

RECORD_LIMIT: Final = 0.4
"""Seconds for the record of a tool call that is asked about; they are written every tenth of a second (2.1.332)."""

CALL_LIMIT: Final = 2.0
"""The same for the call in which an MCP server asks: its hook names none, and a form without one stands alone."""

_PAGE_DONE: Final = re.compile(r'MCP server "(.+)" confirmed elicitation (.+) complete', re.DOTALL)
"""The message of a notification of the kind `elicitation_complete` (2.1.332)."""


class Asking:
    """The open questions of one program."""

    def __init__(
        self,
        talk: TerminalConversation,
        standing: Standing,
        events: SessionEvents,
        cwd: str,
        carried: Carried,
        tell: Callable[[list[Update]], None],
        name: str,
    ) -> None:
        self._talk = talk
        self._standing = standing
        self._events = events
        self._cwd = cwd
        self._carried = carried
        self._tell = tell
        self._name = name
        self.stopping = 0
        """How many questions are open whose refusal stops the turn."""

    async def asked(self, call: JsonObject, interrupted: Callable[[], bool]) -> JsonObject:
        """Answer a call of the hook.

        Args:
            call: What the hook is called with.
            interrupted: Whether the turn is being stopped: then a refusal stops it, but for one of a sub-agent's call.
        """
        request = self._talk.asked_about(call)
        call_id = text(request, "tool_use_id")
        # What was said before the call is told before the question.
        await self._standing.until(lambda: self._talk.has_call(call_id) or None, RECORD_LIMIT)
        self._tell(self._talk.begin_asked(request))
        stops = not text(call, "agent_id")
        self.stopping += stops
        try:
            with self._opened():
                decision = await self._decided(request)
        finally:
            self.stopping -= stops
        if permissions.allows(decision):
            self._tell([self._talk.placed(ToolCallUpdate(call_id, status="in_progress"))])
        elif stops and interrupted():
            decision = {**decision, "interrupt": True}
        for change in as_objects(decision.get("updatedPermissions")):
            self._carried.remember(change)
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}

    async def elicited(self, call: JsonObject, stopped: Callable[[], Awaitable[None]]) -> JsonObject:
        """Answer a call of the hook for a question of an MCP server, which names no tool call.

        Args:
            call: What the hook is called with.
            stopped: Returns at once, unless the turn is being stopped: then when it is over. A refusal stops no turn:
                the model would go on with it.
        """
        from acp_manifold.adapters.claude import elicitations
        from acp_manifold.translators.claude.questions import tools_of

        tools = tools_of(text(call, "mcp_server_name"))
        # What was said before the call is told before the question.
        call_id = await self._standing.until(lambda: self._talk.only_call(tools), CALL_LIMIT)
        with self._opened():
            answer = await elicitations.put(call, str(uuid.uuid4()), call_id, self._events, self._name)
            await stopped()
        return {"hookSpecificOutput": {"hookEventName": "Elicitation", **answer}}

    def notified(self, call: JsonObject) -> None:
        """A call of the hook `Notification`: an MCP server may have what it had a page opened for."""
        done = _PAGE_DONE.fullmatch(text(call, "message"))
        if done is not None:
            from acp_manifold.translators.claude.questions import page_id

            self._events.form_done(page_id(done[1], done[2]))

    @contextmanager
    def _opened(self) -> Generator[None]:
        self._standing.questions += 1
        try:
            yield
        finally:
            self._standing.questions -= 1
            self._standing.stir()

    async def _decided(self, request: JsonObject) -> JsonObject:
        if text(request, "tool_name") == permissions.QUESTION_TOOL:
            return await self._inquired(request)
        asked = permissions.asked(request, self._cwd)
        return permissions.answer(asked, await self._events.ask(asked.question))

    async def _inquired(self, request: JsonObject) -> JsonObject:
        """The model's own questions."""
        from acp_manifold.translators.claude import questions

        inquiry = questions.of_model(request, permissions.call_of(request, self._cwd))
        if not isinstance(inquiry, questions.Inquiry):
            return inquiry
        return inquiry.respond(await self._events.ask_form(inquiry.form))
