"""What clients of ACP v2 ask for otherwise than those of v1, or alone: options, status, the end of background work."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from acp_manifold.bridge.errors import InvalidParams, TaskNotFound
from acp_manifold.translators.acp import requests, v2, v2_options
from acp_manifold.translators.narrow import JsonObject

from .config import change

if TYPE_CHECKING:
    from acp_manifold.bridge.link import Link, Method
    from acp_manifold.bridge.peer import Call


def _set_config_option(link: Link, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
    session = link.hub.session(requests.session_id(params), link)
    option, value = v2_options.change(params)
    changed = change(link, session, option, value)

    async def answer() -> JsonObject:
        await changed
        return {"configOptions": v2_options.config_options(session.options)}

    return answer()


async def _status(link: Link, params: JsonObject, call: Call) -> JsonObject:
    session = await link.hub.opened(requests.session_id(params))
    if session is None:
        return {"status": "saved"}
    return {"status": "open", "state": v2.state(session.id, session.progress.now)}


async def _cancel_tool_call(link: Link, params: JsonObject, call: Call) -> JsonObject:
    return await _stop(link, params, "toolCallId")


async def _cancel_terminal(link: Link, params: JsonObject, call: Call) -> JsonObject:
    """A terminal has the id of its tool call."""
    return await _stop(link, params, "terminalId")


async def _stop(link: Link, params: JsonObject, field: str) -> JsonObject:
    """End the background work of a tool call; what belongs to the turn that runs ends with `session/cancel` alone."""
    session = link.hub.session(requests.session_id(params), link)
    wanted = requests.required_text(params, field)
    task = next((task for task in await session.tasks() if task.tool_call_id == wanted), None)
    try:
        if task is None:
            raise TaskNotFound(session.id, wanted)
        await session.stop_task(task.id)
    except TaskNotFound as exc:
        raise InvalidParams(
            f"{field}: {wanted[:100]!r} is nothing that can be cancelled by itself: no background work of this session",
            {"field": field, "sessionId": session.id[:200]},
        ) from exc
    return {}


TABLE: dict[str, Method] = {
    "session/set_config_option": _set_config_option,
    "session/status": _status,
    "tool_call/cancel": _cancel_tool_call,
    "terminal/cancel": _cancel_terminal,
}
