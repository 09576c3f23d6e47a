"""Threads of sub-agents: whose lines are kept, and what of them is stopped, against the scripted app-server."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.errors import BackendGone, TaskNotFound
from acp_manifold.translators.updates import MessageChunk, OfSubagent, Subagent, Text, Update
from tests.fakes import fake_codex as fx
from tests.fakes.fake_codex import FakeCodex

from .scripted import logged, one_session

pytestmark = pytest.mark.anyio

HELLO = (Text("hello"),)
TURN = {"id": "inner", "rootTurnId": "$U", "status": "inProgress"}
BEGUN = {"type": "collabAgentToolCall", "id": "c", "tool": "spawnAgent", "receiverThreadIds": ["kid"], "prompt": "Look"}


def of_the_kid(method: str, **params: object) -> fx.Step:
    return fx.notify(method, threadId="kid", **params)


def words(updates: list[Update]) -> list[str]:
    inner = [update.update for update in updates if isinstance(update, OfSubagent)]
    chunks = [update.content for update in inner if isinstance(update, MessageChunk)]
    return [content.text for content in chunks if isinstance(content, Text)]


async def test_lines_that_come_before_the_end_of_the_call_are_told_behind_it(fake: FakeCodex, work: Path) -> None:
    fake.plays(
        [
            of_the_kid("turn/started", turn=TURN),
            of_the_kid("item/agentMessage/delta", turnId="inner", itemId="m", delta="early "),
            fx.notify("item/agentMessage/delta", threadId="stranger", turnId="x", itemId="m", delta="nobody's"),
            fx.completed(BEGUN),
            of_the_kid("item/agentMessage/delta", turnId="inner", itemId="m", delta="late"),
            fx.done(),
        ]
    )
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
            assert words(events.updates) == ["early ", "late"] and events.said == ""
            assert [update.state for update in events.updates if isinstance(update, Subagent)] == ["running"] * 2
            # It works, so the session is not let go.
            assert not session.resting and [task.id for task in await session.tasks()] == ["c"]
        # The end of the session stops it, and lets its thread go too.
        await logged(lambda: len(fake.requests("thread/unsubscribe")) == 2)
    assert fake.requests("turn/interrupt") == [{"threadId": "kid", "turnId": "inner"}]


async def test_a_cancel_stops_what_its_turn_has_set_to_work_and_nothing_of_earlier_turns(
    fake: FakeCodex, work: Path
) -> None:
    later = {**BEGUN, "id": "d", "receiverThreadIds": ["second"]}
    working = fx.notify("turn/started", threadId="second", turn={**TURN, "id": "other"})
    fake.plays(
        [of_the_kid("turn/started", turn=TURN), fx.completed(BEGUN), fx.done()],
        [working, fx.completed(later), fx.wait("interrupt"), fx.done("interrupted")],
    )
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.prompt, HELLO)
                await events.until(lambda: len({u.id for u in events.updates if isinstance(u, Subagent)}) == 2)
                # What the turn itself has set to work is no work in its background.
                assert [task.id for task in session.background] == ["c"]
                with pytest.raises(TaskNotFound):
                    await session.stop_task("d")
                await session.interrupt()
            stopped = [params["threadId"] for params in fake.requests("turn/interrupt")]
            assert "second" in stopped and "kid" not in stopped
            assert [task.id for task in session.background] == ["c", "d"]
            await session.stop_task("c")
            await logged(lambda: "kid" in [params["threadId"] for params in fake.requests("turn/interrupt")])


async def test_a_question_of_a_sub_agent_is_put_to_the_person(fake: FakeCodex, work: Path) -> None:
    ask = fx.ask_command("r", "ls", ["accept", "cancel"])
    ask["params"] |= {"threadId": "kid", "turnId": "inner"}
    fake.plays([of_the_kid("turn/started", turn=TURN), fx.completed(BEGUN), ask, fx.wait("answer"), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work, "accept") as (session, events):
            await session.prompt(HELLO)
            assert [question.tool_call.id for question in events.questions] == ["r"]
    assert [answer["result"] for answer in fake.answers()] == [{"decision": "accept"}]


async def test_a_server_that_ends_ends_its_sub_agents(fake: FakeCodex, work: Path) -> None:
    fake.plays([of_the_kid("turn/started", turn=TURN), fx.completed(BEGUN), fx.done()], [fx.leave()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
            with pytest.raises(BackendGone):
                await session.prompt(HELLO)
            assert events.updates[-1] == Subagent("c", "idle")
