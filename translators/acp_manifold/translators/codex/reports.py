"""What `/status`, `/mcp` and `/skills` say about a Codex session, as Markdown. No secrets: nothing of a
configuration but names, and the login by its kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from acp_manifold.translators.codex.failures import without_keys
from acp_manifold.translators.narrow import JsonObject, as_objects, as_str, obj, text
from acp_manifold.translators.updates import Usage

from .slash import Skill

_RUNTIME = {"connected": "connected", "failed": "failed", "disabled": "off", "starting": "starting"}
_LONGEST = 300
"""Characters of an error: what Codex tells of an HTTP server repeats itself."""


def status(thread_id: str, settings: JsonObject, usage: Usage | None, account: JsonObject) -> str:
    """The session at a glance.

    Args:
        thread_id: Codex' id.
        settings: The answer to `thread/start` or `thread/resume`, with what `thread/settings/updated` told since.
        usage: How full the context is, as told last.
        account: The answer to `account/read`.
    """
    effort = as_str(settings.get("effort")) or as_str(settings.get("reasoningEffort"))
    model = text(settings, "model") or "unknown"
    rows = [
        ("Session", f"`{thread_id}`"),
        ("Directory", f"`{text(settings, 'cwd')}`"),
        ("Model", f"{model} ({effort})" if effort else model),
        ("Provider", text(settings, "modelProvider")),
        ("Approvals", _approvals(settings.get("approvalPolicy"))),
        ("Sandbox", text(obj(settings, "sandboxPolicy") or obj(settings, "sandbox"), "type")),
        ("Context", f"{usage.used:,} of {usage.size:,} tokens" if usage is not None else "nothing used yet"),
        ("Login", _login(account)),
    ]
    return "\n".join(f"- **{label}:** {value}" for label, value in rows if value)


def _approvals(policy: object) -> str:
    return policy if isinstance(policy, str) else "granular"


def _login(account: JsonObject) -> str:
    found = obj(account, "account")
    kind = text(found, "type")
    if kind == "chatgpt":
        plan = text(found, "planType")
        return f"ChatGPT ({plan})" if plan else "ChatGPT"
    if kind:
        return {"apiKey": "API key"}.get(kind, kind)
    return "none" if account.get("requiresOpenaiAuth") is True else "as the provider's configuration says"


def servers(answer: JsonObject, given: Mapping[str, str], faults: Mapping[str, str]) -> str:
    """The MCP servers of a session.

    Args:
        answer: The answer to `mcpServerStatus/list` for the thread.
        given: Codex' name of a server -> the name the client gave it, where they differ.
        faults: What Codex told of servers that did not start, by its name of the server.
    """
    found = as_objects(answer.get("data"))
    if not found:
        return "This session has no MCP servers."
    return "\n".join(_server(entry, given, faults) for entry in found)


def _server(entry: JsonObject, given: Mapping[str, str], faults: Mapping[str, str]) -> str:
    name, state = text(entry, "name"), text(entry, "runtimeStatus")
    line = f"- **{given.get(name, name)}:** {_RUNTIME.get(state, state or 'unknown')}"
    if state == "failed":
        return f"{line}: {shortened(faults.get(name) or text(entry, 'toolsError'))}"
    tools = ", ".join(f"`{tool}`" for tool in obj(entry, "tools"))
    return f"{line}; tools: {tools}" if tools else line


def shortened(error: str) -> str:
    """An error of an MCP server in one line that can be read, keys left out."""
    line = without_keys(" ".join(error.split()))
    # The first part names the server, which whoever tells the error has done.
    if line.startswith("MCP client for `"):
        line = line.partition("failed to start: ")[2] or line
    line = line.removeprefix("MCP startup failed: ")
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"


def skills(found: Iterable[Skill]) -> str:
    """The skills, with whose they are."""
    lines = [f"- **/{skill.name}** ({skill.scope}): {skill.description}" for skill in found]
    return "\n".join(lines) or "There are no skills here."
