"""One session list over all backends: newest first, by page, with a cursor of our own."""

from __future__ import annotations

import base64
import binascii
import json
import os
import zlib
from heapq import merge
from itertools import islice
from typing import NamedTuple

from acp_manifold.translators.acp.requests import ListFilter
from acp_manifold.translators.narrow import as_list, as_str

from .backend import ListQuery, SessionRow
from .errors import InvalidParams

PAGE = 100
"""Rows of a page."""


class Place(NamedTuple):
    """Where a page ends: the next one holds what sorts before it."""

    updated_at: str
    id: str
    """The backend's id of the last row."""

    @property
    def pair(self) -> tuple[str, str]:
        """As `ListQuery.before` wants it."""
        return self.updated_at, self.id


class Page(NamedTuple):
    """Rows with the name of their backend, and where the next page begins."""

    rows: list[tuple[str, SessionRow]]
    next: Place | None


def with_rows(rows: list[SessionRow], more: list[SessionRow], query: ListQuery) -> list[SessionRow]:
    """A backend's answer to a query with the rows among `more` that belong to it."""
    fit = [row for row in more if _fits(row, query)]
    if not fit:
        return rows
    return sorted([*rows, *fit], key=lambda row: (row.updated_at, row.id), reverse=True)[: query.limit]


def _fits(row: SessionRow, query: ListQuery) -> bool:
    if query.before is not None and (row.updated_at, row.id) >= query.before:
        return False
    archived = row.archived or row.id in query.in_our_archive
    if query.archived != "include" and archived != (query.archived == "only"):
        return False
    return query.cwd is None or os.path.realpath(row.cwd) == os.path.realpath(query.cwd)


def join(lists: dict[str, list[SessionRow]]) -> Page:
    """Merge the backends' lists, each newest first and at most `PAGE` + 1 long, into one page."""
    tagged = [[(name, row) for row in rows] for name, rows in lists.items()]
    ordered = merge(*tagged, key=lambda item: (item[1].updated_at, item[1].id), reverse=True)
    rows = list(islice(ordered, PAGE + 1))
    if len(rows) <= PAGE:
        return Page(rows, None)
    last = rows[PAGE - 1][1]
    return Page(rows[:PAGE], Place(last.updated_at, last.id))


def encode_cursor(place: Place, wanted: ListFilter) -> str:
    """A cursor that holds for one filter; its checksum tells ours from anything else."""
    body = json.dumps([place.updated_at, place.id, *wanted]).encode()
    return base64.urlsafe_b64encode(zlib.crc32(body).to_bytes(4, "big") + body).decode().rstrip("=")


def decode_cursor(cursor: str, wanted: ListFilter) -> Place:
    """The place a cursor of ours names.

    Raises:
        InvalidParams: It is not ours, or belongs to a list with another filter.
    """
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        if zlib.crc32(raw[4:]).to_bytes(4, "big") != raw[:4] or len(raw) < 5:
            raise ValueError("checksum")
        fields = as_list(json.loads(raw[4:]))
    except (ValueError, binascii.Error):
        raise InvalidParams("cursor: was not given out by this agent", {"field": "cursor"}) from None
    updated_at, row_id = (as_str(field) for field in fields[:2]) if len(fields) > 2 else (None, None)
    if updated_at is None or row_id is None:
        raise InvalidParams("cursor: was not given out by this agent", {"field": "cursor"})
    if fields[2:] != [*wanted]:
        raise InvalidParams("cursor: belongs to a list with another filter", {"field": "cursor"})
    return Place(updated_at, row_id)
