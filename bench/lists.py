"""What a long history costs: the session list over thousands of transcripts, by us and by the official adapter."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio

from acp_manifold.adapters.demo.editor import Editor, start
from acp_manifold.translators.narrow import JsonObject, as_objects, text

from .contestants import Contestant
from .processes import pss_mb

TRANSCRIPTS, PROJECTS, SIZE = 5000, 50, 50_000

_CALLS = 4
"""Later pages, and later calls for the first one, in one start."""

_LIMIT = 120.0


@dataclass(frozen=True, slots=True)
class Lists:
    """Times in seconds."""

    first: float
    """The first page, the first time that this agent sees the store."""
    restarted: float
    """The first page after a restart of the agent."""
    later: float
    """The median of later pages, and of the first page asked for again."""
    growth: float
    """MB by which the agent's process grew (PSS) with all of that, in the first start."""


async def measure(contestant: Contestant, env: Mapping[str, str], log: Path) -> Lists:
    """Start the contestant twice on a store that it has not seen, and ask for lists.

    Raises:
        BridgeError: It answered with an error or went away.
        TimeoutError: It took too long.
        AssertionError: It listed nothing.
    """
    first, later, growth = await _one_start(contestant, env, log)
    restarted, _, _ = await _one_start(contestant, env, log)
    return Lists(first, restarted, statistics.median(later), growth)


async def _one_start(contestant: Contestant, env: Mapping[str, str], log: Path) -> tuple[float, list[float], float]:
    command = (*contestant.command, "--backend", contestant.cli) if contestant.ours else contestant.command
    with anyio.fail_after(_LIMIT):
        async with start(command, env, log, _ignore) as editor:
            await editor.initialize()
            before = pss_mb(editor.pid)
            first, cursor = await _timed_page(editor, None)
            later: list[float] = []
            for _ in range(_CALLS):
                seconds, cursor = await _timed_page(editor, cursor)
                later.append(seconds)
            for _ in range(_CALLS):
                later.append((await _timed_page(editor, None))[0])
            return first, later, pss_mb(editor.pid) - before


async def _timed_page(editor: Editor, cursor: str | None) -> tuple[float, str | None]:
    params: JsonObject = {"cursor": cursor} if cursor else {}
    begun = time.perf_counter()
    page = await editor.ask("session/list", params)
    taken = time.perf_counter() - begun
    assert as_objects(page.get("sessions")), "an empty page"
    return taken, text(page, "nextCursor") or None


def _ignore(_session: str, _update: JsonObject) -> None:
    pass
