"""The canonical session events: what backend translators make and ACP translators render.

Named tuples without behaviour. They say what happened in a conversation, not how a
protocol spells it: no ACP version and no CLI can be read off them. A field that is `None`
in a patch means "unchanged".
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from acp_manifold.translators.values import NamedTuple

from .narrow import JsonObject

Role: TypeAlias = Literal["user", "agent", "thought"]
"""Who speaks in a message chunk; a thought is the agent speaking to itself."""

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
ToolEnd: TypeAlias = Literal["completed", "failed", "cancelled"]
"""How a tool call ended; `cancelled`: somebody had it stopped. A call that was refused has failed."""
ToolStatus: TypeAlias = Literal["pending", "in_progress"] | ToolEnd
ENDED: frozenset[ToolStatus | None] = frozenset({"completed", "failed", "cancelled"})
"""The statuses in which a tool call is over."""
PlanStatus: TypeAlias = Literal["pending", "in_progress", "completed"]
StopReason: TypeAlias = Literal["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"]


class Text(NamedTuple):
    """A piece of text, Markdown where the backend writes Markdown."""

    text: str


class Image(NamedTuple):
    """A picture."""

    data: str
    """The bytes in base64; empty for one that is only referred to, by its `uri`."""
    mime_type: str
    uri: str | None = None


class ResourceLink(NamedTuple):
    """A reference to something the other side can read itself."""

    uri: str
    name: str
    mime_type: str | None = None
    title: str | None = None
    description: str | None = None


class TextResource(NamedTuple):
    """A text that is sent along, with where it is from."""

    uri: str
    text: str
    mime_type: str | None = None


class BlobResource(NamedTuple):
    """Bytes that are sent along, with where they are from."""

    uri: str
    data: str
    """The bytes in base64."""
    mime_type: str | None = None


class Audio(NamedTuple):
    """A sound; a tool may make one."""

    data: str
    """The bytes in base64."""
    mime_type: str


Content: TypeAlias = Text | Image | ResourceLink | TextResource | BlobResource | Audio
Prompt: TypeAlias = tuple[Content, ...]
"""What a person sends in one turn, in order; never empty."""


class MessageChunk(NamedTuple):
    """The next piece of a message; chunks with one `message_id` and role are one message."""

    role: Role
    content: Content
    message_id: str | None = None


class Message(NamedTuple):
    """A message, whole, which takes the place of what was told of it: told when the conversation takes it in.

    Its pieces are told as well, for clients that know no more than those.
    """

    role: Role
    content: Prompt
    message_id: str


class Diff(NamedTuple):
    """A change of one file: `old` is None for a file that is new."""

    path: str
    """Absolute."""
    old: str | None
    new: str
    deleted: bool = False
    """Whether the file is gone, and not only empty."""
    line: int = 1
    """Where `old` begins in the file as it was, counted from 1, as far as it is known; `old` is whole lines then."""
    moved_from: str | None = None
    """Where the file was before, if it was moved; absolute."""


ToolContent: TypeAlias = Content | Diff


class Location(NamedTuple):
    """A place in a file that a tool call works on."""

    path: str
    """Absolute."""
    line: int | None = None
    """Counted from 1."""


class ToolCall(NamedTuple):
    """A tool call that begins."""

    id: str
    title: str
    kind: ToolKind = "other"
    status: ToolStatus = "pending"
    content: tuple[ToolContent, ...] = ()
    locations: tuple[Location, ...] = ()
    raw_input: JsonObject | None = None
    name: str | None = None
    """The tool's name in the CLI, such as `Bash` or `mcp.server.tool`."""
    parent: str | None = None
    """The tool call of the sub-agent that made this one, where sub-agents have no conversation of their own."""
    runs_in: str | None = None
    """For a command whose output is told: the directory it runs in, absolute."""


class ToolCallUpdate(NamedTuple):
    """A patch of a tool call: None leaves a field as it is, a tuple replaces it whole."""

    id: str
    title: str | None = None
    kind: ToolKind | None = None
    status: ToolStatus | None = None
    content: tuple[ToolContent, ...] | None = None
    locations: tuple[Location, ...] | None = None
    raw_input: JsonObject | None = None
    raw_output: object = None
    exit_code: int | None = None
    """Of a command that has ended, where the backend says it."""


class ToolOutput(NamedTuple):
    """The next piece of what a running command prints; pieces add up, none repeats an earlier one."""

    id: str
    """The tool call's id."""
    data: str


class PlanEntry(NamedTuple):
    """One step of a plan."""

    content: str
    status: PlanStatus
    priority: Literal["high", "medium", "low"] = "medium"


class Plan(NamedTuple):
    """The whole plan; it takes the place of the one before."""

    entries: tuple[PlanEntry, ...]


class PlanChunk(NamedTuple):
    """The next piece of a plan that the agent proposes in words."""

    id: str
    text: str


class PlanText(NamedTuple):
    """A plan that the agent proposes, whole, in Markdown: the pieces before it put together."""

    id: str
    text: str


class Usage(NamedTuple):
    """How full the context is."""

    used: int
    """Tokens."""
    size: int
    """Tokens."""
    cost_usd: float | None = None
    """Of the whole session, in US dollars, where the backend says it."""


class Command(NamedTuple):
    """A slash command, its name without the slash."""

    name: str
    description: str
    hint: str | None = None
    """What to type behind the name; None when the command takes nothing."""


class Commands(NamedTuple):
    """All slash commands of the session; they take the place of those before."""

    commands: tuple[Command, ...]


class SessionInfo(NamedTuple):
    """A change of what a list shows about the session: None leaves a field as it is."""

    title: str | None = None
    updated_at: str | None = None
    """ISO 8601 with a zone."""


