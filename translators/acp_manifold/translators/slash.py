"""A prompt that begins with a slash command, whatever commands there are."""

from __future__ import annotations

import re

from acp_manifold.translators.values import NamedTuple

from .updates import Prompt, Text

_SLASH = re.compile(r"/(?P<name>[^\s/]+)(?:\s+(?P<rest>.*))?", re.DOTALL)


class Slash(NamedTuple):
    """What such a prompt says."""

    name: str
    """The word behind the slash, known or not."""
    argument: str
    """What is typed behind it, in the same piece of text."""
    others: Prompt
    """What comes with it."""


def slash_of(prompt: Prompt) -> Slash | None:
    """The command that a prompt begins with; a slash anywhere else is plain text."""
    first = prompt[0]
    if not isinstance(first, Text) or not first.text.startswith("/"):
        return None
    match = _SLASH.fullmatch(first.text.rstrip())
    return Slash(match["name"], match["rest"] or "", prompt[1:]) if match else None


def can_be_typed(name: str) -> bool:
    """Whether a command of this name is read as one."""
    return _SLASH.fullmatch(f"/{name}") is not None and not any(character.isspace() for character in name)
