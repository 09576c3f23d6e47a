"""Field reports as tests: the real bridge as a process, over CLIs that do what no real one can be made to do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import pytest

from tests.fakes.fake_claude import FakeClaude
from tests.fakes.fake_codex import FakeCodex
from tests.live.client import Client
from tests.live.lab import started

Start: TypeAlias = "Callable[..., AbstractAsyncContextManager[Client]]"


@dataclass(frozen=True, slots=True)
class Fakes:
    """Both stand-ins and the world of the bridge that starts them."""

    folder: Path
    env: dict[str, str]
    claude: FakeClaude
    codex: FakeCodex
    flags: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        """What the bridge wrote to stderr."""
        return self.folder / "stderr.log"

    @property
    def stderr(self) -> str:
        return self.log.read_text(errors="replace")

    def directory(self, name: str) -> Path:
        path = self.folder / "work" / name
        path.mkdir(parents=True, exist_ok=True)
        return path


@pytest.fixture
def fakes(tmp_path: Path) -> Fakes:
    """A world with a stand-in for each CLI."""
    claude, codex = FakeClaude(tmp_path), FakeCodex(tmp_path)
    env = {**codex.env, **claude.env, "XDG_STATE_HOME": str(tmp_path / "state")}
    return Fakes(tmp_path, env, claude, codex)


@pytest.fixture
def bridge(fakes: Fakes) -> Start:
    """Starts the bridge in that world, initialized; takes its flags."""

    @asynccontextmanager
    async def start(*flags: str) -> AsyncGenerator[Client]:
        async with started(fakes, *flags) as client:
            await client.initialize()
            yield client

    return start
