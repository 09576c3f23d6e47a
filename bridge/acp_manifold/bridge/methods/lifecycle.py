"""What becomes of a session beyond opening and closing it: a copy, the archive, and whether it is open."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from acp_manifold.translators.acp import requests
from acp_manifold.translators.narrow import JsonObject

if TYPE_CHECKING:
    from acp_manifold.bridge.link import Link, Method
    from acp_manifold.bridge.peer import Call


async def _fork(link: Link, params: JsonObject, call: Call) -> JsonObject:
    session = await link.hub.fork(requests.session_id(params), link.session_setup(params), link)
    return {"sessionId": session.id, **link.opened(session, call)}


async def _archive(archived: bool, link: Link, params: JsonObject, call: Call) -> JsonObject:
    session_id = requests.session_id(params)
    try:
        await link.hub.archive(session_id, archived)
    finally:
        link.forget_ended(session_id)
    return {}


async def _status(link: Link, params: JsonObject, call: Call) -> JsonObject:
    return {"status": "open" if await link.hub.is_open(requests.session_id(params)) else "saved"}


TABLE: dict[str, Method] = {
    "session/fork": _fork,
    "session/archive": partial(_archive, True),
    "session/unarchive": partial(_archive, False),
    "session/status": _status,
}
