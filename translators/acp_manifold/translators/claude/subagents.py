"""The conversations of sub-agents, beside the one with the person: each belongs to the call that began it.

Claude Code 2.1.332 names that call in every frame of a sub-agent (`parent_tool_use_id`), sends its
messages whole and not as they are written, and goes on with them after the turn when the agent runs
in the background. The call itself has its result in the main conversation.
"""

from __future__ import annotations

from acp_manifold.translators.narrow import JsonObject, obj, text
from acp_manifold.translators.updates import (
    MessageChunk,
    OfSubagent,
    StopReason,
    Subagent,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolEnd,
    ToolOutput,
    Update,
)

from . import tools
from .frames import Assistant, User

_STOP_REASONS: dict[ToolEnd, StopReason] = {"completed": "end_turn", "cancelled": "cancelled"}
"""How the call of a sub-agent has ended -> why that has stopped."""


class Subagents:
    """The sub-agents of one session that have not ended."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd
        self._running: dict[str, str] = {}
        """Call that began the agent -> the sub-agent that made that call, empty for the main one."""
        self._words: dict[str, str] = {}
        """What each of them said last."""
        self._calls: dict[str, tuple[str, str]] = {}
        """Open calls of sub-agents: whose, and of what tool."""

    def begun(self, call_id: str, tool_input: JsonObject, parent: str = "") -> list[Update]:
        """A sub-agent is set to work."""
        self._running[call_id] = parent
        return [within(parent, begun(call_id, tool_input))]

    def ended(self, call_id: str, status: ToolEnd) -> list[Update]:
        """A sub-agent is done, if the call began one, and whatever it left open is over.

        Args:
            call_id: The call.
            status: How that has ended.
        """
        parent = self._running.pop(call_id, None)
        if parent is None:
            return []
        self._words.pop(call_id, None)
        left = [inner for inner, (owner, _) in self._calls.items() if owner == call_id]
        told: list[Update] = []
        for inner in left:
            del self._calls[inner]
            lost: ToolEnd = "cancelled" if status == "cancelled" else "failed"
            told += [*self.ended(inner, lost), OfSubagent(call_id, ToolCallUpdate(inner, status=lost))]
        return [*told, within(parent, Subagent(call_id, "idle", stop_reason=_STOP_REASONS.get(status)))]

    def runs(self, call_id: str) -> bool:
        """Whether a call has begun a sub-agent that has not ended."""
        return call_id in self._running

    def maker(self, call_id: str) -> str | None:
        """The call that began the sub-agent which has made this one; None if it is open and no sub-agent's, or over."""
        return self._calls[call_id][0] if call_id in self._calls else None

    def last_words(self, call_id: str) -> str | None:
        """What the agent of this call said last, if it still runs: the result of one that runs in the background."""
        return self._words.get(call_id)

    def all_ended(self, status: ToolEnd) -> list[Update]:
        """Nothing more will come of any of them."""
        return [update for call_id in list(self._running) for update in self.ended(call_id, status)]

    def said(self, frame: Assistant) -> list[Update]:
        """A message of a sub-agent."""
        agent = frame.parent or ""
        told: list[Update] = []
        for block in frame.blocks:
            kind = block.get("type")
            if kind == "text" and (words := text(block, "text")):
                self._words[agent] = words
                told.append(OfSubagent(agent, MessageChunk("agent", Text(words), frame.message_id)))
            elif kind == "thinking" and (words := text(block, "thinking")):
                told.append(OfSubagent(agent, MessageChunk("thought", Text(words), frame.message_id)))
            elif kind in tools.CALL_BLOCKS:
                told += self._call(agent, block)
        return told

    def _call(self, agent: str, block: JsonObject) -> list[Update]:
        call_id, name, tool_input = text(block, "id"), text(block, "name"), obj(block, "input")
        if call_id in self._calls:
            return []
        self._calls[call_id] = (agent, name)
        told: list[Update] = [OfSubagent(agent, tools.call(call_id, name, tool_input, self._cwd))]
        return told + (self.begun(call_id, tool_input, agent) if name in tools.AGENT_TOOLS else [])

    def heard(self, frame: User) -> list[Update]:
        """Results of what a sub-agent called, or a message to it."""
        agent = frame.parent or ""
        results = [block for block in frame.blocks if block.get("type") == "tool_result"]
        structured = frame.tool_use_result if len(results) == 1 else None
        told: list[Update] = []
        for block in results:
            call_id = text(block, "tool_use_id")
            _, name = self._calls.pop(call_id, ("", ""))
            if name:
                stopped = call_id in frame.stopped
                told += self.ended(call_id, tools.end_of(block, stopped=stopped))
                told += [
                    OfSubagent(agent, update)
                    for update in tools.outcome(call_id, name, block, structured, self._cwd, stopped=stopped)
                    if isinstance(update, ToolCall | ToolCallUpdate | ToolOutput)
                ]
        return told


def begun(call_id: str, tool_input: JsonObject) -> Subagent:
    """A sub-agent that a call sets to work."""
    title = text(tool_input, "description") or text(tool_input, "subagent_type") or "Sub-agent"
    prompt = text(tool_input, "prompt") or None
    return Subagent(call_id, "running", title, text(tool_input, "subagent_type") or None, prompt)


def within(parent: str, agent: Subagent) -> Update:
    """What is told of a sub-agent, in the conversation of the sub-agent that set it to work, if one did."""
    return OfSubagent(parent, agent) if parent else agent
