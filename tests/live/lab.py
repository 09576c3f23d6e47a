"""A private world for live tests: the real CLIs with stores of their own and the scripted model behind them.

`make_lab` builds it from each backend's own `lab`; `started` runs the bridge in it as an editor would,
and checks at the end what an editor relies on: a clean exit in time, and nothing left behind.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, cast

import anyio
from anyio.abc import Process

from acp_manifold.adapters.model import Model
from acp_manifold.adapters.model.lab import private_environment
from acp_manifold.bridge.backend import Backend
from acp_manifold.bridge.backends import GROUP, ON_REQUEST

from .client import Client
from .leftovers import none_left

_SHORT_LIVED = {"BUN_GC_TIMER_DISABLE": "1", "BUN_JSC_useDFGJIT": "0"}
"""For the engine that Claude Code is built on: no housekeeping by the clock, no optimizing compiler.

They pay off in a process that lives long; in one that lives for two seconds they are a quarter of what it costs
(Claude Code 2.1.332, three short turns).
"""

EXIT_LIMIT = 5.0
"""Seconds the bridge and all its children have to end after their input did (issue 2)."""


@dataclass(frozen=True, slots=True)
class Lab:
    """Where a live test happens."""

    folder: Path
    env: dict[str, str]
    """For the bridge and what it starts; the folder is in it, which marks every process of the lab."""
    model: Model
    cwd: str
    """An empty directory to open sessions in."""
    flags: tuple[str, ...] = ()
    """What the bridge is started with."""

    @property
    def log(self) -> Path:
        """What the bridge wrote to stderr."""
        return self.folder / "stderr.log"

    def directory(self, name: str) -> str:
        """Another directory to open sessions in."""
        path = self.folder / "work" / name
        path.mkdir(parents=True, exist_ok=True)
        return str(path)


def backends(names: Sequence[str]) -> list[Backend]:
    """The backends of these names, as installed.

    Raises:
        AssertionError: One is not installed, or its CLI is not: `make install` brings all.
    """
    points = {point.name: point for group in (GROUP, ON_REQUEST) for point in entry_points(group=group)}
    missing = [name for name in names if name not in points]
    assert not missing, f"No such backends: {missing}; `make install` installs acp-manifold with all of them"
    found = [cast(Backend, points[name].load()()) for name in names]
    for backend in found:
        assert backend.program() is not None, f"{backend.label} is not installed: {backend.install_hint}"
    return found


def make_lab(folder: Path, model: Model, names: Sequence[str] = ("claude", "codex")) -> Lab:
    """A lab in an empty folder for the backends of these names."""
    env = private_environment(folder, model.url, backends(names)) | _SHORT_LIVED
    # The one that is served only when it is named has the store of `claude`.
    flags = tuple(word for name in names for word in ("--backend", name)) if "claude-tui" in names else ()
    lab = Lab(folder, env, model, str(folder / "work" / "project"), flags)
    lab.directory("project")
    return lab


class World(Protocol):
    """Where a bridge runs: a lab, or one with stand-ins for the CLIs."""

    @property
    def folder(self) -> Path:
        """What marks every process of this world."""
        ...

    @property
    def env(self) -> dict[str, str]:
        """For the bridge."""
        ...

    @property
    def log(self) -> Path:
        """Where the bridge's stderr goes."""
        ...

    @property
    def flags(self) -> tuple[str, ...]:
        """What the bridge is started with."""
        ...


def beside(lab: Lab) -> Lab:
    """The same stores for another agent, whose processes can be told from those of the first."""
    folder = lab.folder / "other-agent"
    folder.mkdir()
    return replace(lab, folder=folder, env={**lab.env, "OTHER_AGENT": str(folder)})


@asynccontextmanager
async def started(lab: World, *flags: str, version: int = 1) -> AsyncGenerator[Client]:
    """`acp-manifold` as a process in the lab, and a client connected to it that will speak this protocol version.

    At the end its input is closed; it has to exit with status 0 in `EXIT_LIMIT` seconds, and no
    process of the lab may be left then. A test that fails by itself just has everything killed.
    """
    command = [sys.executable, "-m", "acp_manifold.bridge", *lab.flags, *flags]
    with lab.log.open("ab") as log:
        process = await anyio.open_process(command, env=lab.env, cwd=lab.folder, stderr=log)
    assert process.stdout is not None and process.stdin is not None
    client = Client()
    client.version = version
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.run_reader, process.stdout)
            tasks.start_soon(client.run_sender, process.stdin)
            yield client
            client.close()
            await _ends_well(process, lab)
            await client.ended()
            tasks.cancel_scope.cancel()
    except BaseException:
        sys.stderr.write(lab.log.read_text(errors="replace")[-20_000:])
        raise
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(EXIT_LIMIT):
            if process.returncode is None:
                process.kill()
            await none_left(str(lab.folder), 0)
            await process.aclose()


async def _ends_well(process: Process, lab: World) -> None:
    """The exit an editor expects."""
    with anyio.move_on_after(EXIT_LIMIT):
        await process.wait()
    assert process.returncode is not None, f"The bridge still ran {EXIT_LIMIT} s after its input ended"
    assert process.returncode == 0, f"The bridge exited with status {process.returncode}"
    left = await none_left(str(lab.folder), EXIT_LIMIT)
    assert not left, f"Processes left behind by the bridge: {left}"
