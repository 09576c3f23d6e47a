"""A message into the running turn: `_session/steering`, in the shape that other agents have it."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from acp_manifold.bridge.errors import BridgeError, InvalidParams
from acp_manifold.translators.acp import prompts, requests
from acp_manifold.translators.narrow import JsonObject, obj
from acp_manifold.translators.updates import MessageChunk, Text

if TYPE_CHECKING:
    from acp_manifold.bridge.link import Link, Method
    from acp_manifold.bridge.peer import Call
    from acp_manifold.bridge.session import Session

logger = logging.getLogger(__name__)

_PROMPT_REQUIRED = "promptRequired"


async def _steer(link: Link, params: JsonObject, call: Call) -> JsonObject:
    """Add to the turn that runs. Without one a new turn begins, unless the client wants to begin it itself."""
    session = link.hub.session(requests.session_id(params), link)
    prompt = prompts.prompt(params)
    when_idle = obj(obj(params, "_meta"), "steering").get("idleBehavior")
    if when_idle not in (None, _PROMPT_REQUIRED):
        raise requests.BadParams("_meta.steering.idleBehavior", f"must be {_PROMPT_REQUIRED}, or not be there")
    title = prompts.rename_command(prompt)
    if title is not None and not session.turns.idle:
        await link.rename_by_prompt(session, title)
        return {"outcome": "injected"}
    try:
        if title is None and await session.steer(prompt):
            return {"outcome": "injected"}
    except InvalidParams:
        raise
    except BridgeError as exc:
        logger.warning("session %s: a message could not be added to the turn: %s", session.id, exc.message)
        return {"outcome": "failed", "reason": exc.message}
    if when_idle == _PROMPT_REQUIRED:
        return {"outcome": _PROMPT_REQUIRED, "reason": "noRunningTurn"}
    if title is not None:
        await link.rename_by_prompt(session, title)
    else:
        session.prompt(prompt, link, partial(_failed, link, session))
    return {"outcome": "startedNewTurn"}


def _failed(link: Link, session: Session, error: BridgeError) -> None:
    """No request waits for a turn that was begun here: its failure is told as what the agent would have said."""
    link.deliver(session.id, MessageChunk("agent", Text(f"The turn failed: {error.message}")))


TABLE: dict[str, Method] = {"_session/steering": _steer}
