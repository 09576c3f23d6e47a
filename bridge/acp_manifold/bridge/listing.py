"""One session list over all backends: newest first, by page."""

from __future__ import annotations

import os
from heapq import merge
from itertools import islice

from acp_manifold.translators.values import NamedTuple

from .backend import ListQuery, SessionRow

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
