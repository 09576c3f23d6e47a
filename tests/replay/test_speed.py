"""How fast a replay goes: as it was, so many times as fast, or without waiting. On a clock that nobody waits for."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import anyio
import pytest
from anyio.lowlevel import checkpoint

from acp_manifold.adapters.replay import close, replay
from acp_manifold.adapters.replay.claude_dialect import ClaudeDialect
from acp_manifold.adapters.replay.lane import PATIENCE, Lane
from acp_manifold.adapters.replay.opening import stage_of
from acp_manifold.adapters.replay.steps import story
from acp_manifold.bridge.recording.format import Entry
from acp_manifold.bridge.recording.reader import read
from acp_manifold.bridge.starting import Launch
from acp_manifold.bridge.transport import Spawn
from acp_manifold.translators.narrow import JsonObject, as_object, text

from .clock import BACKEND, passes
from .corpus import case

pytestmark = pytest.mark.anyio

SPEEDS = [1.0, 10.0, 0.5]


@pytest.fixture
def anyio_backend() -> tuple[str, Mapping[str, object]]:
    return BACKEND


def prompt(t: float, number: int, words: str) -> Entry:
    line: JsonObject = {"type": "user", "uuid": words, "message": {"content": words}}
    return Entry(t, "backend", "out", process=1, session="s", line=line, number=number)


def heard(t: float, number: int, kind: str = "said") -> Entry:
    return Entry(t, "backend", "in", process=1, session="s", line={"type": kind}, number=number)


def crash(t: float, number: int) -> Entry:
    return Entry(t, "bridge", session="s", line={"note": "exit", "how": "was killed", "asked": False}, number=number)


SCENE = [prompt(5.0, 2, "go"), heard(5.5, 3), heard(9.0, 4), heard(65.0, 5, "result")]


class Played:
    """A lane that is played, and when it said what."""

    def __init__(self, entries: Sequence[Entry], speed: float | None) -> None:
        self.dialect = ClaudeDialect()
        self.lane = Lane("FILE", "s", story(entries, self.dialect), self.dialect, speed)
        self.times: list[tuple[float, str]] = []

    def say(self, line: bytes) -> None:
        self.times.append((round(anyio.current_time(), 6), text(as_object(json.loads(line)), "type")))

    def give(self, entry: Entry) -> None:
        assert self.lane.take(self.dialect.said(entry.line or {})) == []

    async def play(self) -> None:
        await self.lane.play(self.say)


@pytest.mark.parametrize("speed", SPEEDS)
async def test_gaps_are_as_long_as_they_were_by_the_speed(speed: float) -> None:
    played = Played(SCENE, speed)
    played.give(SCENE[0])
    await played.play()
    assert played.times == [(0.5 / speed, "said"), (4.0 / speed, "said"), (60.0 / speed, "result")]


async def test_without_a_speed_no_time_passes() -> None:
    played = Played(SCENE, None)
    played.give(SCENE[0])
    await played.play()
    assert [when for when, _ in played.times] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("speed", SPEEDS)
async def test_what_comes_behind_a_line_of_ours_is_counted_from_when_that_is_said(speed: float) -> None:
    entries = [*SCENE, prompt(70.0, 6, "more"), heard(72.0, 7, "result")]
    played = Played(entries, speed)
    played.give(SCENE[0])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(played.play)
        await passes(1000.0)
        played.give(entries[4])
    assert played.times[-2:] == [(60.0 / speed, "result"), (1000.0 + 2.0 / speed, "result")]


@pytest.mark.parametrize("speed", SPEEDS)
async def test_what_does_not_come_in_a_turn_is_missed_some_time_beyond_its_own(speed: float) -> None:
    interrupt = Entry(
        25.0,
        "backend",
        "out",
        process=1,
        session="s",
        line={"type": "control_request", "request_id": "1", "request": {"subtype": "interrupt"}},
        number=5,
    )
    played = Played([*SCENE[:3], interrupt, SCENE[3]], speed)
    played.give(SCENE[0])
    await played.play()
    assert played.times[-1] == (round(20.0 / speed + PATIENCE, 6), "result")


async def test_a_turn_without_a_speed_misses_it_at_once_but_for_that_time() -> None:
    played = Played([SCENE[0], heard(50.0, 3), prompt(60.0, 4, "more"), heard(70.0, 5, "result")], None)
    played.give(SCENE[0])
    await played.play()
    assert played.times == [(0.0, "said"), (PATIENCE, "result")]


@pytest.mark.parametrize("speed", SPEEDS)
async def test_a_cli_ends_when_it_did(speed: float) -> None:
    played = Played([*SCENE[:3], crash(25.0, 6)], speed)
    played.give(SCENE[0])
    await played.play()
    assert (anyio.current_time(), played.lane.ended is not None) == (20.0 / speed, True)


@pytest.mark.parametrize(("given", "speed"), [("", 1.0), ("?speed=1", 1.0), ("?speed=4", 4.0), ("?speed=0.25", 0.25)])
@pytest.mark.parametrize("backend", ["claude", "codex"])
async def test_a_recording_is_played_as_fast_as_its_name_says(backend: str, given: str, speed: float) -> None:
    path = case(backend, "five-words").path
    # Of all that this session's CLI says from its first word to its last.
    marks = {"claude": ("stream_event", "assistant", "result"), "codex": ("item/", "turn/completed")}[backend]
    session = next(e.session for e in read(path).entries if e.leg == "client" and e.session is not None)
    mine = [e for e in read(path).entries if e.leg == "backend" and e.session in (session, None)]

    def counts(line: JsonObject) -> bool:
        return session in json.dumps(line) and (text(line, "type") or text(line, "method")).startswith(marks)

    then = [entry.t for entry in mine if entry.dir == "in" and counts(entry.line or {})]
    now: list[float] = []

    def take(line: bytes) -> None:
        if counts(as_object(json.loads(line))):
            now.append(anyio.current_time())

    (played,) = replay(f"{path}{given}")
    spawn: Spawn = getattr(played, "spawn")  # noqa: B009 - the Protocol of backends knows nothing of it.
    launch = Launch((backend,), str(stage_of(played).folder), {}, backend, backend=backend, session=session)
    try:
        async with spawn(launch) as transport, anyio.create_task_group() as tasks:
            tasks.start_soon(transport.read, take)
            await checkpoint()
            for entry in mine:
                if entry.dir == "out":
                    transport.send(json.dumps(entry.line).encode())
            await passes(60.0)
            await transport.kill()
    finally:
        close([played])
    assert len(now) == len(then) > 8
    gaps = [(later - now[0]) * speed for later in now]
    assert gaps == pytest.approx([later - then[0] for later in then], abs=1e-4)
    assert gaps[-1] > 0.01
