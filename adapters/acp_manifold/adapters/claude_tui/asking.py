"""Questions of the program, put to the person: permissions by the hook `PermissionRequest`.

The program paints its own dialog at the same time; whichever is answered first counts (Claude Code
2.1.332). When the dialog goes first the hook's connection is closed, which cancels the call, and the
question is withdrawn.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
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
    ) -> None:
        self._talk = talk
        self._standing = standing
        self._events = events
        self._cwd = cwd
        self._carried = carried
        self._tell = tell

    async def asked(self, call: JsonObject, interrupted: Callable[[], bool]) -> JsonObject:
        """Answer a call of the hook.

        Args:
            call: What the hook is called with.
            interrupted: Whether the turn is being stopped: then a refusal stops it.
        """
        request = self._talk.asked_about(call)
        call_id = text(request, "tool_use_id")
        # What was said before the call is told before the question.
        await self._standing.until(lambda: self._talk.has_call(call_id) or None, RECORD_LIMIT)
        self._tell(self._talk.begin_asked(request))
        self._standing.questions += 1
        try:
            decision = await self._decided(request)
        finally:
            self._standing.questions -= 1
            self._standing.stir()
        if permissions.allows(decision):
            self._tell([ToolCallUpdate(call_id, status="in_progress")])
        elif interrupted():
            decision = {**decision, "interrupt": True}
        for change in as_objects(decision.get("updatedPermissions")):
            self._carried.remember(change)
        return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}

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
