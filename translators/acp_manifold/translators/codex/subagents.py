"""The conversations of sub-agents: each is a thread of its own, and belongs to the call that began it.

codex-cli 0.163.0 tells the threads of sub-agents on the connection of the one that has set them to work, without
being asked. A call of the tools of `multi_agent` is a `collabAgentToolCall`, whose end names the thread; with the
feature `multi_agent_v2` it is a `subAgentActivity`, and the prompt is in no item. A sub-agent goes on after the turn
that began it, and is not stopped with it; it may be given more to do, also by a later turn.
"""

from __future__ import annotations

from acp_manifold.translators.narrow import JsonObject, as_list, obj, text
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
from acp_manifold.translators.values import NamedTuple

from .items import replayed
from .turn import Stream

_TITLE_LENGTH = 80
"""Characters of a sub-agent's prompt that make its title."""

_BEGIN = frozenset({"spawnAgent", "started"})
"""Collaboration tools, and kinds of activity, that begin an agent."""

_WORK = _BEGIN | {"sendInput", "resumeAgent", "interacted"}
"""Those that give one something to do."""


_STOP_REASONS: dict[str, StopReason] = {"completed": "end_turn", "interrupted": "cancelled"}
"""How a turn of a sub-agent has ended, as Codex calls it -> why that has stopped."""


class Reached(NamedTuple):
    """A sub-agent that an item speaks of."""

    thread: str
    call: str
    """The item: what the sub-agent is known by, if nothing earlier is known of it."""
    begun: bool
    """Whether the item began it."""
    works: bool
    """Whether the item gave it something to do."""
    ended: bool
    """Whether the item is the end of it: what it left running is ended with it."""
    title: str
    prompt: str = ""
    """What it was told, where the item has it."""


def reached(item: JsonObject) -> tuple[Reached, ...]:
    """The sub-agents of an item that has ended; none for most items."""
    kind, call = text(item, "type"), text(item, "id")
    if kind == "subAgentActivity":
        thread, path, what = text(item, "agentThreadId"), text(item, "agentPath"), text(item, "kind")
        title = path.rpartition("/")[2].replace("_", " ")
        return (Reached(thread, call, what in _BEGIN, what in _WORK, ended=False, title=title),) if thread else ()
    if kind != "collabAgentToolCall":
        return ()
    tool, prompt = text(item, "tool"), text(item, "prompt")
    threads = [thread for thread in as_list(item.get("receiverThreadIds")) if isinstance(thread, str)]
    begun, works, ended = tool in _BEGIN, tool in _WORK, tool == "closeAgent"
    return tuple(Reached(thread, call, begun, works, ended, _title(prompt), prompt) for thread in threads)


def _title(prompt: str) -> str:
    line = prompt.strip().partition("\n")[0].strip()
    return line if len(line) <= _TITLE_LENGTH else f"{line[: _TITLE_LENGTH - 1]}…"


class SubagentStream:
    """What one sub-agent has told so far, as far as the next line depends on it."""

    def __init__(self, reached: Reached, parent: str = "") -> None:
        """
        Args:
            reached: By what it came to be known.
            parent: The call that began the sub-agent which set it to work; empty for the main one.
        """
        self.call = reached.call
        """What it is known by."""
        self.title = reached.title or "Sub-agent"
        self.stream = Stream()
        """What its own thread has told."""
        self.turn = ""
        """The turn that runs; empty for none."""
        self._prompt = reached.prompt
        self._parent = parent
        self._message: str | None = None
        self._words: list[str] = []

    @property
    def last_words(self) -> str:
        """What it said last."""
        return "".join(self._words)

    def begun(self) -> list[Update]:
        """It is there."""
        return [self._within(Subagent(self.call, "running", self.title, prompt=self._prompt or None))]

    def notified(self, method: str, params: JsonObject) -> list[Update]:
        """What a notification of its thread tells."""
        if method == "turn/started":
            self.turn = text(obj(params, "turn"), "id")
            self.stream.turn_begins()
            return [self._within(Subagent(self.call, "running"))]
        if method == "turn/completed":
            return self._turn_over(obj(params, "turn"))
        if "turnId" not in params:
            return []
        return self._inner(*self.stream.translate(method, params))

    def ended(self, status: ToolEnd = "cancelled") -> list[Update]:
        """Nothing more will come of it.

        Args:
            status: How the calls end that it left open.
        """
        worked, self.turn = bool(self.turn), ""
        reason: StopReason | None = "cancelled" if worked and status == "cancelled" else None
        return [*self._inner(*self.stream.end_open(status)), self._idle(reason)]

    def _turn_over(self, turn: JsonObject) -> list[Update]:
        if text(turn, "id") != self.turn:
            return []
        self.turn = ""
        left = self.stream.end_turn(interrupted=text(turn, "status") == "interrupted")
        why = text(obj(turn, "error"), "message")
        said = (MessageChunk("agent", Text(why), f"{text(turn, 'id')}-end"),) if why else ()
        told = self._inner(*left, *said)
        return [*told, *self.outcome(), self._idle(_STOP_REASONS.get(text(turn, "status")))]

    def _idle(self, reason: StopReason | None) -> Update:
        return self._within(Subagent(self.call, "idle", stop_reason=reason))

    def outcome(self) -> list[Update]:
        """Its last words as what came of the call that began it, for clients that are shown no sub-agents."""
        if not self.last_words:
            return []
        content = tuple(Text(words) for words in (self._prompt, self.last_words) if words)
        return [self._within(ToolCallUpdate(self.call, content=content))]

    def replayed(self, item: JsonObject) -> list[Update]:
        """What an item of its history tells."""
        return self._inner(*replayed(item))

    def _inner(self, *updates: object) -> list[Update]:
        told: list[Update] = []
        for update in updates:
            if isinstance(update, MessageChunk):
                if update.role == "user":
                    # The prompt is in the call that gave it.
                    continue
                self._keep(update)
            elif not isinstance(update, ToolCall | ToolCallUpdate | ToolOutput):
                continue
            told.append(OfSubagent(self.call, update))
        return told

    def _keep(self, chunk: MessageChunk) -> None:
        if chunk.role != "agent" or not isinstance(chunk.content, Text):
            return
        if chunk.message_id != self._message:
            self._message, self._words = chunk.message_id, []
        self._words.append(chunk.content.text)

    def _within(self, update: Subagent | ToolCallUpdate) -> Update:
        return OfSubagent(self._parent, update) if self._parent else update
