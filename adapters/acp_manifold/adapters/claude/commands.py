"""Slash commands that Claude Code has on its own screen alone, and that are served here instead."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from acp_manifold.adapters.claude.control import Control
from acp_manifold.bridge.errors import BackendFault, BackendGone
from acp_manifold.translators.claude import reports
from acp_manifold.translators.claude.commands import NAMELESS
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.slash import slash_of
from acp_manifold.translators.updates import Command, Prompt, Text

_LIMIT = 10.0
"""Seconds to look something up; some milliseconds are usual, a connecting MCP server may add some."""


def served(prompt: Prompt) -> Callable[[Control, str | None], Awaitable[str]] | None:
    """What answers the command that a prompt begins with; None if the CLI is to have it.

    The answer is what to say, from the session's link and its permission mode; it raises what `Control.settle` does.
    """
    command = slash_of(prompt)
    if command is not None and command.name == "rename" and command.others:
        return _rename
    # With something behind it, `/mcp` is the CLI's: it reconnects and switches servers.
    return None if command is None or command.argument else _SERVED.get(command.name)


def passed_on(prompt: Prompt, offered: Iterable[Command]) -> Prompt | None:
    """What the CLI is to have of a prompt that begins with one of these commands; None if it begins with none.

    What is attached to a command that asks no model is left out: the CLI would take it for a part of a name.
    """
    command = slash_of(prompt)
    if command is None or all(command.name != known.name for known in offered):
        return None
    if command.name in NAMELESS - {"compact"}:
        return tuple(content for content in prompt if isinstance(content, Text))
    return prompt


def names_nothing(prompt_text: str) -> bool:
    """Whether what was typed is a command that no title can be made of."""
    command = slash_of((Text(prompt_text),))
    return command is not None and command.name in NAMELESS


async def server_states(control: Control) -> JsonObject:
    """How the MCP servers of the session do: the answer to `mcp_status`."""
    return await control.request({"subtype": "mcp_status"}, _LIMIT)


async def _status(control: Control, mode: str | None) -> str:
    answer = await control.request({"subtype": "get_status"}, _LIMIT)
    try:
        context = await control.request({"subtype": "get_context_usage"}, _LIMIT)
    except BackendGone:
        raise
    except BackendFault:
        # Without a conversation there may be nothing to count.
        context = {}
    return reports.status(answer, context, mode)


async def _mcp(control: Control, mode: str | None) -> str:
    return reports.servers(await server_states(control))


async def _rename(control: Control, mode: str | None) -> str:
    """`/rename` with more than a title behind it: the bridge has served all others."""
    return "A title is text alone: type nothing but /rename TITLE"


async def _skills(control: Control, mode: str | None) -> str:
    return reports.skills(await control.request({"subtype": "get_skills_dialog"}, _LIMIT))


_SERVED: dict[str, Callable[[Control, str | None], Awaitable[str]]] = {
    "status": _status,
    "mcp": _mcp,
    "skills": _skills,
}
