"""Slash commands that a client may have the interactive program run: a few of its own, and those that people made.

The program's own are those that end by themselves and make sense in an editor. What people made is looked for where
Claude Code 2.1.332 looks: in `commands` and `skills` below the person's folder and below `.claude` of the session's
directory. Only what is offered is ever typed as a command; anything else that begins with a slash is words.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.translators.slash import can_be_typed
from acp_manifold.translators.updates import Command, Commands

logger = logging.getLogger(__name__)

CLEAR: Final = "clear"

OWN: Final = (
    Command(CLEAR, "Begin anew with an empty context; what was said stays in the list"),
    Command("compact", "Replace the conversation so far by a summary", "what to keep"),
    Command("init", "Write a CLAUDE.md about this directory"),
    Command("rename", "Set the session's title", "title"),
    Command("review", "Review a pull request", "its number"),
)

OWN_NAMES: Final = frozenset({CLEAR, "compact"})
"""Commands that the program carries out itself: each is recorded when it is done. Others are prompts to the model."""

_HEAD: Final = 8 * 1024
"""Bytes at the start of a file in which it describes itself."""

_FIELD: Final = re.compile(r"^(description|argument-hint|user-invocable|name):[ \t]*(.*?)[ \t]*$", re.MULTILINE)


def offered(config: Path, cwd: str) -> Commands:
    """All that can be typed in a session: files are read. The person's own give way to those of the directory.

    Args:
        config: Claude Code's own folder.
        cwd: The session's directory.
    """
    found = {command.name: command for command in OWN}
    for folder in (Path(cwd) / ".claude", config):
        for command in (*_commands(folder), *_skills(folder)):
            found.setdefault(command.name, command)
    return Commands(tuple(found.values()))


def _commands(folder: Path) -> Iterator[Command]:
    for path in sorted(folder.glob("commands/*.md")):
        yield from _described(path, path.stem, "A command of yours")


def _skills(folder: Path) -> Iterator[Command]:
    for path in sorted(folder.glob("skills/*/SKILL.md")):
        yield from _described(path, path.parent.name, "A skill")


def _described(path: Path, name: str, otherwise: str) -> Iterator[Command]:
    if not can_be_typed(name):
        return
    try:
        with open_to_read(path) as file:
            head = file.read(_HEAD).decode("utf-8", "replace")
    except OSError as exc:
        logger.info("%s can't be read: %s", path, exc.strerror)
        return
    fields: dict[str, str] = {}
    if head.startswith("---\n"):
        fields = {key: value.strip("\"'") for key, value in _FIELD.findall(head.partition("\n---")[0])}
    if fields.get("user-invocable") != "false":
        # The program takes arguments behind any of them.
        yield Command(name, fields.get("description") or otherwise, fields.get("argument-hint") or "arguments")
