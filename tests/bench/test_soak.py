"""The soak test in small: what it counts, what it calls broken, and that a short run leaves nothing."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

import anyio
import pytest
from click.testing import CliRunner

from acp_manifold.bridge.keyed_locks import KeyedLocks
from acp_manifold.bridge.turn import TurnQueue
from bench import soak
from bench.lives import LIVES
from bench.soak import Report, State, entries, told

PATIENCE = 60.0

WARM = State(memory=40.0, processes=0, descriptors=12, tasks=8, sessions=0, entries=30)
GOOD = Report(warm=WARM, end=replace(WARM, memory=41.9), updates=1000, lost=0, lives=26, seconds=3.0)


def test_a_run_that_ends_as_it_began_breaks_nothing() -> None:
    assert GOOD.broken() == []
    assert replace(GOOD, end=replace(WARM, memory=35.0, descriptors=11)).broken() == [], "less is no leak"


@pytest.mark.parametrize(
    ("end", "broken"),
    [
        (replace(WARM, memory=42.1), ["memory grew by more than 5 %"]),
        (replace(WARM, processes=1), ["1 processes left"]),
        (replace(WARM, descriptors=15, tasks=9), ["3 descriptors left", "1 tasks left"]),
        (replace(WARM, sessions=2, entries=34), ["2 sessions left", "4 entries left"]),
    ],
)
def test_whatever_is_left_is_named(end: State, broken: list[str]) -> None:
    assert replace(GOOD, end=end).broken() == broken


def test_lost_updates_are_a_fault() -> None:
    assert replace(GOOD, lost=3).broken() == ["3 updates lost"]


def test_the_report_tells_memory_growth_and_what_is_left() -> None:
    assert told(replace(GOOD, end=replace(WARM, memory=44.0, tasks=10))).splitlines() == [
        "1000 updates of 26 sessions in 3 s, 0 lost",
        "memory (RSS): 40.0 MB after warm-up, 44.0 MB at the end, growth 10.0 % (at most 5 %)",
        "left: 0 processes, 0 descriptors, 2 tasks, 0 sessions, 0 entries",
    ]


@pytest.mark.anyio
async def test_entries_are_found_in_tables_inside_objects_of_the_bridge() -> None:
    locks, queue = KeyedLocks(), TurnQueue()
    before = entries(locks, queue)
    async with locks.holding("one"), locks.holding("two"):
        assert entries(locks, queue) == before + 2
    assert entries(locks, queue) == before
    assert entries({"a": [1, 2], "b": deque([3])}, {"c"}) == 6
    assert entries(object(), "text") == 0


@pytest.fixture(scope="module")
def short_run() -> Report:
    """A run of one round between the two looks, for all that ask about it."""

    async def run() -> Report:
        with anyio.fail_after(PATIENCE):
            return await soak.run(0, 1, len(LIVES), lambda line: None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(soak, "WARM_UP_ROUNDS", 1)
        patch.setattr(soak, "MEASURED_ROUNDS", 1)
        return anyio.run(run)


def test_a_short_run_loses_no_update_and_leaves_no_process_descriptor_task_or_session(short_run: Report) -> None:
    assert short_run.lost == 0 and short_run.updates > 1000
    assert set(short_run.left) <= {"entries"}


def test_a_short_run_leaves_no_entry_in_any_table(short_run: Report) -> None:
    assert "entries" not in short_run.left


def test_a_broken_limit_is_told_and_is_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(*_: object) -> Report:
        return replace(GOOD, end=replace(WARM, tasks=10))

    monkeypatch.setattr(soak, "run", run)
    result = CliRunner().invoke(soak.main, ["--minutes", "0"])
    assert result.exit_code == 1
    assert "Broken: 2 tasks left" in result.output


def test_a_good_run_is_status_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(*_: object) -> Report:
        return GOOD

    monkeypatch.setattr(soak, "run", run)
    assert CliRunner().invoke(soak.main, ["--minutes", "0"]).exit_code == 0
