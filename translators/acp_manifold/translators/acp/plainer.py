"""Updates that only some clients take, in the form that ACP v1 has for everybody else.

Canonical in, canonical out: what is rendered afterwards is an ordinary message or tool call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from zlib import crc32

from acp_manifold.translators.updates import (
    Compaction,
    Message,
    MessageChunk,
    Notice,
    OfSubagent,
    PlanChunk,
    PlanText,
    SessionState,
    Subagent,
    Text,
    ToolCall,
    ToolCallUpdate,
    Update,
)

from .capabilities import ClientCapabilities


def plainer(update: Update, can: ClientCapabilities) -> Update | None:
    """What to send to a client for `update`: itself where the client takes it, a plainer form of it, or nothing."""
    plain = _PLAINER.get(type(update))
    return update if plain is None else plain(update, can)


def _notice(update: Notice, can: ClientCapabilities) -> Update | None:
    """A notice; of the others only errors are worth a message of their own."""
    if can.notices:
        return update
    if update.severity != "error":
        return None
    said = update.title if update.description is None else f"{update.title}\n\n{update.description}"
    # Set off by blank lines, for clients that take no notice of message ids.
    return MessageChunk("agent", Text(f"\n\n{said}\n\n"), f"notice-{crc32(said.encode('utf-8', 'replace')):08x}")


def _compaction(update: Compaction, can: ClientCapabilities) -> Update | None:
    """A compaction, or a tool call that looks like one."""
    if can.compaction:
        return update
    if update.status == "in_progress":
        return ToolCall(update.id, "Compact the conversation", "think", "in_progress", name="compact")
    told = update.summary or update.error
    content = (Text(told),) if told else None
    return ToolCallUpdate(update.id, status=update.status, content=content)


def _plan_chunk(update: PlanChunk, can: ClientCapabilities) -> Update | None:
    """A plan's next words as a message, for those who are not given the whole as a plan."""
    return None if can.plan else MessageChunk("agent", Text(update.text), update.id)


def _plan_text(update: PlanText, can: ClientCapabilities) -> Update | None:
    return update if can.plan else None


def _subagent(update: Subagent, can: ClientCapabilities) -> Update | None:
    return update if can.subagents else None


def _of_subagent(update: OfSubagent, can: ClientCapabilities) -> Update | None:
    """What a sub-agent does; of its words others are told the last, as the result of the call that began it."""
    if can.subagents:
        return update
    inner = update.update
    if isinstance(inner, MessageChunk | Subagent):
        return None
    return inner._replace(parent=update.id) if isinstance(inner, ToolCall) else inner


def _left_out(update: Update, can: ClientCapabilities) -> Update | None:
    """What ACP v1 has no words for: its clients know the state by their prompt's answer, messages by their pieces."""
    return None


# Each function takes the one class it stands under; no type can say that of a table.
_PLAINER: dict[type, Callable[[Any, ClientCapabilities], Update | None]] = {
    Notice: _notice,
    Compaction: _compaction,
    PlanChunk: _plan_chunk,
    PlanText: _plan_text,
    Subagent: _subagent,
    OfSubagent: _of_subagent,
    Message: _left_out,
    SessionState: _left_out,
}
