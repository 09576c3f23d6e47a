"""Canonical updates, questions and session rows to ACP v1 JSON (SDK 2.4.0, unstable schema)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.acp.requests import META_KEY
from acp_manifold.translators.narrow import JsonObject, as_object, as_str, obj
from acp_manifold.translators.updates import (
    Audio,
    BackgroundTask,
    BlobResource,
    Commands,
    Compaction,
    Content,
    Diff,
    Image,
    MessageChunk,
    Notice,
    OfSubagent,
    Plan,
    PlanText,
    Question,
    ResourceLink,
    SessionInfo,
    Subagent,
    TaskOutput,
    Text,
    TextResource,
    ToolCall,
    ToolCallUpdate,
    ToolContent,
    ToolStatus,
    TurnEnd,
    Update,
    Usage,
)

VERSION = 1

AIR = (
    "sessionIndex",
    "sessionBatchGet",
    "sessionArchive",
    "sessionRename",
    "sessionListSubscribe",
    "sessionWorktrees",
)
"""The vendor's extensions that are served, under the names by which its clients ask for them."""

_AIR_ALONE = ("customInstructions",)
"""Those that no client gets by asking for the index."""

_STATUSES: dict[ToolStatus | None, str | None] = {"cancelled": "failed"}
"""What ACP v1 calls a status that it has no word for."""

_CHUNKS = {"user": "user_message_chunk", "agent": "agent_message_chunk", "thought": "agent_thought_chunk"}


def update_params(session_id: str, update: Update) -> JsonObject:
    """Params of the `session/update` that tells `update`.

    Raises:
        TypeError: An update that has no rendering of its own: tool output goes through `ToolOutputs` first,
            and what only some clients take through `plainer`.
    """
    if isinstance(update, OfSubagent | Subagent):
        return _of_subagent(session_id, session_id, update)
    for kind, render in _RENDERERS:
        if isinstance(update, kind):
            return {"sessionId": session_id, "update": render(update)}
    raise TypeError(f"no ACP v1 rendering for {type(update).__name__}")


def _of_subagent(session_id: str, place: str, update: OfSubagent | Subagent) -> JsonObject:
    """An update of a sub-agent: in its own session, or, about it, in that of the one that began it (`place`)."""
    if isinstance(update, Subagent):
        body = _without_none(
            {
                "sessionUpdate": "subagent_update",
                "sessionId": subagent_id(session_id, update.id),
                "title": update.title,
                "description": update.description,
                "state": {"state": update.state},
            }
        )
        return {"sessionId": place, "update": body}
    place = subagent_id(session_id, update.id)
    inner = update.update
    return _of_subagent(session_id, place, inner) if isinstance(inner, Subagent) else update_params(place, inner)


def content_block(content: Content) -> JsonObject:
    """One content block."""
    match content:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(data, mime_type, uri):
            return _without_none({"type": "image", "data": data, "mimeType": mime_type, "uri": uri})
        case ResourceLink(uri, name, mime_type, title, description):
            return _without_none(
                {
                    "type": "resource_link",
                    "uri": uri,
                    "name": name,
                    "mimeType": mime_type,
                    "title": title,
                    "description": description,
                }
            )
        case TextResource(uri, said, mime_type):
            return {"type": "resource", "resource": _without_none({"uri": uri, "text": said, "mimeType": mime_type})}
        case BlobResource(uri, data, mime_type):
            return {"type": "resource", "resource": _without_none({"uri": uri, "blob": data, "mimeType": mime_type})}
        case Audio(data, mime_type):
            return {"type": "audio", "data": data, "mimeType": mime_type}


def _chunk(update: MessageChunk) -> JsonObject:
    body: JsonObject = {"sessionUpdate": _CHUNKS[update.role], "content": content_block(update.content)}
    if update.message_id is not None:
        body["messageId"] = update.message_id
    return body


def _tool_call(update: ToolCall) -> JsonObject:
    return _without_none(
        {
            "sessionUpdate": "tool_call",
            "toolCallId": update.id,
            "title": update.title,
            "name": update.name,
            "kind": update.kind,
            "status": _STATUSES.get(update.status, update.status),
            "content": [_tool_content(item) for item in update.content] or None,
            "locations": _locations(update) or None,
            "rawInput": update.raw_input,
            "_meta": None if update.parent is None else {"claudeCode": {"parentToolUseId": update.parent}},
        }
    )


