"""Titles set by a client, in every spelling there is (`requests.TITLE_METHODS`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from acp_manifold.translators.acp import requests
from acp_manifold.translators.narrow import JsonObject

if TYPE_CHECKING:
    from acp_manifold.bridge.link import Link, Method
    from acp_manifold.bridge.peer import Call


async def _set_title(method: str, link: Link, params: JsonObject, call: Call) -> JsonObject:
    session_id, title = requests.title_request(method, params)
    stored = await link.hub.set_title(session_id, title)
    return requests.title_answer(method, session_id, stored)


TABLE: dict[str, Method] = {method: partial(_set_title, method) for method in requests.TITLE_METHODS}
