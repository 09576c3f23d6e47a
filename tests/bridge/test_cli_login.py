"""`acp-manifold login`: this process becomes a CLI's own login."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("method", "words", "mark"),
    [("claude-login", "auth login", "CLAUDECODE"), ("codex-device", "login --device-auth", "CODEX_SANDBOX")],
)
def test_the_command_of_a_login_becomes_the_clis_own(tmp_path: Path, method: str, words: str, mark: str) -> None:
    """The CLI gets its own words, the terminal's input, and no mark of an enclosing session of its own."""
    program = tmp_path / "cli"
    program.write_text('#!/bin/sh\nread line\necho "$* got $line mark $' + mark + '"\nexit 7\n')
    program.chmod(0o755)
    env = {**os.environ, "CLAUDE_CODE_EXECUTABLE": str(program), "CODEX_PATH": str(program)}
    env[mark] = "1"
    command = [sys.executable, "-m", "acp_manifold.bridge", "login", method]
    done = subprocess.run(command, env=env, input="typed\n", capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (7, f"{words} got typed mark \n")


def test_an_unknown_way_to_log_in_names_those_there_are(tmp_path: Path) -> None:
    env = {**os.environ, "CLAUDE_CODE_EXECUTABLE": "/no/such/claude", "CODEX_PATH": "/no/such/codex"}
    command = [sys.executable, "-m", "acp_manifold.bridge", "login"]
    done = subprocess.run([*command, "x"], env=env, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1 and "claude-login, claude-console, codex-login, codex-device" in done.stderr
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1 and "/no/such/claude" in done.stderr
