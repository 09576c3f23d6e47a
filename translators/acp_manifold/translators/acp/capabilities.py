"""What a client says it takes: `clientCapabilities` of its `initialize` (ACP v1, SDK 2.4.0, unstable schema)."""

from __future__ import annotations

from acp_manifold.translators.narrow import JsonObject, as_int, as_list, is_object, obj
from acp_manifold.translators.values import NamedTuple


class ClientCapabilities(NamedTuple):
    """What goes only to clients that take it; a capability of a wrong shape counts as none."""

    elicitation_form: bool = False
    elicitation_url: bool = False
    plan: bool = False
    """Whether it takes `plan_update` and `plan_removed`."""
    subagents: bool = False
    notices: bool = False
    compaction: bool = False
    boolean_options: bool = False
    """Whether a config option may be a switch; else it is a choice of two."""
    terminal_login: bool = False
    """Whether it can run a login in a terminal, by this agent's command with further arguments."""
    terminal_output: bool = False
    """Whether it shows a terminal from `_meta` of tool calls (`terminal_info`, `terminal_output`, `terminal_exit`)."""
    air: frozenset[str] = frozenset()
    """The vendor's extensions it asks for, by name."""
    terminal_login_command: bool = False
    """Whether it runs a login in a terminal by a command in `_meta["terminal-auth"]` of the method."""


def client_capabilities(params: JsonObject) -> ClientCapabilities:
    """The capabilities in the params of `initialize`; what is missing or malformed is not there."""
    said = obj(params, "clientCapabilities")
    session, elicitation, meta = obj(said, "session"), obj(said, "elicitation"), obj(said, "_meta")
    air = obj(obj(meta, "jetbrains"), "air")
    asked = as_list(air.get("capabilities")) if (as_int(air.get("version")) or 0) >= 1 else []
    return ClientCapabilities(
        elicitation_form=is_object(elicitation.get("form")),
        elicitation_url=is_object(elicitation.get("url")),
        plan=is_object(said.get("plan")),
        subagents=is_object(said.get("subagents")),
        notices=is_object(session.get("notices")),
        compaction=is_object(session.get("compaction")),
        boolean_options=is_object(obj(session, "configOptions").get("boolean")),
        terminal_login=obj(said, "auth").get("terminal") is True,
        terminal_output=meta.get("terminal_output") is True,
        air=frozenset(name for name in asked if isinstance(name, str)),
        terminal_login_command=meta.get("terminal-auth") is True,
    )
