"""A system prompt that a client gives a session, in no protocol's spelling."""

from __future__ import annotations

from typing import Literal

from acp_manifold.translators.values import NamedTuple


class SystemPrompt(NamedTuple):
    """What the client has to say to the model, ahead of the conversation."""

    mode: Literal["append", "override"]
    """Whether it comes behind the CLI's own instructions, or takes their place."""
    text: str
    """Not blank."""
