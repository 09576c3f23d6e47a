"""The checklist of the demo says yes only to what was seen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from acp_manifold.adapters.demo.evidence import Evidence

MINE, THEIRS = "Mine", "Theirs"


def whole_story() -> Evidence:
    """All that the demo is to show, seen."""
    seen = Evidence()
    for _ in range(2):
        seen.said("claude", "a ")
        seen.said("codex", "b ")
    seen.asked("claude", note_was_there=False)
    seen.renamed("codex", MINE)
    seen.generated(2)
    seen.titles["claude"].append(THEIRS)
    seen.titles["codex"].append(MINE)
    seen.ended("codex", "cancelled")
    seen.said("claude", "still here")
    seen.ended("claude", "end_turn")
    seen.listed("claude", THEIRS)
    seen.listed("codex", MINE)
    seen.note_is_there = True
    seen.exit_status = 0
    return seen


def failed(seen: Evidence) -> list[int]:
    return [index for index, check in enumerate(seen.checklist(MINE, THEIRS)) if not check.held]


def test_the_whole_story_holds() -> None:
    assert failed(whole_story()) == []


def test_nothing_seen_holds_nothing() -> None:
    assert failed(Evidence()) == list(range(10))


def one_after_the_other(seen: Evidence) -> None:
    seen.order[:4] = sorted(seen.order[:4])


SPOILERS: list[tuple[Callable[[Evidence], object], list[int]]] = [
    (one_after_the_other, [0]),
    (lambda seen: seen.asked("claude", note_was_there=True), [1]),
    (lambda seen: setattr(seen, "note_is_there", False), [2]),
    (lambda seen: seen.renamed("codex", MINE), [3]),
    (lambda seen: seen.titles["codex"].append(THEIRS), [4]),
    (lambda seen: seen.listed("codex", THEIRS), [4]),
    (lambda seen: seen.generated(1), [4]),
    (lambda seen: seen.titles["claude"].clear(), [5]),
    (lambda seen: seen.ended("codex", "end_turn"), [6]),
    (lambda seen: seen.ended("claude", "cancelled"), [7]),
    (lambda seen: seen.order.remove(("codex", "end")), [7]),
    (lambda seen: seen.rows.pop("claude"), [5, 8]),
    (lambda seen: setattr(seen, "exit_status", None), [9]),
]


@pytest.mark.parametrize(("spoil", "lost"), SPOILERS)
def test_each_claim_falls_with_what_it_rests_on(spoil: Callable[[Evidence], object], lost: list[int]) -> None:
    seen = whole_story()
    spoil(seen)
    assert failed(seen) == lost