def _tool_call_update(update: ToolCallUpdate) -> JsonObject:
    return {"sessionUpdate": "tool_call_update", **tool_call_patch(update)}


def tool_call_patch(update: ToolCallUpdate) -> JsonObject:
    """The fields of a tool call that a patch holds."""
    return _without_none(
        {
            "toolCallId": update.id,
            "title": update.title,
            "kind": update.kind,
            "status": _STATUSES.get(update.status, update.status),
            "content": None if update.content is None else [_tool_content(item) for item in update.content],
            "locations": None if update.locations is None else _locations(update),
            "rawInput": update.raw_input,
            "rawOutput": update.raw_output,
        }
    )


def _locations(update: ToolCall | ToolCallUpdate) -> list[JsonObject]:
    return [_without_none({"path": place.path, "line": place.line}) for place in update.locations or ()]


def _tool_content(item: ToolContent) -> JsonObject:
    if isinstance(item, Diff):
        return _without_none({"type": "diff", "path": item.path, "oldText": item.old, "newText": item.new})
    return {"type": "content", "content": content_block(item)}


def _plan(update: Plan) -> JsonObject:
    entries = [{"content": e.content, "priority": e.priority, "status": e.status} for e in update.entries]
    return {"sessionUpdate": "plan", "entries": entries}


def _plan_text(update: PlanText) -> JsonObject:
    plan = {"type": "markdown", "planId": update.id, "content": update.text}
    return {"sessionUpdate": "plan_update", "plan": plan}


def subagent_id(session_id: str, call_id: str) -> str:
    """The id of a sub-agent's session, from that of the session a person opened and of the call that began it."""
    return f"{session_id}.{call_id}"


def subagent_of(session_id: str) -> tuple[str, str] | None:
    """The session, and the call, that the id of a sub-agent's session is made of; None if it is none."""
    parent, dot, call = session_id.partition(".")
    return (parent, call) if dot else None


def _usage(update: Usage) -> JsonObject:
    body: JsonObject = {"sessionUpdate": "usage_update", "used": update.used, "size": update.size}
    if update.cost_usd is not None:
        body["cost"] = {"amount": update.cost_usd, "currency": "USD"}
    return body


def _commands(update: Commands) -> JsonObject:
    commands = [
        _without_none(
            {"name": c.name, "description": c.description, "input": None if c.hint is None else {"hint": c.hint}}
        )
        for c in update.commands
    ]
    return {"sessionUpdate": "available_commands_update", "availableCommands": commands}


def _session_info(update: SessionInfo) -> JsonObject:
    return _without_none(
        {"sessionUpdate": "session_info_update", "title": update.title, "updatedAt": update.updated_at}
    )


def _notice(update: Notice) -> JsonObject:
    return _without_none(
        {
            "sessionUpdate": "notice",
            "severity": update.severity,
            "title": update.title,
            "description": update.description,
        }
    )


def _compaction(update: Compaction) -> JsonObject:
    return _without_none(
        {
            "sessionUpdate": "compaction_update",
            "compactionId": update.id,
            "status": update.status,
            "summary": None if update.summary is None else [content_block(Text(update.summary))],
            "error": update.error,
        }
    )


_U = TypeVar("_U")


def _on(kind: type[_U], render: Callable[[_U], JsonObject]) -> tuple[type, Callable[[object], JsonObject]]:
    """A row of the table: `render` is only ever called with what `kind` admits."""
    return kind, lambda update: render(update) if isinstance(update, kind) else {}


_RENDERERS = (
    _on(MessageChunk, _chunk),
    _on(ToolCallUpdate, _tool_call_update),
    _on(ToolCall, _tool_call),
    _on(Usage, _usage),
    _on(Plan, _plan),
    _on(Commands, _commands),
    _on(SessionInfo, _session_info),
    _on(Notice, _notice),
    _on(Compaction, _compaction),
    _on(PlanText, _plan_text),
)


def permission_params(session_id: str, question: Question) -> JsonObject:
    """Params of `session/request_permission`."""
    return {
        "sessionId": session_id,
        "toolCall": tool_call_patch(question.tool_call),
        "options": [{"optionId": o.id, "name": o.name, "kind": o.kind} for o in question.options],
    }


