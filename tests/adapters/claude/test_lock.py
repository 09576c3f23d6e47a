"""Two agents, one session (issue 3): the second is told who has it, however short the time between them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.claude import ClaudeBackend
from acp_manifold.adapters.claude.lock import locked
from acp_manifold.bridge.backend import SessionSpec
from acp_manifold.bridge.errors import InvalidRequest
from tests.adapters.claude.scripted import Listener, hub, opened, saying
from tests.fakes.fake_claude import FakeClaude

pytestmark = pytest.mark.anyio

HOLDS = """
import sys
from pathlib import Path
from acp_manifold.adapters.claude.lock import locked
with locked(Path(sys.argv[1]), "s1"):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_a_lock_is_held_once_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    for _ in range(2):
        with locked(folder, "s1"), locked(folder, "s2"):
            with pytest.raises(InvalidRequest, match=f"another acp-manifold, pid {os.getpid()}") as refused:
                with locked(folder, "s1"):
                    pass
            assert refused.value.data == {"reason": "thread_active_writer", "sessionId": "s1"}
            assert oct((folder / "s1.lock").stat().st_mode & 0o777) == "0o600"
        assert list(folder.iterdir()) == []


def test_the_lock_of_an_agent_that_died_is_free(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDS, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and other.stdout.readline() == b"held\n"
        with pytest.raises(InvalidRequest, match=f"pid {other.pid}"), locked(tmp_path, "s1"):
            pass
        other.kill()
        other.wait()
        with locked(tmp_path, "s1"):
            pass


async def test_a_session_that_another_agent_begins_to_serve_is_refused_at_once(fake: FakeClaude, work: Path) -> None:
    first, second = ClaudeBackend(fake.env), ClaudeBackend(fake.env)
    with anyio.fail_after(10):
        async with opened(first, work) as session:
            await session.prompt(saying("hi"))
            async with hub(second):
                with pytest.raises(InvalidRequest) as refused:
                    async with second.session(SessionSpec(str(work)), Listener(), resume=session.id):
                        pass
            assert "another acp-manifold" in refused.value.message
        async with opened(second, work, resume=session.id) as again:
            await again.prompt(saying("hi"))
    assert len(fake.starts()) == 2


async def test_a_session_that_another_agent_has_just_opened_is_not_deleted(fake: FakeClaude, work: Path) -> None:
    first, second = ClaudeBackend(fake.env), ClaudeBackend(fake.env)
    with anyio.fail_after(10):
        async with opened(first, work) as session:
            await session.prompt(saying("hi"))
            with pytest.raises(InvalidRequest, match="another acp-manifold"):
                await second.delete(session.id)
            await session.prompt(saying("hi"))
        await second.delete(session.id)
        assert await first.find(session.id) is None


def test_a_lock_moves_with_its_conversation(tmp_path: Path) -> None:
    with locked(tmp_path, "s1") as lock:
        lock.take("s2")
        with locked(tmp_path, "s1"), pytest.raises(InvalidRequest), locked(tmp_path, "s2"):
            pass
    assert list(tmp_path.iterdir()) == []
