"""The vendors' session index, for clients that ask for it: rows by id, archive, followed lists, list options."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from anyio import to_thread

from acp_manifold.bridge.cursors import decode_cursor, encode_cursor
from acp_manifold.bridge.errors import MethodNotFound
from acp_manifold.bridge.index_rows import with_details
from acp_manifold.bridge.listing import Page, Place
from acp_manifold.bridge.worktrees import same_place_in_worktrees
from acp_manifold.translators.acp import index, requests, v1
from acp_manifold.translators.narrow import JsonObject

if TYPE_CHECKING:
    from acp_manifold.bridge.backend import SessionRow
    from acp_manifold.bridge.connection import Connection, Method
    from acp_manifold.bridge.peer import Call


async def listed(link: Connection, params: JsonObject) -> JsonObject:
    """`session/list` of a client that has the index: its options, and rows with what they add."""
    wanted, cursor = requests.list_filter(params)
    options = index.list_options(params)
    wanted = wanted if "archived" in params else wanted._replace(archived=options.archived)
    places: tuple[str | None, ...] = (wanted.cwd,)
    scope = wanted
    if wanted.cwd is not None and options.worktrees:
        places = await to_thread.run_sync(same_place_in_worktrees, wanted.cwd)
        scope = wanted._replace(
            cwd=f"{wanted.cwd}\0worktrees"
        )  # What no path is: a cursor of one list is none of the other.
    after = decode_cursor(cursor, scope) if cursor is not None else None
    page = _cut([await link.hub.page(wanted._replace(cwd=place), after) for place in places], options.limit)
    result: JsonObject = {"sessions": [row for _, row in with_details(link.hub, page)]}
    if page.next is not None:
        result["nextCursor"] = encode_cursor(page.next, scope)
    return result


def _cut(pages: list[Page], limit: int) -> Page:
    """One page of at most `limit` rows, of several with the same beginning."""
    rows = sorted((item for page in pages for item in page.rows), key=_place, reverse=True)
    if len(rows) <= limit and all(page.next is None for page in pages):
        return Page(rows, None)
    last = rows[:limit][-1]
    return Page(rows[:limit], Place(*_place(last)))


def _place(item: tuple[str, SessionRow]) -> tuple[str, str]:
    return item[1].updated_at, item[1].id


async def _batch_get(link: Connection, params: JsonObject, call: Call) -> JsonObject:
    """The rows of these sessions, in this order; ids that nobody has are left out."""
    rows: list[JsonObject] = []
    for session_id in index.wanted_ids(params):
        found = await link.hub.located(session_id)
        if found is not None:
            rows += [row for _, row in with_details(link.hub, Page([found], None))]
    return {"sessions": rows}


async def _subscribe(link: Connection, params: JsonObject, call: Call) -> JsonObject:
    return {"subscriptionId": link.live_lists.subscribe(index.followed_directory(params))}


async def _unsubscribe(link: Connection, params: JsonObject, call: Call) -> JsonObject:
    link.live_lists.unsubscribe(requests.required_text(params, "subscriptionId"))
    return {}


async def _archive(archived: bool, link: Connection, params: JsonObject, call: Call) -> JsonObject:
    await link.archive(requests.session_id(params), archived)
    return {}


_EXTENSIONS: dict[str, tuple[str, Method]] = {
    "_session/batch_get": ("sessionBatchGet", _batch_get),
    "_session/list/subscribe": ("sessionListSubscribe", _subscribe),
    "_session/list/unsubscribe": ("sessionListSubscribe", _unsubscribe),
    "_session/archive": ("sessionArchive", partial(_archive, True)),
    "_session/unarchive": ("sessionArchive", partial(_archive, False)),
}
"""Each method with the name under which a client asks for it."""


async def _opted(method: str, link: Connection, params: JsonObject, call: Call) -> JsonObject:
    """Serve those that asked, and have no such method for the others."""
    name, serve = _EXTENSIONS[method]
    if name not in v1.air_extensions(link.can):
        raise MethodNotFound(f"Method not found: {method}; it has to be asked for", {"method": method})
    answer = serve(link, params, call)
    return answer if isinstance(answer, dict) else await answer


TABLE: dict[str, Method] = {method: partial(_opted, method) for method in _EXTENSIONS}
