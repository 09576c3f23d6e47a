"""A thread whose turn does not heed the interrupt, brought back to rest: archived, and taken out of the archive.

The next `turn/start` on it would be added to the old turn. Archiving unloads the thread whatever it
does, and ends its commands; its id and its history stay, and no other thread notices. Both together take
0.03 s (codex-cli 0.163.0).
"""

from __future__ import annotations

import logging

import anyio

from acp_manifold.bridge.errors import BackendFault, BackendGone, RemoteError
from acp_manifold.translators.narrow import JsonObject

from .client import Client, NoAnswer

logger = logging.getLogger(__name__)


async def unload(client: Client, thread_id: str, why: str = "its turn does not stop") -> None:
    """Unload a thread. Never raises: what failed is noted in the log.

    Whatever comes between, a thread that may have been archived is taken out again.
    """
    params: JsonObject = {"threadId": thread_id}
    logger.warning("codex session %s: %s; the thread is unloaded", thread_id, why)
    try:
        await client.request("thread/archive", params)
    except (BackendGone, RemoteError) as exc:
        logger.warning("codex session %s: it could not be unloaded: %s", thread_id, exc.message)
        return
    except NoAnswer as exc:
        logger.warning("codex session %s: it may not be unloaded: %s", thread_id, exc.message)
        client.post("thread/unarchive", params)
        return
    except anyio.get_cancelled_exc_class():
        client.post("thread/unarchive", params)
        raise
    try:
        await client.request("thread/unarchive", params)
    except (BackendFault, RemoteError) as exc:
        logger.warning(
            "codex session %s: it may be archived still, which `codex unarchive %s` undoes: %s",
            thread_id,
            thread_id,
            exc.message,
        )
