"""What a recording costs the bridge, and how quick a replay is beside the session it was made of: the real CLIs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from acp_manifold.adapters.demo.editor import start
from acp_manifold.adapters.replay.agent import command
from acp_manifold.translators.narrow import JsonObject

from .contestants import Cli, Contestant, ours
from .work import cpu_per_word

UPDATES = 10_000
"""Words of the turn that is recorded and replayed."""

LEAST_RUNS = 7
"""How often the cost of a recording is measured at least: it is some percent, and single runs differ by 20."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Seconds."""

    plain: float
    """CPU of the bridge per streamed word, without a recording."""
    recorded: float
    """The same while all is recorded; what the recorder's own process does comes on top."""
    live: float
    """From a prompt to the end of its turn of `UPDATES` words."""
    replayed: float
    """The same turn, replayed as fast as it goes."""


async def measure(cli: Cli, env: Mapping[str, str], cwd: Path, log: Path, *, runs: int, words: int) -> Recorded:
    """Measure with one CLI; with and without a recording in turn, the median of `runs` counts, or of `LEAST_RUNS`."""
    plain = ours(cli)
    path = log.with_name(f"{cli}.jsonl")
    recording = replace(plain, command=(*plain.command, "--record", str(path)))
    cpu: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(max(runs, LEAST_RUNS)):
        for contestant in (plain, recording):
            cpu[contestant is recording].append(await cpu_per_word(contestant, env, cwd, log, words=words))
    live = await _turn(recording, env, cwd, log)
    played = replace(plain, command=tuple(command(path)))
    replayed = await _turn(played, env, cwd, log)
    return Recorded(statistics.median(cpu[False]), statistics.median(cpu[True]), live, replayed)


async def _turn(contestant: Contestant, env: Mapping[str, str], cwd: Path, log: Path) -> float:
    """A session of one long turn, and how long that took."""
    async with start(contestant.command, env, log, _unheard) as editor:
        await editor.initialize()
        session = await editor.new_session(str(cwd), contestant.backend)
        begun = time.perf_counter()
        await editor.prompt(session, f"SAY[{UPDATES}]")
        return time.perf_counter() - begun


def _unheard(session: str, update: JsonObject) -> None:
    """Nothing is done with what is said."""
