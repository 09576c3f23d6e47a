"""Messages that were added to a running turn: which of them the turn still has to answer.

Claude Code 2.1.332 takes a user message in mid-turn by its priority. `next` waits for the next tool
results: the model sees it with them, in the same cycle, whose result then names both messages; if no
tool is called any more, it gets a cycle and a result of its own. `now` breaks off what runs, whose
result says so, and gets a cycle of its own: a streaming answer is cut short, as Codex does it too, but
a running command would be killed and an open question withdrawn. So it is `now` only while no tool
call is open.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from acp_manifold.translators.updates import MessageChunk, TurnEnd

from .endings import Outcome

Priority: TypeAlias = Literal["now", "next"]


class Steered:
    """The messages added to one turn, by their ids."""

    __slots__ = ("_open", "_typed")

    def __init__(self) -> None:
        self._typed: dict[str, list[MessageChunk]] = {}
        """What those that no model was shown yet say."""
        self._open: dict[str, bool] = {}
        """Those not answered: id -> whether the CLI has told that it has the message."""

    @property
    def open(self) -> tuple[str, ...]:
        """Those that are still to be answered."""
        return tuple(self._open)

    @property
    def all_taken(self) -> bool:
        """Whether the CLI has told of each one that it has it; an idle CLI that has is done with them."""
        return all(self._open.values())

    def add(self, uuid: str, typed: list[MessageChunk]) -> None:
        """A message is being sent; `typed` is what it says."""
        self._open[uuid] = False
        self._typed[uuid] = typed

    def moved(self, uuid: str, state: str) -> list[MessageChunk] | None:
        """A `command_lifecycle` frame: what it shows to have been said now; None if the message is none of these."""
        if uuid not in self._open:
            return None
        self._open[uuid] = True
        typed = self._typed.pop(uuid, []) if state != "queued" else []
        if state in ("completed", "cancelled"):
            del self._open[uuid]
        return [] if state == "cancelled" else typed

    def answered(self, uuids: Iterable[str]) -> bool:
        """A result names these; whether one of them was open."""
        return any([self._open.pop(uuid, None) is not None for uuid in uuids])


def joined(before: Outcome | None, now: Outcome) -> Outcome:
    """How a turn of several cycles ended: as the last one, with the tokens of all."""
    if not isinstance(before, TurnEnd) or not isinstance(now, TurnEnd):
        return now
    tokens = [_sum(one, other) for one, other in zip(before[1:], now[1:], strict=True)]
    return TurnEnd(now.stop_reason, *tokens)


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else one + other
