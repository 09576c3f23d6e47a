"""What a line of the client leg must be: JSON-RPC 2.0, and methods and updates that ACP has.

Names are those of ACP v1 and v2 (SDK 2.4.0, unstable parts included), with what clients spell otherwise.
Params are not looked into: that takes the published schema.
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_manifold.translators.acp.requests import TITLE_METHODS
from acp_manifold.translators.narrow import JsonObject, as_int, as_str, is_object, obj, text
from acp_manifold.translators.values import NamedTuple

REQUESTS_IN = frozenset(
    (
        *("initialize", "authenticate", "logout", "auth/status", "auth/login", "auth/logout"),
        *("providers/list", "providers/set", "providers/disable"),
        *("session/new", "session/load", "session/resume", "session/fork", "session/list", "session/status"),
        *("session/prompt", "session/set_mode", "session/set_config_option", "session/set_title"),
        *("session/archive", "session/unarchive", "session/close", "session/delete"),
        *("tool_call/cancel", "terminal/cancel"),
    )
)
"""What a client asks."""

NEWS_IN = frozenset(("session/cancel", "mcp/message", "$/cancel_request"))
"""What a client says without being answered."""

REQUESTS_OUT = frozenset(
    (
        *("session/request_permission", "elicitation/create", "mcp/message", "fs/read_text_file", "fs/write_text_file"),
        *("terminal/create", "terminal/output", "terminal/release", "terminal/kill", "terminal/wait_for_exit"),
    )
)
"""What an agent asks."""

NEWS_OUT = frozenset(("session/update", "elicitation/complete", "auth/status_update", "$/cancel_request"))
"""What an agent says without being answered."""

UPDATES = frozenset(
    (
        *("user_message", "user_message_chunk", "agent_message", "agent_message_chunk"),
        *("agent_thought", "agent_thought_chunk", "session_message", "session_message_chunk"),
        *("tool_call", "tool_call_update", "tool_call_content_chunk", "terminal_update", "terminal_output_chunk"),
        *("plan", "plan_update", "plan_removed", "available_commands_update", "current_mode_update"),
        *("config_option_update", "session_info_update", "usage_update", "notice", "state_update"),
        *("compaction_update", "compaction_summary_chunk", "subagent_update"),
    )
)
"""Every `sessionUpdate`."""

_SPELLED_OTHERWISE = frozenset(TITLE_METHODS) | {"session/set_model"}


class Breach(NamedTuple):
    """What is wrong with a line."""

    what: str
    certain: bool = True
    """False for what is only unheard of."""


def breaches(inward: bool, line: JsonObject) -> Iterator[Breach]:
    """What is wrong with a line of the client leg, which goes to the agent if `inward`."""
    if line.get("jsonrpc") != "2.0":
        yield Breach('has no "jsonrpc": "2.0"')
    if "id" in line and as_str(line["id"]) is None and as_int(line["id"]) is None and line["id"] is not None:
        yield Breach("has an id that is neither a string nor a whole number")
    if "method" in line:
        yield from _call(inward, line)
    else:
        yield from _answer(line)


def _call(inward: bool, line: JsonObject) -> Iterator[Breach]:
    method, params = as_str(line["method"]), line.get("params")
    if method is None:
        yield Breach("has a method that is no string")
        return
    if "result" in line or "error" in line:
        yield Breach("is both a call and an answer")
    if params is not None and not is_object(params):
        yield Breach("has params that are no object")
    known = (REQUESTS_IN if inward else REQUESTS_OUT) if "id" in line else (NEWS_IN if inward else NEWS_OUT)
    if method not in known and method not in _SPELLED_OTHERWISE and not method.startswith("_"):
        yield Breach(f"ACP has no such {'request' if 'id' in line else 'notification'}: {method}", certain=False)
    if method == "session/update":
        yield from _update(obj(line, "params"))


def _update(params: JsonObject) -> Iterator[Breach]:
    if not text(params, "sessionId"):
        yield Breach("is an update of no session")
    tag = text(obj(params, "update"), "sessionUpdate")
    if not tag:
        yield Breach("is an update that says not of what")
    elif tag not in UPDATES and not tag.startswith("_"):
        yield Breach(f"ACP has no such update: {tag}", certain=False)


def _answer(line: JsonObject) -> Iterator[Breach]:
    if "id" not in line or ("result" in line) == ("error" in line):
        yield Breach("is neither a call nor an answer: that has an id and either a result or an error")
        return
    error = line.get("error")
    if "error" in line and (
        not is_object(error) or as_int(error.get("code")) is None or as_str(error.get("message")) is None
    ):
        yield Breach("has an error without a code and a message")
