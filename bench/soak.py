"""`make soak`: sessions by the hundred, a million updates, and nothing of it left. Status 1 if a limit was broken.

One bridge in this process serves sessions by scripted CLIs to a client on real pipes. Round after
round, 200 sessions are opened, used in all the ways of `lives`, and closed: some are resumed
in the next round, some deleted, some forgotten by their CLI. Each round ends where it began.
"""

from __future__ import annotations

import gc
import logging
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import cast

import anyio
import click

from acp_manifold.bridge.hub import Hub
from acp_manifold.bridge.ledger import Ledger

from .inside import Client, joined
from .lives import IDLE, Ears, live
from .processes import descendants, descriptors, rss_mb
from .scripted import PlayedBackend

GROWTH_PERCENT = 5.0
"""How much more memory there may be at the end than after the warm-up."""

WARM_UP_ROUNDS = 3
"""Rounds until every cache is filled and the allocator has what it needs."""

MEASURED_ROUNDS = 5
"""Rounds that make one figure of memory, their median: what the allocator keeps differs by 3 % from round to round."""

WORDS = 40
"""Updates that a session's script says at once, a few times in its life."""

_SETTLE_SECONDS = 5.0
_ROUND_SECONDS = 300.0
_TOLD_EVERY = 30.0


@dataclass(frozen=True, slots=True)
class State:
    """What the process holds between two rounds."""

    memory: float
    """Resident set size in MB; the proportional one changes with what else runs on the machine."""
    processes: int
    descriptors: int
    tasks: int
    sessions: int
    """Sessions open in the hub."""
    entries: int
    """Entries in all tables of the hub and of what it owns."""

    def __str__(self) -> str:
        counts = (f"{getattr(self, name)} {name}" for name in COUNTED)
        return f"{self.memory:.1f} MB, {', '.join(counts)}"


COUNTED = tuple(field.name for field in fields(State) if field.name != "memory")
"""What has to be the same at the end."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a run went."""

    warm: State
    end: State
    updates: int
    lost: int
    """Updates that were said and never heard; negative for those heard twice."""
    lives: int
    seconds: float

    @property
    def growth(self) -> float:
        """Of memory, in percent."""
        return (self.end.memory / self.warm.memory - 1) * 100

    @property
    def left(self) -> dict[str, int]:
        """What there is more of at the end, and how much."""
        more = {name: getattr(self.end, name) - getattr(self.warm, name) for name in COUNTED}
        return {name: count for name, count in more.items() if count > 0}

    def broken(self) -> list[str]:
        """The limits that were broken."""
        found = [f"{count} {name} left" for name, count in self.left.items()]
        if self.growth > GROWTH_PERCENT:
            found.append(f"memory grew by more than {GROWTH_PERCENT:g} %")
        if self.lost:
            found.append(f"{self.lost} updates lost")
        return found


_BOUNDED = frozenset({"_seen"})
"""Tables that keep something of sessions that are closed, up to a limit of their own."""


def entries(*roots: object) -> int:
    """How many entries there are in all tables that the bridge's objects among `roots` reach."""
    seen: set[int] = set()
    total = 0
    waiting = list(roots)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, dict):
            table = cast("dict[object, object]", thing)
            total += len(table)
            waiting += table.values()
        elif isinstance(thing, list | set | deque):
            rows = cast("Iterable[object]", thing)
            found = list(rows)
            total += len(found)
            waiting += found
        elif isinstance(thing, tuple):
            waiting += cast("tuple[object, ...]", thing)
        elif type(thing).__module__.startswith("acp_manifold.bridge."):
            waiting += _attributes(thing)
    return total


def _attributes(thing: object) -> list[object]:
    names = {name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())}
    names = (names | set(getattr(thing, "__dict__", ()))) - _BOUNDED
    return [getattr(thing, name) for name in names if hasattr(thing, name)]