def chosen_option(result: object) -> str | None:
    """The option id in an answer to `session/request_permission`; None for anything that is not a choice."""
    outcome = obj(as_object(result), "outcome")
    return as_str(outcome.get("optionId")) if outcome.get("outcome") == "selected" else None


def prompt_result(end: TurnEnd) -> JsonObject:
    """The answer to `session/prompt`."""
    result: JsonObject = {"stopReason": end.stop_reason}
    if end.input_tokens is not None and end.output_tokens is not None:
        cached = (end.cached_read_tokens or 0) + (end.cached_write_tokens or 0)
        result["usage"] = _without_none(
            {
                "totalTokens": end.input_tokens + end.output_tokens,
                # The total is the sum of all kinds, so that what was cached is counted once.
                "inputTokens": max(0, end.input_tokens - cached),
                "outputTokens": end.output_tokens,
                "cachedReadTokens": end.cached_read_tokens,
                "cachedWriteTokens": end.cached_write_tokens,
                "thoughtTokens": end.thought_tokens,
            }
        )
    return result


def session_row(
    session_id: str,
    cwd: str,
    updated_at: str,
    title: str | None,
    additional_directories: tuple[str, ...],
    backend: str,
    *,
    archived: bool,
) -> JsonObject:
    """One row of `session/list`."""
    row: JsonObject = {"sessionId": session_id, "cwd": cwd, "updatedAt": updated_at}
    if title is not None:
        row["title"] = title
    if additional_directories:
        row["additionalDirectories"] = list(additional_directories)
    row["archived"] = archived
    row["_meta"] = {"acp-manifold": {"backend": backend}}
    return row


def air_extensions(can: ClientCapabilities) -> tuple[str, ...]:
    """The vendor's extensions that are served to this client: those it asks for, all with the index."""
    index = tuple(name for name in AIR if name in can.air or "sessionIndex" in can.air)
    return (*index, *(name for name in _AIR_ALONE if name in can.air))


def archived_params(session_id: str, archived: bool) -> JsonObject:
    """Params of the `session/update` that tells a client with the vendor's extensions of a session's archive state."""
    meta = {"jetbrains": {"air": {"version": 1, "archived": archived}}}
    return {"sessionId": session_id, "update": {"sessionUpdate": "session_info_update", "_meta": meta}}


def initialize_result(
    version: str, auth_methods: list[JsonObject], can: ClientCapabilities, *, sse: bool
) -> JsonObject:
    """The answer to `initialize`: what is advertised here is what the connection serves.

    Args:
        version: Ours.
        auth_methods: How to log in.
        can: What the client takes: what only some clients take is advertised to those alone.
        sse: Whether any backend takes MCP servers that speak SSE.
    """
    result: JsonObject = {
        "protocolVersion": VERSION,
        "agentInfo": {"name": "acp-manifold", "title": "acp-manifold", "version": version},
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
            "mcpCapabilities": {"http": True, "sse": sse},
            "sessionCapabilities": {
                "list": {},
                "resume": {},
                "fork": {},
                "close": {},
                "delete": {},
                "archive": {},
                "status": {},
                "additionalDirectories": {},
                "systemPrompt": {"mode": {"override": {}}},
                "title": {},
                "setTitle": {},
            },
            "auth": {"logout": {}, "status": {}},
            "providers": {},
            "_meta": {META_KEY: {"background": True, "record": True}},
        },
        "authMethods": auth_methods,
    }
    meta: JsonObject = {"steering": {"supported": True}}
    extensions = list(air_extensions(can))
    if extensions:
        meta["jetbrains"] = {"air": {"version": 1, "capabilities": extensions}}
    result["_meta"] = meta
    return result


def tasks_result(tasks: tuple[BackgroundTask, ...]) -> JsonObject:
    """The answer to `_acp-manifold/background/list`."""
    rows = [_without_none({"taskId": task.id, "title": task.title, "toolCallId": task.tool_call_id}) for task in tasks]
    return {"tasks": rows}


def task_output_result(output: TaskOutput) -> JsonObject:
    """The answer to `_acp-manifold/background/output`."""
    return {
        "output": output.text,
        "totalBytes": output.total,
        "truncated": output.total > len(output.text.encode("utf-8", "replace")),
    }


def _without_none(fields: dict[str, object]) -> JsonObject:
    return {key: value for key, value in fields.items() if value is not None}
