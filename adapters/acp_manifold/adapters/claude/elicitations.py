"""Questions and pages of MCP servers, put to the person and answered as MCP has it, however Claude Code asks.

Imported with the first one, as is all that knows of forms.
"""

from __future__ import annotations

import logging

from acp_manifold.bridge.backend import SessionEvents
from acp_manifold.bridge.forms import not_asked
from acp_manifold.translators.claude import questions
from acp_manifold.translators.form_schemas import Unshowable
from acp_manifold.translators.narrow import JsonObject, text
from acp_manifold.translators.updates import ToolCallUpdate

logger = logging.getLogger(__name__)


async def put(
    request: JsonObject, request_id: str, call_id: str | None, events: SessionEvents, name: str
) -> JsonObject:
    """Put the question of an MCP server, or open its page.

    Args:
        request: What it asks.
        request_id: Its id, which no other question of the session has.
        call_id: The tool call that the server is at, if that is certain.
        events: Whom to ask.
        name: Whom log lines speak of.

    Returns:
        The answer; a refusal, which the person is told, to what can't be shown.
    """
    call = ToolCallUpdate(call_id) if call_id is not None else None
    try:
        inquiry = questions.of_server(request, request_id, call)
    except Unshowable as exc:
        logger.warning("%s: an MCP server's question was declined: %s", name, exc)
        events.update(not_asked(text(request, "message"), str(exc)))
        return {"action": "decline"}
    return inquiry.respond(await events.ask_form(inquiry.form))
