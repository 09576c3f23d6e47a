"""The app-server's life: started once, greeted, and its end told to everybody who waits."""

from __future__ import annotations

import os
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.codex import server as servers
from acp_manifold.adapters.codex.backend import CodexBackend
from acp_manifold.adapters.codex.greeting import NEVER_USED
from acp_manifold.adapters.codex.life import STARTS
from acp_manifold.adapters.codex.limits import Limits
from acp_manifold.adapters.codex.session import CodexSession
from acp_manifold.bridge.backend import Backend, HttpServer, ListQuery, SessionSpec, StdioServer
from acp_manifold.bridge.errors import BackendGone, InvalidParams, InvalidRequest
from acp_manifold.translators.updates import Notice, Text, ToolCallUpdate, TurnEnd
from tests.fakes import fake_codex as fx
from tests.fakes.fake_codex import FakeCodex

from .scripted import ScriptedEvents, ScriptedHost, logged, one_session, running

pytestmark = pytest.mark.anyio

HELLO = (Text("hello"),)
OLD = "01900000-2222-7000-8000-000000000001"
BACKEND: Backend = CodexBackend()
"""Holds that the class satisfies the protocol; mypy and pyright check it."""


async def test_many_at_once_start_one_app_server(fake: FakeCodex, work: Path) -> None:
    with anyio.fail_after(5):
        async with running() as (backend, _), anyio.create_task_group() as tasks:
            tasks.start_soon(backend.warm_up)
            for _number in range(4):
                tasks.start_soon(backend.list, ListQuery(1))
    (start,) = fake.starts()
    assert start["argv"] == ["app-server", "-c", "thread_unload_delay_secs=0"]
    capabilities = fake.requests("initialize")[0]["capabilities"]
    assert capabilities["experimentalApi"] is True
    assert capabilities["optOutNotificationMethods"] == list(NEVER_USED)


CROWDED = "Error: failed to initialize sqlite state runtime under /h: failed to initialize state runtime at /h\n"


async def test_a_home_that_another_makes_at_the_same_moment_is_tried_again(fake: FakeCodex, work: Path) -> None:
    fake.begins(fx.stderr(CROWDED), fx.leave(1), processes=2)
    with anyio.fail_after(10):
        async with one_session(work) as (session, events):
            await session.prompt((Text("hello"),))
    assert events.said == "ok" and len(fake.starts()) == 3


async def test_a_home_that_can_never_be_made_is_given_up_with_its_reason(fake: FakeCodex, work: Path) -> None:
    fake.begins(fx.stderr(CROWDED), fx.leave(1))
    with anyio.fail_after(10), pytest.raises(BackendGone, match="sqlite state runtime"):
        async with one_session(work):
            pass
    assert len(fake.starts()) == STARTS


