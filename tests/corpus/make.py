"""`make record`: has the scenarios with the real CLIs and the scripted model, and writes the corpus.

    python -m tests.corpus.make [--backend claude] [SCENARIO...]

The CLIs are those that are found, by `CLAUDE_CODE_EXECUTABLE` and `CODEX_PATH` where these are set: so a new version,
or an old one, gets its folder with one command, and `git diff --no-index` reads the difference between two.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from functools import partial
from pathlib import Path

import anyio
import click

from acp_manifold.adapters.model import run_model
from acp_manifold.adapters.replay.agent import joined
from acp_manifold.adapters.replay.conversation import Conversation, Talk
from acp_manifold.bridge.recording.reader import read
from acp_manifold.bridge.recording.writer import write
from tests.live.lab import backends, make_lab
from tests.live.leftovers import bearing

from . import scenarios
from .scenarios import Scenario
from .thin import thin

FOLDER = Path(__file__).parents[2] / "recordings"

FILES = (Path(__file__).with_name("probe.py"),)
"""What lies in the directory of the sessions."""


@click.command()
@click.option("--backend", "backends", multiple=True, default=("claude", "codex"), show_default=True)
@click.argument("names", nargs=-1)
def main(backends: tuple[str, ...], names: tuple[str, ...]) -> None:
    """Make the recordings of these scenarios; of all without a name."""
    failed: list[str] = []
    for backend in backends:
        for scenario in scenarios.of(backend):
            if names and scenario.name not in names:
                continue
            try:
                with tempfile.TemporaryDirectory(prefix="corpus-", ignore_cleanup_errors=True) as folder:
                    path = anyio.run(_record, backend, scenario, Path(folder).resolve())
            except* (AssertionError, OSError) as exc:
                failed.append(f"{backend} {scenario.name}: {_first(exc)}")
            else:
                click.echo(f"{path.relative_to(FOLDER.parent)}: {path.stat().st_size // 1024} KB")
    for words in failed:
        click.echo(words, err=True)
    sys.exit(1 if failed else 0)


def _first(exc: BaseExceptionGroup[Exception] | Exception) -> BaseException:
    return _first(exc.exceptions[0]) if isinstance(exc, BaseExceptionGroup) else exc


async def _record(backend: str, scenario: Scenario, folder: Path) -> Path:
    raw = folder / f"{scenario.name}.jsonl"
    async with run_model() as model:
        lab = make_lab(folder, model, (backend,))
        for file in FILES:
            shutil.copy(file, lab.cwd)
        command = [sys.executable, "-m", "acp_manifold.bridge", "--backend", backend, "--record", str(raw)]
        with lab.log.open("ab") as log:
            process = await anyio.open_process(command, env=lab.env, cwd=lab.folder, stderr=log)
        assert process.stdin is not None and process.stdout is not None
        async with process:
            async with joined(process.stdin.send, process.stdout.receive, 1) as client:
                talk = Talk(
                    client, lab.cwd, backend, lambda name: model.gate(name).set(), partial(_kill, backend, folder)
                )
                await talk.have(Conversation.of(*scenario.steps))
            await process.stdin.aclose()
            await process.wait()
    recording = read(raw)
    path = FOLDER / backend / recording.header.clis[backend] / f"{scenario.name}.jsonl"
    header = recording.header._replace(scrubbed=(*recording.header.scrubbed, "lab", "port", "lists"))
    write(path, header, thin(recording.entries, folder))
    path.chmod(0o644)
    return path


def _kill(backend: str, folder: Path) -> None:
    """Kill the CLI that serves the session."""
    found = next(iter(backends([backend]))).program()
    assert found is not None
    for pid, command in bearing(str(folder)).items():
        if command.startswith(found.command[0]):
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
