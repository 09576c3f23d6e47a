"""Fixtures of the Claude Code adapter's tests: a fake CLI, a backend that finds it, a working directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.adapters.claude import ClaudeBackend
from tests.adapters.claude.scripted import Listener
from tests.fakes.fake_claude import FakeClaude


@pytest.fixture
def fake(tmp_path: Path) -> FakeClaude:
    return FakeClaude(tmp_path)


@pytest.fixture
def backend(fake: FakeClaude) -> ClaudeBackend:
    return ClaudeBackend(fake.env)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def listener() -> Listener:
    return Listener()
