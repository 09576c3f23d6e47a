"""Titles put into a transcript that another process has open (issue 4): ours stays, until a person renames."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.claude import ClaudeBackend, guards
from acp_manifold.adapters.claude.guard_file import Guard
from acp_manifold.adapters.claude.guards import Guards, keep
from acp_manifold.adapters.claude.titles_in import titles_after
from acp_manifold.bridge.backend import ListQuery, SessionSpec
from acp_manifold.bridge.errors import BackendFault, BackendGone
from acp_manifold.bridge.ledger import state_directory
from acp_manifold.translators.claude.records import Title
from tests.adapters.claude.scripted import Listener, ScriptedHost, hub
from tests.adapters.claude.test_registry import record
from tests.waiting import until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="the end of a process is awaited by pidfd"),
]

SESSION = "11111111-2222-4333-8444-555555555555"


def line(kind: str, title: str) -> str:
    key = {"custom-title": "customTitle", "ai-title": "aiTitle"}[kind]
    return json.dumps({"type": kind, key: title, "sessionId": SESSION}) + "\n"


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def last_title(path: Path) -> str:
    titles = [json.loads(text) for text in path.read_text().splitlines() if "-title" in text]
    return str(titles[-1].get("customTitle") or titles[-1].get("aiTitle"))


def renamed_by_a_person(path: Path, title: str, at: float) -> None:
    append(path, line("custom-title", title))
    sidecar = path.with_suffix("") / "custom-title.json"
    sidecar.parent.mkdir(exist_ok=True)
    sidecar.write_text(
        json.dumps({"customTitle": title, "by": "user", "at": datetime.fromtimestamp(at, UTC).isoformat()})
    )


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    """A session named "Old", with one message."""
    path = tmp_path / "config" / "projects" / "-w" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    message = {
        "type": "user",
        "message": {"role": "user", "content": "hi"},
        "uuid": "u1",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "sessionId": SESSION,
        "cwd": "/w",
        "isSidechain": False,
    }
    path.write_text(json.dumps(message) + "\n" + line("custom-title", "Old"))
    return path


def guarding(path: Path, at: float | None = None) -> Guard:
    """Ours is written now."""
    offset = path.stat().st_size
    append(path, line("custom-title", "Ours"))
    return Guard(SESSION, path, "Ours", ("Old",), offset, time.time() if at is None else at)


def test_a_title_that_stands_is_left_alone(transcript: Path) -> None:
    guard = guarding(transcript)
    size = transcript.stat().st_size
    assert keep(guard) == "stands"
    assert transcript.stat().st_size == size


@pytest.mark.parametrize("kind", ["custom-title", "ai-title"])
def test_an_older_or_a_generated_title_that_comes_back_is_written_over(transcript: Path, kind: str) -> None:
    guard = guarding(transcript)
    append(transcript, line(kind, "Old"))
    assert keep(guard) == "written again"
    assert last_title(transcript) == "Ours"


def test_a_title_that_was_cut_out_of_the_file_is_written_again(transcript: Path) -> None:
    guard = guarding(transcript)
    transcript.write_text(transcript.read_text().replace(line("custom-title", "Ours"), " " * 200 + "\n"))
    assert keep(guard) == "written again"
    assert last_title(transcript) == "Ours"


def test_a_new_title_is_a_persons(transcript: Path) -> None:
    guard = guarding(transcript)
    append(transcript, line("custom-title", "Theirs"))
    assert keep(guard) == "renamed"
    assert last_title(transcript) == "Theirs"


def test_an_older_title_with_a_newer_time_beside_it_is_a_persons(transcript: Path) -> None:
    guard = guarding(transcript)
    renamed_by_a_person(transcript, "Old", guard.at + 1)
    assert keep(guard) == "renamed"
    assert last_title(transcript) == "Old"


@pytest.mark.parametrize("beside", ["", "{", '{"at": 5}', '{"at": "never"}'])
def test_what_stands_beside_it_may_be_garbage(transcript: Path, beside: str) -> None:
    guard = guarding(transcript)
    append(transcript, line("custom-title", "Old"))
    transcript.with_suffix("").mkdir()
    (transcript.with_suffix("") / "custom-title.json").write_text(beside)
    assert keep(guard) == "written again"
    assert last_title(transcript) == "Ours"


# --- the whole of it -----------------------------------------------------------------------------


@contextmanager
def holding(config: Path) -> Generator[subprocess.Popen[bytes]]:
    """A process that has written itself down as the session's."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        record(config, process.pid, sessionId=SESSION)
        yield process
        process.kill()


@asynccontextmanager
async def agent(config: Path) -> AsyncGenerator[ClaudeBackend]:
    backend = ClaudeBackend({**os.environ, "CLAUDE_CONFIG_DIR": str(config)})
    with anyio.fail_after(20):
        async with hub(backend):
            yield backend


