"""The adapter on the real app-server, whose model is scripted: what no fake can vouch for."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.codex import session as sessions
from acp_manifold.adapters.codex.backend import CodexBackend
from acp_manifold.adapters.model import Model, run_model
from acp_manifold.bridge.backend import ListQuery, SessionSpec
from acp_manifold.bridge.errors import BackendFault, InvalidRequest, SessionNotFound
from acp_manifold.translators.updates import Text, ToolCall, ToolCallUpdate, ToolOutput, TurnEnd, Update

from .scripted import ScriptedEvents, logged, running

pytestmark = [pytest.mark.anyio, pytest.mark.live]


@pytest.fixture
async def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Model]:
    """The scripted model, and an environment in which Codex talks to it and to a store of its own."""
    async with run_model() as model:
        (tmp_path / "lab").mkdir()
        for name, value in CodexBackend().lab(tmp_path / "lab", model.url).items():
            monkeypatch.setenv(name, value)
        yield model


def calls(events: ScriptedEvents) -> list[tuple[str, str]]:
    return [(update.title, update.kind) for update in events.updates if isinstance(update, ToolCall)]


def statuses(events: ScriptedEvents) -> list[str | None]:
    return [update.status for update in events.updates if isinstance(update, ToolCallUpdate)]


def runs(command: str) -> bool:
    """Whether any process of the machine has this in its command line."""
    return subprocess.run(["pgrep", "-f", command], stdout=subprocess.DEVNULL, check=False).returncode == 0


async def test_a_session_lives_through_turns_titles_and_its_store(model: Model, work: Path) -> None:
    model.titles.answer("Count to three")
    events = ScriptedEvents("decline", "accept")
    with anyio.fail_after(60):
        async with running() as (backend, host):
            assert await backend.login() == "in"
            async with backend.session(SessionSpec(str(work)), events) as session:
                end = await session.prompt((Text("REASON[hm] SAY[3]"),))
                assert end.stop_reason == "end_turn" and end.input_tokens
                assert events.said.split() == ["word0", "word1", "word2"]
                for expected in ("failed", "completed"):
                    await session.prompt((Text("RUNESC[echo out] ;; TEXT<<so be it>>"),))
                    assert statuses(events)[-1] == expected
                assert calls(events) == [("echo out", "execute")] * 2
                assert events.printed == "out\n"
                assert await session.generate_title("count to three") == "Count to three"
                await session.keep_generated("Count to three")
                assert await session.rename("Counting") == "Counting"
                with pytest.raises(BackendFault, match="scripted"):
                    await session.prompt((Text("FAIL[400]"),))
            await backend.rename(session.id, "At rest")
            assert [origin for *_, origin in host.titles] == ["generated", "user", "user"]
            (row,) = await backend.list(ListQuery(10, cwd=str(work)))
            assert (row.id, row.title, row.cwd) == (session.id, "At rest", str(work))
            replay: list[Update] = []
            await backend.replay(session.id, replay.append)
            assert [update for update in replay if isinstance(update, ToolOutput)] != []
            async with backend.session(SessionSpec(str(work)), events, resume=session.id) as again:
                assert (await again.prompt((Text("SAY[1]"),))).stop_reason == "end_turn"
            await backend.delete(session.id)
            assert await backend.list(ListQuery(10)) == []
            with pytest.raises(SessionNotFound):
                await backend.replay(session.id, replay.append)


async def test_an_interrupt_ends_the_command_it_finds_running(model: Model, work: Path) -> None:
    events = ScriptedEvents()
    with anyio.fail_after(60):
        async with running() as (backend, _), backend.session(SessionSpec(str(work)), events) as session:
            ends: list[TurnEnd] = []

            async def prompt() -> None:
                ends.append(await session.prompt((Text("RUN[sleep 4711] ;; SAY[1]"),)))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(prompt)
                await events.until(lambda: calls(events))
                await session.interrupt()
            assert [end.stop_reason for end in ends] == ["cancelled"]
            assert statuses(events) == ["cancelled"]
            await logged(lambda: not runs("sleep 4711"))


@pytest.mark.case("C07")
async def test_a_thread_that_was_freed_takes_its_next_prompt(
    model: Model, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "HEED_LIMIT", 0)
    spec, events = SessionSpec(str(work)), ScriptedEvents()
    with anyio.fail_after(60):
        async with running() as (backend, _), backend.session(spec, ScriptedEvents()) as other:
            async with backend.session(spec, events) as session, anyio.create_task_group() as turn:
                turn.start_soon(session.prompt, (Text("SAY[1] GATE[never]"),))
                await events.until(lambda: events.said)
                turn.cancel_scope.cancel()
            async with backend.session(spec, events, resume=session.id) as again:
                assert (await again.prompt((Text("TEXT<<fresh>>"),))).stop_reason == "end_turn"
            assert events.said == "word0 fresh"
            assert not other.lost and (await other.prompt((Text("SAY[1]"),))).stop_reason == "end_turn"
            assert {row.id for row in await backend.list(ListQuery(10))} == {other.id, again.id}


@pytest.mark.case("C02")
async def test_an_interrupt_in_the_same_breath_as_the_prompt_cancels_it(model: Model, work: Path) -> None:
    with anyio.fail_after(60):
        async with running() as (backend, _):
            async with backend.session(SessionSpec(str(work)), ScriptedEvents()) as session:
                ends: list[TurnEnd] = []

                async def prompt() -> None:
                    ends.append(await session.prompt((Text("GATE[never]"),)))

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(prompt)
                    tasks.start_soon(session.interrupt)
                assert [end.stop_reason for end in ends] == ["cancelled"]
                assert (await session.prompt((Text("SAY[1]"),))).stop_reason == "end_turn"


async def test_a_thread_another_codex_has_open_can_be_titled_but_not_resumed(model: Model, work: Path) -> None:
    with anyio.fail_after(60):
        async with running() as (ours, _), running() as (other, _):
            async with other.session(SessionSpec(str(work)), ScriptedEvents()) as session:
                await session.prompt((Text("SAY[1]"),))
                with pytest.raises(InvalidRequest) as raised:
                    async with ours.session(SessionSpec(str(work)), ScriptedEvents(), resume=session.id):
                        pass
                assert raised.value.data == {"reason": "thread_active_writer", "sessionId": session.id}
                assert await ours.rename(session.id, "Mine") == "Mine"
                row = await other.find(session.id)
                assert row is not None and row.title == "Mine"
