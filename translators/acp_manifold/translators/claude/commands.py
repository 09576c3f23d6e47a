"""The slash commands of a session, as the answer to `initialize` lists them."""

from __future__ import annotations

from collections.abc import Collection

from acp_manifold.translators.narrow import JsonObject, as_objects, text
from acp_manifold.translators.updates import Command, Commands

TERMINAL_ONLY = frozenset(
    {
        "agents",
        "auto-mode-setup",
        "clear",
        "color",
        "doctor",
        "focus",
        "heapdump",
        "reload-plugins",
        "workflow-launch-exec",
    }
)
"""Commands of Claude Code 2.1.332 that need its own screen, change the session's id, or are no person's to type."""

_LONGEST = 200
"""Characters of a description: skills describe themselves to the model, at length."""


def commands(answer: JsonObject, left_out: Collection[str] = ()) -> Commands:
    """The commands worth offering, without those of `TERMINAL_ONLY` and `left_out`."""
    found: list[Command] = []
    for entry in as_objects(answer.get("commands")):
        name = text(entry, "name")
        if name and not name.startswith("__") and name not in TERMINAL_ONLY and name not in left_out:
            found.append(Command(name, _first_lines(text(entry, "description")), text(entry, "argumentHint") or None))
    return Commands(tuple(found))


def _first_lines(description: str) -> str:
    one_line = " ".join(description.split())
    return one_line if len(one_line) <= _LONGEST else one_line[: _LONGEST - 1].rstrip() + "…"
