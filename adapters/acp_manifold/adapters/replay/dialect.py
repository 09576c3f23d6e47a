"""What replaying needs to know of a CLI's language: what a line of ours asks for, and what a line of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeAlias

from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.values import NamedTuple

Id: TypeAlias = str | int

Kind: TypeAlias = Literal["talk", "aside", "notice"]
"""`talk`: has its place in the conversation, and must be said as it was; `aside`: a question whose answer is the same
whenever it is asked; `notice`: of no consequence."""


class Said(NamedTuple):
    """A line of ours."""

    method: str
    """What it is, in the CLI's words."""
    kind: Kind
    meaning: object
    """What of it counts, as JSON: ids of ours and the like are left out."""
    id: Id | None
    """By which the answer, or what else comes of it, names it."""


class Dialect(Protocol):
    """A CLI's language."""

    label: str
    """The CLI's own name."""

    def said(self, line: JsonObject) -> Said:
        """What a line of ours says."""
        ...

    def answered(self, line: JsonObject) -> Id | None:
        """Which request of ours a line of the CLI answers."""
        ...

    def named(self, line: JsonObject, id: Id) -> JsonObject:
        """An answer of the CLI under another id."""
        ...

    def asks(self, line: JsonObject) -> bool:
        """Whether a line of the CLI is a question, which waits for a person."""
        ...

    def begins(self, said: Said) -> bool:
        """Whether a turn runs from here on."""
        ...

    def ends(self, line: JsonObject) -> bool:
        """Whether a turn is over with a line of the CLI."""
        ...

    def stored_with(self, said: Said, record: JsonObject) -> bool:
        """Whether a record of the store is what this line of ours has the CLI write at once."""
        ...

    def refusal(self, said: Said, words: str) -> Sequence[JsonObject]:
        """What the CLI says to a line that it does not take."""
        ...

    def failure(self, session: str, turn: str, words: str) -> Sequence[JsonObject]:
        """What the CLI says when the running turn comes to nothing."""
        ...

    def turn_in(self, line: JsonObject) -> str | None:
        """The id of the turn that a line of the CLI says has begun."""
        ...
