"""What a list shows of a session, gathered from pieces of its transcript.

The pieces are the head of the file and its tail, or all of it; records of the head are given
first. Rules: a custom title beats a generated one beats the first thing a person typed (case T05);
the time is that of the last message, not of the file (L02); a transcript that belongs to a
sub-agent, or without a message, is no session (L05).
"""

from __future__ import annotations

from dataclasses import dataclass

from acp_manifold.translators.claude.records import (
    Title,
    is_message,
    is_sidechain,
    moment,
    title_of,
    typed_texts,
    working_directory,
)
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.titles import normalise

_LONGEST = 1000
"""Characters kept of what a person typed: more than any list shows."""


@dataclass(slots=True)
class Facts:
    """What is known of a session so far."""

    cwd: str | None = None
    """Where the first record was written that says so; absolute, and fit to be given to the system."""
    custom: str | None = None
    """The last custom title."""
    generated: str | None = None
    """The last generated title."""
    first_typed: str | None = None
    updated_at: str | None = None
    """When the last message was said."""
    has_message: bool = False
    sidechain: bool = False

    @property
    def is_session(self) -> bool:
        """Whether a person would resume it."""
        return self.has_message and not self.sidechain and self.cwd is not None

    @property
    def title(self) -> Title | None:
        """The title in the transcript; None when there is none."""
        if self.custom is not None:
            return Title(self.custom, "user")
        return Title(self.generated, "generated") if self.generated is not None else None

    def add(self, record: JsonObject) -> None:
        """Take in one record."""
        title = title_of(record)
        if title is not None:
            self.add_title(title)
            return
        if self.cwd is None:
            self.cwd = working_directory(record)
        if record.get("type") not in ("user", "assistant"):
            return
        if is_sidechain(record):
            self.sidechain = self.sidechain or not self.has_message
        elif is_message(record):
            self._add_message(record)

    def add_title(self, title: Title) -> None:
        """Take in a title that stands behind all that were added before."""
        if title.origin == "user":
            self.custom = title.text
        else:
            self.generated = title.text

    def _add_message(self, record: JsonObject) -> None:
        self.has_message = True
        if self.first_typed is None:
            starts = (said[:_LONGEST] for said in typed_texts(record))
            self.first_typed = next((start for start in starts if normalise(start)), None)
        stamp = moment(record)
        if stamp is not None and (self.updated_at is None or stamp > self.updated_at):
            self.updated_at = stamp
