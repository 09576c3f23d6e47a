"""The demo, played with the real CLIs: it has to show all it claims, and leave nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from acp_manifold.adapters.demo import demo, run
from acp_manifold.bridge.backends import NoBackend

from .leftovers import bearing

pytestmark = [pytest.mark.anyio, pytest.mark.live]


async def test_the_demo_shows_everything_and_leaves_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "acp_manifold.bridge", "demo"]
    with anyio.fail_after(40):
        played = await anyio.run_process(command, env={**os.environ, "TMPDIR": str(tmp_path)}, check=False)
    shown = played.stdout.decode()
    assert played.returncode == 0, shown + played.stderr.decode()
    assert shown.count("  ✓ ") + shown.count("  ok ") == 10
    assert "\x1b" not in shown
    assert {line[:7].strip() for line in shown.splitlines() if line[7:9] == "| "} == {"you", "claude", "codex"}
    assert os.listdir(tmp_path) == []
    assert bearing(str(tmp_path)) == {}


def test_a_missing_cli_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_found(_names: object) -> list[object]:
        raise NoBackend("no coding CLI was found for codex; install it:\n  Codex: like this")

    monkeypatch.setattr(run, "find_backends", none_found)
    result = CliRunner().invoke(demo, [])
    assert result.exit_code == 1
    assert "Codex: like this" in result.output
