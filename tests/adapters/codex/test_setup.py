"""Which Codex is used, whether it is logged in, and the lab."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.codex.backend import CodexBackend
from acp_manifold.bridge.backend import Login
from tests.fakes.fake_codex import FakeCodex

from .scripted import running


def executable(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_named_program_comes_before_the_one_on_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = executable(tmp_path / "bin" / "codex")
    monkeypatch.setenv("PATH", str(on_path.parent))
    monkeypatch.setenv("CODEX_PATH", "/some/codex")
    named = CodexBackend().program()
    assert named is not None and (named.command, named.source) == (("/some/codex",), "CODEX_PATH")
    monkeypatch.setenv("CODEX_PATH", "")
    found = CodexBackend().program()
    assert found is not None and (found.command, found.source) == ((str(on_path),), "PATH")


def test_the_program_of_the_package_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = executable(tmp_path / "codex_cli_bin" / "bin" / "codex")
    (tmp_path / "codex_cli_bin" / "__init__.py").write_text("raise ImportError('must not be imported')")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("CODEX_PATH", "")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    found = CodexBackend().program()
    assert found is not None and (found.command, found.source) == ((str(program),), "openai-codex-cli-bin")


KEY_PROVIDER = 'model_provider = "p"\n[model_providers.p]\nenv_key = "P_KEY"\n'


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("config", "auth", "key", "login"),
    [
        (None, True, None, "in"),
        (None, False, None, "out"),
        (None, False, "OPENAI_API_KEY", "out"),
        (KEY_PROVIDER, False, "P_KEY", "in"),
        (KEY_PROVIDER, True, None, "out"),
        ('model_provider = "p"\n[model_providers.p]\nrequires_openai_auth = true\n', False, None, "out"),
        ('cli_auth_credentials_store = "keyring"\n', False, None, "unknown"),
        ('model_provider = "ollama"\n', False, None, "unknown"),
        ("not toml at all", False, None, "unknown"),
    ],
)
async def test_a_login_is_read_from_the_files_while_no_app_server_runs(
    fake: FakeCodex, monkeypatch: pytest.MonkeyPatch, config: str | None, auth: bool, key: str | None, login: Login
) -> None:
    monkeypatch.delenv("P_KEY", raising=False)
    if config is not None:
        (fake.home / "config.toml").write_text(config)
    if not auth:
        (fake.home / "auth.json").unlink()
    if key is not None:
        monkeypatch.setenv(key, "sk-test")
    assert await CodexBackend().login() == login
    assert fake.starts() == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reply", "login"),
    [
        ({"result": {"authMethod": "chatgpt", "requiresOpenaiAuth": True}}, "in"),
        ({"result": {"authMethod": None, "requiresOpenaiAuth": False}}, "in"),
        ({"result": {"authMethod": None, "requiresOpenaiAuth": True}}, "out"),
        ({"error": {"code": -32600, "message": "what?"}}, "unknown"),
    ],
)
async def test_a_running_app_server_is_asked_for_the_login_where_the_files_have_none(
    fake: FakeCodex, reply: dict[str, object], login: Login
) -> None:
    (fake.home / "auth.json").unlink()
    fake.replies("getAuthStatus", reply)
    with anyio.fail_after(5):
        async with running() as (backend, _):
            await backend.warm_up()
            assert await backend.login() == login


def test_the_lab_stays_in_its_folder(tmp_path: Path) -> None:
    env = CodexBackend().lab(tmp_path, "http://127.0.0.1:4711")
    assert set(env) == {"HOME", "CODEX_HOME", "OPENAI_API_KEY"}
    assert all(Path(env[name]).is_relative_to(tmp_path) for name in ("HOME", "CODEX_HOME"))
    config = tomllib.loads((Path(env["CODEX_HOME"]) / "config.toml").read_text())
    assert config["model_providers"][config["model_provider"]]["base_url"] == "http://127.0.0.1:4711/v1"


@pytest.mark.anyio
async def test_an_inspection_tells_the_version_the_home_and_what_is_wrong_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "codex"
    program.write_text('#!/bin/sh\necho "codex-cli 9 $1"\n')
    program.chmod(0o755)
    monkeypatch.setenv("CODEX_PATH", str(program))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    with anyio.fail_after(10):
        seen = await CodexBackend().inspect()
        assert (seen.version, seen.store, seen.problems) == ("codex-cli 9 --version", tmp_path, ())
        monkeypatch.setenv("CODEX_HOME", str(tmp_path / "none"))
        monkeypatch.setenv("CODEX_PATH", "/no/codex")
        home, version = (await CodexBackend().inspect()).problems
    assert "CODEX_HOME names" in home and "make it, or unset" in home
    assert version == "/no/codex can't be started: No such file or directory: correct or unset CODEX_PATH"
