"""Titles in one transcript and beside it: what was written behind a place, and what a CLI was told last."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.adapters.claude.scan import SEARCH_LIMIT, title_records
from acp_manifold.translators.claude.records import Title
from acp_manifold.translators.narrow import as_object, as_str, text


def titles_after(path: Path, offset: int) -> list[Title]:
    """Every title record behind the first `offset` bytes, in order, as far as `SEARCH_LIMIT` from the end goes.

    Raises:
        OSError: It can't be read.
    """
    with open_to_read(path) as file:
        size = file.seek(0, 2)
        file.seek(max(offset, size - SEARCH_LIMIT))
        lines = file.read().split(b"\n")
    return [title for line in lines for title in title_records(line)]


def custom_titles(path: Path, offset: int) -> list[str]:
    """The custom ones among `titles_after`; raises as that does."""
    return [title.text for title in titles_after(path, offset) if title.origin == "user"]


def beside(path: Path) -> tuple[str | None, float]:
    """The title in `custom-title.json` beside a transcript, and when it was set, in seconds since 1970.

    Claude Code 2.1.332 writes it when it is told a title, and not when it appends an old one again.
    None and 0 if there is no such file, or none that can be read.
    """
    try:
        with open_to_read(path.with_suffix("") / "custom-title.json") as file:
            told = as_object(json.loads(file.read()))
        return as_str(told.get("customTitle")), datetime.fromisoformat(text(told, "at")).timestamp()
    except (OSError, ValueError, RecursionError):
        return None, 0.0
