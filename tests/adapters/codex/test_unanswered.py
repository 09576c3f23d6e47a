"""Requests without an answer: a frozen app-server is replaced, one that lives loses no more than the request."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.codex import session as sessions
from acp_manifold.adapters.codex.backend import CodexBackend
from acp_manifold.adapters.codex.client import NoAnswer
from acp_manifold.adapters.codex.limits import Limits
from acp_manifold.bridge.backend import ListQuery, SessionSpec
from acp_manifold.bridge.errors import BackendFault, BackendGone
from acp_manifold.translators.updates import Text, TurnEnd
from tests.fakes import fake_codex as fx
from tests.fakes.fake_codex import FakeCodex

from .scripted import ScriptedEvents, logged, running

pytestmark = pytest.mark.anyio

HELLO = (Text("hello"),)
OLD = "01900000-2222-7000-8000-000000000001"
LIMITS = Limits(answer=0.2, slow=0.2, probe=0.3)


@asynccontextmanager
async def hurried(limits: Limits = LIMITS) -> AsyncGenerator[CodexBackend]:
    """A running backend with little patience."""
    async with running() as (backend, _):
        backend.limits = limits
        await backend.warm_up()
        yield backend


def freeze(fake: FakeCodex) -> int:
    """Freeze the app-server that was started last."""
    pid = int(fake.starts()[-1]["pid"])
    os.kill(pid, signal.SIGSTOP)
    return pid


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


@contextmanager
def at_most(seconds: float) -> Generator[None]:
    begun = anyio.current_time()
    yield
    assert anyio.current_time() - begun < seconds


async def test_a_frozen_app_server_is_killed_and_all_its_sessions_are_told(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.delta("a"), fx.gate("never")])
    spec, events = SessionSpec(str(work)), ScriptedEvents()
    with anyio.fail_after(8):
        async with hurried() as backend, backend.session(spec, events) as busy:
            async with backend.session(spec, ScriptedEvents()) as idle, anyio.create_task_group() as tasks:

                async def prompt() -> None:
                    with pytest.raises(BackendGone, match="frozen"):
                        await busy.prompt(HELLO)

                tasks.start_soon(prompt)
                await events.until(lambda: events.said)
                assert not busy.lost and not idle.lost
                freeze(fake)
                with at_most(2), pytest.raises(BackendGone, match="was frozen.*try again"):
                    await idle.rename("x")
                assert busy.lost and idle.lost
                for session in (busy, idle):
                    assert "frozen" in (await session.gone()).message
            async with backend.session(spec, ScriptedEvents()) as another:
                assert await another.prompt(HELLO) == TurnEnd("end_turn")
    assert is_gone(fake.starts()[0]["pid"])
    assert len(fake.starts()) == 2


class Behind(ScriptedEvents):
    """Whoever is told of the session is behind once something was said, until `catch_up`."""

    def __init__(self) -> None:
        super().__init__()
        self.catch_up = anyio.Event()

    async def room(self) -> None:
        if self.said:
            await self.catch_up.wait()


async def test_a_server_that_is_not_read_is_not_taken_for_frozen(fake: FakeCodex, work: Path) -> None:
    """Nothing is read while the client is too far behind, so no silence means anything (issue 3)."""
    fake.plays([fx.delta("a"), fx.gate("go"), fx.delta("b"), fx.done()])
    events, ends = Behind(), list[TurnEnd]()
    with anyio.fail_after(8):
        async with hurried() as backend, backend.session(SessionSpec(str(work)), events) as session:
            async with anyio.create_task_group() as tasks:

                async def prompt() -> None:
                    ends.append(await session.prompt(HELLO))

                async def find() -> None:
                    assert await backend.find(OLD) is None

                tasks.start_soon(prompt)
                await events.until(lambda: events.said)
                tasks.start_soon(find)
                fake.open("go")
                with anyio.move_on_after(3 * (LIMITS.answer + LIMITS.probe)):
                    await session.gone()
                assert not session.lost
                events.catch_up.set()
            assert ends == [TurnEnd("end_turn")]
    assert len(fake.starts()) == 1


async def test_what_only_asks_is_asked_again_of_the_next_app_server(fake: FakeCodex) -> None:
    fake.stores({"id": OLD, "cwd": "/w", "preview": "hi"})
    with anyio.fail_after(8):
        async with hurried() as backend:
            freeze(fake)
            assert [row.id for row in await backend.list(ListQuery(1))] == [OLD]
            os.kill(freeze(fake), signal.SIGKILL)
            row = await backend.find(OLD)
            assert row is not None and row.id == OLD


async def test_a_request_without_an_answer_harms_nobody_else(fake: FakeCodex, work: Path) -> None:
    fake.replies("thread/list", {})
    fake.plays([fx.delta("a"), fx.gate("go"), fx.done()])
    events = ScriptedEvents()
    with anyio.fail_after(5):
        async with hurried() as backend, backend.session(SessionSpec(str(work)), events) as session:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.prompt, HELLO)
                await events.until(lambda: events.said)
                with at_most(2), pytest.raises(BackendFault, match=r"no answer to `thread/list` within 0\.2.*again"):
                    await backend.list(ListQuery(1))
                fake.open("go")
            assert not session.lost
    assert len(fake.starts()) == 1


async def test_a_slow_resume_is_waited_for_while_the_server_shows_life(fake: FakeCodex, work: Path) -> None:
    fake.stores({"id": OLD, "cwd": "/w"})
    fake.replies("thread/resume", {"usual": True, "gate": "loaded"})

    async def load() -> None:
        await logged(lambda: len(fake.requests("thread/loaded/list")) >= 2)
        fake.open("loaded")

    with anyio.fail_after(5):
        async with hurried(Limits(answer=0.1, slow=5)) as backend, anyio.create_task_group() as tasks:
            tasks.start_soon(load)
            async with backend.session(SessionSpec(str(work)), ScriptedEvents(), resume=OLD) as session:
                assert await session.prompt(HELLO) == TurnEnd("end_turn")
    assert len(fake.starts()) == 1


async def test_a_turn_that_may_begin_late_leaves_no_trace_in_the_reopened_thread(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.hold("late"), fx.delta("stale"), fx.gate("never")], [fx.delta("fresh"), fx.done()])
    spec, events = SessionSpec(str(work)), ScriptedEvents()
    with anyio.fail_after(5):
        async with hurried() as backend:
            async with backend.session(spec, events) as session:
                with pytest.raises(NoAnswer, match="`turn/start`"):
                    await session.prompt(HELLO)
                assert session.lost
                assert "turn/start" in (await session.gone()).message
            fake.open("late")
            async with backend.session(spec, events, resume=session.id) as again:
                assert await again.prompt(HELLO) == TurnEnd("end_turn")
    assert events.said == "fresh"
    assert fake.threads()[0]["archived"] is False


@pytest.mark.case("C07")
async def test_a_turn_that_does_not_stop_is_freed_and_no_other_notices(
    fake: FakeCodex, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "HEED_LIMIT", 0.2)
    stubborn = [fx.delta("a"), fx.wait("interrupt"), fx.gate("never")]
    fake.plays(stubborn, [fx.delta("b"), fx.gate("go"), fx.delta("c"), fx.done()], [fx.delta("new"), fx.done()])
    spec, events, others = SessionSpec(str(work)), ScriptedEvents(), ScriptedEvents()
    ends: list[TurnEnd] = []
    with anyio.fail_after(5):
        async with hurried(Limits()) as backend, backend.session(spec, others) as other:
            async with anyio.create_task_group() as tasks:

                async def go_on() -> None:
                    ends.append(await other.prompt(HELLO))

                async with backend.session(spec, events) as session, anyio.create_task_group() as turn:
                    turn.start_soon(session.prompt, HELLO)
                    await events.until(lambda: events.said)
                    tasks.start_soon(go_on)
                    await others.until(lambda: others.said)
                    turn.cancel_scope.cancel()
                async with backend.session(spec, events, resume=session.id) as again:
                    assert await again.prompt(HELLO) == TurnEnd("end_turn")
                    freed = [{"threadId": again.id}]
                    assert fake.requests("thread/archive") == fake.requests("thread/unarchive") == freed
                fake.open("go")
    assert (events.said, others.said, ends) == ("anew", "bc", [TurnEnd("end_turn")])
    assert len(fake.starts()) == 1


async def test_a_thread_is_taken_out_of_the_archive_also_when_the_server_is_slow(
    fake: FakeCodex, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "HEED_LIMIT", 0.1)
    monkeypatch.setattr(sessions, "CLOSE_LIMIT", 0.2)
    fake.plays([fx.delta("a"), fx.wait("interrupt"), fx.gate("never")])
    fake.replies("thread/archive", {"usual": True, "gate": "archived"})
    spec, events = SessionSpec(str(work)), ScriptedEvents()

    async def archive_late() -> None:
        await logged(lambda: fake.requests("thread/loaded/list"))
        fake.open("archived")

    with anyio.fail_after(5):
        async with hurried(Limits()) as backend, anyio.create_task_group() as tasks:
            async with backend.session(spec, events) as session, anyio.create_task_group() as turn:
                turn.start_soon(session.prompt, HELLO)
                await events.until(lambda: events.said)
                turn.cancel_scope.cancel()
            tasks.start_soon(archive_late)
            async with backend.session(spec, events, resume=session.id) as again:
                assert await again.prompt(HELLO) == TurnEnd("end_turn")
    assert [thread["archived"] for thread in fake.threads()] == [False]


async def test_closing_a_session_of_a_frozen_server_is_bounded_and_the_next_gets_a_new_one(
    fake: FakeCodex, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "CLOSE_LIMIT", 0.3)
    events = ScriptedEvents()
    fake.plays([fx.delta("a"), fx.gate("never")])
    with anyio.fail_after(8):
        async with hurried(Limits(probe=0.3)) as backend:
            async with backend.session(SessionSpec(str(work)), events) as session:
                async with anyio.create_task_group() as turn:
                    turn.start_soon(session.prompt, HELLO)
                    await events.until(lambda: events.said)
                    freeze(fake)
                    turn.cancel_scope.cancel()
                begun = anyio.current_time()
            assert anyio.current_time() - begun < 1
            with at_most(3):
                async with backend.session(SessionSpec(str(work)), events, resume=session.id) as again:
                    assert await again.prompt(HELLO) == TurnEnd("end_turn")
    assert len(fake.starts()) == 2


@pytest.mark.case("K02")
async def test_the_end_of_the_backend_waits_for_no_farewell(
    fake: FakeCodex, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("CLOSE_LIMIT", "HEED_LIMIT"):
        monkeypatch.setattr(sessions, limit, 60)
    opened = anyio.Event()

    async def serve(backend: CodexBackend) -> None:
        async with backend.session(SessionSpec(str(work)), ScriptedEvents()) as session:
            await session.prompt(HELLO)
            opened.set()
            await anyio.sleep_forever()

    begun = 0.0
    with anyio.fail_after(8):
        async with anyio.create_task_group() as whole:
            async with hurried() as backend, anyio.create_task_group() as tasks:
                tasks.start_soon(serve, backend)
                await opened.wait()
                freeze(fake)
                begun = anyio.current_time()
                whole.cancel_scope.cancel()
        assert anyio.current_time() - begun < 4
    assert is_gone(fake.starts()[0]["pid"])


@pytest.mark.case("K02")
async def test_a_server_that_left_a_farewell_unanswered_is_killed_at_the_end(
    fake: FakeCodex, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "CLOSE_LIMIT", 0.2)
    with anyio.fail_after(5):
        async with hurried() as backend:
            async with backend.session(SessionSpec(str(work)), ScriptedEvents()) as session:
                await session.prompt(HELLO)
                pid = freeze(fake)
            begun = anyio.current_time()
        assert anyio.current_time() - begun < 1
    assert is_gone(pid)


async def test_the_end_of_the_backend_leaves_no_thread_in_the_archive(
    fake: FakeCodex, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "HEED_LIMIT", 0.1)
    fake.plays([fx.delta("a"), fx.wait("interrupt"), fx.gate("never")])
    fake.replies("thread/archive", {"usual": True, "gate": "archived"})
    events = ScriptedEvents()

    async def serve(backend: CodexBackend) -> None:
        async with backend.session(SessionSpec(str(work)), events) as session, anyio.create_task_group() as turn:
            turn.start_soon(session.prompt, HELLO)
            await events.until(lambda: events.said)
            turn.cancel_scope.cancel()

    async def cut_short(whole: anyio.CancelScope) -> None:
        await logged(lambda: fake.requests("thread/archive"))
        whole.cancel()
        fake.open("archived")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as whole:
            async with hurried(Limits()) as backend, anyio.create_task_group() as tasks:
                tasks.start_soon(serve, backend)
                await cut_short(whole.cancel_scope)
    assert [thread["archived"] for thread in fake.threads()] == [False]
