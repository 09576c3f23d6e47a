"""The transcript of a sub-agent, told as its own conversation.

Claude Code 2.1.332 keeps it beside that of the session, with the call that began it; all its records are sidechain.
"""

from __future__ import annotations

from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    MessageChunk,
    OfSubagent,
    Subagent,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
    Update,
)

from .subagents import begun, within
from .transcript import History


class AgentHistory(History):
    """Fed with the records of one transcript of a sub-agent."""

    def __init__(self, call: ToolCall, parent: str) -> None:
        """
        Args:
            call: What began it.
            parent: The call that began the sub-agent which made this one; empty for the main one.
        """
        super().__init__(sidechain=True)
        self.call_id = call.id
        self._parent = parent
        self._input = call.raw_input or {}

    def begun(self) -> list[Update]:
        """It was set to work."""
        return [within(self._parent, begun(self.call_id, self._input))]

    def feed(self, record: JsonObject) -> list[Update]:
        """The updates of one record of it."""
        return self._inner(super().feed(record))

    def finish(self) -> list[Update]:
        """The updates that end the calls whose result never came."""
        return self._inner(super().finish())

    def ended(self) -> list[Update]:
        """Nothing more is known of it."""
        return [within(self._parent, Subagent(self.call_id, "idle"))]

    def _inner(self, updates: list[Update]) -> list[Update]:
        return [
            OfSubagent(self.call_id, update)
            for update in updates
            # What it was asked is in the call.
            if isinstance(update, ToolCall | ToolCallUpdate | ToolOutput)
            or (isinstance(update, MessageChunk) and update.role != "user")
        ]