@pytest.mark.case("K01")
async def test_its_death_fails_the_turn_its_tool_calls_and_its_question(fake: FakeCodex, work: Path) -> None:
    ask = fx.ask_command("c1", "make")
    fake.plays([fx.started(fx.command("c1", "make")), ask, fx.gate("dies"), fx.stderr("fatal: marker-42\n"), fx.die()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:

            async def prompt() -> None:
                with pytest.raises(BackendGone, match="(?s)was killed by SIGKILL.*marker-42"):
                    await session.prompt(HELLO)

            tasks.start_soon(prompt)
            await events.until(lambda: events.questions)
            fake.open("dies")
            assert "SIGKILL" in (await session.gone()).message
    assert [u.status for u in events.updates if isinstance(u, ToolCallUpdate)] == ["failed"]
    assert events.withdrawn == 1


@pytest.mark.case("K01")
async def test_its_death_fails_the_turns_that_ran_and_nothing_else(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.done()], [fx.delta("a"), fx.gate("never")], [fx.delta("b"), fx.gate("never")])
    spec, events = SessionSpec(str(work)), [ScriptedEvents() for _ in range(3)]
    faults: list[str] = []
    with anyio.fail_after(8):
        async with running() as (backend, _), AsyncExitStack() as stack:
            opened = [await stack.enter_async_context(backend.session(spec, each)) for each in events]

            async def prompt(session: CodexSession) -> None:
                try:
                    await session.prompt(HELLO)
                except BackendGone as exc:
                    faults.append(exc.message)

            async with anyio.create_task_group() as tasks:
                await prompt(opened[0])
                tasks.start_soon(prompt, opened[1])
                await events[1].until(lambda: events[1].said)
                tasks.start_soon(prompt, opened[2])
                await events[2].until(lambda: events[2].said)
                os.kill(fake.starts()[0]["pid"], signal.SIGKILL)
                tasks.start_soon(backend.list, ListQuery(1))
            for session in opened:
                await session.gone()
                assert session.lost
                await session.interrupt()
    assert len(faults) == 2 and all("SIGKILL" in fault for fault in faults)
    assert len(fake.starts()) == 2


@pytest.mark.case("K01")
async def test_a_turn_that_has_ended_is_not_undone_by_a_death(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.started(fx.command("c1", "sleep 99")), fx.gate("never")])
    fake.replies("thread/backgroundTerminals/list", {})
    ends: list[TurnEnd] = []
    with anyio.fail_after(5):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:

            async def prompt() -> None:
                ends.append(await session.prompt(HELLO))

            tasks.start_soon(prompt)
            await events.until(lambda: events.conversation)
            await session.interrupt()
            await logged(lambda: fake.requests("thread/backgroundTerminals/list"))
            os.kill(fake.starts()[0]["pid"], signal.SIGKILL)
    assert ends == [TurnEnd("cancelled")]


async def test_a_thread_is_open_here_once(fake: FakeCodex, work: Path) -> None:
    spec, events = SessionSpec(str(work)), ScriptedEvents()
    with anyio.fail_after(5):
        async with running() as (backend, _):
            async with backend.session(spec, events) as session:
                await session.prompt(HELLO)
                with pytest.raises(InvalidRequest, match="open here already") as raised:
                    async with backend.session(spec, ScriptedEvents(), resume=session.id):
                        pass
                assert raised.value.data == {"reason": "already_open", "sessionId": session.id}
                await session.prompt(HELLO)
            async with backend.session(spec, events, resume=session.id):
                pass
    assert events.said == "okok"
    assert len(fake.requests("thread/resume")) == 1


async def test_a_resume_that_was_given_up_takes_nothing_from_the_next(fake: FakeCodex, work: Path) -> None:
    fake.stores({"id": OLD, "cwd": "/w"})
    fake.replies("thread/resume", {"usual": True, "gate": "late"}, {"usual": True})
    spec = SessionSpec(str(work))
    with anyio.fail_after(5):
        async with running() as (backend, _):
            async with anyio.create_task_group() as tasks:

                async def resume() -> None:
                    async with backend.session(spec, ScriptedEvents(), resume=OLD):
                        pass

                tasks.start_soon(resume)
                await logged(lambda: fake.requests("thread/resume"))
                tasks.cancel_scope.cancel()
            async with backend.session(spec, ScriptedEvents(), resume=OLD) as session:
                fake.open("late")
                await session.prompt(HELLO)
                assert fake.requests("thread/unsubscribe") == []


async def test_a_session_that_is_let_go_is_unloaded_before_its_end_is_told(fake: FakeCodex, work: Path) -> None:
    with anyio.fail_after(5):
        async with running() as (backend, _):
            async with backend.session(SessionSpec(str(work)), ScriptedEvents()) as session:
                await session.prompt(HELLO)
                before = session.id
                await session.begin_anew()
                await session.prompt(HELLO)
            assert [params["threadId"] for params in fake.requests("thread/unsubscribe")] == [before, session.id]
            assert fake.unloaded() == [before, session.id]


async def test_a_resume_that_was_given_up_lets_the_thread_go(fake: FakeCodex, work: Path) -> None:
    fake.stores({"id": OLD, "cwd": "/w"})
    fake.replies("thread/resume", {"usual": True, "gate": "late"}, {"usual": True})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            async with anyio.create_task_group() as tasks:

                async def resume() -> None:
                    async with backend.session(SessionSpec(str(work)), ScriptedEvents(), resume=OLD):
                        pass

                tasks.start_soon(resume)
                await logged(lambda: fake.requests("thread/resume"))
                tasks.cancel_scope.cancel()
            fake.open("late")
            await logged(lambda: fake.requests("thread/unsubscribe"))


