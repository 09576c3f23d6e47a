"""Logins of all backends together: the ways to log in that a client is shown, and what there is.

A login in a terminal is our own command with further arguments: `acp-manifold login METHOD` becomes the CLI's login.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from acp_manifold.translators.acp.auth import auth_method
from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.narrow import JsonObject

from .backend import AuthMethod, Backend

if TYPE_CHECKING:
    from acp_manifold.translators.auth import AuthStatus

    from .hub import Hub

COMMAND = "login"
"""Our own command that becomes a CLI's login."""


def auth_methods(backends: Iterable[Backend], can: ClientCapabilities) -> list[JsonObject]:
    """`authMethods` for a client.

    One that can run a login in a terminal is offered every one there is; else the first of each backend tells what to
    type, and `authenticate` with it looks whether that was done.
    """
    terminal = can.terminal_login or can.terminal_login_command
    return [
        _told(method, can)
        for backend in backends
        for place, method in enumerate(backend.auth_methods)
        if terminal or not method.command or place == 0
    ]


def _told(method: AuthMethod, can: ClientCapabilities) -> JsonObject:
    return auth_method(
        method.id,
        method.name,
        method.description,
        can,
        login=(COMMAND, method.id) if method.command else (),
        agent=(sys.executable, "-m", f"{__package__}") if can.terminal_login_command else (),
        key_of=method.key_of,
    )


def find_method(backends: Iterable[Backend], wanted: str) -> tuple[Backend, AuthMethod] | None:
    """The backend and its way to log in of this id; the name of a backend stands for its first one."""
    for backend in backends:
        for method in backend.auth_methods:
            if wanted in (method.id, backend.name):
                return backend, method
    return None


async def statuses(hub: Hub) -> dict[str, AuthStatus]:
    """By backend, its login; an endpoint that a client has set counts as one."""
    import anyio

    from acp_manifold.translators.auth import Account, AuthStatus

    found: dict[str, AuthStatus] = {}

    async def look(backend: Backend) -> None:
        status = await backend.status()
        endpoint = hub.endpoints.get(backend.name)
        if endpoint is not None:
            set_here = Account(f"{backend.label} by the client's endpoint {endpoint.base_url}")
            others = tuple(account._replace(active=False) for account in status.accounts)
            status = AuthStatus("authenticated", (set_here, *others), status.endpoint)
        found[backend.name] = status

    async with anyio.create_task_group() as tasks:
        for backend in hub.backends.values():
            tasks.start_soon(look, backend)
    return {name: found[name] for name in hub.backends}
