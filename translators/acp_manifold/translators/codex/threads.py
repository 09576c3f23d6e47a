"""Codex' `Thread` objects as rows of a session list.

`recencyAt` is the time that counts: it moves with a prompt and with nothing else, while
`updatedAt` also moves when a thread is merely resumed (codex-cli 0.163.0; case L02). Both are
whole seconds on the wire.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from acp_manifold.translators.attached import in_a_line
from acp_manifold.translators.narrow import JsonObject, as_int, as_str, flag, text
from acp_manifold.translators.values import NamedTuple

from .slash import as_typed

TITLE_SOURCE = "thread_title"
"""The `threadSource` of the ephemeral threads that make up titles, ours and those of Codex' own TUI."""

_TAGS = "environment_context|user_instructions|turn_aborted|subagent_notification|permissions instructions|skill"
_INJECTED = re.compile(
    rf"\s*(?:# AGENTS\.md instructions\b.*?(?:</INSTRUCTIONS>|\Z)|<({_TAGS})>.*?(?:</\1>|\Z))",
    re.DOTALL,
)
"""A block that Codex puts in front of what a person typed; the list above is what codex-cli 0.163.0 injects.
A preview is cut off at times, so that a block may end with the text."""

_PICTURES = re.compile(r"(?:\[Image\]\s*)+")
"""The preview of a prompt with nothing but pictures in it (codex-cli 0.163.0)."""


class ThreadRow(NamedTuple):
    """What a list shows of a thread."""

    id: str
    cwd: str
    seconds: int
    """Time of the last prompt, in seconds since 1970."""
    name: str | None
    """The title in Codex' store; it does not tell who gave it."""
    preview: str | None
    """The first thing a person typed; None if that was nothing but injected text."""
    path: str | None
    """The rollout file, which may not exist yet."""
    archived: bool
    model: str | None = None
    """The model it runs with, or ran with last."""

    @property
    def updated_at(self) -> str:
        """`seconds` as `YYYY-MM-DDTHH:MM:SS.000Z`."""
        return iso(self.seconds)


def row_of(thread: JsonObject) -> ThreadRow | None:
    """The row of a thread a person may go back to; None for sub-agents, ephemeral and title threads."""
    thread_id, cwd = as_str(thread.get("id")), as_str(thread.get("cwd"))
    if not thread_id or not cwd or as_str(thread.get("parentThreadId")) or flag(thread, "ephemeral"):
        return None
    if text(thread, "threadSource") == TITLE_SOURCE:
        return None
    seconds = as_int(thread.get("recencyAt")) or as_int(thread.get("updatedAt")) or as_int(thread.get("createdAt")) or 0
    path = as_str(thread.get("path"))
    return ThreadRow(
        id=thread_id,
        cwd=cwd,
        seconds=seconds,
        name=as_str(thread.get("name")) or None,
        preview=_typed_first(text(thread, "preview").strip()),
        path=path,
        archived=path is not None and "/archived_sessions/" in path,
        model=as_str(thread.get("model")) or None,
    )


def iso(seconds: int) -> str:
    """Seconds since 1970 as `YYYY-MM-DDTHH:MM:SS.000Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def _typed_first(preview: str) -> str | None:
    """What a preview tells of the first prompt in a line; None if nothing was typed in it."""
    said = typed(preview)
    line = in_a_line(said) if said is not None and _PICTURES.fullmatch(said) is None else ""
    return line if line.strip() else None


def typed(preview: str) -> str | None:
    """What a person typed of a message: injected blocks in front of it left out, a command for the words it stands for.

    None if nothing is left (case T05).
    """
    rest = preview
    while (block := _INJECTED.match(rest)) is not None:
        rest = rest[block.end() :]
    return as_typed(rest if rest is preview else rest.lstrip()) if rest.strip() else None
