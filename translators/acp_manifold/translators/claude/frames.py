"""One named tuple per kind of stream-json line that Claude Code writes, and the parser that makes them.

`parse` takes a decoded line and picks a function by its `type` (and `subtype`). A kind without a
function becomes `Unknown`; a kind that is known and has nothing to tell a client becomes `Quiet`.
Shapes as seen from Claude Code 2.1.332.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_int, as_list, as_objects, as_str, flag, obj, text
from acp_manifold.translators.updates import Notice, ToolEnd, Unknown
from acp_manifold.translators.values import NamedTuple

from . import notices


class StreamEvent(NamedTuple):
    """A piece of a message while the model writes it: an event of the Messages API, as it is."""

    event: JsonObject
    parent: str | None
    """The tool call of the sub-agent that speaks; None for the main agent."""


class Assistant(NamedTuple):
    """Finished blocks of a message; one message comes in several of these, a block or more each."""

    message_id: str
    blocks: list[JsonObject]
    usage: JsonObject
    model: str
    parent: str | None
    error: str | None
    """The kind of API error that this message tells in words, such as `authentication_failed`."""


class User(NamedTuple):
    """What goes to the model in the user's name: tool results, mostly."""

    blocks: list[JsonObject]
    parent: str | None
    tool_use_result: object
    """The tool's own structured result, when the frame holds one result."""
    stopped: frozenset[str] = frozenset()
    """The calls that have no result because the turn was stopped."""


class Result(NamedTuple):
    """The end of a turn."""

    raw: JsonObject
    is_error: bool
    text: str
    user_message_uuids: tuple[str, ...]
    """The user messages this turn answered; empty when the CLI began the turn itself, or doesn't say."""
    origin: str | None
    """What began the turn, when no person did: `task-notification`."""


class Init(NamedTuple):
    """The head of a turn: what the session runs with."""

    terminal_commands: tuple[str, ...]
    """Slash commands that only make sense in a terminal."""
    raw: JsonObject
    """All of it: permission mode, model, output style, fast mode."""
    mcp_servers: tuple[tuple[str, str], ...] = ()
    """Name and state of each MCP server: `connected`, `failed`, `needs-auth`, `pending`, `disabled`."""


FAULTS = frozenset({"failed", "needs-auth"})
"""States in which an MCP server serves nothing until somebody does something about it."""


class CommandsChanged(NamedTuple):
    """There are other slash commands than before: prompts of an MCP server, say."""

    raw: JsonObject


class Reset(NamedTuple):
    """The conversation begins anew, under an id that only later frames bear."""

    trigger: str


class Mode(NamedTuple):
    """The permission mode has changed."""

    permission_mode: str


class TaskStarted(NamedTuple):
    """Work begins that may go on in the background; whether it does, `TasksRunning` says."""

    id: str
    call_id: str | None
    """The tool call that began it."""


class TaskEnded(NamedTuple):
    """A task is over."""

    id: str
    status: ToolEnd
    """How, as far as the CLI tells; `cancelled`: the model, or whoever has the session, had it stopped."""


class TasksRunning(NamedTuple):
    """All background tasks there are now: id -> what the CLI calls it."""

    tasks: dict[str, str]


class State(NamedTuple):
    """`running`, `idle` or `requires_action`; sent because CLAUDE_CODE_SDK_READS_SESSION_STATE is set."""

    state: str


class TitleChanged(NamedTuple):
    """The session has a custom title now; also sent at the start of a session that had one."""

    title: str


class Lifecycle(NamedTuple):
    """Where a user message is: `queued`, `started`, `completed` or `cancelled`."""

    uuid: str
    state: str


class ControlRequest(NamedTuple):
    """The CLI asks the host something and waits for the answer."""

    id: str
    request: JsonObject


class ControlCancel(NamedTuple):
    """The CLI no longer wants the answer to a request."""

    id: str


class ControlResponse(NamedTuple):
    """The CLI answers a request of the host."""

    id: str
    response: JsonObject
    error: str | None


class PageDone(NamedTuple):
    """What an MCP server had a page opened for is done."""

    server: str
    elicitation_id: str


