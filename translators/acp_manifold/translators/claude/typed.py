"""A prompt as text to be typed into the interactive program."""

from __future__ import annotations

from acp_manifold.translators.acp.requests import BadParams
from acp_manifold.translators.attached import context, link
from acp_manifold.translators.claude.mentions import mention
from acp_manifold.translators.updates import Prompt, ResourceLink, Text, TextResource


def typed_parts(prompt: Prompt) -> tuple[str, list[str]]:
    """The words of a prompt, with its links where they stand, and the texts that go behind them.

    Raises:
        BadParams: There is something in it that can't be typed.
    """
    words: list[str] = []
    contexts: list[str] = []
    for item in prompt:
        match item:
            case Text():
                words.append(item.text)
            case ResourceLink():
                words.append(mention(item.uri, item.name))
            case TextResource():
                words.append(link(item.uri))
                contexts.append(context(item))
            case _:
                raise BadParams("prompt", "documents and sound can't be typed into the interactive program")
    return " ".join(word for word in words if word), contexts


def letters(said: str) -> str:
    """A text as far as nobody on its way changes it: letters and digits alone."""
    return "".join(char for char in said if char.isalnum())
