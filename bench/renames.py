"""How soon a client hears of a rename by another program, and what waiting for it costs, over thousands of files."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from acp_manifold.adapters.demo.editor import start
from acp_manifold.bridge.watch import Watcher
from acp_manifold.translators.narrow import JsonObject, text

from .contestants import Contestant

RENAMES = 20
IDLE_SECONDS = 5.0
_LIMIT = 120.0


@dataclass(frozen=True, slots=True)
class Renames:
    """What was found."""

    heard: float
    """Median of the seconds from the write to the update at the client."""
    idle: float
    """Of a core, in percent: the hub's watcher with every transcript watched, and nothing going on."""


async def measure(
    contestant: Contestant, env: Mapping[str, str], log: Path, transcripts: Sequence[Path], work: Path
) -> Renames:
    """Load the newest of the transcripts and rename it from here; then watch all of them.

    Args:
        contestant: Us, on Claude Code.
        env: The whole environment.
        log: Takes the stderr.
        transcripts: As `history.fill` gave them.
        work: A directory.

    Raises:
        BridgeError: It answered with an error or went away.
        TimeoutError: A rename was not heard.
    """
    with anyio.fail_after(_LIMIT):
        heard = await _rename(contestant, env, log, transcripts[-1], work)
        return Renames(statistics.median(heard), await _watch(transcripts))


async def _rename(contestant: Contestant, env: Mapping[str, str], log: Path, path: Path, work: Path) -> list[float]:
    arrived: dict[str, float] = {}
    news = anyio.Event()

    def hear(_session: str, update: JsonObject) -> None:
        nonlocal news
        if update.get("sessionUpdate") == "session_info_update":
            arrived[text(update, "title")] = time.perf_counter()
            news.set()
            news = anyio.Event()

    taken: list[float] = []
    async with start((*contestant.command, "--backend", contestant.cli), env, log, hear) as editor:
        await editor.initialize()
        await editor.ask("session/load", {"sessionId": path.stem, "cwd": str(work), "mcpServers": []})
        for number in range(RENAMES):
            title = f"Renamed elsewhere {number}"
            record = {"type": "custom-title", "customTitle": title, "sessionId": path.stem}
            with path.open("ab") as file:
                file.write(json.dumps(record).encode() + b"\n")
            begun = time.perf_counter()
            while title not in arrived:
                await news.wait()
            taken.append(arrived[title] - begun)
    return taken


async def _watch(transcripts: Sequence[Path]) -> float:
    watcher, share = Watcher(), 0.0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run)
        for path in transcripts:
            watcher.watch(path, _nothing)
        await anyio.sleep(1)  # The watch begins, and tells all once.
        begun, cpu = time.perf_counter(), time.process_time()
        await anyio.sleep(IDLE_SECONDS)
        share = (time.process_time() - cpu) / (time.perf_counter() - begun)
        tasks.cancel_scope.cancel()
    return share * 100


def _nothing() -> None:
    pass
