"""Where the CLI is found, whether it has a login, and its lab."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from acp_manifold.adapters.claude import ClaudeBackend
from acp_manifold.adapters.claude.login import login
from acp_manifold.adapters.claude.program import find_program
from acp_manifold.bridge.backend import Backend, Inspection


def executable(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "claude"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_named_program_comes_before_the_path(tmp_path: Path) -> None:
    on_path = executable(tmp_path / "bin")
    env = {"PATH": str(on_path.parent), "CLAUDE_CODE_EXECUTABLE": "/named/claude"}
    program = find_program(env)
    assert program is not None and (program.command, program.source) == (("/named/claude",), "CLAUDE_CODE_EXECUTABLE")


def test_a_blank_name_counts_as_none(tmp_path: Path) -> None:
    on_path = executable(tmp_path / "bin")
    program = find_program({"PATH": str(on_path.parent), "CLAUDE_CODE_EXECUTABLE": " "})
    assert program is not None and (program.command, program.source) == ((str(on_path),), "PATH")


def test_a_script_is_run_by_node() -> None:
    program = find_program({"CLAUDE_CODE_EXECUTABLE": "/x/cli.js"})
    assert program is not None and program.command == ("node", "/x/cli.js")


def test_the_program_of_the_wheel_is_the_last_resort(tmp_path: Path) -> None:
    if find_spec("claude_agent_sdk") is None:
        pytest.skip("claude-agent-sdk is not installed")
    program = find_program({"PATH": str(tmp_path)})
    assert program is not None and program.source == "claude-agent-sdk"


def test_importing_the_backend_imports_nothing_heavy() -> None:
    code = (
        "import sys; from acp_manifold.adapters.claude import ClaudeBackend; ClaudeBackend().program();"
        "heavy = {'asyncio', 'pydantic', 'watchfiles', 'subprocess', 'claude_agent_sdk'};"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=import_path())
    assert told.stdout.strip() == "[]", told.stderr


def import_path() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(entry for entry in sys.path if entry)}


@pytest.mark.parametrize(
    ("files", "env", "expected"),
    [
        ({}, {}, "out"),
        ({}, {"ANTHROPIC_API_KEY": " "}, "out"),
        ({}, {"ANTHROPIC_API_KEY": "k"}, "in"),
        ({}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, "in"),
        ({".credentials.json": "{}"}, {}, "in"),
        ({"settings.json": '{"apiKeyHelper": "x"}'}, {}, "in"),
        ({"settings.json": '{"env": {"ANTHROPIC_AUTH_TOKEN": "x"}}'}, {}, "in"),
        ({".claude.json": '{"oauthAccount": {"id": 1}}'}, {}, "in"),
        ({".claude.json": '{"hasCompletedOnboarding": true}'}, {}, "out"),
        ({".claude.json": '{"projects": {"/no/such/w": {"hasTrustDialogAccepted": true}}}'}, {}, "out"),
        ({".claude.json": "{damaged"}, {}, "unknown"),
        ({"settings.json": "[1]"}, {}, "unknown"),
    ],
)
def test_a_login_is_out_only_when_that_is_certain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], env: dict[str, str], expected: str
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name, body in files.items():
        (tmp_path / name).write_text(body)
    assert login({"CLAUDE_CONFIG_DIR": str(tmp_path), **env}) == expected


def test_the_keychain_of_a_mac_leaves_it_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert login({"CLAUDE_CONFIG_DIR": str(tmp_path)}) == "unknown"


def test_the_account_file_of_the_usual_place_lies_in_the_home(tmp_path: Path) -> None:
    (tmp_path / ".claude.json").write_text(json.dumps({"primaryApiKey": "k"}))
    assert login({"HOME": str(tmp_path)}) == "in"


def test_a_lab_leads_the_cli_to_its_folder_and_its_model(tmp_path: Path) -> None:
    env = ClaudeBackend({}).lab(tmp_path, "http://127.0.0.1:1")
    assert env["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    for variable in ("HOME", "CLAUDE_CONFIG_DIR", "CLAUDE_CODE_TMPDIR"):
        assert Path(env[variable]).is_dir() and Path(env[variable]).is_relative_to(tmp_path)
    assert login(env) == "in"


def test_the_backend_is_what_the_bridge_asks_for() -> None:
    backend: Backend = ClaudeBackend({})
    assert (backend.name, backend.label, backend.auth.id) == ("claude", "Claude Code", "claude-login")


@pytest.mark.anyio
async def test_an_inspection_tells_the_version_the_store_and_what_is_wrong_with_them(tmp_path: Path) -> None:
    program = executable(tmp_path / "bin")
    program.write_text('#!/bin/sh\necho "9.9 $1"\n')
    env = {"PATH": f"{program.parent}:/bin", "CLAUDE_CONFIG_DIR": str(tmp_path / "config")}
    store = tmp_path / "config" / "projects"
    seen = await ClaudeBackend(env).inspect()
    assert seen == Inspection("9.9 --version", store, (), ())
    store.parent.mkdir()
    store.touch()
    program.write_text("#!/bin/sh\nexit 4\n")
    version, unreadable = (await ClaudeBackend(env).inspect()).problems
    assert version == f"{program} did not tell its version: exit status 4. Install Claude Code anew"
    assert unreadable == f"{store} can't be read (Not a directory): make it a directory that you can read and write"
