"""Copies of threads, Codex' archive, and the end of threads for good, through the app-server (codex-cli 0.163.0)."""

from __future__ import annotations

import logging
from pathlib import Path

from acp_manifold.bridge.errors import BridgeError, RemoteError, SessionNotFound
from acp_manifold.translators.narrow import JsonObject, obj, text

from .faults import archived as archived_fault
from .faults import fault_of, held, is_needed_by_copies, is_unknown
from .ids import is_thread_id
from .locks import holder_of
from .opening import open_thread
from .server import AppServer
from .store import find_thread

logger = logging.getLogger(__name__)

_NOT_ARCHIVED = "no archived rollout found"


async def refuse_if_held(server: AppServer, home: Path, thread_id: str) -> None:
    """Tell what `thread/resume` would refuse, as far as it can be seen beforehand.

    Raises:
        SessionNotFound: No such thread.
        InvalidRequest: Another process has it, or it is archived; `data.reason` says which.
    """
    if not is_thread_id(thread_id):
        raise SessionNotFound(thread_id)
    if holder_of(home, thread_id) not in (None, server.child.pid):
        raise held(thread_id)
    row = await find_thread(server, thread_id)
    if row is not None and row.archived:
        raise archived_fault(thread_id)


async def fork_thread(server: AppServer, thread_id: str, params: JsonObject) -> str:
    """Copy a thread, whoever has it, and give the copy's id.

    The copy is loaded, with the name of its source. It has the turns that are complete, and can be read and
    resumed over restarts, but Codex lists it only once it has a turn of its own.

    Args:
        server: Where.
        thread_id: The source.
        params: What the copy is opened with.

    Raises:
        SessionNotFound: No such thread.
        InvalidRequest: It is archived; `data.reason` says so.
    """
    params = {"threadId": thread_id, "excludeTurns": True, **params}
    try:
        result = await open_thread(server.client, "thread/fork", params, limit=server.limits.slow)
    except RemoteError as exc:
        raise fault_of(exc, thread_id, "copy the session") from exc
    return text(obj(result, "thread"), "id")


async def archive_thread(server: AppServer, thread_id: str, archived: bool) -> None:
    """Put a thread into the archive, or take it out; no error if that is so already.

    Raises:
        SessionNotFound: No such thread.
        InvalidRequest: Another process has it; `data.reason` says so.
    """
    try:
        await server.client.request("thread/archive" if archived else "thread/unarchive", {"threadId": thread_id})
    except RemoteError as exc:
        if not is_unknown(exc) and not exc.message.startswith(_NOT_ARCHIVED):
            raise fault_of(exc, thread_id, "archive the session" if archived else "unarchive the session") from exc
        # Codex says of one that is there already that there is none.
        row = await find_thread(server, thread_id)
        if row is None or row.archived != archived:
            raise SessionNotFound(thread_id) from exc


async def delete_thread(server: AppServer, thread_id: str) -> bool:
    """Remove a thread for good, also one that is open here or archived; one that is not there is no error.

    Codex unloads it before it looks whether it may, and never removes one whose history a copy is built on. That one
    goes into the archive, where its copies find it all the same, and Codex' own list does not show it.

    Returns:
        Whether it is gone. False: copies of it are built on it.

    Raises:
        InvalidRequest: Another process has it; `data.reason` says so.
        BackendFault: Codex refused for another reason.
    """
    if not is_thread_id(thread_id):
        return True
    try:
        await server.client.request("thread/delete", {"threadId": thread_id})
    except RemoteError as exc:
        if is_unknown(exc):
            return True
        if not is_needed_by_copies(exc):
            raise fault_of(exc, thread_id, "delete the session") from exc
    else:
        return True
    try:
        await archive_thread(server, thread_id, True)
    except BridgeError as exc:
        logger.warning("codex session %s: deleted here, and still in Codex' own list: %s", thread_id, exc.message)
    return False
