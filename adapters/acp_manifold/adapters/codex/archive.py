"""Copies of threads, and Codex' archive, through the app-server (codex-cli 0.163.0)."""

from __future__ import annotations

from pathlib import Path

from acp_manifold.bridge.errors import RemoteError, SessionNotFound
from acp_manifold.translators.narrow import JsonObject, obj, text

from .faults import archived as archived_fault
from .faults import fault_of, held, is_unknown
from .ids import is_thread_id
from .locks import holder_of
from .server import AppServer
from .store import find_thread

_NOT_ARCHIVED = "no archived rollout found"


async def refuse_if_held(server: AppServer, home: Path, thread_id: str) -> None:
    """Tell what `thread/resume` would refuse, as far as it can be seen beforehand.

    Raises:
        SessionNotFound: No such thread.
        InvalidRequest: Another process has it, or it is archived; `data.reason` says which.
    """
    if not is_thread_id(thread_id):
        raise SessionNotFound(thread_id)
    thread_id = thread_id.lower()
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
        result = await server.client.request("thread/fork", params, limit=server.limits.slow)
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
