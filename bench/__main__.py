"""`make bench`: runs everyone in turn, prints a Markdown table, writes bench.json; status 1 if a budget was missed."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import click

from acp_manifold.adapters.model.lab import private_environment
from acp_manifold.bridge.backend import Backend
from acp_manifold.bridge.backends import find_backends

from . import delay, history, idle, lists, loads, recording, renames, rendering, tui
from .contestants import CLIS, HOW_TO_INSTALL, Cli, Contestant, ours, peers, same_programs
from .report import (
    Row,
    as_json,
    delay_rows,
    idle_rows,
    list_rows,
    load_rows,
    recording_rows,
    rename_rows,
    rendering_rows,
    rows,
    table,
    tui_rows,
)
from .work import Figures, run_once

MANY_RUNS = 3
"""The runs, from the first on, in which the tests with many sessions are done too: they take long."""


@click.command()
@click.option("--runs", default=5, show_default=True, help="Starts of each contestant; the median counts.")
@click.option("--words", default=5000, show_default=True, help="Words streamed for the CPU figure.")
@click.option("--idle-sessions", default=50, show_default=True, help="Idle sessions to measure; 0 leaves that out.")
@click.option("--json", "json_path", default="bench.json", show_default=True, help="Where the figures go.")
def bench(runs: int, words: int, idle_sessions: int, json_path: str) -> None:
    """Measure acp-manifold and, where installed, the official adapters on the same work."""
    everyone = [contestant for cli in CLIS for contestant in (ours(cli), *(p for p in peers() if p.cli == cli))]
    with tempfile.TemporaryDirectory(prefix="acp-manifold-bench-", ignore_cleanup_errors=True) as folder:
        results, more = anyio.run(_measure, everyone, runs, words, idle_sessions, Path(folder).resolve())
    lines = [*rows(results), *more]
    names: dict[Cli, str] = {"claude": "claude-agent-acp", "codex": "codex-acp"}
    names |= {
        contestant.cli: f"{contestant.name} {contestant.version}" for contestant in everyone if not contestant.ours
    }
    about = _about(runs, words)
    click.echo(f"\n{about}\n\n{table(lines, names)}")
    report = {"about": about, "versions": names, **as_json(lines, results)}
    Path(json_path).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    if all(contestant.ours for contestant in everyone):
        click.echo(f"\n{HOW_TO_INSTALL}")
    missed = [row.name for row in lines if row.held is False]
    if missed:
        click.echo(f"\nBudgets missed: {', '.join(missed)}", err=True)
        sys.exit(1)


async def _measure(
    everyone: list[Contestant], runs: int, words: int, idle_sessions: int, folder: Path
) -> tuple[dict[tuple[Cli, bool], list[Figures]], list[Row]]:
    """The figures of everyone, and the lines about us alone."""
    backends = find_backends(CLIS)
    async with _model() as url:
        results = await _compare(everyone, runs, words, folder, url, backends)
        alone = await _idle(idle_sessions, folder, url, backends) if idle_sessions else []
        listed = await _lists(everyone, runs, folder, url, backends)
        loaded = await _loads(everyone, runs, folder, url, backends)
        typed = await _typed(runs, folder, url)
        recorded = await _recorded(runs, words, folder, url, backends)
    click.echo("rendering", err=True)
    rendered = rendering_rows(rendering.measure())
    click.echo("delays", err=True)
    return results, [*rendered, *delay_rows(await delay.measure()), *alone, *listed, *loaded, *recorded, *typed]


async def _compare(
    everyone: list[Contestant], runs: int, words: int, folder: Path, url: str, backends: list[Backend]
) -> dict[tuple[Cli, bool], list[Figures]]:
    """Run everyone in turn, `runs` times, after one start each that doesn't count and fills stores and caches."""
    results: dict[tuple[Cli, bool], list[Figures]] = {(c.cli, c.ours): [] for c in everyone}
    labs = {contestant: _lab(folder / str(n), url, backends) for n, contestant in enumerate(everyone)}
    for number in range(runs + 1):
        for contestant in everyone:
            lab, env = labs[contestant]
            click.echo(f"run {number} of {runs}: {contestant.name} on {contestant.cli}", err=True)
            count = words if number else 100
            many = 0 < number <= MANY_RUNS
            figures = await run_once(contestant, env, lab / "project", lab / "stderr.log", words=count, many=many)
            if number:
                results[contestant.cli, contestant.ours].append(figures)
    return results