def kept() -> list[Path]:
    return list((state_directory() / "claude-titles").glob("*.json"))


async def test_a_guard_lasts_as_long_as_the_process_that_holds_the_session(transcript: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    with holding(config) as process:
        async with agent(config) as backend:
            assert await backend.rename(SESSION, "Ours") == "Ours"
            for title in ("Old", "Old", "Old"):
                append(transcript, line("custom-title", title))
                await until(lambda: last_title(transcript) == "Ours")
            assert len(kept()) == 1
            append(transcript, line("custom-title", "Old"))
            process.kill()
            await until(lambda: not kept())
            assert last_title(transcript) == "Ours"


async def test_a_guard_is_taken_up_by_the_next_agent(transcript: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    with holding(config):
        async with agent(config) as backend:
            await backend.rename(SESSION, "Ours")
        append(transcript, line("custom-title", "Old"))
        assert oct(kept()[0].stat().st_mode & 0o777) == "0o600"
        async with agent(config):
            await until(lambda: last_title(transcript) == "Ours")


async def test_an_agent_that_runs_takes_up_what_another_one_leaves_behind(transcript: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    with holding(config) as process:
        async with agent(config) as stays:
            with stays.follow("22222222-2222-4333-8444-555555555555", "/w"):
                async with agent(config) as leaves:
                    await leaves.rename(SESSION, "Ours")
                for title in ("Old", "Old"):
                    append(transcript, line("custom-title", title))
                    await until(lambda: last_title(transcript) == "Ours")
                process.kill()
                await until(lambda: not kept())
    assert last_title(transcript) == "Ours"


async def test_an_agent_lets_a_guard_go_that_another_one_has_ended(transcript: Path, tmp_path: Path) -> None:
    """Whoever has the session now hears of each title itself."""
    config, host = tmp_path / "config", ScriptedHost()
    with holding(config):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(host.watcher.run)
            ours = Guards(state_directory() / "claude-titles", config, host, tasks, set(), ())
            with anyio.fail_after(20):
                ours.begin(ours.write(transcript, SESSION, "Ours"))
                await until(lambda: '"held": true' in kept()[0].read_text())
                assert len(ours) == 1
                kept()[0].unlink()
                append(transcript, line("custom-title", "Old"))
                await until(lambda: len(ours) == 0)
            tasks.cancel_scope.cancel()
    assert last_title(transcript) == "Old"
    assert kept() == []


@pytest.mark.parametrize("what", ["the session is opened", "the list is asked for"])
async def test_what_a_process_brought_back_before_its_end_is_set_right_before_anything_is_told(
    transcript: Path, tmp_path: Path, what: str
) -> None:
    """Nobody was there to see it: the agent that set the title was killed."""
    config = tmp_path / "config"
    with holding(config):
        async with agent(config) as backend:
            await backend.rename(SESSION, "Ours")
            await until(lambda: '"held": true' in kept()[0].read_text())
        append(transcript, line("custom-title", "Old"))
    async with agent(config) as backend:
        if what == "the session is opened":
            with suppress(BackendGone):
                async with backend.session(SessionSpec(str(tmp_path)), Listener(), resume=SESSION):
                    pass
            assert last_title(transcript) == "Ours"
            assert kept() == []
        else:
            (row,) = await backend.list(ListQuery(10))
            assert row.title == "Ours"


async def test_two_who_do_not_see_each_others_guards_do_not_rename_for_ever(
    transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    with holding(config):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "one"))
        async with agent(config) as one:
            await one.rename(SESSION, "Theirs")
            await one.rename(SESSION, "Ours")
            # As the other one does: at once, each time.
            for _ in range(guards.REWRITES + 1):
                append(transcript, line("custom-title", "Theirs"))
                await until(lambda: last_title(transcript) == "Ours")
            await until(lambda: not kept())
            append(transcript, line("custom-title", "Theirs"))
    assert last_title(transcript) == "Theirs"


async def test_a_title_that_does_not_fit_on_the_disk_is_an_error_that_says_so(
    transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with agent(tmp_path / "config") as backend:
        monkeypatch.setattr("acp_manifold.adapters.claude.at_rest.os.write", full)
        with pytest.raises(BackendFault, match="No space left on device"):
            await backend.rename(SESSION, "Ours")


async def test_a_later_title_of_ours_takes_the_guard_over(transcript: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    with holding(config):
        async with agent(config) as backend:
            await backend.rename(SESSION, "First")
            await backend.rename(SESSION, "Second")
            for title in ("Old", "First"):
                append(transcript, line("custom-title", title))
                await until(lambda: last_title(transcript) == "Second")


async def test_a_person_who_renames_ends_the_guard(transcript: Path, tmp_path: Path) -> None:
    config = tmp_path / "config"
    with holding(config):
        async with agent(config) as backend:
            await backend.rename(SESSION, "Ours")
            append(transcript, line("custom-title", "Theirs"))
            await until(lambda: not kept())
            assert last_title(transcript) == "Theirs"


async def test_without_a_holder_a_guard_ends_soon(
    transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "SETTLE", 0.2)
    async with agent(tmp_path / "config") as backend:
        await backend.rename(SESSION, "Ours")
        await until(lambda: not kept())
    assert last_title(transcript) == "Ours"


async def test_a_deleted_session_leaves_no_guard(transcript: Path, tmp_path: Path) -> None:
    async with agent(tmp_path / "config") as backend:
        await backend.rename(SESSION, "Ours")
        await backend.delete(SESSION)
        assert kept() == []
    assert not any(transcript.parent.glob("*.jsonl"))


async def test_damaged_guards_are_passed_over(transcript: Path, tmp_path: Path) -> None:
    folder = state_directory() / "claude-titles"
    folder.mkdir(parents=True)
    whole: dict[str, object] = {"session_id": SESSION, "path": str(transcript), "title": "x", "offset": 0, "at": 1.0}
    damage: list[tuple[str, object]] = [("at", float("nan")), ("at", 10**400), ("offset", 10**30), ("title", 5)]
    damage += [("path", "/a\0b"), ("path", "/a\ud800")]
    for number, (name, wrong) in enumerate(damage):
        kept_so = {**whole, "held": True, "session_id": str(number), name: wrong}
        (folder / f"{number}.json").write_text(json.dumps(kept_so))
    (folder / "another.json").write_text(json.dumps({**whole, "held": True}))
    for name, text in (("a", ""), ("b", "[]"), ("c", '{"session_id": 5}'), ("d", '{"session_id": "x"}')):
        (folder / f"{name}.json").write_text(text)
    async with agent(tmp_path / "config") as backend:
        assert await backend.rename(SESSION, "Ours") == "Ours"


async def test_what_nobody_held_is_not_guarded_by_the_next_agent(transcript: Path, tmp_path: Path) -> None:
    """Somebody has renamed it since, by a program that leaves no trace beside the transcript."""
    config = tmp_path / "config"
    async with agent(config) as backend:
        await backend.rename(SESSION, "Ours")
    (path,) = kept()
    guard = json.loads(path.read_text())
    path.write_text(json.dumps({**guard, "at": guard["at"] - 60}))
    append(transcript, line("custom-title", "Old"))
    async with agent(config):
        await until(lambda: not kept())
    assert last_title(transcript) == "Old"


async def test_a_person_whose_rename_is_seen_before_what_stands_beside_it_has_the_last_word(
    transcript: Path, tmp_path: Path
) -> None:
    config = tmp_path / "config"
    with holding(config):
        async with agent(config) as backend:
            await backend.rename(SESSION, "Ours")
            append(transcript, line("custom-title", "Old"))
            beside = transcript.with_suffix("") / "custom-title.json"
            await anyio.Path(beside.parent).mkdir()
            at = datetime.fromtimestamp(time.time() + 1, UTC).isoformat()
            await anyio.Path(beside).write_text(json.dumps({"customTitle": "Old", "by": "user", "at": at}))
            await until(lambda: not kept())
    assert last_title(transcript) == "Old"


@pytest.mark.parametrize("what", ["a file in its place", "nowhere to write"])
async def test_without_a_state_directory_titles_are_set_all_the_same(
    transcript: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    if what == "nowhere to write":
        monkeypatch.setenv("XDG_STATE_HOME", "/proc/nowhere")
    else:
        state_directory().mkdir(parents=True)
        (state_directory() / "claude-titles").write_text("")
        (state_directory() / "claude-sessions").write_text("")
    async with agent(tmp_path / "config") as backend:
        assert await backend.rename(SESSION, "Ours") == "Ours"
        await backend.delete(SESSION)
    assert not any(transcript.parent.glob("*.jsonl"))


async def test_what_a_guard_has_looked_at_is_not_read_again(transcript: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A transcript may be long, and several renames come in a row."""
    size = (await anyio.Path(transcript).stat()).st_size
    looks = list[int]()

    def looked(path: Path, offset: int) -> list[Title]:
        looks.append(offset)
        return titles_after(path, offset)

    monkeypatch.setattr(guards, "titles_after", looked)
    config = transcript.parents[2]
    async with anyio.create_task_group() as tasks:
        ours = Guards(state_directory() / "claude-titles", config, ScriptedHost(), tasks, set(), ())
        ours.write(transcript, SESSION, "One")
        append(transcript, line("custom-title", "By a person"))
        guard = ours.write(transcript, SESSION, "Two")
        assert looks == [0, size]
        assert set(guard.earlier) == {"Old", "One", "By a person"}
