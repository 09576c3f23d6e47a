"""The messages of the main agent as they are written: stream events and finished blocks, each text once.

With `--include-partial-messages` Claude Code 2.1.332 sends every block twice: as stream events
while the model writes it and, just before the event that ends the block, as an `assistant` frame.
`Messages` remembers how much of each block of the current message went out, so that a finished
block only fills in what is missing: all of it for messages that are not streamed.
"""

from __future__ import annotations

from acp_manifold.translators.narrow import JsonObject, as_int, obj, text
from acp_manifold.translators.updates import MessageChunk, Role, Text
from acp_manifold.translators.values import NamedTuple

_TEXT_KEYS: dict[str, tuple[str, Role]] = {"text": ("text", "agent"), "thinking": ("thinking", "thought")}
"""Block type -> where its text is, and who speaks in it."""

_DELTA_KEYS = {"text_delta": "text", "thinking_delta": "thinking"}


class _Block:
    """A block of the current message that was streamed."""

    __slots__ = ("finished", "kind", "sent")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.sent = 0
        """Characters that went out."""
        self.finished = False
        """Whether its finished form has come too."""


class ToolUse(NamedTuple):
    """The model begins to write a tool call; what goes into it is not known yet."""

    id: str
    name: str


class Messages:
    """Turns the pieces of the main agent's messages into chunks. One for each session."""

    def __init__(self) -> None:
        self._message_id: str | None = None
        self._blocks: dict[int, _Block] = {}

    def stream(self, event: JsonObject) -> MessageChunk | ToolUse | None:
        """What one stream event adds."""
        kind = event.get("type")
        if kind == "content_block_delta":
            return self._delta(event)
        if kind == "content_block_start":
            return self._start(event)
        if kind == "message_start":
            self._message_id = text(obj(event, "message"), "id")
            self._blocks = {}
        return None

    def finished(self, message_id: str, block: JsonObject) -> MessageChunk | None:
        """What a finished block of text or thought adds to what was streamed of it."""
        kind = text(block, "type")
        if kind not in _TEXT_KEYS:
            return None
        key, role = _TEXT_KEYS[kind]
        whole = text(block, key)
        streamed = self._streamed(message_id, kind)
        sent = 0
        if streamed is not None:
            streamed.finished = True
            sent, streamed.sent = streamed.sent, max(streamed.sent, len(whole))
        return MessageChunk(role, Text(whole[sent:]), message_id) if len(whole) > sent else None

    def _start(self, event: JsonObject) -> MessageChunk | ToolUse | None:
        block = obj(event, "content_block")
        kind = text(block, "type")
        if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
            return ToolUse(text(block, "id"), text(block, "name"))
        if kind not in _TEXT_KEYS:
            return None
        self._blocks[as_int(event.get("index")) or 0] = streamed = _Block(kind)
        key, role = _TEXT_KEYS[kind]
        return self._chunk(streamed, role, text(block, key))

    def _delta(self, event: JsonObject) -> MessageChunk | None:
        delta = obj(event, "delta")
        kind = _DELTA_KEYS.get(text(delta, "type"))
        if kind is None:
            return None
        key, role = _TEXT_KEYS[kind]
        streamed = self._blocks.setdefault(as_int(event.get("index")) or 0, _Block(kind))
        return self._chunk(streamed, role, text(delta, key))

    def _chunk(self, streamed: _Block, role: Role, piece: str) -> MessageChunk | None:
        streamed.sent += len(piece)
        return MessageChunk(role, Text(piece), self._message_id) if piece else None

    def _streamed(self, message_id: str, kind: str) -> _Block | None:
        """The first streamed block of this kind whose finished form has not come yet."""
        if message_id != self._message_id:
            return None
        for block in self._blocks.values():
            if block.kind == kind and not block.finished:
                return block
        return None