OptionCategory: TypeAlias = Literal["mode", "model", "thought_level", "model_config"]
"""What an option is about, for clients that have a place of their own for it."""


class Choice(NamedTuple):
    """A value that an option can have."""

    value: str
    name: str
    description: str | None = None


class ConfigOption(NamedTuple):
    """Something a person can set for the session, and what holds now."""

    id: str
    name: str
    value: str | bool
    """What holds now: the value of one of `choices`, or, of a switch, whether it is on."""
    choices: tuple[Choice, ...] = ()
    """None for a switch."""
    category: OptionCategory | None = None
    description: str | None = None


class Options(NamedTuple):
    """All options of the session; they take the place of those before."""

    options: tuple[ConfigOption, ...]


class Notice(NamedTuple):
    """Something a person should know about the session that nobody in it said: an event, no part of the history.

    An `error` reaches everybody, as a message where a client takes no notices; the others are left out there.
    """

    severity: Literal["info", "warning", "error"]
    title: str
    """Plain text that stands alone; never empty."""
    description: str | None = None
    """What to do about it, or more of it."""


class Compaction(NamedTuple):
    """The conversation is replaced by a summary of it; the first update of an id has the status `in_progress`."""

    id: str
    """Unique in the session."""
    status: Literal["in_progress", "completed", "failed", "cancelled"]
    summary: str | None = None
    """What the model keeps of the conversation, where the backend tells it."""
    error: str | None = None
    """Why it failed, for people."""


class Subagent(NamedTuple):
    """An agent that this one has set to work, or what has become of it: None leaves a field as it is."""

    id: str
    """The tool call that began it."""
    state: Literal["running", "idle"]
    title: str | None = None
    description: str | None = None
    prompt: str | None = None
    """What it was told to do, where that is known."""
    stop_reason: StopReason | None = None
    """Why it has stopped to work just now; None where it failed, or where that is not known."""


class OfSubagent(NamedTuple):
    """Something happened in the conversation of a sub-agent, which is not that of the person."""

    id: str
    """The `Subagent`'s."""
    update: MessageChunk | ToolCall | ToolCallUpdate | ToolOutput | Subagent


class BackgroundTask(NamedTuple):
    """A command, or another piece of work, that goes on while no turn needs it."""

    id: str
    """The CLI's own id, known in this session alone."""
    title: str
    """The command, or what the CLI calls the work."""
    tool_call_id: str | None = None
    """The call that began it: in progress, as clients see it, for as long as the work goes on."""
    command: bool = False
    """Whether it is a command, whose output that call tells."""
    agent: str | None = None
    """The sub-agent that works, by the id of its `Subagent`."""


class TaskOutput(NamedTuple):
    """What a background task has printed so far."""

    text: str
    """The last of it, as much as is kept."""
    total: int
    """Bytes it has printed altogether."""


class Fault(NamedTuple):
    """Why a turn failed, as its client is told."""

    code: int
    """A JSON-RPC error code."""
    message: str
    data: object = None


class SessionState(NamedTuple):
    """What goes on in a session now; it takes the place of the one before."""

    state: Literal["running", "requires_action", "idle"]
    end: TurnEnd | None = None
    """How the turn ended that left the session idle; None where none has just ended, or where it failed."""
    fault: Fault | None = None
    """Why it failed."""
    background: tuple[BackgroundTask, ...] = ()
    """All that goes on though no turn needs it."""


class OwnTurn(NamedTuple):
    """The backend works though nobody has prompted it, or has ended that: a task in its background has ended, say."""

    running: bool
    end: TurnEnd | None = None
    """How it ended, where the backend says so."""
    failure: str | None = None
    """Why it failed, in the backend's words."""


class Unknown(NamedTuple):
    """A record of the backend that no translator knows; the caller passes it on or logs it."""

    raw: JsonObject


Update: TypeAlias = (
    MessageChunk
    | Message
    | SessionState
    | ToolCall
    | ToolCallUpdate
    | ToolOutput
    | Plan
    | Usage
    | Commands
    | SessionInfo
    | Options
    | Notice
    | Compaction
    | PlanChunk
    | PlanText
    | Subagent
    | OfSubagent
    | OwnTurn
)
"""What a session tells its clients."""


class TurnEnd(NamedTuple):
    """How a turn came to its end, once all of its updates are out."""

    stop_reason: StopReason
    input_tokens: int | None = None
    """Tokens of this turn, cached ones included; None when the backend doesn't say."""
    output_tokens: int | None = None
    """Thoughts included."""
    cached_read_tokens: int | None = None
    """How many of the input tokens were read from a cache."""
    cached_write_tokens: int | None = None
    """How many of the input tokens were put into one."""
    thought_tokens: int | None = None
    """How many of the output tokens were thoughts."""


OptionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]


class Option(NamedTuple):
    """One answer a person may give to a question."""

    id: str
    name: str
    """What the button says, with the scope of the answer."""
    kind: OptionKind


class CommandToRun(NamedTuple):
    """A command that waits for consent."""

    command: str
    cwd: str
    """Absolute."""


class Question(NamedTuple):
    """A backend asks whether one tool call may run."""

    tool_call: ToolCallUpdate
    """The call in question, with enough of it for a dialog: title, kind, content, raw input."""
    options: tuple[Option, ...]
    """In the order to show; the first of kind `reject_once` refuses this one call and lets the turn go on."""
    command: CommandToRun | None = None
    """What the call runs, if it is about nothing but a command."""
    reason: str | None = None
    """Why it is asked, or what it is for, in the backend's words."""
