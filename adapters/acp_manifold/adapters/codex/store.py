"""Codex' own store of threads, through the app-server: list, find, replay, title."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

from acp_manifold.bridge.backend import ListQuery
from acp_manifold.bridge.errors import BackendFault, BridgeError, RemoteError, SessionNotFound
from acp_manifold.translators.codex.items import OF_AGENTS, is_review_again, replayed, review_in
from acp_manifold.translators.codex.threads import ThreadRow, row_of
from acp_manifold.translators.narrow import JsonObject, as_objects, as_str, obj, text
from acp_manifold.translators.updates import Unknown, Update

from .client import Asked
from .faults import archived, fault_of, is_unknown, is_unsupported
from .ids import is_thread_id
from .server import AppServer

logger = logging.getLogger(__name__)

_PAGE = 100
"""Rows and items a page; codex-cli 0.163.0 gives no more than 100 rows."""

_FIRST = 20
"""Items of the first page of a history, which is told while the second is read."""

_AFTER_ALL = "ffffffff-ffff-ffff-ffff-ffffffffffff"


_KINDS = (None, ("exec", "appServer"))
"""The kinds of threads to list, a request each: those a person talked in, which no list of kinds names all of
(a custom one has no name), and those of `codex exec` and its like, which are in no other list (codex-cli 0.163.0)."""


async def list_threads(server: AppServer, query: ListQuery) -> list[ThreadRow]:
    """Threads of the store, ordered by (time, id), descending; Codex keeps the archived ones in a list of their own."""
    archives = {"exclude": (False,), "only": (True,)}.get(query.archived, (False, True))
    found: dict[str, ThreadRow] = {}
    for of_archive in archives:
        for kinds in _KINDS:
            found |= {row.id: row for row in await _list(server, query, kinds, archived=of_archive)}
    return sorted(found.values(), key=_place, reverse=True)[: query.limit]


async def _list(server: AppServer, query: ListQuery, kinds: Sequence[str] | None, *, archived: bool) -> list[ThreadRow]:
    """One of the lists.

    Codex orders by milliseconds and tells seconds: within the second of the last row wanted all rows
    are read, and put in order here.
    """
    rows: list[ThreadRow] = []
    cursor = _cursor(query.before[0]) if query.before else None
    while True:
        page = await _page(server, query, kinds, cursor, archived=archived)
        found = [row for raw in as_objects(page.get("data")) if (row := row_of(raw)) is not None]
        rows += [row for row in found if query.before is None or _place(row) < query.before]
        following = as_str(page.get("nextCursor"))
        if following is None or following == cursor or _is_enough(rows, query.limit):
            break
        cursor = following
    return sorted(rows, key=_place, reverse=True)[: query.limit]


def _place(row: ThreadRow) -> tuple[str, str]:
    return row.updated_at, row.id


def _is_enough(rows: list[ThreadRow], limit: int) -> bool:
    return len(rows) > limit and rows[-1].seconds < rows[limit - 1].seconds


def _cursor(updated_at: str) -> str:
    """Where the rows of that second begin, as codex-cli 0.163.0 and 0.171.0 write a cursor: `TIME|ID`."""
    return f"{updated_at[:19]}.999Z|{_AFTER_ALL}"


async def _page(
    server: AppServer, query: ListQuery, kinds: Sequence[str] | None, cursor: str | None, *, archived: bool
) -> JsonObject:
    params: JsonObject = {
        "limit": max(1, min(_PAGE, query.limit + 1)),
        "sortKey": "recency_at",
        "sortDirection": "desc",
        "modelProviders": [],
        "useStateDbOnly": True,
    }
    if query.cwd is not None:
        params["cwd"] = _spellings(query.cwd)
    if kinds is not None:
        params["sourceKinds"] = list(kinds)
    if archived:
        params["archived"] = True
    if cursor is not None:
        params["cursor"] = cursor
    try:
        return await server.client.request("thread/list", params)
    except RemoteError as exc:
        raise BackendFault(f"Codex could not list its sessions: {exc.message}") from exc


def _spellings(cwd: str) -> str | list[str]:
    """The directory as it was given and with its links resolved: Codex stores the latter once a turn ran."""
    real = os.path.realpath(cwd)
    return cwd if real == cwd else [cwd, real]


async def find_thread(server: AppServer, thread_id: str) -> ThreadRow | None:
    """The row of one thread, archived ones included; None for one that can't be resumed, or is not there."""
    if not is_thread_id(thread_id):
        return None
    try:
        result = await server.client.request("thread/read", {"threadId": thread_id})
    except RemoteError as exc:
        if is_unknown(exc):
            return None
        raise fault_of(exc, thread_id, "read the session") from exc
    row = row_of(obj(result, "thread"))
    return None if row is None or _was_never_used(row) else row


def _was_never_used(row: ThreadRow) -> bool:
    """Whether the thread is in the server's memory only: it has no turn and no name, and can't be resumed."""
    if row.name is not None or row.preview is not None or row.archived:
        return False
    return row.path is None or not os.path.exists(row.path)


