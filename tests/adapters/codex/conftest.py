"""A fake app-server in the environment of every test that asks for one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.fake_codex import FakeCodex


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeCodex]:
    """The app-server that `CodexBackend` starts in this test."""
    fake = FakeCodex(tmp_path)
    for name, value in fake.env.items():
        monkeypatch.setenv(name, value)
    yield fake


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A directory for the sessions."""
    folder = tmp_path / "work"
    folder.mkdir()
    return folder