async def test_a_codex_that_keeps_threads_loaded_holds_no_end_up_for_long(
    fake: FakeCodex, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "UNLOAD_LIMIT", 0.1)
    fake.replies("thread/unsubscribe", {"result": {"status": "unsubscribed"}})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            async with backend.session(SessionSpec(str(work)), ScriptedEvents()) as session:
                await session.prompt(HELLO)
            async with backend.session(SessionSpec(str(work)), ScriptedEvents(), resume=session.id) as again:
                assert await again.prompt(HELLO) == TurnEnd("end_turn")


async def test_a_new_thread_that_was_given_up_is_thrown_away(fake: FakeCodex, work: Path) -> None:
    fake.replies("thread/start", {"usual": True, "gate": "late"})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            async with anyio.create_task_group() as tasks:

                async def start() -> None:
                    async with backend.session(SessionSpec(str(work)), ScriptedEvents()):
                        pass

                tasks.start_soon(start)
                await logged(lambda: fake.requests("thread/start"))
                tasks.cancel_scope.cancel()
            fake.open("late")
            await logged(lambda: fake.requests("thread/delete"))


@pytest.mark.case("K01")
async def test_the_next_need_starts_another_one(fake: FakeCodex, work: Path) -> None:
    with anyio.fail_after(10):
        async with running() as (backend, _):
            events = ScriptedEvents()
            async with backend.session(SessionSpec(str(work)), events) as session:
                await session.prompt(HELLO)
                os.kill(fake.starts()[0]["pid"], signal.SIGKILL)
                await session.gone()
            async with backend.session(SessionSpec(str(work)), events, resume=session.id) as again:
                await again.prompt(HELLO)
                assert again.id == session.id
    assert len(fake.starts()) == 2


@pytest.mark.case("A04")
async def test_one_that_dies_at_start_is_an_error_with_its_last_words(fake: FakeCodex) -> None:
    fake.begins(fx.stderr("SyntaxError: marker\n"), fx.leave(1))
    with anyio.fail_after(5):
        async with running() as (backend, _):
            for _attempt in range(2):
                with pytest.raises(BackendGone, match="(?s)exited with status 1.*SyntaxError: marker"):
                    await backend.list(ListQuery(1))
    assert len(fake.starts()) == 2


@pytest.mark.case("A04")
async def test_one_that_never_answers_the_handshake_is_given_up(fake: FakeCodex) -> None:
    fake.replies("initialize", {})
    with anyio.fail_after(8):
        async with running() as (backend, _):
            backend.limits = Limits(start=0.3)
            with pytest.raises(BackendGone, match=r"no answer to `initialize` within 0\.3 s"):
                await backend.list(ListQuery(1))


@pytest.mark.case("A04")
async def test_a_missing_program_is_named(fake: FakeCodex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_PATH", "/no/such/codex")
    async with running() as (backend, _):
        with pytest.raises(BackendGone, match=r"/no/such/codex.*CODEX_PATH"):
            await backend.list(ListQuery(1))


async def test_an_error_of_the_warm_up_waits_for_the_first_need(fake: FakeCodex) -> None:
    fake.begins(fx.stderr("marker\n"), fx.leave(1), processes=1)
    with anyio.fail_after(5):
        async with running() as (backend, _):
            await backend.warm_up()
            with pytest.raises(BackendGone, match="marker"):
                await backend.list(ListQuery(1))
            assert await backend.list(ListQuery(1)) == []


@pytest.mark.case("K04")
async def test_a_chatty_stderr_holds_nothing_up_and_only_its_end_is_kept(fake: FakeCodex, work: Path) -> None:
    flood = [fx.stderr("begin-marker\n"), fx.stderr("x" * 1_000_000, 5), fx.stderr("\nfatal: marker-42\n")]
    fake.plays([*flood, fx.delta("fine"), fx.done()], [fx.leave(3)])
    with anyio.fail_after(10):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
            assert events.said == "fine"
            with pytest.raises(BackendGone, match="(?s)exited with status 3.*marker-42") as raised:
                await session.prompt(HELLO)
    assert "begin-marker" not in raised.value.message
    assert len(raised.value.message) < 10_000


@pytest.mark.case("K02")
async def test_the_end_of_the_backend_ends_the_app_server(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.delta("a"), fx.gate("never")])
    with anyio.fail_after(8):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, HELLO)
            await events.until(lambda: events.said)
            tasks.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(fake.starts()[0]["pid"], 0)
    assert len(fake.requests("turn/interrupt")) == len(fake.requests("thread/unsubscribe")) == 1


