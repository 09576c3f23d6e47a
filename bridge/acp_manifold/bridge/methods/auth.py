"""Logging in and out, and whether there is a login."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from acp_manifold.bridge.auth_news import AuthNews
from acp_manifold.bridge.errors import BackendFault, BridgeError
from acp_manifold.bridge.logins import find_method
from acp_manifold.translators.acp import auth, requests
from acp_manifold.translators.acp.requests import BadParams
from acp_manifold.translators.narrow import JsonObject

if TYPE_CHECKING:
    from acp_manifold.bridge.backend import Backend
    from acp_manifold.bridge.link import Link, Method
    from acp_manifold.bridge.peer import Call

logger = logging.getLogger(__name__)


async def _authenticate(link: Link, params: JsonObject, call: Call) -> JsonObject:
    wanted = requests.required_text(params, "methodId")
    found = find_method(link.hub.backends.values(), wanted)
    if found is None:
        known = ", ".join(method.id for b in link.hub.backends.values() for method in b.auth_methods)
        raise BadParams("methodId", f"{wanted[:100]!r} is none of this agent's methods: {known}")
    backend, method = found
    try:
        await backend.authenticate(method, auth.api_key(params))
    finally:
        link.hub.login_changed()
    return {}


async def _logout(link: Link, params: JsonObject, call: Call) -> JsonObject:
    """Of every backend, each told what it could not do; endpoints that a client has set are forgotten with it."""
    hub = link.hub
    hub.endpoints.clear()
    faults: list[str] = []

    async def log_out(backend: Backend) -> None:
        try:
            await backend.logout()
        except BridgeError as exc:
            faults.append(f"{backend.label}: {exc.message}")

    try:
        async with anyio.create_task_group() as tasks:
            for backend in hub.backends.values():
                tasks.start_soon(log_out, backend)
    finally:
        hub.login_changed()
    if faults:
        raise BackendFault("Could not log out of " + "; ".join(faults))
    return {}


async def _status(link: Link, params: JsonObject, call: Call) -> JsonObject:
    if link.auth_news is None:
        link.auth_news = AuthNews(link.hub, link.notify)
    return await link.auth_news.asked()


TABLE: dict[str, Method] = {
    "authenticate": _authenticate,
    "logout": _logout,
    "auth/login": _authenticate,
    "auth/logout": _logout,
    "auth/status": _status,
}
"""Logging in and out have other names in ACP v2."""