async def _idle(sessions: int, folder: Path, url: str, backends: list[Backend]) -> list[Row]:
    click.echo(f"{sessions} idle sessions", err=True)
    lab, env = _lab(folder / "idle", url, backends)
    program = next(found.command[-1] for b in backends if b.name == "claude" and (found := b.program()) is not None)
    return idle_rows(await idle.measure(ours("claude"), program, env, lab / "project", lab / "stderr.log", sessions))


async def _lists(everyone: list[Contestant], runs: int, folder: Path, url: str, backends: list[Backend]) -> list[Row]:
    """Fill a store, let everyone on Claude Code list it in turn, and rename what is in it."""
    lab, env = _lab(folder / "history", url, backends)
    size = lists.TRANSCRIPTS, lists.PROJECTS, lists.SIZE
    transcripts = history.fill(Path(env["CLAUDE_CONFIG_DIR"]), *size, lab / "project")
    found: dict[bool, list[lists.Lists]] = {True: [], False: []}
    for number in range(runs):
        for contestant in (contestant for contestant in everyone if contestant.cli == "claude"):
            click.echo(f"list {number + 1} of {runs}: {contestant.name}", err=True)
            # A state directory of its own each time: what was seen of the store is kept there.
            fresh = env | {"XDG_STATE_HOME": str(lab / f"state-{number}")}
            found[contestant.ours].append(await lists.measure(contestant, fresh, lab / "stderr.log"))
    click.echo("renames", err=True)
    renamed = await renames.measure(ours("claude"), env, lab / "stderr.log", transcripts, lab / "project")
    return [*list_rows(found[True], found[False]), *rename_rows(renamed)]


async def _loads(everyone: list[Contestant], runs: int, folder: Path, url: str, backends: list[Backend]) -> list[Row]:
    """Make one long conversation for each CLI, and let everyone open it in turn."""
    found: dict[tuple[Cli, bool], list[loads.Load]] = {(c.cli, c.ours): [] for c in everyone}
    for cli in CLIS:
        lab, env = _lab(folder / f"long-{cli}", url, backends)
        click.echo(f"a session of {loads.TURNS} turns: {cli}", err=True)
        session = await loads.prepare(cli, ours(cli), env, lab / "stderr.log", lab / "project")
        for number in range(runs):
            for contestant in (contestant for contestant in everyone if contestant.cli == cli):
                click.echo(f"load {number + 1} of {runs}: {contestant.name} on {cli}", err=True)
                load = await loads.measure(contestant, env, lab / "stderr.log", session, lab / "project")
                found[contestant.cli, contestant.ours].append(load)
    return load_rows(found)


async def _recorded(runs: int, words: int, folder: Path, url: str, backends: list[Backend]) -> list[Row]:
    found: list[Row] = []
    for cli in CLIS:
        click.echo(f"recording and replaying: {cli}", err=True)
        lab, env = _lab(folder / f"recorded-{cli}", url, backends)
        log = lab / "stderr.log"
        found += recording_rows(cli, await recording.measure(cli, env, lab / "project", log, runs=runs, words=words))
    return found


async def _typed(runs: int, folder: Path, url: str) -> list[Row]:
    """The interactive program by itself, and served by us."""
    backends = find_backends(["claude-tui"])
    (program,) = (one.command for backend in backends if (one := backend.program()) is not None)
    lab, env = _lab(folder / "tui", url, backends)
    config = Path(env["CLAUDE_CONFIG_DIR"])
    found: list[tui.Tui] = []
    for number in range(runs):
        click.echo(f"interactive program, run {number + 1} of {runs}", err=True)
        command = ours("claude").command
        found.append(await tui.measure(command, program, env, lab / "project", lab / "stderr.log", config))
    return tui_rows(found)


def _lab(folder: Path, url: str, backends: list[Backend]) -> tuple[Path, dict[str, str]]:
    folder.mkdir()
    (folder / "project").mkdir()
    return folder, private_environment(folder, url, backends) | same_programs(backends)


@asynccontextmanager
async def _model() -> AsyncGenerator[str]:
    """The scripted model as a process of its own, so that its work is nobody's here; gives its address."""
    command = [sys.executable, "-m", "acp_manifold.adapters.model"]
    async with await anyio.open_process(command, stdin=None, stderr=None) as process:
        assert process.stdout is not None
        try:
            yield (await process.stdout.receive()).decode().strip()
        finally:
            process.terminate()


def _about(runs: int, words: int) -> str:
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    system = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    return f"{day}, {system}, median of {runs} runs in turn, {words} words for the CPU figure."


if __name__ == "__main__":
    bench()
