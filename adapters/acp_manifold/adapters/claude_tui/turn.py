"""The prompt that runs in the interactive program: how far it has come."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field

import anyio


@dataclass(eq=False, slots=True)
class Turn:
    """One for each prompt."""

    expected: str = ""
    """What was typed, letters and digits of it; empty for a command."""
    command: str | None = None
    """The slash command that it is."""
    go: anyio.Event = field(default_factory=anyio.Event)
    entered: int = 0
    """When Enter was pressed, in milliseconds since 1970; 0: not yet."""
    submitted: bool = False
    """Whether the hook has told of it."""
    escaped: bool = False
    """Whether Escape was pressed for it."""
    blocked: bool = False
    """Whether something else was submitted in its place, and stopped."""
    interrupted: bool = False
    told: bool = False
    """Whether the person knows of a dialog that nobody can answer."""
    adding: int = 0
    """How many messages are being typed into it: it does not end meanwhile."""
    ending: bool = False
    """Whether it is over but for its last records."""
    over: bool = False
    """Whether it has its outcome."""
    files: ExitStack = field(default_factory=ExitStack)
    """The pictures of what was typed into it."""
