"""Canonical updates, questions and states to ACP v2 JSON (SDK 2.4.0, `experimental/v2`: a draft, unstable schema).

What stands for itself is rendered here; what depends on what the client was told before, in `v2_telling`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acp_manifold.translators.acp import v1, v2_options
from acp_manifold.translators.acp.patches import diff_contents
from acp_manifold.translators.acp.requests import META_KEY
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    BackgroundTask,
    Commands,
    Compaction,
    Diff,
    Fault,
    Message,
    Notice,
    Options,
    Plan,
    PlanText,
    Question,
    Role,
    SessionInfo,
    SessionState,
    Subagent,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolContent,
    Update,
    Usage,
)

VERSION = 2

CHUNKS: dict[Role, str] = {
    "user": "user_message_chunk",
    "agent": "agent_message_chunk",
    "thought": "agent_thought_chunk",
}
"""Who speaks -> the tag of the next piece of a message."""

MESSAGES: dict[Role, str] = {"user": "user_message", "agent": "agent_message", "thought": "agent_thought"}
"""Who speaks -> the tag of a whole message."""

PLAN_ID = "plan"
"""The plan of steps that a session has; plans in words have ids of their own."""

_FALLBACK_TITLE = "Allow this?"

content_block = v1.content_block
"""One content block: as in v1."""


def body(update: Update) -> JsonObject | None:
    """The `update` of a `session/update` for what stands for itself; None for what v2 has no words for."""
    render = _RENDERERS.get(type(update))
    return render(update) if render is not None else None


def message_id(role: Role, named: str) -> str:
    """The id of a message, from the CLI's name of it: Claude Code gives the thoughts that of the message behind them.

    In v2 an id is one message's, of whatever kind.
    """
    return f"{named}-thought" if role == "thought" else named


def chunk(role: Role, identity: str, content: JsonObject) -> JsonObject:
    """The next piece of a message."""
    return {"sessionUpdate": CHUNKS[role], "messageId": identity, "content": content}


def message(update: Message) -> JsonObject:
    """A whole message."""
    return {
        "sessionUpdate": MESSAGES[update.role],
        "messageId": message_id(update.role, update.message_id),
        "content": [content_block(item) for item in update.content],
    }


def tool_call(update: ToolCall) -> JsonObject:
    """A tool call that begins."""
    wire: JsonObject = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": update.id,
        "title": update.title,
        "kind": update.kind,
        "status": update.status,
    }
    if update.name is not None:
        wire["name"] = update.name
    if update.content:
        wire["content"] = _tool_content(update.content)
    if update.locations:
        wire["locations"] = _locations(update)
    if update.raw_input is not None:
        wire["rawInput"] = update.raw_input
    if update.parent is not None:
        wire["_meta"] = {"claudeCode": {"parentToolUseId": update.parent}}
    return wire


def tool_call_update(update: ToolCallUpdate) -> JsonObject:
    """A patch of a tool call."""
    return {"sessionUpdate": "tool_call_update", **tool_call_patch(update)}


def tool_call_patch(update: ToolCallUpdate) -> JsonObject:
    """The fields of a tool call that a patch holds."""
    wire: JsonObject = {"toolCallId": update.id}
    if update.title is not None:
        wire["title"] = update.title
    if update.kind is not None:
        wire["kind"] = update.kind
    if update.status is not None:
        wire["status"] = update.status
    if update.content is not None:
        wire["content"] = _tool_content(update.content)
    if update.locations is not None:
        wire["locations"] = _locations(update)
    if update.raw_input is not None:
        wire["rawInput"] = update.raw_input
    if update.raw_output is not None:
        wire["rawOutput"] = update.raw_output
    return wire


def cancellable(call_id: str, possible: bool) -> JsonObject:
    """A patch that says whether `tool_call/cancel` ends a tool call."""
    return {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "capabilities": _cancel(possible)}


def cancellable_terminal(terminal_id: str, possible: bool) -> JsonObject:
    """A patch that says whether `terminal/cancel` ends what runs in a terminal."""
    return {"sessionUpdate": "terminal_update", "terminalId": terminal_id, "capabilities": _cancel(possible)}


def subagent(session_id: str, agent: Subagent) -> JsonObject:
    """What is told of a sub-agent in the session that set it to work."""
    wire = {**_about_subagent(session_id, agent.id), "state": subagent_state(agent)}
    if agent.title is not None:
        wire["title"] = agent.title
    if agent.description is not None:
        wire["description"] = agent.description
    return wire


def subagent_state(agent: Subagent) -> JsonObject:
    """What a sub-agent does."""
    wire: JsonObject = {"state": agent.state, "background": []}
    if agent.stop_reason is not None:
        wire["stopReason"] = agent.stop_reason
    return wire


def _about_subagent(session_id: str, agent: str) -> JsonObject:
    return {"sessionUpdate": "subagent_update", "sessionId": v1.subagent_id(session_id, agent)}


def cancellable_subagent(session_id: str, agent: str, possible: bool) -> JsonObject:
    """A patch that says whether `session/cancel` of a sub-agent's session stops it."""
    return {**_about_subagent(session_id, agent), "capabilities": _cancel(possible)}


def task_given(sender: str, session_id: str, agent: str, words: str) -> JsonObject:
    """What a sub-agent was told to do, in its own session: a message from the one that set it to work."""
    return {
        "sessionUpdate": "session_message",
        "messageId": f"{agent}-task",
        "senderSessionId": sender,
        "recipientSessionId": v1.subagent_id(session_id, agent),
        "content": [content_block(Text(words))],
    }


