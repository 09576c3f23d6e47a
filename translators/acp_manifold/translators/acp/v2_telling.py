"""The updates of one session as one v2 client is told them: ids for what has none, commands as terminals.

What a command prints goes out once, piece by piece, in a terminal that has the id of its tool call: linear in its
size. The client is never asked to run anything. In a history every message is emptied before its pieces come,
since the client may have it already.
"""

from __future__ import annotations

from base64 import b64encode

from acp_manifold.translators.acp import v1, v2
from acp_manifold.translators.narrow import JsonObject, as_list
from acp_manifold.translators.updates import (
    ENDED,
    BackgroundTask,
    Compaction,
    Message,
    MessageChunk,
    OfSubagent,
    Role,
    SessionState,
    Subagent,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
    Update,
)

_ITEMS = (ToolCall, Message, Compaction)
"""What stands between two messages; everything else happens beside them."""


class Telling:
    """What one client knows of one session, and of those of its sub-agents."""

    def __init__(self, mark: str, *, history: bool = False) -> None:
        """
        Args:
            mark: What makes ids given here different from all others.
            history: Whether the history is being told, to a client that may know it.
        """
        self.history = history
        """Set to false when all of it is told."""
        self._mark = mark
        self._given = 0
        self._nameless: tuple[Role, str] | None = None
        """The message without a name that is being told, while no other item was told since."""
        self._begun: set[tuple[Role, str]] = set()
        """The messages of the history that were emptied."""
        self._whole: str | None = None
        """The message that was told whole last: its pieces are told already."""
        self._terminals: set[str] = set()
        """The calls that are open whose output is told as a terminal's."""
        self._inside: dict[str, Telling] = {}
        """What it knows of the sessions of sub-agents."""
        self._agents: dict[str, str] = {}
        """The sub-agents that were told, and in which session."""
        self._background: dict[str, BackgroundTask] = {}
        """What goes on in the background, as the client knows it: what it may cancel by itself."""

    def updates(self, session_id: str, update: Update) -> list[JsonObject]:
        """The params of each `session/update` that tells it, in order; none where there is nothing to tell."""
        if isinstance(update, OfSubagent):
            place = v1.subagent_id(session_id, update.id)
            inner = update.update
            if isinstance(inner, Subagent):
                return self._subagent(session_id, place, inner)
            inside = self._inside.get(place) or self._inside.setdefault(place, Telling(self._mark))
            inside.history = self.history
            return inside.updates(place, inner)
        if isinstance(update, Subagent):
            return self._subagent(session_id, session_id, update)
        if isinstance(update, SessionState):
            return self._state(session_id, update)
        return [{"sessionId": session_id, "update": body} for body in self._bodies(update)]

    def message_id(self, chunk: MessageChunk) -> str | None:
        """The id of the message that a piece belongs to; None for a piece of one that was told whole."""
        if chunk.message_id is not None:
            self._nameless = None
            if chunk.message_id == self._whole and chunk.role == "user":
                return None
            return v2.message_id(chunk.role, chunk.message_id)
        if self._nameless is None or self._nameless[0] != chunk.role:
            self._given += 1
            self._nameless = chunk.role, f"{self._mark}-{self._given}"
        return self._nameless[1]

    def emptied(self, role: Role, identity: str) -> JsonObject | None:
        """What comes before the first piece of a message of the history."""
        if not self.history or (role, identity) in self._begun:
            return None
        self._begun.add((role, identity))
        return {"sessionUpdate": v2.MESSAGES[role], "messageId": identity, "content": []}

    def _state(self, session_id: str, update: SessionState) -> list[JsonObject]:
        """The state, behind news of what goes on in the background: each can be ended by itself there."""
        now = {task.id: task for task in update.background}
        told: list[JsonObject] = []
        for task_id, task in now.items():
            if self._background.get(task_id) != task:
                told += [*self._announced(session_id, task), *self._offered(session_id, task, True)]
        for task_id in self._background.keys() - now.keys():
            told += self._offered(session_id, self._background[task_id], False)
        self._background = now
        state = {"sessionUpdate": "state_update", **v2.state(session_id, update)}
        return [*told, {"sessionId": session_id, "update": state}]

    def _announced(self, session_id: str, task: BackgroundTask) -> list[JsonObject]:
        """The thing that a task is listed as, for a client that came later."""
        if task.agent is not None and task.agent not in self._agents:
            self._agents[task.agent] = session_id
            begun = Subagent(task.agent, "running", task.title)
            return [{"sessionId": session_id, "update": v2.subagent(session_id, begun)}]
        call = task.tool_call_id
        if task.agent is not None or call is None or not task.command or call in self._terminals:
            return []
        self._terminals.add(call)
        terminal = {"sessionUpdate": "terminal_update", "terminalId": call, "command": task.title}
        body = v2.tool_call(ToolCall(call, task.title, "execute", "in_progress"))
        body["content"] = [_terminal(call)]
        return [{"sessionId": session_id, "update": body} for body in (terminal, body)]

    def _offered(self, session_id: str, task: BackgroundTask, possible: bool) -> list[JsonObject]:
        told: list[JsonObject] = []
        if task.agent is not None:
            place = self._agents.get(task.agent, session_id)
            told.append({"sessionId": place, "update": v2.cancellable_subagent(session_id, task.agent, possible)})
        if task.tool_call_id is not None and task.command:
            body = v2.cancellable_terminal(task.tool_call_id, possible)
            told.append({"sessionId": session_id, "update": body})
        if task.tool_call_id is not None:
            told.append({"sessionId": session_id, "update": v2.cancellable(task.tool_call_id, possible)})
        return told

    def _bodies(self, update: Update) -> list[JsonObject]:
        if isinstance(update, ToolOutput):
            return self._output(update)
        if isinstance(update, MessageChunk):
            return self._chunk(update)
        if isinstance(update, _ITEMS):
            self._nameless = None
        if isinstance(update, ToolCall):
            return self._call(update)
        if isinstance(update, ToolCallUpdate):
            return self._patch(update)
        if isinstance(update, Message):
            self._whole = update.message_id
        body = v2.body(update)
        return [body] if body is not None else []

    def _chunk(self, update: MessageChunk) -> list[JsonObject]:
        identity = self.message_id(update)
        if identity is None:
            return []
        emptied = self.emptied(update.role, identity)
        body = v2.chunk(update.role, identity, v2.content_block(update.content))
        return [body] if emptied is None else [emptied, body]

    def _call(self, update: ToolCall) -> list[JsonObject]:
        body = v2.tool_call(update)
        if self.history:
            body.setdefault("content", [])
        if update.runs_in is None:
            return [body]
        self._terminals.add(update.id)
        body["content"] = [*as_list(body.get("content")), _terminal(update.id)]
        terminal: JsonObject = {"sessionUpdate": "terminal_update", "terminalId": update.id, "cwd": update.runs_in}
        command = (update.raw_input or {}).get("command")
        if isinstance(command, str):
            terminal["command"] = command
        if self.history:
            terminal |= {"output": {"data": ""}, "exitStatus": None}
        return [terminal, body]

    def _output(self, update: ToolOutput) -> list[JsonObject]:
        if not update.data:
            return []
        told: list[JsonObject] = []
        if update.id not in self._terminals:
            self._terminals.add(update.id)
            place: JsonObject = {"sessionUpdate": "tool_call_content_chunk", "toolCallId": update.id}
            told.append({"sessionUpdate": "terminal_update", "terminalId": update.id})
            told.append({**place, "content": _terminal(update.id)})
        # Half a surrogate pair is not text that can be sent: it becomes a question mark.
        data = b64encode(update.data.encode("utf-8", "replace")).decode("ascii")
        told.append({"sessionUpdate": "terminal_output_chunk", "terminalId": update.id, "data": data})
        return told

    def _patch(self, update: ToolCallUpdate) -> list[JsonObject]:
        body = v2.tool_call_update(update)
        if update.id not in self._terminals:
            return [body]
        if update.content is not None:
            body["content"] = [*as_list(body.get("content")), _terminal(update.id)]
        if update.status not in ENDED:
            return [body]
        self._terminals.discard(update.id)
        status: JsonObject = {} if update.exit_code is None else {"exitCode": update.exit_code}
        ended: JsonObject = {"sessionUpdate": "terminal_update", "terminalId": update.id, "exitStatus": status}
        return [ended, body]

    def _subagent(self, session_id: str, place: str, update: Subagent) -> list[JsonObject]:
        """What is told of a sub-agent in the session at `place`, and of its state in its own."""
        child = v1.subagent_id(session_id, update.id)
        self._agents[update.id] = place
        told: list[JsonObject] = [{"sessionId": place, "update": v2.subagent(session_id, update)}]
        if update.prompt is not None:
            given = v2.task_given(place, session_id, update.id, update.prompt)
            told.append({"sessionId": child, "update": given})
        own: JsonObject = {"sessionUpdate": "state_update", **v2.subagent_state(update)}
        return [*told, {"sessionId": child, "update": own}]


def _terminal(call_id: str) -> JsonObject:
    return {"type": "terminal", "terminalId": call_id}
