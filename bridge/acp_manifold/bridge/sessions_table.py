"""The list of all sessions, page after page, and a table of it for a terminal or a pipe."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TypeAlias

from acp_manifold.translators.acp.requests import ListFilter
from acp_manifold.translators.plain import one_line

from .backend import SessionRow
from .hub import Hub

Listed: TypeAlias = tuple[str, str, SessionRow, str | None]
"""Our id, the backend, the row, and the title to show; see `Hub.describe`."""

_HEADINGS = ("UPDATED", "BACKEND", "ID", "DIRECTORY", "TITLE")
_DIRECTORY = 40
"""The widest column of directories on a terminal."""


async def every_session(hub: Hub, cwd: str | None) -> list[Listed]:
    """Every session there is, or every one of a directory, newest first; raises what `Hub.page` raises."""
    rows: list[Listed] = []
    wanted = ListFilter(cwd)
    page = await hub.page(wanted, None)
    rows += hub.describe(page)
    while page.next is not None:
        page = await hub.page(wanted, page.next)
        rows += hub.describe(page)
    return rows


def lines(rows: Sequence[Listed], width: int | None) -> Iterator[str]:
    """The table with its headings; no line for no rows.

    Args:
        rows: In the order to show.
        width: Columns there are, to which directories and titles are cut; None: nothing is cut.
    """
    if not rows:
        return
    cells = [_HEADINGS, *(_cells(row, width) for row in rows)]
    widths = [max(columns(row[place]) for row in cells) for place in range(len(_HEADINGS) - 1)]
    for row in cells:
        head = "  ".join(cell + " " * (wide - columns(cell)) for cell, wide in zip(row, widths, strict=False))
        line = f"{head}  {row[-1]}".rstrip()
        yield line if width is None else cut(line, width)


def _cells(listed: Listed, width: int | None) -> tuple[str, ...]:
    session_id, backend, row, title = listed
    directory = one_line(row.cwd)
    if width is not None and len(directory) > _DIRECTORY:
        directory = "…" + directory[1 - _DIRECTORY :]
    return _local(row.updated_at), backend, one_line(session_id), directory, title or ""


def _local(moment: str) -> str:
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return one_line(moment)


def columns(text: str) -> int:
    """How wide a terminal shows it."""
    return sum(_columns(char) for char in text)


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def cut(text: str, width: int) -> str:
    """The beginning that fits, with a mark if anything is missing."""
    if columns(text) <= width:
        return text
    room, end = width - 1, 0
    while end < len(text) and (room := room - _columns(text[end])) >= 0:
        end += 1
    return text[:end] + "…"