def _cancel(possible: bool) -> JsonObject | None:
    return {"cancel": {}} if possible else None


def _locations(update: ToolCall | ToolCallUpdate) -> list[JsonObject]:
    return [
        {"path": place.path} if place.line is None else {"path": place.path, "line": place.line}
        for place in update.locations or ()
    ]


def _tool_content(items: tuple[ToolContent, ...]) -> list[JsonObject]:
    told: list[JsonObject] = []
    diffs: list[Diff] = []
    for item in items:
        if isinstance(item, Diff):
            diffs.append(item)
            continue
        if diffs:
            told += diff_contents(diffs)
            diffs = []
        told.append({"type": "content", "content": content_block(item)})
    return told + diff_contents(diffs) if diffs else told


def _plan(update: Plan) -> JsonObject:
    if not update.entries:
        return {"sessionUpdate": "plan_removed", "planId": PLAN_ID}
    entries = [{"content": e.content, "priority": e.priority, "status": e.status} for e in update.entries]
    return {"sessionUpdate": "plan_update", "plan": {"type": "items", "planId": PLAN_ID, "entries": entries}}


def _plan_text(update: PlanText) -> JsonObject:
    plan = {"type": "markdown", "planId": update.id, "content": update.text}
    return {"sessionUpdate": "plan_update", "plan": plan}


def _usage(update: Usage) -> JsonObject:
    wire: JsonObject = {"sessionUpdate": "usage_update", "used": update.used, "size": update.size}
    if update.cost_usd is not None:
        wire["cost"] = {"amount": update.cost_usd, "currency": "USD"}
    return wire


def commands(update: Commands) -> list[JsonObject]:
    """All slash commands of a session."""
    told: list[JsonObject] = []
    for command in update.commands:
        wire: JsonObject = {"type": "command", "name": command.name, "description": command.description}
        if command.hint is not None:
            wire["input"] = {"type": "text", "hint": command.hint}
        told.append(wire)
    return told


def _commands(update: Commands) -> JsonObject:
    return {"sessionUpdate": "available_commands_update", "availableCommands": commands(update)}


def _session_info(update: SessionInfo) -> JsonObject:
    wire: JsonObject = {"sessionUpdate": "session_info_update"}
    if update.title is not None:
        wire["title"] = update.title
    if update.updated_at is not None:
        wire["updatedAt"] = update.updated_at
    return wire


def _options(update: Options) -> JsonObject:
    return {"sessionUpdate": "config_option_update", "configOptions": v2_options.config_options(update.options)}


def _notice(update: Notice) -> JsonObject:
    wire: JsonObject = {"sessionUpdate": "notice", "severity": update.severity, "title": update.title}
    if update.description is not None:
        wire["description"] = update.description
    return wire


def _compaction(update: Compaction) -> JsonObject:
    wire: JsonObject = {"sessionUpdate": "compaction_update", "compactionId": update.id, "status": update.status}
    if update.summary is not None:
        wire["summary"] = [content_block(Text(update.summary))]
    if update.error is not None:
        wire["error"] = update.error
    return wire


def state(session_id: str, update: SessionState) -> JsonObject:
    """What goes on in a session, with all that goes on in its background."""
    background = [_background(session_id, task) for task in update.background]
    wire: JsonObject = {"state": update.state, "background": background}
    if update.state != "idle":
        return wire
    if update.fault is not None:
        wire["stopReason"] = "error"
        wire["error"] = _error(update.fault)
    elif update.end is not None:
        wire.update(v1.prompt_result(update.end))
    return wire


def _background(session_id: str, task: BackgroundTask) -> JsonObject:
    """Each piece of work once: a command as its terminal, which has the id of its call."""
    if task.agent is not None:
        return {"type": "subagent", "sessionId": v1.subagent_id(session_id, task.agent)}
    if task.tool_call_id is not None and task.command:
        return {"type": "terminal", "terminalId": task.tool_call_id}
    if task.tool_call_id is not None:
        return {"type": "tool_call", "toolCallId": task.tool_call_id}
    # Claude Code has tasks that no tool call began; the protocol has no word for them.
    return {"type": f"_{META_KEY}/task", "taskId": task.id, "title": task.title}


def _error(fault: Fault) -> JsonObject:
    wire: JsonObject = {"code": fault.code, "message": fault.message}
    if fault.data is not None:
        wire["data"] = fault.data
    return wire


def permission_params(session_id: str, question: Question) -> JsonObject:
    """Params of `session/request_permission`."""
    wire: JsonObject = {"sessionId": session_id, "title": question.tool_call.title or _FALLBACK_TITLE}
    if question.reason is not None:
        wire["description"] = question.reason
    call, asked = question.tool_call, question.command
    if asked is None:
        wire["subject"] = {"type": "tool_call", "toolCall": tool_call_patch(call)}
    else:
        wire["subject"] = {"type": "command", "command": asked.command, "cwd": asked.cwd, "toolCallId": call.id}
    wire["options"] = [{"optionId": o.id, "name": o.name, "kind": o.kind} for o in question.options]
    return wire


# Each function takes the one class it stands under; no type can say that of a table.
_RENDERERS: dict[type, Callable[[Any], JsonObject]] = {
    Message: message,
    ToolCall: tool_call,
    ToolCallUpdate: tool_call_update,
    Plan: _plan,
    PlanText: _plan_text,
    Usage: _usage,
    Commands: _commands,
    SessionInfo: _session_info,
    Options: _options,
    Notice: _notice,
    Compaction: _compaction,
}