class Noted(NamedTuple):
    """Something beside the conversation that a person should see."""

    notice: Notice


class Compacting(NamedTuple):
    """The CLI summarises the conversation, or has done so."""

    id: str
    """Of this line; the first of a compaction names it."""
    status: Literal["in_progress", "completed", "failed"]
    error: str | None = None


class Quiet(NamedTuple):
    """A kind of line that is known and has nothing for a client in it."""

    kind: str


Frame: TypeAlias = (
    StreamEvent
    | Assistant
    | User
    | Result
    | Init
    | State
    | TitleChanged
    | CommandsChanged
    | Reset
    | Mode
    | TaskStarted
    | TaskEnded
    | TasksRunning
    | Lifecycle
    | ControlRequest
    | ControlCancel
    | ControlResponse
    | PageDone
    | Noted
    | Compacting
    | Quiet
    | Unknown
)


def parse(raw: JsonObject) -> Frame:
    """The frame of one decoded line."""
    kind = raw.get("type")
    parser = _PARSERS.get(kind) if isinstance(kind, str) else None
    return parser(raw) if parser is not None else Unknown(raw)


def message_blocks(message: JsonObject) -> list[JsonObject]:
    """The content blocks of a message; a bare string is one text block."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else as_objects(content)


def _stream_event(raw: JsonObject) -> Frame:
    return StreamEvent(obj(raw, "event"), as_str(raw.get("parent_tool_use_id")))


def _assistant(raw: JsonObject) -> Frame:
    message = obj(raw, "message")
    return Assistant(
        message_id=text(message, "id") or text(raw, "uuid"),
        blocks=message_blocks(message),
        usage=obj(message, "usage"),
        model=text(message, "model"),
        parent=as_str(raw.get("parent_tool_use_id")),
        error=as_str(raw.get("error")),
    )


def _user(raw: JsonObject) -> Frame:
    about = as_objects(raw.get("tool_result_meta"))
    return User(
        message_blocks(obj(raw, "message")),
        as_str(raw.get("parent_tool_use_id")),
        raw.get("tool_use_result"),
        frozenset(text(call, "id") for call in about if call.get("non_execution_kind") in STOPS),
    )


def _result(raw: JsonObject) -> Frame:
    uuids = [uuid for uuid in as_list(raw.get("user_message_uuids")) if isinstance(uuid, str)]
    if not uuids and (single := as_str(raw.get("user_message_uuid"))):
        uuids = [single]
    return Result(
        raw=raw,
        is_error=flag(raw, "is_error"),
        text=text(raw, "result"),
        user_message_uuids=tuple(uuids),
        origin=as_str(obj(raw, "origin").get("kind")),
    )


def _system(raw: JsonObject) -> Frame:
    subtype = text(raw, "subtype")
    if subtype == "init":
        names = [name for name in as_list(raw.get("terminal_slash_commands")) if isinstance(name, str)]
        servers = [(text(server, "name"), text(server, "status")) for server in as_objects(raw.get("mcp_servers"))]
        return Init(tuple(names), raw, tuple(servers))
    if subtype == "commands_changed":
        return CommandsChanged(raw)
    if subtype == "session_state_changed":
        return State(text(raw, "state"))
    if subtype == "session_title_changed":
        return TitleChanged(text(raw, "title"))
    if subtype == "status" and (mode := as_str(raw.get("permissionMode"))):
        return Mode(mode)
    if subtype == "task_started":
        return TaskStarted(text(raw, "task_id"), as_str(raw.get("tool_use_id")))
    if subtype in ("task_updated", "task_notification"):
        return _task(raw)
    if subtype == "background_tasks_changed":
        tasks = as_objects(raw.get("tasks"))
        return TasksRunning({text(task, "task_id"): text(task, "description") for task in tasks})
    if subtype == "elicitation_complete":
        return PageDone(text(raw, "mcp_server_name"), text(raw, "elicitation_id"))
    if subtype == "status":
        return _status(raw)
    if subtype in notices.KINDS:
        return _noted(subtype, raw)
    return Quiet(subtype) if subtype in QUIET_SUBTYPES else Unknown(raw)


def _status(raw: JsonObject) -> Frame:
    result = text(raw, "compact_result")
    if text(raw, "status") == "compacting":
        return Compacting(text(raw, "uuid"), "in_progress")
    if result:
        status: Literal["completed", "failed"] = "completed" if result == "success" else "failed"
        return Compacting(text(raw, "uuid"), status, as_str(raw.get("compact_error")))
    return Quiet("status")


def _noted(kind: str, raw: JsonObject) -> Frame:
    notice = notices.of_line(kind, raw)
    return Noted(notice) if notice is not None else Quiet(kind)


def _task(raw: JsonObject) -> Frame:
    status = as_str(raw.get("status")) or as_str(obj(raw, "patch").get("status"))
    if status in TASK_ENDS:
        return TaskEnded(text(raw, "task_id"), TASK_ENDS[status])
    return Quiet(text(raw, "subtype"))


def _lifecycle(raw: JsonObject) -> Frame:
    return Lifecycle(text(raw, "command_uuid"), text(raw, "state"))


def _control_request(raw: JsonObject) -> Frame:
    return ControlRequest(text(raw, "request_id"), obj(raw, "request"))


def _control_cancel(raw: JsonObject) -> Frame:
    return ControlCancel(text(raw, "request_id"))


def _control_response(raw: JsonObject) -> Frame:
    response = obj(raw, "response")
    error = None if response.get("subtype") == "success" else text(response, "error", "no reason given")
    return ControlResponse(text(response, "request_id"), obj(response, "response"), error)


def _reset(raw: JsonObject) -> Frame:
    return Reset(text(raw, "trigger"))


def _rate_limit(raw: JsonObject) -> Frame:
    return _noted("rate_limit_event", raw)


def _quiet(raw: JsonObject) -> Frame:
    return Quiet(text(raw, "type"))


_PARSERS: dict[str, Callable[[JsonObject], Frame]] = {
    "stream_event": _stream_event,
    "assistant": _assistant,
    "user": _user,
    "result": _result,
    "system": _system,
    "command_lifecycle": _lifecycle,
    "control_request": _control_request,
    "control_cancel_request": _control_cancel,
    "control_response": _control_response,
    "conversation_reset": _reset,
    "keep_alive": _quiet,
    "rate_limit_event": _rate_limit,
    "tool_progress": _quiet,
    "tool_use_summary": _quiet,
    "prompt_suggestion": _quiet,
    "auth_status": _quiet,
}

TASK_ENDS: dict[str | None, ToolEnd] = {
    "completed": "completed",
    "failed": "failed",
    "killed": "cancelled",
    "stopped": "cancelled",
}
"""What Claude Code 2.1.332 calls the end of a task -> how it ended."""

STOPS = frozenset({"user-rejected", "interrupted", "cancelled"})
"""Why a call gave no result, in the words of Claude Code 2.1.332, where an interrupt has stopped the turn with it.

A call that was refused and let the turn go on is a `permission-rule` there, also if a person has refused it.
"""

QUIET_SUBTYPES = {
    "commands_changed": "asked for where it matters",
    "compact_boundary": "the status before it tells the end of a compaction",
    "control_request_progress": "a request of ours is on its way",
    "files_persisted": "for hosts that keep files elsewhere",
    "hook_progress": "the hook's end tells",
    "hook_started": "the hook's end tells",
    "local_command": "the result says what it printed",
    "local_command_output": "the result says what it printed",
    "memory_recall": "for the model",
    "model_refusal_no_fallback": "the result is the refusal",
    "permission_denied": "the tool's result says so",
    "task_progress": "the sub-agent's own messages tell",
    "thinking_tokens": "a count of what is told as thoughts",
    "worker_shutting_down": "the process' end tells",
}
"""Subtypes of `system` lines that have nothing for a client in them, and why."""


def context_tokens(usage: JsonObject) -> int:
    """Tokens that one answer of the model took up in the context: what went in, cached or not, and what came out."""
    keys = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    return sum(as_int(usage.get(key)) or 0 for key in keys)
