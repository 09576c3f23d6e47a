"""Commands that an interrupted turn leaves running: Codex keeps them as background terminals of their thread."""

from __future__ import annotations

import logging
from collections.abc import Collection

import anyio

from acp_manifold.bridge.errors import BackendGone, RemoteError
from acp_manifold.translators.narrow import JsonObject, as_objects, text

from .client import Client

logger = logging.getLogger(__name__)

_LIMIT = 2.0
"""Seconds to end them; some milliseconds are usual."""


async def terminate(client: Client, thread_id: str, item_ids: Collection[str]) -> None:
    """End the commands of these items; those that earlier turns left running on purpose run on.

    Never raises: what could not be ended is noted in the log.
    """
    if not item_ids:
        return
    with anyio.move_on_after(_LIMIT) as patience:
        try:
            listed = await client.request("thread/backgroundTerminals/list", {"threadId": thread_id})
            for terminal in as_objects(listed.get("data")):
                if text(terminal, "itemId") in item_ids:
                    params: JsonObject = {"threadId": thread_id, "processId": text(terminal, "processId")}
                    await client.request("thread/backgroundTerminals/terminate", params)
        except BackendGone:
            return
        except RemoteError as exc:
            logger.warning("codex session %s: a command may still run: %s", thread_id, exc.message)
    if patience.cancelled_caught:
        logger.warning("codex session %s: a command may still run: Codex gave no answer", thread_id)
