"""Sessions that another process has: told by the CLI's own registry (issue 3)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.claude import ClaudeBackend
from acp_manifold.adapters.claude.registry import Holder, holder_of, holders, refuse_if_held
from acp_manifold.adapters.model import Model, run_model
from acp_manifold.adapters.model.lab import private_environment
from acp_manifold.bridge.backend import SessionSpec
from acp_manifold.bridge.errors import InvalidRequest
from acp_manifold.translators.narrow import as_object
from tests.adapters.claude.scripted import Listener, hub, opened, saying

linux = pytest.mark.skipif(sys.platform != "linux", reason="a process's start time is looked up in /proc")

LIMIT = 30


def started_at(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


def record(config: Path, pid: int, **fields: object) -> None:
    """A process writes itself down."""
    folder = config / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    domain = f"linux:0123:{os.readlink('/proc/self/ns/pid')}"
    written = {
        "pid": pid,
        "sessionId": "s1",
        "cwd": "/work",
        "entrypoint": "cli",
        "procStart": started_at(pid) if Path(f"/proc/{pid}").exists() else "1",
        "pidDomain": domain,
        **fields,
    }
    (folder / f"{pid}.json").write_text(json.dumps(written))


@linux
def test_a_live_process_that_wrote_itself_down_holds_its_session(tmp_path: Path) -> None:
    record(tmp_path, os.getpid())
    assert holder_of(tmp_path, "s1", ()) == Holder(os.getpid(), "cli", "/work")
    assert holder_of(tmp_path, "s2", ()) is None
    assert holder_of(tmp_path, "s1", {os.getpid()}) is None, "our own processes hold nothing against us"


@linux
def test_all_that_is_held_is_told_with_where(tmp_path: Path) -> None:
    record(tmp_path, os.getpid(), sessionId="s3", entrypoint="sdk-py")
    record(tmp_path, os.getppid(), procStart="1")
    (found,) = holders(tmp_path)
    assert found == ("s3", Holder(os.getpid(), "sdk-py", "/work"))
    assert found[1].where == "another program (sdk-py)"
    assert holders(tmp_path / "elsewhere") == []


@linux
def test_a_dead_process_holds_nothing(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as child:
        record(tmp_path, child.pid)
    assert holder_of(tmp_path, "s1", ()) is None


@linux
@pytest.mark.parametrize(
    "fields",
    [{"procStart": "1"}, {"procStart": None}, {"pidDomain": "linux:0123:pid:[1]"}],
    ids=["another process under the same pid", "no start time", "another container"],
)
def test_who_can_not_have_written_the_record_holds_nothing(tmp_path: Path, fields: dict[str, object]) -> None:
    record(tmp_path, os.getpid(), **fields)
    assert holder_of(tmp_path, "s1", ()) is None


@linux
@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"pid": "x", "sessionId": "s1"}', "\xff"])
def test_records_that_can_not_be_read_are_passed_over(tmp_path: Path, text: str) -> None:
    record(tmp_path, os.getpid())
    (tmp_path / "sessions" / "1.json").write_text(text, encoding="latin-1")
    assert holder_of(tmp_path, "s1", ()) is not None


def test_without_a_registry_nobody_holds_anything(tmp_path: Path) -> None:
    assert holder_of(tmp_path, "s1", ()) is None


@linux
def test_the_refusal_says_who_where_and_what_to_do(tmp_path: Path) -> None:
    record(tmp_path, os.getpid())
    with pytest.raises(InvalidRequest) as refused:
        refuse_if_held(tmp_path, "s1", ())
    assert refused.value.data == {"reason": "thread_active_writer", "sessionId": "s1", "pid": os.getpid()}
    for word in (str(os.getpid()), "a terminal", "/work", "Close it there"):
        assert word in refused.value.message


@pytest.fixture
async def model() -> AsyncGenerator[Model]:
    async with run_model() as running:
        yield running


@pytest.mark.anyio
@pytest.mark.live
async def test_the_real_cli_is_seen_to_hold_its_session_until_it_ends(tmp_path: Path, model: Model) -> None:
    lab = tmp_path / "lab"
    lab.mkdir()
    (tmp_path / "work").mkdir()
    env = private_environment(lab, model.url, [ClaudeBackend()])
    owner, other = ClaudeBackend(env), ClaudeBackend(env)
    with anyio.fail_after(LIMIT):
        async with opened(owner, tmp_path / "work") as session:
            await session.prompt(saying("SAY[1]"))
            for attempt in (other.delete(session.id), _resume(other, session.id, tmp_path / "work")):
                with pytest.raises(InvalidRequest) as refused:
                    await attempt
                assert as_object(refused.value.data)["reason"] == "thread_active_writer"
            assert await other.find(session.id) is not None
            assert (await session.prompt(saying("SAY[1]"))).stop_reason == "end_turn"
        await _resume(other, session.id, tmp_path / "work")
        async with hub(other):
            await other.delete(session.id)
        assert await other.find(session.id) is None


async def _resume(backend: ClaudeBackend, session_id: str, cwd: Path) -> None:
    async with hub(backend), backend.session(SessionSpec(str(cwd)), Listener(), resume=session_id) as session:
        assert (await session.prompt(saying("SAY[1]"))).stop_reason == "end_turn"
