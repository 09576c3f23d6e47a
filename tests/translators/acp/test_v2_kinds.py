"""Every kind of thing that ACP v2 lets an agent tell, or ask, is told or asked here, or left out for a reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from inspect import getsource
from types import ModuleType
from typing import NamedTuple

import pytest

from acp_manifold.bridge import auth_news, forms, link, link_v2, peer
from acp_manifold.translators.acp import v2
from acp_manifold.translators.acp.v2_telling import Telling
from acp_manifold.translators.narrow import JsonObject, as_list, is_object, obj, text
from acp_manifold.translators.updates import (
    Audio,
    BackgroundTask,
    BlobResource,
    Choice,
    Command,
    Commands,
    CommandToRun,
    Compaction,
    ConfigOption,
    Diff,
    Fault,
    Image,
    Message,
    MessageChunk,
    Notice,
    Option,
    Options,
    Plan,
    PlanEntry,
    PlanText,
    Question,
    ResourceLink,
    SessionInfo,
    SessionState,
    Subagent,
    Text,
    TextResource,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
    TurnEnd,
    Update,
    Usage,
)
from tests.schema import schema

EVERYTHING: list[Update] = [
    Message("user", (Text("go"), Image("aGk=", "image/png")), "u"),
    *(MessageChunk(role, Text("x"), "m") for role in ("user", "agent", "thought")),
    *(
        MessageChunk("agent", content, "m")
        for content in (
            Audio("aGk=", "audio/wav"),
            ResourceLink("file:///a", "a"),
            TextResource("file:///a", "a"),
            BlobResource("file:///a", "aGk="),
        )
    ),
    ToolCall("c", "make", "execute", content=(Text("x"),), runs_in="/w", raw_input={"command": "make"}),
    ToolOutput("c", "out"),
    ToolOutput("of nobody that was told", "out"),
    ToolCallUpdate("c", status="completed", exit_code=0),
    *(
        ToolCall(f"e{n}", "Edit", "edit", "in_progress", content=(diff,))
        for n, diff in enumerate(
            (
                Diff("/a", None, "x\n"),
                Diff("/a", "x\n", "y\n"),
                Diff("/a", "x\n", "", deleted=True),
                Diff("/a", "x\n", "y\n", moved_from="/b"),
            )
        )
    ),
    ToolCallUpdate("e0", status="failed"),
    ToolCallUpdate("e1", status="cancelled"),
    Plan((PlanEntry("a", "pending"), PlanEntry("b", "in_progress"), PlanEntry("c", "completed"))),
    PlanText("p", "# Plan"),
    Plan(()),
    Usage(1, 2, 0.5),
    Commands((Command("go", "goes", "where"),)),
    SessionInfo("title", "2026-01-01T00:00:00.000Z"),
    Options(
        (
            ConfigOption("mode", "Mode", "a", (Choice("a", "A"),), "mode"),
            ConfigOption("fast", "Fast", True, (), "model_config"),
        )
    ),
    *(Notice(severity, "x") for severity in ("info", "warning", "error")),
    *(Compaction("k", status, "short") for status in ("in_progress", "completed", "failed", "cancelled")),
    Subagent("s", "running", "Look", "x", "look"),
    SessionState("running"),
    SessionState(
        "requires_action",
        background=(
            BackgroundTask("1", "make", "c", command=True),
            BackgroundTask("2", "watch", "e0"),
            BackgroundTask("3", "look", agent="s"),
        ),
    ),
    *(
        SessionState("idle", TurnEnd(reason))
        for reason in ("end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled")
    ),
    SessionState("idle", fault=Fault(-32603, "no")),
]

NO_UPDATE = {
    "compaction_summary_chunk": "the CLIs tell a summary whole, if at all: it is in `compaction_update`",
    "session_message_chunk": "what a sub-agent is told to do is known whole: it is a `session_message`",
}
"""Kinds of updates that are never told, and why."""


class Union(NamedTuple):
    """A union inside of updates."""

    name: str
    field: str
    """Where its variants, or its words, stand."""
    words: bool = False
    """Whether it is one of words, not of objects that have them in the field."""
    tag: str | None = None
    """The only kind of update that has it, if others have the same field."""
    left_out: Mapping[str, str] = {}
    """Variants that are never told, and why."""


UNIONS = (
    Union("ToolCallContent", "type"),
    Union("ContentBlock", "type"),
    Union("PlanUpdateContent", "type", left_out={"file": "a plan in a file of the CLI's is told by its text"}),
    Union("BackgroundWork", "type"),
    Union("StateUpdate", "state", left_out={"unknown": "the state is always known"}),
    Union("IdleStateUpdate", "stopReason"),
    Union("DiffChange", "operation", left_out={"copy": "no CLI copies files in an edit"}),
    Union("SessionConfigOption", "type"),
    Union("AvailableCommand", "type"),
    Union("NoticeSeverity", "severity", words=True),
    Union("CompactionStatus", "status", words=True, tag="compaction_update"),
    Union(
        "PlanEntryStatus",
        "status",
        words=True,
        tag="plan_update",
        left_out={"cancelled": "no CLI has steps that were given up"},
    ),
    Union(
        "ToolCallStatus",
        "status",
        words=True,
        tag="tool_call_update",
        left_out={
            "paused": "no CLI pauses a call",
        },
    ),
)


def told() -> list[JsonObject]:
    """The updates of one client that has heard everything, live and as a history."""
    bodies: list[JsonObject] = []
    for history in (False, True):
        telling = Telling("mark", history=history)
        for update in EVERYTHING:
            for params in telling.updates("s", update):
                schema(2).check({"jsonrpc": "2.0", "method": "session/update", "params": params})
                bodies.append(obj(params, "update"))
    return bodies


def values(node: object, field: str) -> Iterator[str]:
    """Every text that stands under a field, wherever."""
    if is_object(node):
        value = node.get(field)
        if isinstance(value, str):
            yield value
        for inner in node.values():
            yield from values(inner, field)
    for inner in as_list(node):
        yield from values(inner, field)


def test_every_kind_of_update_is_told_or_left_out_for_a_reason() -> None:
    tags = {text(body, "sessionUpdate") for body in told()}
    assert tags | NO_UPDATE.keys() == schema(2).update_tags
    assert not tags & NO_UPDATE.keys()


@pytest.mark.parametrize("union", UNIONS, ids=[union.name for union in UNIONS])
def test_every_variant_inside_of_updates_is_told_or_left_out_for_a_reason(union: Union) -> None:
    kinds = schema(2).kinds(union.name, "" if union.words else union.field)
    assert kinds, f"the schema has no {union.name}"
    bodies = [body for body in told() if union.tag in (None, body["sessionUpdate"])]
    shown = set(values(bodies, union.field)) & kinds
    assert shown | union.left_out.keys() == kinds
    assert not shown & union.left_out.keys()


ASKED: dict[str, ModuleType] = {
    "session/update": link_v2,
    "session/request_permission": link_v2,
    "elicitation/create": forms,
    "elicitation/complete": link,
    "auth/status_update": auth_news,
    "$/cancel_request": peer,
}
"""What the agent sends to a client, and where."""

NEVER_ASKED = {"mcp/message": "MCP servers of type `acp` are not advertised"}


def test_every_request_of_an_agent_is_made_or_left_out_for_a_reason() -> None:
    methods = {method for method in schema(2).client_methods if not method.startswith("proxy/")}
    assert methods == ASKED.keys() | NEVER_ASKED.keys()
    for method, module in ASKED.items():
        assert f'"{method}"' in getsource(module), f"{module.__name__} sends no {method}"


def test_a_permission_is_about_a_command_or_another_tool_call_and_says_why() -> None:
    call = ToolCallUpdate("c", title="make", kind="execute")
    options = tuple(Option(kind, kind, kind) for kind in ("allow_once", "allow_always", "reject_once", "reject_always"))
    asked = [
        v2.permission_params("s", Question(call, options, CommandToRun("make all", "/w"), "to build it")),
        v2.permission_params("s", Question(call, options)),
    ]
    for params in asked:
        schema(2).check({"jsonrpc": "2.0", "id": 1, "method": "session/request_permission", "params": params})
    command, other = (obj(params, "subject") for params in asked)
    assert command == {"type": "command", "command": "make all", "cwd": "/w", "toolCallId": "c"}
    assert (asked[0]["description"], "description" in asked[1]) == ("to build it", False)
    assert {command["type"], other["type"]} == schema(2).kinds("RequestPermissionSubject")
    assert {option.kind for option in options} == schema(2).kinds("PermissionOptionKind", "")
