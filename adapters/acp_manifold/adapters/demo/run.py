"""Sets the stage of the demo, plays it, and sums up what was really seen."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio
import click

from acp_manifold.adapters.model import run_model
from acp_manifold.adapters.model.lab import private_environment
from acp_manifold.bridge.backend import Backend
from acp_manifold.bridge.backends import NoBackend, find_backends
from acp_manifold.bridge.errors import BridgeError

from .editor import start
from .evidence import Evidence
from .lanes import NARROWEST, Lanes
from .lines import Lines
from .story import CLIENT_TITLE, GENERATED_TITLE, Story
from .view import LABELS, LANES, Marks, View

_LIMIT = 30.0
"""Seconds after which something hangs, whatever it is."""

_LOG_TAIL = 3000
"""Characters of the bridge's stderr that are shown when the demo fails."""


def run(*, plain: bool) -> int:
    """Play the demo on stdout.

    Returns:
        The exit status: 0 only if everything that was to be shown happened.
    """
    try:
        backends = find_backends(LANES)
    except NoBackend as missing:
        click.echo(f"The demo needs both Claude Code and Codex: {missing.message}", err=True)
        return 1
    marks = Marks(sys.stdout.encoding)
    _introduce(backends)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="acp-manifold-demo-", ignore_cleanup_errors=True) as name:
        evidence, problem = anyio.run(_play, Path(name).resolve(), backends, _view(plain, marks))
    return _sum_up(evidence, problem, time.monotonic() - begun, marks)


async def _play(folder: Path, backends: Sequence[Backend], view: View) -> tuple[Evidence, str | None]:
    """Play the story in a private world; gives what was seen, and what went wrong, if anything did."""
    async with run_model() as model:
        env = private_environment(folder, model.url, backends)
        cwd = folder / "project"
        cwd.mkdir()
        log = folder / "stderr.log"
        story = Story(view, model, str(cwd))
        command = [sys.executable, "-m", "acp_manifold.bridge"]
        problem: str | None = None
        try:
            async with start(command, env, log, story.heard, story.asked) as editor:
                try:
                    with anyio.fail_after(_LIMIT):
                        await story.tell(editor)
                except* (BridgeError, TimeoutError) as errors:
                    problem = f"{_reasons(errors)}\n{_tail(log)}"
            story.evidence.exit_status = editor.status
        finally:
            view.close()
        return story.evidence, problem


def _reasons(errors: BaseExceptionGroup[Exception]) -> str:
    """What went wrong, in the words of each error in the group."""
    found: list[str] = []
    for error in errors.exceptions:
        if isinstance(error, BaseExceptionGroup):
            found.append(_reasons(error))
        else:
            found.append(str(error) or "something that was to happen did not happen in time")
    return "; ".join(found)


def _introduce(backends: Sequence[Backend]) -> None:
    click.echo("One editor, one ACP connection, two coding CLIs. A scripted model speaks for the language models;")
    click.echo("no account, no network, private temporary stores. The CLIs are the real ones:")
    for backend in backends:
        program = backend.program()
        if program is not None:
            click.echo(f"  {backend.label}: {' '.join(program.command)} ({program.source})")
    click.echo()


def _sum_up(evidence: Evidence, problem: str | None, seconds: float, marks: Marks) -> int:
    checks = evidence.checklist(CLIENT_TITLE, GENERATED_TITLE)
    if evidence.rows:
        click.echo("\nThe list, as the editor gets it:")
    for lane, title in evidence.rows.items():
        click.echo(f"  {title:<40} {LABELS[lane]}")
    click.echo(f"\nWhat was shown, in {seconds:.1f} s:")
    for check in checks:
        mark = click.style(marks.yes, fg="green") if check.held else click.style(marks.no, fg="red")
        click.echo(f"  {mark} {check.claim}")
    if problem is not None:
        click.echo(f"\nIt stopped early: {problem}", err=True)
    return 0 if problem is None and all(check.held for check in checks) else 1


def _view(plain: bool, marks: Marks) -> View:
    columns, rows = shutil.get_terminal_size()
    if plain or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb" or columns < NARROWEST or rows < 20:
        return Lines(_printed)
    return Lanes(_written, columns, rows, colour="NO_COLOR" not in os.environ, marks=marks)


def _written(words: str) -> None:
    sys.stdout.write(words)
    sys.stdout.flush()


def _printed(line: str) -> None:
    _written(f"{line}\n")


def _tail(log: Path) -> str:
    """The last of what the bridge logged: where to look next."""
    return log.read_text(encoding="utf-8", errors="replace")[-_LOG_TAIL:] if log.exists() else ""
