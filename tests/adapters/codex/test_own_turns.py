"""Turns that Codex begins itself, while it has a goal: told as that, stopped like others."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.translators.updates import OwnTurn, Text, TurnEnd
from tests.fakes import fake_codex as fx
from tests.fakes.fake_codex import FakeCodex

from .scripted import ScriptedEvents, logged, one_session

pytestmark = pytest.mark.anyio

HELLO = (Text("hello"),)


def line(method: str, **params: object) -> fx.Json:
    return {"method": method, "params": {"threadId": "$T", **params}}


OURS_OVER = line("turn/completed", turn={"id": "$U", "status": "completed"})
BEGINS = line("turn/started", turn={"id": "own", "rootTurnId": "$U", "status": "inProgress"})
SAYS = line("item/agentMessage/delta", turnId="own", itemId="m", delta="and on")


def own(events: ScriptedEvents) -> list[OwnTurn]:
    return [update for update in events.updates if isinstance(update, OwnTurn)]


@pytest.mark.parametrize(
    ("turn", "end"),
    [
        ({"status": "completed"}, OwnTurn(False, TurnEnd("end_turn"))),
        ({"status": "interrupted"}, OwnTurn(False, TurnEnd("cancelled"))),
        ({"status": "failed", "error": {"message": "no credit"}}, OwnTurn(False, failure="Codex: no credit")),
    ],
)
async def test_one_right_behind_a_turn_of_ours_is_heard_and_has_an_end(
    fake: FakeCodex, work: Path, turn: fx.Json, end: OwnTurn
) -> None:
    over = line("turn/completed", turn={"id": "own", **turn})
    fake.plays([fx.emit(OURS_OVER, BEGINS, SAYS, over)])
    with anyio.fail_after(10):
        async with one_session(work) as (session, events):
            assert await session.prompt(HELLO) == TurnEnd("end_turn")
            await logged(lambda: len(own(events)) == 2)
            assert own(events) == [OwnTurn(running=True), end] and events.said == "and on"


async def test_it_ends_with_the_server_at_the_latest(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.emit(OURS_OVER, BEGINS), fx.leave()])
    with anyio.fail_after(10):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
            await session.gone()
            assert own(events) == [OwnTurn(running=True), OwnTurn(running=False)]
