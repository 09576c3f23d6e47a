"""A recording on request: `_acp-manifold/record {path, sessionId?}` begins one, `{}` without a path ends it."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

from anyio import to_thread

from acp_manifold.bridge.errors import InvalidRequest
from acp_manifold.bridge.recording.feed import Feed, begin
from acp_manifold.bridge.taps import taps
from acp_manifold.translators.acp import requests
from acp_manifold.translators.narrow import JsonObject, as_str

if TYPE_CHECKING:
    from acp_manifold.bridge.link import Link, Method
    from acp_manifold.bridge.peer import Call


async def _record(link: Link, params: JsonObject, call: Call) -> JsonObject:
    """Begin to record one session, or all, or end what was begun so."""
    path = as_str(params.get("path"))
    listener = taps.listener
    if path is None:
        if not isinstance(listener, Feed) or not listener.on_request:
            raise InvalidRequest("Nothing is recorded on request: give the `path` that is to be recorded into")
        taps.listen(None)
        atexit.unregister(listener.close)
        await to_thread.run_sync(listener.close)
        return {"recording": None}
    if listener is not None:
        raise InvalidRequest("All is being recorded already: end that first")
    if not os.path.isabs(path):
        raise requests.BadParams("path", "must be absolute")
    if await to_thread.run_sync(_is_taken, path):
        raise requests.BadParams("path", "is there already; name a new file, or a folder")
    only = None
    if "sessionId" in params:
        key = link.hub.session(requests.session_id(params), link).key
        only = key.id if key is not None else None
    feed = begin(path, list(link.hub.backends.values()), only)
    feed.on_request = True
    # Should nobody end it, what was recorded is written all the same.
    atexit.register(feed.close)
    taps.listen(feed)
    return {"recording": path}


def _is_taken(path: str) -> bool:
    return os.path.exists(path) and not os.path.isdir(path)


TABLE: dict[str, Method] = {"_acp-manifold/record": _record}
