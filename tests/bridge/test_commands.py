"""The command line."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest
from click.testing import CliRunner

from acp_manifold.bridge.commands import acp_manifold
from acp_manifold.bridge.version import __version__


@pytest.mark.parametrize("grace", ["nan", "inf", "0", "-1", "soon"])
def test_a_grace_that_is_no_time_is_refused(grace: str) -> None:
    result = CliRunner().invoke(acp_manifold, ["--interrupt-grace", grace])
    assert result.exit_code == 2 and "--interrupt-grace" in result.output


def test_help_and_version_say_what_there_is() -> None:
    assert CliRunner().invoke(acp_manifold, ["--version"]).output == f"acp-manifold {__version__}\n"
    text = CliRunner().invoke(acp_manifold, ["--help"]).output
    assert "--backend" in text and "claude, codex" in text and "demo" in text


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [([], 0, "Served here"), (["--backend", "codex"], 0, "codex"), (["--backend", "nobody"], 2, "'nobody'")],
)
def test_on_a_terminal_it_explains_itself_instead_of_hanging(arguments: list[str], status: int, told: str) -> None:
    ours, theirs = pty.openpty()
    try:
        command = [sys.executable, "-m", "acp_manifold.bridge", *arguments]
        done = subprocess.run(command, stdin=theirs, capture_output=True, text=True, timeout=20, check=False)
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == status
    assert "agent_servers" in done.stdout and told in done.stdout + done.stderr
