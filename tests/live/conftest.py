"""Fixtures of the live tests: the real CLIs, the real bridge, the scripted model.

A test takes `agent` (a bridge with all backends, initialized) with `both` (its lab), or makes another
with `lab` and `started`: `async with started(lab("codex"), "--verbose") as agent`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from acp_manifold.adapters.model import Model, run_model

from .client import Client
from .lab import Lab, make_lab, started

MakeLab: TypeAlias = Callable[..., Lab]
"""Called with names of backends; all of them without."""


@pytest.fixture
async def lab_model() -> AsyncGenerator[Model]:
    """A scripted model of the test's own: its gates and titles are nobody else's."""
    async with run_model() as model:
        yield model


@pytest.fixture
def lab(tmp_path: Path, lab_model: Model) -> MakeLab:
    """Makes the lab of the test; called twice, a second one."""
    made: list[Lab] = []

    def make(*names: str) -> Lab:
        folder = tmp_path / f"lab{len(made)}"
        folder.mkdir()
        made.append(make_lab(folder, lab_model, names or ("claude", "codex")))
        return made[-1]

    return make


def served(about: object) -> tuple[str, ...]:
    """The backends of a lab of a test: all that are served without being named, or the one it is about and another."""
    return ("claude-tui", "codex") if about == "claude-tui" else ()


@pytest.fixture
def both(lab: MakeLab, request: pytest.FixtureRequest) -> Lab:
    """The lab with all backends, the one that `agent` runs in; with the one that the test is about in any case."""
    if "backends" in request.fixturenames:
        several: Sequence[str] = request.getfixturevalue("backends")
        return lab(*served("claude-tui" if "claude-tui" in several else None))
    return lab(*served(request.getfixturevalue("backend") if "backend" in request.fixturenames else None))


both_versions = pytest.mark.parametrize("version", [1, 2])
"""On a test that is the same in both versions of the protocol."""

all_and_v2 = pytest.mark.parametrize(
    ("backend", "version"), [("claude", 1), ("claude-tui", 1), ("codex", 1), ("claude", 2), ("codex", 2)]
)
"""On a test that is the same in both versions, and on every backend: both versions on those served unasked."""

of_claude_and_v2 = pytest.mark.parametrize(("backend", "version"), [("claude", 1), ("claude-tui", 1), ("claude", 2)])
"""On a test of Claude Code that is the same in both versions, by either of its backends."""

both_and_codex_in_v2 = pytest.mark.parametrize(("backend", "version"), [("claude", 1), ("codex", 1), ("codex", 2)])
"""On a test that is the same in both versions, of what v2 shows alike whoever serves: once, of the quicker CLI."""

all_and_codex_in_v2 = pytest.mark.parametrize(
    ("backend", "version"), [("claude", 1), ("claude-tui", 1), ("codex", 1), ("codex", 2)]
)
"""The same, on every backend."""


@pytest.fixture
def version() -> int:
    """The protocol version that is spoken, unless the test has it as a parameter."""
    return 1


@pytest.fixture
async def agent(lab_agent: Client, version: int) -> Client:
    """A bridge with all backends, initialized."""
    lab_agent.version = version
    await lab_agent.initialize()
    return lab_agent


@pytest.fixture
async def lab_agent(both: Lab) -> AsyncGenerator[Client]:
    """A bridge with all backends that has not been spoken to yet."""
    async with started(both) as client:
        yield client
