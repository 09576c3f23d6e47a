"""Commands that outlive their turn: Codex keeps them as background terminals of their thread.

Each is known by the item that began it. Codex' own numbers for them are good for one thread alone
(codex-cli 0.163.0): those of another give "not terminated", never somebody else's command.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

import anyio

from acp_manifold.bridge.errors import BackendGone, RemoteError
from acp_manifold.translators.narrow import JsonObject, as_objects, flag, text
from acp_manifold.translators.updates import BackgroundTask

from .client import Client
from .faults import fault_of

logger = logging.getLogger(__name__)

_LIMIT = 2.0
"""Seconds to end them; some milliseconds are usual."""


async def listed(client: Client, thread_id: str) -> tuple[BackgroundTask, ...]:
    """Every background terminal of a thread; none of a thread that is not loaded.

    Raises:
        BackendGone: The server is gone.
    """
    try:
        found = await _terminals(client, thread_id)
    except RemoteError as exc:
        logger.info("codex session %s: its background terminals can't be told: %s", thread_id, exc.message)
        return ()
    return tuple(
        BackgroundTask(text(terminal, "itemId"), text(terminal, "command"), text(terminal, "itemId"), command=True)
        for terminal in found
    )


async def stop(client: Client, thread_id: str, item_id: str) -> bool:
    """End one background terminal; False if the thread has none of that item.

    Raises:
        BackendFault: Codex could not do it.
    """
    try:
        for terminal in await _terminals(client, thread_id):
            if text(terminal, "itemId") == item_id:
                return await _terminate(client, thread_id, terminal)
    except RemoteError as exc:
        raise fault_of(exc, thread_id, "end the command") from exc
    return False


async def _terminals(client: Client, thread_id: str) -> list[JsonObject]:
    answer = await client.request("thread/backgroundTerminals/list", {"threadId": thread_id})
    return as_objects(answer.get("data"))


async def _terminate(client: Client, thread_id: str, terminal: JsonObject) -> bool:
    params: JsonObject = {"threadId": thread_id, "processId": text(terminal, "processId")}
    return flag(await client.request("thread/backgroundTerminals/terminate", params), "terminated")


async def terminate(client: Client, thread_id: str, item_ids: Collection[str]) -> None:
    """End the commands of these items; those that earlier turns left running on purpose run on.

    Never raises: what could not be ended is noted in the log.
    """
    if not item_ids:
        return
    with anyio.move_on_after(_LIMIT) as patience:
        try:
            for terminal in await _terminals(client, thread_id):
                if text(terminal, "itemId") in item_ids:
                    await _terminate(client, thread_id, terminal)
        except BackendGone:
            return
        except RemoteError as exc:
            logger.warning("codex session %s: a command may still run: %s", thread_id, exc.message)
    if patience.cancelled_caught:
        logger.warning("codex session %s: a command may still run: Codex gave no answer", thread_id)
