"""What was said last in a live session, for a client that comes in the middle: its store may not have it yet.

A CLI stores a message when it is complete, and some a moment later (Claude Code 2.1.332 within a tenth
of a second, Codex 0.163 with the end of an item). So a session keeps the latest of what it told: a
history is what the store has up to the first item kept here, and then what is kept. Pieces are merged
as they come, a message with its chunks, a call with its patches and its output. Beyond `LIMIT` the
oldest items are dropped: those the store has for long.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Generator, Hashable, Iterator
from contextlib import contextmanager
from typing import Final

from acp_manifold.translators.updates import (
    Compaction,
    Message,
    MessageChunk,
    OfSubagent,
    Plan,
    PlanChunk,
    PlanText,
    Role,
    Subagent,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolContent,
    ToolOutput,
    Update,
)

LIMIT: Final = 512 * 1024
"""Characters kept, roughly; what is going on right now is kept beyond that."""

OUTPUT_LIMIT: Final = 1 << 20
"""Characters kept of the output of one call, the last ones."""

_PARTS: Final = 1024
"""Pieces of one message that are kept apart: joining them at once would cost each chunk a copy of all before."""

_OVERHEAD: Final = 64
"""What a piece weighs beside its characters."""

_SINGLE: Final = (PlanChunk, PlanText, Compaction, Subagent, OfSubagent)
"""What is kept piece by piece as it was told."""

_SAID: Final = (MessageChunk, Message, ToolCall, ToolCallUpdate, ToolOutput, Plan, *_SINGLE)


def is_said(update: Update) -> bool:
    """Whether it belongs to the conversation, and not to what is known about the session."""
    return isinstance(update, _SAID)


def key_of(update: Update) -> Hashable:
    """What names the item that an update is about, in a history as when it was said; None without a name."""
    if isinstance(update, MessageChunk):
        return None if update.message_id is None else (update.role, update.message_id)
    if isinstance(update, ToolCall | ToolCallUpdate | ToolOutput):
        return update.id
    if isinstance(update, PlanChunk | PlanText | Compaction):
        return (type(update) is Compaction, update.id)
    if isinstance(update, OfSubagent):
        inner = key_of(update.update)
        return None if inner is None else (OfSubagent, update.id, inner)
    return None


class _Message:
    """A run of text of one message."""

    __slots__ = ("key", "message_id", "parts", "role", "size")

    def __init__(self, chunk: MessageChunk, text: str) -> None:
        self.key = key_of(chunk)
        self.role: Role = chunk.role
        self.message_id = chunk.message_id
        self.parts = [text]
        self.size = len(text) + _OVERHEAD

    def updates(self) -> Iterator[Update]:
        yield MessageChunk(self.role, Text("".join(self.parts)), self.message_id)


class _Single:
    """An update that stands for itself."""

    __slots__ = ("key", "size", "update")

    def __init__(self, update: Update, size: int) -> None:
        self.key = key_of(update)
        self.update = update
        self.size = size

    def updates(self) -> Iterator[Update]:
        yield self.update


class _Call:
    """A tool call as it is now."""

    __slots__ = ("call", "key", "output", "patch", "printed", "size")

    def __init__(self, call: ToolCall) -> None:
        self.key: Hashable = call.id
        self.call = call
        self.patch: ToolCallUpdate | None = None
        self.output: deque[str] = deque()
        self.printed = 0
        self.size = _weight(call)

    def change(self, patch: ToolCallUpdate) -> None:
        before = self.patch or ToolCallUpdate(patch.id)
        self.patch = ToolCallUpdate._make(old if new is None else new for old, new in zip(before, patch, strict=True))
        self.size = _weight(self.call) + _weight(self.patch) + self.printed

    def print(self, data: str) -> None:
        self.output.append(data)
        self.printed += len(data)
        while self.printed - len(self.output[0]) >= OUTPUT_LIMIT:
            self.printed -= len(self.output.popleft())
        if len(self.output) > _PARTS:
            self.output = deque(["".join(self.output)])
        self.size = _weight(self.call) + _weight(self.patch) + self.printed

    def updates(self) -> Iterator[Update]:
        yield self.call
        if self.output:
            yield ToolOutput(self.call.id, "".join(self.output))
        if self.patch is not None:
            yield self.patch


_Item = _Message | _Single | _Call


class Recent:
    """The latest of one session."""

    def __init__(self) -> None:
        self._items: deque[_Item] = deque()
        self._keys: Counter[Hashable] = Counter()
        """How many items each name has."""
        self._calls: dict[str, _Call] = {}
        self._last: _Message | None = None
        """The item at the end, while it is one that text may be added to."""
        self._size = 0
        self._limit = LIMIT
        """The size from which on something is to be dropped."""
        self._pins = 0

    def add(self, update: Update) -> None:
        """Take in what is told; what is not said in the conversation is passed over."""
        if isinstance(update, MessageChunk):
            content = update.content
            if not isinstance(content, Text):
                self._append(_Single(update, _weight(update)))
                return
            last = self._last
            if last is None or last.message_id != update.message_id or last.role != update.role:
                message = _Message(update, content.text)
                self._append(message)
                self._last = message
                return
            last.parts.append(content.text)
            if len(last.parts) > _PARTS:
                last.parts = ["".join(last.parts)]
            last.size += len(content.text)
            self._size += len(content.text)
        elif isinstance(update, ToolCall):
            self._calls[update.id] = call = _Call(update)
            self._append(call)
        elif isinstance(update, ToolCallUpdate | ToolOutput):
            self._change(update)
        elif isinstance(update, Plan):
            self._append(_Single(update, sum(len(entry.content) for entry in update.entries)))
        elif isinstance(update, _SINGLE):
            self._append(_Single(update, len(str(update))))

    def holds(self, update: Update) -> bool:
        """Whether the item that an update of the history is about is kept here."""
        key = key_of(update)
        return key is not None and key in self._keys

    def items(self) -> list[Update]:
        """All that is kept, in order."""
        return [update for item in self._items for update in item.updates()]

    def clear(self) -> None:
        """Forget everything: the store has it, or it belongs to another session now."""
        self._items.clear()
        self._keys.clear()
        self._calls.clear()
        self._last, self._size, self._limit = None, 0, LIMIT

    @contextmanager
    def pinned(self) -> Generator[None]:
        """Nothing is dropped meanwhile."""
        self._pins += 1
        try:
            yield
        finally:
            self._pins -= 1

    def _change(self, update: ToolCallUpdate | ToolOutput) -> None:
        call = self._calls.get(update.id)
        if call is None:
            # It began before all that is kept.
            return
        before = call.size
        if isinstance(update, ToolOutput):
            call.print(update.data)
        else:
            call.change(update)
        self._size += call.size - before
        self._drop()

    def _append(self, item: _Item) -> None:
        self._last = None
        self._items.append(item)
        self._size += item.size
        if item.key is not None:
            self._keys[item.key] += 1
        self._drop()

    def _drop(self) -> None:
        """Forget the oldest items, as far as that splits no message and none is going on."""
        if self._size <= self._limit or self._pins:
            return
        passed: Counter[Hashable] = Counter()
        split: set[Hashable] = set()
        left, whole = self._size, 0
        for number, item in enumerate(self._items):
            if left <= LIMIT // 2 or number == len(self._items) - 1 or (_is_open(item) and left < 4 * LIMIT):
                break
            left -= item.size
            if item.key is not None:
                passed[item.key] += 1
                (split.discard if passed[item.key] == self._keys[item.key] else split.add)(item.key)
            if not split:
                whole = number + 1
        for _ in range(whole):
            self._forget(self._items.popleft())
        # Should most of it have to stay, that is not looked at again with each new item.
        self._limit = max(LIMIT, self._size + LIMIT // 2)

    def _forget(self, item: _Item) -> None:
        self._size -= item.size
        if item.key is not None:
            self._keys[item.key] -= 1
            if not self._keys[item.key]:
                del self._keys[item.key]
        if isinstance(item, _Call) and self._calls.get(item.call.id) is item:
            del self._calls[item.call.id]


def _is_open(item: _Item) -> bool:
    if not isinstance(item, _Call):
        return False
    status = item.patch.status if item.patch is not None and item.patch.status is not None else item.call.status
    return status not in ("completed", "failed")


def _weight(update: Update | None) -> int:
    """Characters that an update holds, roughly."""
    if isinstance(update, MessageChunk):
        return _OVERHEAD + _content_weight(update.content)
    if isinstance(update, ToolCall | ToolCallUpdate):
        raw = sum(len(value) for value in (update.raw_input or {}).values() if isinstance(value, str))
        return _OVERHEAD + raw + sum(_content_weight(item) for item in update.content or ())
    return 0


def _content_weight(content: ToolContent) -> int:
    return sum(len(part) for part in content if isinstance(part, str))
