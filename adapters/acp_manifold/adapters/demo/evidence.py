"""What was really seen during the demo, and the checklist drawn from it. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from .view import LANES, Lane


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the summary."""

    claim: str
    held: bool


@dataclass(slots=True)
class Evidence:
    """Facts from the protocol's traffic and from the disk, in the order seen."""

    order: list[tuple[Lane, str]] = field(default_factory=lambda: list[tuple[Lane, str]]())
    """Who said words, and whose turn ended (`end`), in order."""
    words: dict[Lane, str] = field(default_factory=lambda: dict.fromkeys(LANES, ""))
    ends: dict[Lane, str] = field(default_factory=lambda: dict[Lane, str]())
    """Stop reasons."""
    titles: dict[Lane, list[str]] = field(default_factory=lambda: {lane: [] for lane in LANES})
    """Titles announced by the agent."""
    rows: dict[Lane, str] = field(default_factory=lambda: dict[Lane, str]())
    """Titles in the list."""
    question: Lane | None = None
    note_before: bool = True
    """Whether the note was there when permission was asked for."""
    note_is_there: bool = False
    rename: tuple[Lane, str, bool] | None = None
    """Who was renamed, to what by the agent's answer, and whether the turn was running then."""
    generations: int = 0
    """Titles that the model made up after the rename."""
    exit_status: int | None = None
    """The bridge's."""

    def said(self, lane: Lane, words: str) -> None:
        """An agent said something."""
        self.order.append((lane, "words"))
        self.words[lane] += words

    def ended(self, lane: Lane, stop: str) -> None:
        """A turn ended."""
        self.order.append((lane, "end"))
        self.ends[lane] = stop

    def asked(self, lane: Lane, *, note_was_there: bool) -> None:
        """Permission was asked for."""
        self.question, self.note_before = lane, note_was_there

    def renamed(self, lane: Lane, stored: str) -> None:
        """The agent answered that this title is stored."""
        self.rename = (lane, stored, lane not in self.ends)

    def generated(self, count: int) -> None:
        """The model's own titles have been delivered."""
        self.generations = count

    def listed(self, lane: Lane, title: str) -> None:
        """The list has a row for the session."""
        self.rows[lane] = title

    def checklist(self, client_title: str, generated_title: str) -> list[Check]:
        """Every claim of the demo, and whether it held."""
        return [
            Check("Claude Code and Codex streamed at once on one connection", self._at_once()),
            Check("Claude Code asked before it wrote", self.question == "claude" and not self.note_before),
            Check("allowed once, it wrote the note", self.note_is_there),
            Check("Codex's session was renamed in mid-turn", self.rename == ("codex", client_title, True)),
            Check(
                "the title a model made up meanwhile did not replace it",
                self.generations >= len(LANES)
                and generated_title not in self.titles["codex"]
                and self.rows.get("codex") == client_title,
            ),
            Check(
                "the session nobody named got the model's title",
                generated_title in self.titles["claude"] and self.rows.get("claude") == generated_title,
            ),
            Check("Codex's turn was cancelled", self.ends.get("codex") == "cancelled"),
            Check("Claude Code's turn went on and ended by itself", self._went_on()),
            Check("one list shows both, with their titles", set(self.rows) == set(LANES)),
            Check("the agent ended cleanly with its input", self.exit_status == 0),
        ]

    def _at_once(self) -> bool:
        """Whether each spoke between two utterances of the other, before any turn ended."""
        ends = [index for index, (_, what) in enumerate(self.order) if what == "end"]
        speakers = [lane for lane, _ in self.order[: ends[0] if ends else None]]
        turns = [lane for index, lane in enumerate(speakers) if index == 0 or speakers[index - 1] != lane]
        return len(turns) >= 4

    def _went_on(self) -> bool:
        """Whether Claude Code spoke after Codex's end, to its own."""
        if ("codex", "end") not in self.order or self.ends.get("claude") != "end_turn":
            return False
        return ("claude", "words") in self.order[self.order.index(("codex", "end")) :]
