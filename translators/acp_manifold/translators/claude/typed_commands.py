"""Slash commands and shell lines that a person typed in Claude Code, as the transcript has them, in a form to read.

Claude Code 2.1.332 writes a command as a user record of tags (`<command-name>`, `<command-args>`), and what it printed
as a `system` record `local_command`, or as another user record of tags. A shell line typed behind `!` has tags too.
"""

from __future__ import annotations

import re

from acp_manifold.translators.narrow import JsonObject, text
from acp_manifold.translators.plain import printable

from .frames import message_blocks
from .records import FILLERS

_TAG = re.compile(
    r"<(command-name|command-args|bash-input|bash-stdout|bash-stderr|local-command-stdout|local-command-stderr)>"
    r"(.*?)</\1>",
    re.DOTALL,
)
_TYPED = {"command-name": "/", "bash-input": "! "}
"""The tags of what a person typed, and how that is shown to have been a command."""

_PRINTED = ("bash-stdout", "bash-stderr", "local-command-stdout", "local-command-stderr")

_TOLD_OTHERWISE = ("Compacted", "Session renamed to: ")
"""How outputs begin that repeat what another record tells."""


def command_of(message: JsonObject) -> str | None:
    """What a person typed in a user message that holds a command, such as `/model opus`; None for any other."""
    found = _tags(message)
    for tag, mark in _TYPED.items():
        if (said := found.get(tag, "").strip()).strip(mark):
            line = f"{mark}{said.removeprefix(mark)}"
            return f"{line} {found.get('command-args', '').strip()}".rstrip()
    return None


def printed_by(message: JsonObject) -> str | None:
    """What a command printed, in a user message or a `local_command` record; None for any other, and for nothing."""
    found = _tags(message)
    parts = (printable(found.get(tag, "")).strip("\n").rstrip() for tag in _PRINTED)
    printed = "\n".join(part for part in parts if part and part not in FILLERS)
    return printed if printed and not printed.startswith(_TOLD_OTHERWISE) else None


def _tags(message: JsonObject) -> dict[str, str]:
    said = "".join(text(block, "text") for block in message_blocks(message) if block.get("type") == "text")
    return dict(_TAG.findall(said)) if said.lstrip().startswith("<") else {}
