"""What a list shows of a session, gathered from pieces of its transcript in whatever order they are read.

Rules: a custom title beats a generated one beats the first thing a person typed (case T05), and of
titles of one kind the one that stands last counts; the time is that of the last message, not of the
file (L02); a transcript that belongs to a sub-agent, or without a message, is no session (L05).
"""

from __future__ import annotations

from dataclasses import dataclass

from acp_manifold.translators.attached import in_a_line
from acp_manifold.translators.claude.records import (
    Title,
    is_message,
    is_sidechain,
    moment,
    title_of,
    typed_texts,
    working_directory,
)
from acp_manifold.translators.narrow import JsonObject, as_str, flag, is_text, obj, text
from acp_manifold.translators.titles import normalise

COST = "cost-state"
"""The type of the record that Claude Code 2.1.332 leaves at its end, with what the session has cost until then."""

_MOST_USD = 1e9
"""No session has cost so much: what says so is damaged."""

_LONGEST = 1000
"""Characters kept of what a person typed: more than any list shows."""


@dataclass(slots=True)
class Facts:
    """What is known of a session so far."""

    first_cwd: str | None = None
    """Where the first record was written that says so; absolute, and fit to be given to the system."""
    last_cwd: str | None = None
    """Where the last message was written: what counts while no first record has said so."""
    custom: str | None = None
    """The last custom title."""
    custom_at: int = -1
    """Its place in the transcript, in bytes; -1 without one."""
    generated: str | None = None
    """The last generated title."""
    generated_at: int = -1
    first_typed: str | None = None
    updated_at: str | None = None
    """When the last message was said."""
    begun: bool = False
    """Whether a message was found from the start on."""
    has_message: bool = False
    sidechain: bool = False
    model: str | None = None
    """That of the last answer that was read."""
    model_at: int = -1
    """The place of that answer."""
    cost: float | None = None
    """What the session has cost in US dollars, if no message stands behind the record that says so."""
    cost_at: int = -1
    forked_from: str | None = None
    """The session it is a copy of, as its first message says."""

    @property
    def cwd(self) -> str | None:
        """The session's directory."""
        return self.first_cwd or self.last_cwd

    @property
    def is_session(self) -> bool:
        """Whether a person would resume it."""
        return self.has_message and not self.sidechain and self.cwd is not None

    @property
    def has_start(self) -> bool:
        """Whether reading on from the start would tell nothing more."""
        return self.sidechain or (self.begun and self.first_cwd is not None and self.first_typed is not None)

    @property
    def title(self) -> Title | None:
        """The title in the transcript; None when there is none."""
        if self.custom is not None:
            return Title(self.custom, "user")
        return Title(self.generated, "generated") if self.generated is not None else None

    def add(self, record: JsonObject, at: int = 0) -> None:
        """Take in one record of a transcript that is read from its start to its end; `at` is its place."""
        self.add_first(record, at)
        self.add_last(record, at)

    def add_first(self, record: JsonObject, at: int) -> None:
        """Take in a record for what the start of a transcript tells; records come in their order."""
        if self._add_title(record, at):
            return
        if self.first_cwd is None:
            self.first_cwd = working_directory(record)
        if record.get("type") not in ("user", "assistant"):
            return
        if is_sidechain(record):
            self.sidechain = self.sidechain or not self.begun
        elif is_message(record):
            if not self.begun:
                self.forked_from = _shown(as_str(obj(record, "forkedFrom").get("sessionId")))
            self.begun = self.has_message = True
            if self.first_typed is None:
                said = in_a_line(" ".join(typed_texts(record))[:_LONGEST])
                self.first_typed = said if normalise(said) else None

    def add_last(self, record: JsonObject, at: int) -> bool:
        """Take in a record for what the end of a transcript tells; whether it is a message that tells its time.

        The time never goes back: messages that are written again, as in a compaction, are no newer for it.
        """
        kind = record.get("type")
        if kind == COST and at > self.cost_at:
            self.cost, self.cost_at = _cost(record), at
        if self._add_title(record, at) or kind not in ("user", "assistant"):
            return False
        if is_sidechain(record) or not is_message(record):
            return False
        if at > self.cost_at:
            self.cost = None
        model = _shown(text(obj(record, "message"), "model"))
        if at > self.model_at and model is not None and model != "<synthetic>":
            self.model, self.model_at = model, at
        self.has_message = True
        self.last_cwd = working_directory(record) or self.last_cwd
        stamp = moment(record)
        if stamp is not None and (self.updated_at is None or stamp > self.updated_at):
            self.updated_at = stamp
        return stamp is not None

    def add_title(self, title: Title, at: int) -> None:
        """Take in a title that stands at a place in the transcript."""
        if title.origin == "user" and at >= self.custom_at:
            self.custom, self.custom_at = title.text, at
        elif title.origin == "generated" and at >= self.generated_at:
            self.generated, self.generated_at = title.text, at

    def _add_title(self, record: JsonObject, at: int) -> bool:
        title = title_of(record)
        if title is not None:
            self.add_title(title, at)
        return title is not None


def _cost(record: JsonObject) -> float | None:
    amount = record.get("totalCostUSD")
    if isinstance(amount, bool) or not isinstance(amount, int | float) or flag(record, "hasUnknownModelCost"):
        return None
    return float(amount) if 0 <= amount < _MOST_USD else None


def _shown(said: str | None) -> str | None:
    return said if said and len(said) <= _LONGEST and is_text(said) else None