class Soak:
    """A run: the hub, its client, and the sessions of the round."""

    def __init__(self, hub: Hub, backend: PlayedBackend, client: Client, ears: Ears, cwd: str, sessions: int) -> None:
        self._hub = hub
        self._backend = backend
        self._client = client
        self._ears = ears
        self._cwd = cwd
        self._known: list[str | None] = [None] * sessions
        """Those that the next round resumes."""
        self.rounds = 0

    async def round(self) -> None:
        """Open, use and close every session once, all at the same time."""
        with anyio.fail_after(_ROUND_SECONDS):
            async with anyio.create_task_group() as tasks:
                for place in range(len(self._known)):
                    tasks.start_soon(self._one, place)
        self.rounds += 1

    async def _one(self, place: int) -> None:
        session = await self._opened(place)
        await live(place + self.rounds, self._client, self._ears, session, WORDS)
        if place % 3 == 0:
            self._known[place] = session
        elif place % 3 == 1:
            await self._client.ask("session/delete", {"sessionId": session})
        else:
            self._backend.clean_up(session)

    async def _opened(self, place: int) -> str:
        known = self._known[place]
        if known is None:
            return await self._client.new_session(self._cwd)
        method = ("session/load", "session/resume")[self.rounds % 2]
        await self._client.ask(method, {"sessionId": known, "cwd": self._cwd, "mcpServers": []})
        return known

    async def state(self, at_rest: Callable[[State], bool]) -> State:
        """Some rounds, and what is held then, as soon as `at_rest` holds of it; the last look, if it never does."""
        memory: list[float] = []
        for _ in range(MEASURED_ROUNDS):
            await self.round()
            gc.collect()
            memory.append(rss_mb(os.getpid()))
        with anyio.move_on_after(_SETTLE_SECONDS):
            while not at_rest(self._look()):  # noqa: ASYNC110 - neither descriptors nor tasks tell of their end
                await anyio.sleep(0.05)
        return replace(self._look(), memory=statistics.median(memory))

    def _look(self) -> State:
        pid = os.getpid()
        return State(
            memory=rss_mb(pid),
            processes=len(descendants(pid)),
            descriptors=descriptors(pid),
            tasks=len(anyio.get_running_tasks()),
            sessions=len(self._hub.open_sessions),
            entries=entries(self._hub, self._client),
        )


async def run(minutes: float, updates: int, sessions: int, tell: Callable[[str], None]) -> Report:
    """Let sessions come and go until so many updates were heard and the time is over.

    Args:
        minutes: How long at least, the warm-up included.
        updates: How many at least.
        sessions: Of one round.
        tell: Hears how far it is.

    Raises:
        AssertionError: A prompt had another outcome than it must.
        TimeoutError: A round took too long.
    """
    begun = time.monotonic()
    backend, ears = PlayedBackend(), Ears()
    with tempfile.TemporaryDirectory(prefix="acp-manifold-soak-") as folder:
        hub = Hub([backend], Ledger(Path(folder) / "ledger.sqlite3"), grace=10.0, idle=IDLE)
        async with hub.running(), joined(hub, ears.update, ears.question) as client:
            soak = Soak(hub, backend, client, ears, folder, sessions)
            for _ in range(WARM_UP_ROUNDS):
                await soak.round()
            warm = await soak.state(lambda now: now.processes == now.sessions == 0)
            tell(f"after warm-up, {ears.words} updates: {warm}")
            told = time.monotonic()
            while ears.words < updates or time.monotonic() - begun < minutes * 60:
                await soak.round()
                if time.monotonic() - told > _TOLD_EVERY:
                    told = time.monotonic()
                    tell(f"{told - begun:.0f} s, {ears.words} updates, {rss_mb(os.getpid()):.1f} MB")
            end = await soak.state(lambda now: all(getattr(now, name) <= getattr(warm, name) for name in COUNTED))
            lost = backend.said - ears.words
            return Report(warm, end, ears.words, lost, soak.rounds * sessions, time.monotonic() - begun)


def told(report: Report) -> str:
    """The report for people."""
    left = ", ".join(f"{report.left.get(name, 0)} {name}" for name in COUNTED)
    return "\n".join(
        [
            f"{report.updates} updates of {report.lives} sessions in {report.seconds:.0f} s, {report.lost} lost",
            f"memory (RSS): {report.warm.memory:.1f} MB after warm-up, {report.end.memory:.1f} MB at the end, "
            f"growth {report.growth:.1f} % (at most {GROWTH_PERCENT:g} %)",
            f"left: {left}",
        ]
    )


def _progress(line: str) -> None:
    click.echo(line, err=True)


@click.command()
@click.option("--minutes", default=10.0, show_default=True, help="How long at least.")
@click.option("--updates", default=1_000_000, show_default=True, help="How many updates at least.")
@click.option("--sessions", default=200, show_default=True, help="Sessions open at once.")
def main(minutes: float, updates: int, sessions: int) -> None:
    """Open, use and close sessions for a long time, and see what is left."""
    logger = logging.getLogger("acp_manifold")
    before = logger.level
    logger.setLevel(logging.ERROR)  # Crashes are part of the play.
    try:
        report = anyio.run(run, minutes, updates, sessions, _progress)
    finally:
        logger.setLevel(before)
    click.echo(told(report))
    broken = report.broken()
    if broken:
        click.echo(f"Broken: {', '.join(broken)}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
