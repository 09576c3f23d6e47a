"""What `/status`, `/mcp` and `/skills` say about a session of Claude Code, as Markdown; no secrets.

The control requests they are made from are those of Claude Code 2.1.332. Of a server's configuration nothing is
shown, and of the CLI's own status only the rows named here.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from acp_manifold.translators.narrow import JsonObject, as_int, as_objects, text

from .frames import FAULTS

_ROWS = {
    "Version": "Claude Code",
    "Session name": "Title",
    "Session ID": "Session",
    "cwd": "Directory",
    "Login method": "Login",
    "API key": "API key",
    "Auth token": "Auth token",
    "API provider": "Provider",
    "Anthropic base URL": "Endpoint",
    "Model": "Model",
}
"""Row of the CLI's status -> what it is called here. Those of keys and tokens name where they come from."""

_STATES = {"needs-auth": "needs a login: run `/mcp` in Claude Code itself", "pending": "starting"}
_LONGEST = 300


def status(answer: JsonObject, context: JsonObject, mode: str | None) -> str:
    """The session at a glance.

    Args:
        answer: The answer to `get_status`.
        context: The answer to `get_context_usage`; empty without one.
        mode: The permission mode, if it was told.
    """
    told = {
        text(row, "label"): text(row, "value")
        for section in as_objects(answer.get("sections"))
        for row in as_objects(section.get("rows"))
    }
    rows = [(_ROWS[label], _value(label, value)) for label, value in told.items() if label in _ROWS and value]
    if mode is not None:
        rows.append(("Permission mode", mode))
    used, size = as_int(context.get("totalTokens")), as_int(context.get("maxTokens"))
    if used is not None and size:
        rows.append(("Context", f"{used:,} of {size:,} tokens"))
    return "\n".join(f"- **{label}:** {value}" for label, value in rows)


def _value(label: str, value: str) -> str:
    if label == "Anthropic base URL":
        parts = urlsplit(value)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return f"`{value}`" if label in ("cwd", "Session ID") else value


def servers(answer: JsonObject) -> str:
    """The MCP servers of a session, from the answer to `mcp_status`."""
    lines = [_server(entry) for entry in as_objects(answer.get("mcpServers"))]
    return "\n".join(lines) or "This session has no MCP servers."


def _server(entry: JsonObject) -> str:
    line = f"- **{text(entry, 'name')}:** {state(entry)}"
    tools = ", ".join(f"`{text(tool, 'name')}`" for tool in as_objects(entry.get("tools")))
    return f"{line}; tools: {tools}" if tools else line


def state(entry: JsonObject) -> str:
    """How a server does, with the error of one that failed."""
    told = text(entry, "status")
    error = " ".join(text(entry, "error").split())[:_LONGEST]
    return f"{told}: {error}" if error else _STATES.get(told, told)


def fault(entry: JsonObject) -> str | None:
    """Why a server can't be used, or None for one that can, or may soon."""
    return state(entry) if text(entry, "status") in FAULTS else None


def skills(answer: JsonObject) -> str:
    """The skills of a session, from the answer to `get_skills_dialog`, with whose they are."""
    lines = [
        f"- **/{text(skill, 'display_name') or text(skill, 'name')}** ({text(skill, 'source')}): "
        f"{' '.join(text(skill, 'description').split())}"
        for skill in as_objects(answer.get("skills"))
        if text(skill, "state") != "off"
    ]
    return "\n".join(lines) or "There are no skills here but those that come with Claude Code."