async def test_a_thread_that_was_never_used_is_thrown_away(fake: FakeCodex, work: Path) -> None:
    with anyio.fail_after(5):
        async with one_session(work) as (session, _):
            pass
    assert fake.requests("thread/delete") == [{"threadId": session.id}]


async def test_only_what_the_client_gave_is_passed_on(fake: FakeCodex, work: Path) -> None:
    servers = (StdioServer("files", "/bin/files", ("-x",), {"A": "b"}), HttpServer("web", "http://h/", {"K": "v"}))
    with anyio.fail_after(5):
        async with running() as (backend, _):
            spec = SessionSpec(str(work), servers, additional_directories=("/more",))
            async with backend.session(spec, ScriptedEvents()):
                pass
            with pytest.raises(InvalidParams, match="'old'.*SSE"):
                old = SessionSpec(str(work), (HttpServer("old", "http://h/", sse=True),))
                async with backend.session(old, ScriptedEvents()):
                    pass
    (started,) = fake.requests("thread/start")
    assert started == {
        "cwd": str(work),
        "runtimeWorkspaceRoots": [str(work), "/more"],
        "config": {
            "mcp_servers": {
                "files": {"command": "/bin/files", "args": ["-x"], "env": {"A": "b"}},
                "web": {"url": "http://h/", "http_headers": {"K": "v"}},
            }
        },
    }


@pytest.mark.case("A01")
async def test_marks_of_an_enclosing_session_are_not_passed_on(
    fake: FakeCodex, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = ("CODEX_SANDBOX", "CODEX_THREAD_ID", "CODEX_CI", "CLAUDECODE", "CLAUDE_CODE_SESSION_ACCESS_TOKEN")
    for name in marks:
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("CODEX_HOME", "")
    with anyio.fail_after(5):
        async with running() as (backend, _):
            await backend.list(ListQuery(1))
    env = fake.starts()[0]["env"]
    assert not {name for name in env if name.startswith(("CODEX_", "CLAUDE"))} - {"CODEX_PATH"}
    assert fake.starts()[0]["cwd"] == env["HOME"]


async def test_a_backend_that_is_not_running_says_so() -> None:
    with pytest.raises(BackendGone, match="not running"):
        await CodexBackend().list(ListQuery(1))


def test_a_hub_can_be_left_without_ever_needing_codex(fake: FakeCodex) -> None:
    async def enter_and_leave() -> None:
        async with CodexBackend().running(ScriptedHost()):
            pass

    anyio.run(enter_and_leave)
    assert fake.starts() == []


async def test_what_is_wrong_with_the_set_up_is_told_once_to_the_first_who_is_there(
    fake: FakeCodex, work: Path
) -> None:
    fake.plays([fx.notify("configWarning", summary="No bubblewrap", details=None), fx.done()], [fx.done()])
    with anyio.fail_after(5):
        async with running() as (backend, _):
            first, second = ScriptedEvents(), ScriptedEvents()
            async with backend.session(SessionSpec(str(work)), first) as session:
                await session.prompt(HELLO)
                async with backend.session(SessionSpec(str(work)), second) as other:
                    await other.prompt(HELLO)
    assert [update for update in first.updates if isinstance(update, Notice)] == [Notice("warning", "No bubblewrap")]
    assert [update for update in second.updates if isinstance(update, Notice)] == []