async def set_name(server: AppServer, thread_id: str, title: str) -> str:
    """Title a thread and give back what Codex then told.

    Raises:
        SessionNotFound: No such thread.
        InvalidRequest: It is archived or ephemeral; `data.reason` says which.
        BackendFault: Codex refused for another reason.
    """
    if not is_thread_id(thread_id):
        raise SessionNotFound(thread_id)
    try:
        told = await server.rename(thread_id, title)
    except RemoteError as exc:
        raise await _why_not(server, thread_id, exc) from exc
    if told is not None:
        return told
    row = await find_thread(server, thread_id)
    return row.name if row is not None and row.name else title


async def _why_not(server: AppServer, thread_id: str, error: RemoteError) -> BridgeError:
    """Codex says of an archived thread that there is none; a look at it tells the two apart."""
    if is_unknown(error):
        row = await find_thread(server, thread_id)
        if row is not None and row.archived:
            return archived(thread_id)
    return fault_of(error, thread_id, "store the title")


async def replay_thread(
    server: AppServer, thread_id: str, emit: Callable[[Update], None], room: Callable[[], Awaitable[None]]
) -> None:
    """Tell the whole history of a thread, page by page, each item once, as fast as `room` lets it.

    What a sub-agent did comes behind the call that began it, up to its latest words.

    Raises:
        SessionNotFound: No such thread.
    """
    if not is_thread_id(thread_id):
        raise SessionNotFound(thread_id)
    review: str | None = None
    agents: set[str] = set()
    async for items in _pages(server, thread_id):
        for item in items:
            if is_review_again(item, review):
                continue
            review = review_in(item)
            for update in replayed(item):
                if not isinstance(update, Unknown):
                    emit(update)
            if item.get("type") in OF_AGENTS:
                await _replay_agents(server, item, "", agents, emit, room)
        await room()


async def _replay_agents(
    server: AppServer,
    item: JsonObject,
    parent: str,
    told: set[str],
    emit: Callable[[Update], None],
    room: Callable[[], Awaitable[None]],
) -> None:
    """Tell what the sub-agents did that an item began; those that are `told` already not again."""
    # Imported with the first sub-agent: few histories have any.
    from acp_manifold.translators.codex.subagents import SubagentStream, reached

    for found in reached(item):
        if not found.works or found.thread in told or not is_thread_id(found.thread):
            continue
        told.add(found.thread)
        agent = SubagentStream(found, parent)
        _emit_all(agent.begun(), emit)
        try:
            async for items in _pages(server, found.thread):
                for inner in items:
                    _emit_all(agent.replayed(inner), emit)
                    if inner.get("type") in OF_AGENTS:
                        await _replay_agents(server, inner, agent.call, told, emit, room)
                await room()
        except SessionNotFound:
            # Deleted by itself; what it was asked is in the call.
            logger.info("codex: the sub-agent %s has no history any more", found.thread)
        _emit_all([*agent.outcome(), *agent.ended()], emit)


def _emit_all(updates: Iterable[Update], emit: Callable[[Update], None]) -> None:
    for update in updates:
        emit(update)


async def _pages(server: AppServer, thread_id: str) -> AsyncIterator[list[JsonObject]]:
    """The items of a thread in order, each once; Codex reads on while a page is told."""
    seen: set[str] = set()
    asked: Asked | None = _ask_for_items(server, thread_id, None, _FIRST)
    while asked is not None:
        items, cursor = await _items(server, thread_id, asked)
        asked = None if cursor is None else _ask_for_items(server, thread_id, cursor, _PAGE)
        fresh = {text(item, "id"): item for item in items if text(item, "id") not in seen}
        seen.update(fresh)
        yield list(fresh.values())


def _ask_for_items(server: AppServer, thread_id: str, cursor: str | None, limit: int) -> Asked:
    params: JsonObject = {"threadId": thread_id, "limit": limit, "sortDirection": "asc", "cursor": cursor}
    return server.client.begin("thread/items/list", params)


async def _items(server: AppServer, thread_id: str, asked: Asked) -> tuple[list[JsonObject], str | None]:
    try:
        page = await server.client.result(asked)
    except RemoteError as exc:
        if not is_unsupported(exc):
            raise fault_of(exc, thread_id, "read the history") from exc
        return await _turns(server, thread_id), None
    return [obj(entry, "item") for entry in as_objects(page.get("data"))], as_str(page.get("nextCursor"))


async def _turns(server: AppServer, thread_id: str) -> list[JsonObject]:
    """The whole history at once, for an app-server that has no `thread/items/list`."""
    try:
        result = await server.client.request("thread/read", {"threadId": thread_id, "includeTurns": True})
    except RemoteError as exc:
        raise fault_of(exc, thread_id, "read the history") from exc
    return [item for turn in as_objects(obj(result, "thread").get("turns")) for item in as_objects(turn.get("items"))]
