"""The pytest plugin as the author of a client has it: from the built wheel, in a project of their own."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from .corpus import case

ROOT = Path(__file__).parents[2]

EXAMPLE = """
import json
import subprocess

import anyio
import pytest

from acp_manifold.adapters.replay.agent import running
from acp_manifold.adapters.replay.conversation import Conversation

RENAMED = Conversation().new().prompt("SAY[2]").end().rename("Mine after all").list()


@pytest.mark.recording("recorded.jsonl")
def test_a_conversation_is_as_it_was(replayed):
    heard = replayed.check(RENAMED)
    assert "word1" in heard


@pytest.mark.recording("recorded.jsonl", version=2)
def test_it_is_the_same_in_v2(replayed):
    assert "Mine after all" in replayed.check(RENAMED)


@pytest.mark.recording("recorded.jsonl")
def test_another_prompt_is_told_apart(replayed):
    with pytest.raises(AssertionError, match="differs: entry [0-9]+, .*expected"):
        replayed.check(Conversation().new().prompt("Something else").end(), golden=False)


@pytest.mark.recording("recorded.jsonl")
def test_a_client_that_starts_its_agent_itself(replayed):
    ask = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
    done = subprocess.run(
        replayed.command, env=replayed.environment, input=json.dumps(ask).encode() + b"\\n", capture_output=True
    )
    assert json.loads(done.stdout)["result"]["agentInfo"]["name"] == "acp-manifold"


@pytest.mark.recording("recorded.jsonl")
def test_a_client_in_this_process(replayed):
    async def main():
        async with running(replayed.recording) as (send, receive):
            await send(b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\\n')
            return json.loads(await receive())

    assert anyio.run(main)["id"] == 0
"""


def built(folder: Path) -> Path:
    """The wheel of this project."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return next(folder.glob("*.whl"))


def with_wheel(folder: Path, wheel: Path) -> Path:
    """A Python that has the wheel, and of what is here only its dependencies and pytest."""
    venv.create(folder, symlinks=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)}))
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    # What a `.pth` file names has its own `.pth` files left unread, so that the working copy is not found.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin" / "python"


def pytest_run(python: Path, project: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *flags]
    env = {"PATH": "", "HOME": str(project)}
    return subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_the_project_of_a_client_runs_with_pytest_and_the_wheel_alone(tmp_path: Path) -> None:
    python = with_wheel(tmp_path / "venv", built(tmp_path / "wheel"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "test_client.py").write_text(EXAMPLE)
    (project / "recorded.jsonl").write_bytes(case("claude", "title-after-turn").path.read_bytes())
    where = subprocess.run(
        [str(python), "-c", "import acp_manifold.bridge.hub as hub; print(hub.__file__)"],
        capture_output=True,
        text=True,
        check=True,
        cwd=project,
    )
    assert where.stdout.startswith(str(tmp_path))
    first = pytest_run(python, project)
    assert "5 passed" in first.stdout, first.stdout + first.stderr
    goldens = sorted((project / "goldens").iterdir())
    assert [path.name for path in goldens] == [
        "test_client.test_a_conversation_is_as_it_was.jsonl",
        "test_client.test_it_is_the_same_in_v2.jsonl",
    ]
    whole = goldens[0].read_text()
    goldens[0].write_text(whole.replace("word1 ", "another "))
    changed = pytest_run(python, project)
    assert "1 failed, 4 passed" in changed.stdout
    assert "If this is right: pytest --update-recordings" in changed.stdout
    updated = pytest_run(python, project, "--update-recordings", "-s")
    assert "5 passed" in updated.stdout, updated.stdout
    assert "-" in updated.stdout and "another" in updated.stdout and "@@" in updated.stdout
    assert goldens[0].read_text() == whole
    assert pytest_run(python, project).returncode == 0
