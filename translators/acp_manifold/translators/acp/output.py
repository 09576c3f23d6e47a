"""What a running command prints, for clients of ACP v1, where tool content can only be replaced.

Sending all output again with each piece would make traffic grow with the square of the output
(S02). So the shown text is sent when the output has doubled since the last time, and once more
at the end: at most about twice the final size in all. What is shown is capped; the beginning is
left out then, with a note.
"""

from __future__ import annotations

from collections import deque

from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    ENDED,
    OfSubagent,
    Subagent,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolContent,
    ToolOutput,
    Update,
)

from . import v1

SHOWN_LIMIT = 1 << 20
"""The most characters of one command's output that a client is sent at a time."""


class _Running:
    __slots__ = ("content", "kept", "pieces", "sent_at", "total")

    def __init__(self, content: tuple[ToolContent, ...] = ()) -> None:
        self.content = content
        self.pieces: deque[str] = deque()
        self.kept = 0
        self.total = 0
        self.sent_at = 0


class ToolOutputs:
    """The output of the open tool calls of one session, as one client has been told it."""

    def __init__(self) -> None:
        self._running: dict[str, _Running] = {}

    def shown(self, update: Update) -> Update | None:
        """What to send for `update`: itself, a patch with the output so far, or nothing yet."""
        if isinstance(update, ToolOutput):
            return self._output(update)
        if isinstance(update, ToolCall | ToolCallUpdate):
            return self._call(update)
        return update

    def render(self, session_id: str, update: Update) -> JsonObject | None:
        """Params of the `session/update` for `update`; None when there is nothing to tell yet."""
        if isinstance(update, OfSubagent) and not isinstance(update.update, Subagent):
            shown = self.shown(update.update)
            place = v1.subagent_id(session_id, update.id)
            return v1.update_params(place, shown) if shown is not None else None
        shown = self.shown(update)
        return v1.update_params(session_id, shown) if shown is not None else None

    def _output(self, update: ToolOutput) -> ToolCallUpdate | None:
        if not update.data:
            return None
        running = self._running.setdefault(update.id, _Running())
        running.pieces.append(update.data)
        running.kept += len(update.data)
        running.total += len(update.data)
        while running.kept - len(running.pieces[0]) >= SHOWN_LIMIT:
            running.kept -= len(running.pieces.popleft())
        if running.total < 2 * running.sent_at:
            return None
        running.sent_at = running.total
        return ToolCallUpdate(update.id, content=(*running.content, Text(_fenced(running))))

    def _call(self, update: ToolCall | ToolCallUpdate) -> Update:
        running = self._running.get(update.id)
        final = update.status in ENDED
        if running is None:
            # Nothing but a command prints; what else calls hold, a diff of megabytes maybe, is not kept.
            if not final and update.content and update.kind == "execute":
                self._running[update.id] = _Running(update.content)
            return update
        if update.content is not None:
            running.content = update.content
        if final:
            del self._running[update.id]
        if not running.pieces or not (final or update.content is not None):
            return update
        return update._replace(content=(*running.content, Text(_fenced(running))))


def _fenced(running: _Running) -> str:
    text = "".join(running.pieces)[-SHOWN_LIMIT:]
    left_out = running.total - len(text)
    note = f"[{left_out} earlier characters left out]\n" if left_out else ""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}console\n{note}{text}{'' if text.endswith(chr(10)) else chr(10)}{fence}"
