"""Asking for a thread, and once more in another way where a refusal says that this helps."""

from __future__ import annotations

from collections.abc import Callable

from anyio import to_thread

from acp_manifold.bridge.errors import RemoteError
from acp_manifold.translators.narrow import JsonObject

from .client import Client
from .faults import at_lost_endpoint, met_a_login


async def open_thread(
    client: Client,
    method: str,
    params: JsonObject,
    *,
    taken: Callable[[JsonObject], None] | None = None,
    limit: float,
) -> JsonObject:
    """Ask the app-server for a thread and give its answer.

    Args:
        client: The app-server's.
        method: `thread/resume` or `thread/fork`.
        params: Its parameters.
        taken: As for `Client.request`.
        limit: Seconds for each answer.

    Raises:
        RemoteError: It is refused for good.
        BackendGone: The app-server ended.
    """
    try:
        return await client.request(method, params, taken=taken, limit=limit)
    except RemoteError as exc:
        if at_lost_endpoint(exc):
            from .endpoint import at_its_provider

            params = await to_thread.run_sync(at_its_provider, params)
        elif not met_a_login(exc):
            raise
    return await client.request(method, params, taken=taken, limit=limit)
