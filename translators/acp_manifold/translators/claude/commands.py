"""The slash commands of a session, as the answer to `initialize` and `commands_changed` frames list them."""

from __future__ import annotations

import re
from collections.abc import Collection

from acp_manifold.translators.narrow import JsonObject, as_objects, text
from acp_manifold.translators.updates import Command, Commands

TERMINAL_ONLY = frozenset(
    {
        "agents",
        "auto-mode-setup",
        "color",
        "doctor",
        "focus",
        "heapdump",
        "reload-plugins",
        "workflow-launch-exec",
    }
)
"""Commands of Claude Code 2.1.332 that need its own screen, or are no person's to type."""

SERVED = (
    Command("status", "Show the session's id, model, permission mode, context usage and login"),
    Command("mcp", "Show the MCP servers of this session and their tools", "reconnect|enable|disable [SERVER|all]"),
    Command("skills", "List the skills"),
)
"""What the adapter serves: Claude Code has these on its own screen alone, and of `mcp` a line that counts."""

NAMELESS = frozenset(
    {"clear", "compact", "config", "context", "effort", "fast", "mcp", "model", "rename", "skills", "status", "usage"}
)
"""Commands that say nothing of what the conversation is about: no title can be made of them."""

_MCP_PROMPT = re.compile(r"(?P<server>.+?):(?P<prompt>.+) \(MCP\)")
"""How a prompt of an MCP server is listed; it is taken as `mcp__server__prompt` too, which is one word."""

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")

_LONGEST = 200
"""Characters of a description: skills describe themselves to the model, at length."""


def commands(answer: JsonObject, left_out: Collection[str] = ()) -> Commands:
    """The commands worth offering: those of the CLI without `TERMINAL_ONLY` and `left_out`, and those of `SERVED`."""
    found: dict[str, Command] = {}
    for entry in as_objects(answer.get("commands")):
        name = _typed(text(entry, "name"))
        if name and not name.startswith("__") and name not in TERMINAL_ONLY and name not in left_out:
            hint = text(entry, "argumentHint") or None
            found.setdefault(name, Command(name, _first_lines(text(entry, "description")), hint))
    return Commands(tuple({**found, **{command.name: command for command in SERVED}}.values()))


def _typed(name: str) -> str:
    """A name as a person types it, in one word."""
    prompt = _MCP_PROMPT.fullmatch(name)
    if prompt is None:
        return name
    return "mcp__" + "__".join(_NOT_IN_A_NAME.sub("_", part) for part in (prompt["server"], prompt["prompt"]))


def _first_lines(description: str) -> str:
    # Where it is made of a command's own text it is escaped (Claude Code 2.1.332).
    plain = description.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    one_line = " ".join(plain.split())
    return one_line if len(one_line) <= _LONGEST else one_line[: _LONGEST - 1].rstrip() + "…"
