"""A guarded title in a file of ours, so that it is known over restarts and to other agents."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Final

from acp_manifold.translators.narrow import JsonObject, as_int, as_list, as_object, as_str, is_text
from acp_manifold.translators.values import NamedTuple

logger = logging.getLogger(__name__)

_BEYOND: Final = 1 << 62
"""No size of a file, and no time, is as large."""


class Guard(NamedTuple):
    """A title of ours that is to stay."""

    session_id: str
    path: Path
    title: str
    earlier: tuple[str, ...]
    """Titles that were in the transcript before: what a process may still have in memory."""
    offset: int
    """Size of the transcript before ours was written."""
    at: float
    """When it was written, in seconds since 1970."""
    held: bool = False
    """Whether another process was seen to have the session."""


def save_guard(path: Path, guard: Guard) -> None:
    """Write a guard, 0600, in one step: whoever reads has the one before or this one.

    Raises:
        OSError: It can't be written; nothing of it is left.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept: JsonObject = {**guard._asdict(), "path": str(guard.path), "earlier": list(guard.earlier)}
    new = path.with_suffix(f".{os.getpid()}")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(kept, file)
        new.replace(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def read_guard(path: Path) -> Guard | None:
    """The guard in a file named after its session; None if there is none, or nothing that makes sense."""
    try:
        kept = as_object(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as exc:
        logger.info("%s can't be read: %s", path, exc)
        return None
    session_id, where, title = as_str(kept.get("session_id")), as_str(kept.get("path")), as_str(kept.get("title"))
    at, offset = kept.get("at"), as_int(kept.get("offset"))
    if (
        session_id is None
        or session_id != path.stem
        or title is None
        or where is None
        or "\0" in where
        or not is_text(where)
    ):
        return None
    if offset is None or not 0 <= offset < _BEYOND:
        return None
    # Compared before it is made a float: a number may have any number of digits. No comparison holds for NaN.
    if not isinstance(at, int | float) or not 0 <= at < _BEYOND:
        return None
    earlier = tuple(found for found in as_list(kept.get("earlier")) if isinstance(found, str))
    return Guard(session_id, Path(where), title, earlier, offset, float(at), kept.get("held") is True)
