"""The CLI's process: its program, its environment, its deaths."""

from __future__ import annotations

import json
import os
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.claude import ClaudeBackend
from acp_manifold.adapters.claude import session as session_module
from acp_manifold.bridge.backend import HttpServer, SessionSpec, StdioServer
from acp_manifold.bridge.errors import BackendGone, SessionNotFound
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import Notice, ToolCallUpdate
from tests.adapters.claude.scripted import Listener, hub, opened, saying
from tests.bridge.editor import Refused, editor_on
from tests.fakes.fake_claude import FakeClaude, ask, call, die, emit, end, leave, say, spawn, stderr, wait
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.mark.case("K01")
async def test_a_cli_that_dies_in_mid_turn_fails_the_prompt_with_its_last_words(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    fake.plays([wait("user"), call("t1", "Bash", {"command": "x"}), stderr("fatal: marker-42\n"), die()])
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            with pytest.raises(BackendGone, match=r"killed by SIGKILL(.|\n)*marker-42"):
                await session.prompt(saying("x"))
            assert "SIGKILL" in (await session.gone()).message
            with pytest.raises(BackendGone, match="SIGKILL"):
                await session.prompt(saying("again"))
            with pytest.raises(BackendGone, match="SIGKILL"):
                await session.rename("Title")
    assert listener.updates[-1] == ToolCallUpdate("t1", status="failed")


@pytest.mark.case("K04")
async def test_a_chatty_stderr_does_not_stop_the_turn_and_its_end_is_told(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    flood = [stderr("y" * 1023 + "\n", times=3072), stderr("z" * (2 * 1024 * 1024)), stderr("\n")]
    fake.plays([wait("user"), *flood, end("ok"), wait("user"), stderr("fatal: marker-42\n"), leave(3)])
    with anyio.fail_after(20):
        async with opened(backend, work) as session:
            assert (await session.prompt(saying("x"))).stop_reason == "end_turn"
            with pytest.raises(BackendGone, match="status 3") as caught:
                await session.prompt(saying("y"))
    assert "marker-42" in caught.value.message and len(caught.value.message) < 10_000


@pytest.mark.case("K02")
async def test_closing_a_session_ends_all_its_processes_and_no_others(
    fake: FakeClaude, backend: ClaudeBackend, tmp_path: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    fake.plays([wait("user"), spawn(stubborn=True), end()], cwd=here)
    fake.plays([wait("user"), spawn(), end()], cwd=there)
    with anyio.fail_after(20):
        async with hub(backend):
            async with backend.session(SessionSpec(str(there)), Listener()) as other:
                await other.prompt(saying("x"))
                kept = [entry["pid"] for entry in fake.starts()] + fake.children()
                async with backend.session(SessionSpec(str(here)), Listener()) as session:
                    await session.prompt(saying("x"))
                    mine = [pid for pid in [fake.starts()[-1]["pid"], *fake.children()] if pid not in kept]
                    assert len(mine) == 3 and all(map(alive, mine))
                assert not any(map(alive, mine))
                assert len(kept) == 3 and all(map(alive, kept))
            assert not any(map(alive, kept))


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.case("A04")
async def test_a_cli_that_exits_at_start_fails_the_first_prompt_with_the_cause(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    fake.plays([stderr("SyntaxError: marker\n"), leave(1)], mute=True)
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            with pytest.raises(BackendGone, match=r"status 1(.|\n)*SyntaxError: marker"):
                await session.prompt(saying("x"))


@pytest.mark.case("A04")
@pytest.mark.parametrize("busy", [False, True])
async def test_a_cli_that_never_shakes_hands_is_given_up_and_the_next_prompt_starts_another(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    monkeypatch.setattr(session_module, "HANDSHAKE_LIMIT", 1.0)
    monkeypatch.setattr(session_module, "BUSY_HANDSHAKE_LIMIT", 1.5)
    monkeypatch.setattr(session_module, "overloaded", lambda: busy)
    fake.plays([stderr("waiting for the lock\n"), wait("user")], mute=True)
    with anyio.fail_after(20):
        async with editor_on(backend) as editor:
            session = await editor.new(work)
            with pytest.raises(Refused) as caught:
                await editor.answer(editor.prompt(session, "x"))
            (hung,) = [entry["pid"] for entry in fake.starts()]
            told = caught.value.message
            assert f"no answer to initialize within {'1.5' if busy else '1'} s" in told
            assert "The next prompt starts it anew" in told and "acp-manifold doctor" in told
            assert told.endswith("waiting for the lock")
            monkeypatch.setattr(session_module, "HANDSHAKE_LIMIT", 20.0)
            fake.plays([wait("user"), say("Hello"), end()])
            assert (await editor.answer(editor.prompt(session, "y")))["stopReason"] == "end_turn"
            assert not alive(hung)
    assert fake.users(session) == ["y"]


async def test_a_prompt_that_waits_long_for_the_cli_says_so_and_runs(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "START_PATIENCE", 0.05)
    fake.plays([wait("user"), say("Hello"), end()], late="up")
    with anyio.fail_after(20):
        async with opened(backend, work, listener) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, saying("x"))
            await listener.until(lambda: Notice in map(type, listener.updates))
            fake.open("up")
            await listener.until(lambda: listener.said == "Hello")
    (notice,) = [update for update in listener.updates if isinstance(update, Notice)]
    assert (notice.severity, notice.title) == ("info", "Claude Code is slow to start")


@pytest.mark.case("A04")
async def test_a_session_whose_cli_hung_before_its_first_prompt_has_another_for_it(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "HANDSHAKE_LIMIT", 0.5)
    monkeypatch.setattr(session_module, "overloaded", lambda: False)
    fake.plays([], mute=True)
    with anyio.fail_after(20):
        async with editor_on(backend) as editor:
            session = await editor.new(work)
            await until(lambda: fake.starts() and not alive(fake.starts()[0]["pid"]))
            monkeypatch.setattr(session_module, "HANDSHAKE_LIMIT", 20.0)
            fake.plays([wait("user"), say("Hello"), end()])
            assert (await editor.answer(editor.prompt(session, "y")))["stopReason"] == "end_turn"


@pytest.mark.case("A04")
async def test_a_missing_program_is_named(fake: FakeClaude, work: Path) -> None:
    backend = ClaudeBackend({**fake.env, "CLAUDE_CODE_EXECUTABLE": "/no/such/claude"})
    with anyio.fail_after(5), pytest.raises(BackendGone, match="CLAUDE_CODE_EXECUTABLE names /no/such/claude"):
        async with opened(backend, work):
            pytest.fail("a session was opened")


@pytest.mark.case("L01")
async def test_resuming_an_unknown_session_starts_nothing(fake: FakeClaude, backend: ClaudeBackend, work: Path) -> None:
    for session_id in ("5f1f3c9e-0000-4000-8000-000000000000", "../../victim", "no-such", ""):
        with anyio.fail_after(5), pytest.raises(SessionNotFound):
            async with opened(backend, work, resume=session_id):
                pytest.fail("a session was opened")
    assert fake.starts() == []


@pytest.mark.case("L01")
async def test_a_cli_that_knows_no_such_conversation_is_a_session_not_found(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    refusal = [stderr("No conversation found with session ID: x\n"), leave(1)]
    fake.plays([wait("user"), say("hi"), end()])
    with anyio.fail_after(10):
        async with opened(backend, work) as first:
            await first.prompt(saying("x"))
        fake.plays([], refusal, mute=True)
        async with opened(backend, work, resume=first.id) as session:
            with pytest.raises(SessionNotFound, match=first.id):
                await session.prompt(saying("x"))


@pytest.mark.case("A01")
async def test_the_markers_of_an_enclosing_session_stay_out(fake: FakeClaude, work: Path) -> None:
    markers = {
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_SESSION_ACCESS_TOKEN": "stale",
        "CLAUDE_CODE_SSE_PORT": "1",
        "CODEX_SANDBOX": "seatbelt",
        "CODEX_THREAD_ID": "x",
    }
    backend = ClaudeBackend({**fake.env, **markers, "OTHER": "kept"})
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            assert (await session.prompt(saying("x"))).stop_reason == "end_turn"
    env = fake.starts()[0]["env"]
    assert not markers.keys() & env.keys()
    assert env["OTHER"] == "kept" and env["HOME"] and env["PATH"]
    assert env["CLAUDE_CONFIG_DIR"] == str(fake.config)
    assert env["CLAUDE_CODE_SDK_READS_SESSION_STATE"] == "1" and env["DISABLE_AUTOUPDATER"] == "1"


@pytest.mark.case("A01")
async def test_a_blank_config_directory_is_the_usual_one(fake: FakeClaude, work: Path) -> None:
    backend = ClaudeBackend({**fake.env, "CLAUDE_CONFIG_DIR": ""})
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            await session.prompt(saying("x"))
            assert await backend.find(session.id) is not None
    assert "CLAUDE_CONFIG_DIR" not in fake.starts()[0]["env"]
    assert files_in(Path(fake.env["HOME"]) / ".claude" / "projects") == [f"{session.id}.jsonl"]
    assert files_in(work) == []


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.is_file()]


async def test_mcp_servers_are_in_a_private_file_until_the_cli_has_read_it(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    servers = (StdioServer("one", "prog", ("-x",), {"TOKEN": "CCC"}), HttpServer("two", "http://h", {"Auth": "DDD"}))
    spec = SessionSpec(str(work), servers, additional_directories=("/extra",))
    fake.plays([], cwd=work, late="read")
    with anyio.fail_after(5):
        async with hub(backend), backend.session(spec, Listener()) as session:
            await until(lambda: fake.starts())
            argv = fake.starts()[0]["argv"]
            path = Path(next(word for word in argv if word.startswith("--mcp-config=")).partition("=")[2])
            assert modes(path) == (0o600, 0o700)
            assert read(path)["mcpServers"] == {
                "one": {"type": "stdio", "command": "prog", "args": ["-x"], "env": {"TOKEN": "CCC"}},
                "two": {"type": "http", "url": "http://h", "headers": {"Auth": "DDD"}},
            }
            assert "--add-dir=/extra" in argv
            assert "CCC" not in str(argv) and "DDD" not in str(argv)
            fake.open("read")
            await session.prompt(saying("x"))
            await until(lambda: modes(path) == (None, 0o700))
    assert modes(path) == (None, None)


def read(path: Path) -> dict[str, object]:
    content: dict[str, object] = json.loads(path.read_bytes())
    return content


def modes(path: Path) -> tuple[int | None, int | None]:
    """The permissions of a file and its folder; None for what is not there."""
    return mode(path), mode(path.parent)


def mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode & 0o777
    except FileNotFoundError:
        return None


async def test_what_was_allowed_for_the_session_and_its_mode_outlive_the_process(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    """`--resume` alone would forget them, and the person would be asked again (case R05)."""
    rule = {"toolName": "Read", "ruleContent": "//outside/**"}
    changes: list[JsonObject] = [
        {"type": "addRules", "behavior": "allow", "rules": [rule, {"toolName": "WebFetch"}], "destination": "session"},
        {"type": "addDirectories", "directories": ["/more"], "destination": "session"},
        {"type": "addRules", "behavior": "allow", "rules": [{"toolName": "Bash"}], "destination": "localSettings"},
    ]
    init = {"type": "system", "subtype": "init", "session_id": "$S"}
    asks = [step for n, change in enumerate(changes) for step in (ask(f"r{n}", f"t{n}", "x", [change]), wait("answer"))]
    modes = [emit({**init, "permissionMode": "default"}), emit({**init, "permissionMode": "acceptEdits"})]
    fake.plays([wait("user"), *asks, *modes, end()], cwd=work)
    listener = Listener()
    listener.choice = "always:0"
    with anyio.fail_after(10):
        async with hub(backend), AsyncExitStack() as followed:
            async with backend.session(SessionSpec(str(work)), listener) as session:
                followed.enter_context(backend.follow(session.id, str(work)))
                await session.prompt(saying("x"))
            async with backend.session(SessionSpec(str(work)), listener, resume=session.id) as again:
                await again.prompt(saying("y"))
    first, second = (set(start["argv"]) for start in fake.starts())
    new = {word for word in second - first if not word.startswith("--resume")}
    assert new == {
        "--permission-mode=acceptEdits",
        "--allowedTools=Read(//outside/**)",
        "--allowedTools=WebFetch",
        "--add-dir=/more",
    }
