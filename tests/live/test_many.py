"""Many sessions on one connection to both real CLIs: what happens to one happens to no other (issue 3).

All of a test's sessions are in mid-turn at once, held there by gates, when something is done to
one of them. The others have to come to their own ends then, whole.
"""

from __future__ import annotations

import os
import signal

import pytest

from tests.waiting import until

from .client import STOPPED, Client, allow, leave_open, reject
from .conftest import MakeLab, both_versions
from .lab import Lab, started
from .leftovers import bearing
from .many import (
    EIGHT,
    EIGHT_TYPED,
    SIX,
    TWO,
    TYPED,
    One,
    all_hear,
    counted_codex,
    gone,
    held,
    open_many,
    servers,
    started_by,
    stop_reasons,
    texts,
    titles,
)

pytestmark = [pytest.mark.anyio, pytest.mark.live]

PARTS = 4
"""Into how many parts a long text is cut; all sessions are heard to have said one before any says the next."""


def long_text(one: One) -> str:
    """Script: all parts of a long text, each but the last up to a gate."""
    return " ".join(f"{one.says(number)} GATE[part{number}]" for number in range(PARTS))


@pytest.mark.case("M01")
@pytest.mark.case("M02")
@pytest.mark.case("P03")
@pytest.mark.parametrize(
    ("backends", "version"),
    [(TWO, 1), (TYPED, 1), (EIGHT, 1), (EIGHT, 2)],
    ids=["two", "typed", "eight", "eight in v2"],
)
async def test_streams_stay_whole_and_each_answer_counts_for_its_own_session(
    agent: Client, both: Lab, backends: tuple[str, ...]
) -> None:
    agent.on_question = leave_open
    many = await open_many(agent, both, backends)
    turns = {one.id: one.prompt(f"{long_text(one)} {one.writes()} ;; {one.says(PARTS)}") for one in many}
    for number in range(PARTS):
        await all_hear(many, number)
        both.model.gate(f"part{number}").set()
    for one in many:
        await one.question()
    asked = list(agent.questions)
    assert await titles(agent) == {one.id: one.title for one in many}

    by_id = {one.id: one for one in many}
    to_allow = {one.id for one in many if one.number % 4 in (0, 3)}
    made: set[str] = set()
    for answered, question in enumerate(reversed(asked), 1):
        one = by_id[question.session]
        (allow if one.id in to_allow else reject)(question)
        assert await stop_reasons([turns[one.id]]) == {"end_turn"}
        made |= {one.file.name} & {by_id[session].file.name for session in to_allow}
        assert set(os.listdir(both.cwd)) == made
        assert one.call_ends == ["completed" if one.id in to_allow else "failed"]
        assert sum(turn.done for turn in turns.values()) == answered
    assert agent.questions == asked and not any(question.withdrawn.is_set() for question in asked)
    assert {one.id: one.said for one in many} == {one.id: one.parts(PARTS + 1) for one in many}


@pytest.mark.case("C01")
@pytest.mark.parametrize(
    ("backends", "version"), [(EIGHT, 1), (EIGHT, 2), (EIGHT_TYPED, 1)], ids=["eight", "eight in v2", "typed"]
)
async def test_a_cancel_ends_one_turn_of_eight_and_the_others_stream_to_their_ends(
    agent: Client, both: Lab, backends: tuple[str, ...]
) -> None:
    agent.on_question = leave_open
    many = await open_many(agent, both, backends)
    streaming, asking = many[:6], many[6:]
    turns = [one.prompt(f"{one.says(0)} GATE[go] {one.says(1)}") for one in streaming]
    turns += [one.prompt(f"{one.says(0)} {one.writes()} ;; {one.says(1)}") for one in asking]
    await all_hear(many, 0)
    kept, withdrawn = [await one.question() for one in asking]

    # One of each CLI while it streams, and one while its question is open.
    victims, others = [many[0], many[1], many[7]], many[2:7]
    for victim in victims:
        agent.notify("session/cancel", {"sessionId": victim.id})
        assert await stop_reasons([turns[victim.number]]) == {"cancelled"}
    assert not any(turns[one.number].done for one in others)
    assert withdrawn.withdrawn.is_set() and not kept.withdrawn.is_set()
    allow(withdrawn)
    allow(kept)
    both.model.gate("go").set()
    assert await stop_reasons(turns[one.number] for one in others) == {"end_turn"}
    assert texts(others) == [one.parts(2) for one in others]
    assert texts(victims) == [one.part(0) for one in victims]

    assert await stop_reasons([one.prompt(one.says(2)) for one in many]) == {"end_turn"}
    assert texts(others) == [one.parts(3) for one in others]
    assert texts(victims) == [one.part(0) + one.part(2) for one in victims]
    assert [one.file.exists() for one in asking] == [True, False]


@both_versions
@pytest.mark.case("P01")
@pytest.mark.case("K02")
async def test_a_close_in_mid_turn_ends_what_that_session_runs_and_nothing_else(
    agent: Client, both: Lab, version: int
) -> None:
    many = await open_many(agent, both)
    running, streaming, asking = many[:4], many[4:6], many[6:]
    with held(both, len(running)) as commands:
        turns = [one.prompt(f"{one.runs(commands[one.number].command)} ;; GATE[go] {one.says(1)}") for one in running]
        shells = [await command.pid() for command in commands]
        agent.on_question = leave_open
        turns += [one.prompt(f"{one.says(0)} GATE[go] {one.says(1)}") for one in streaming]
        turns += [one.prompt(f"{one.writes()} ;; {one.says(1)}") for one in asking]
        await all_hear(streaming, 0)
        questions = [await one.question() for one in asking]

        of_claude = started_by(many[0].process)
        assert shells[0] in of_claude
        lasting = {many[2].process, many[4].process, many[6].process, *servers(both), *shells[2:]}
        assert len(lasting) == 6
        for victim in many[:2]:
            assert await agent.request("session/close", {"sessionId": victim.id}) == {}
            assert await stop_reasons([turns[victim.number]]) == {"cancelled"}
        await gone([*of_claude, shells[1]])
        assert lasting <= set(bearing(str(both.folder)))
        assert not any(turn.done for turn in turns[2:])
        assert not any(question.withdrawn.is_set() for question in questions)

        for command in commands[2:]:
            command.end()
        for question in questions:
            allow(question)
        both.model.gate("go").set()
        assert await stop_reasons(turns[2:]) == {"end_turn"}
    assert texts(many) == [""] * 2 + [one.part(1) for one in running[2:]] + [one.parts(2) for one in streaming] + [
        one.part(1) for one in asking
    ]
    stopped, well = [STOPPED[version]], ["completed"]
    assert [one.call_ends for one in many] == [stopped] * 2 + [well] * 2 + [[]] * 2 + [well] * 2
    assert all(one.file.exists() for one in asking)


@both_versions
@pytest.mark.case("K01")
@pytest.mark.case("K02")
async def test_a_killed_claude_fails_its_own_prompt_and_its_next_one_resumes(agent: Client, both: Lab) -> None:
    many = await open_many(agent, both, SIX)
    running, asking, others = many[0], many[2], [many[1], *many[3:]]
    victims = [running, asking]
    assert await stop_reasons([one.prompt(one.says(0)) for one in victims]) == {"end_turn"}
    with held(both, 1) as (command,):
        turns = {running: running.prompt(f"{running.runs(command.command)} ;; {running.says(1)}")}
        shell = await command.pid()
        agent.on_question = leave_open
        turns[asking] = asking.prompt(f"{asking.writes()} ;; {asking.says(1)}")
        turns |= {one: one.prompt(f"{one.says(0)} GATE[go] {one.writes()} ;; {one.says(1)}") for one in others}
        await all_hear(others, 0)
        question = await asking.question()

        for victim in victims:
            left = started_by(victim.process)
            os.kill(victim.process, signal.SIGKILL)
            error = await turns[victim].error()
            assert error.code == -32603 and "SIGKILL" in error.message
            assert victim.call_ends == ["failed"]
            await gone(left)
        await gone([shell])
        assert question.withdrawn.is_set()
        allow(question)
        assert not any(turns[one].done for one in others)

    agent.on_question = allow
    again = [one.prompt(one.says(2)) for one in victims]
    both.model.gate("go").set()
    assert await stop_reasons([*again, *(turns[one] for one in others)]) == {"end_turn"}
    assert texts(others) == [one.parts(2) for one in others]
    assert texts(victims) == [one.part(0) + one.part(2) for one in victims]
    assert all(one.resumed and one.part(0) in one.history(2) for one in victims)
    assert [one.file.exists() for one in many] == [one in others for one in many]
    assert await titles(agent) == {one.id: one.title for one in many}


@both_versions
@pytest.mark.case("K01")
@pytest.mark.case("K02")
async def test_a_killed_codex_server_fails_its_prompts_at_once_and_one_new_server_goes_on(
    lab: MakeLab, version: int
) -> None:
    both = lab()
    starts = counted_codex(both)
    async with started(both, version=version) as agent:
        await agent.initialize()
        many = await open_many(agent, both, ("claude",) * 2 + ("codex",) * 4)
        claude, codex = many[:2], many[2:]
        experienced, fresh = codex[:3], codex[3]
        assert await stop_reasons([one.prompt(one.says(0)) for one in experienced]) == {"end_turn"}
        with held(both, 1) as (command,):
            runs = codex[0].prompt(f"{codex[0].runs(command.command)} ;; {codex[0].says(1)}")
            shell = await command.pid()
            agent.on_question = leave_open
            asks = codex[1].prompt(f"{codex[1].writes()} ;; {codex[1].says(1)}")
            streams = [one.prompt(f"{one.says(1)} GATE[never] {one.says(3)}") for one in codex[2:]]
            kept = [
                claude[0].prompt(f"{claude[0].says(0)} GATE[go] {claude[0].writes()} ;; {claude[0].says(1)}"),
                claude[1].prompt(f"{claude[1].says(0)} {claude[1].writes()} ;; {claude[1].says(1)}"),
            ]
            await all_hear(codex[2:], 1)
            await all_hear(claude, 0)
            withdrawn, open_question = [await one.question() for one in (codex[1], claude[1])]

            (server,) = servers(both)
            os.kill(server, signal.SIGKILL)
            for turn in (runs, asks, *streams):
                error = await turn.error()
                assert error.code == -32603 and "SIGKILL" in error.message
            await gone([server, shell])
        assert withdrawn.withdrawn.is_set() and not open_question.withdrawn.is_set()
        assert not any(turn.done for turn in kept)
        assert [one.call_ends for one in codex] == [["failed"], ["failed"], [], []]
        allow(withdrawn)

        again = [one.prompt(one.says(2)) for one in codex]
        assert await stop_reasons(again) == {"end_turn"}
        assert not any(turn.done for turn in kept)
        await until(lambda: len(servers(both)) == 1)
        assert starts() == 2
        assert texts(codex) == [one.part(0) + one.part(2) for one in codex[:2]] + [
            codex[2].part(0) + codex[2].part(1) + codex[2].part(2),
            fresh.part(1) + fresh.part(2),
        ]
        assert all(one.part(0) in one.history(2) for one in experienced)

        agent.on_question = allow
        allow(open_question)
        both.model.gate("go").set()
        assert await stop_reasons(kept) == {"end_turn"}
        assert texts(claude) == [one.parts(2) for one in claude]
        assert [one.file.exists() for one in many] == [one in claude for one in many]
        assert await titles(agent) == {one.id: one.title for one in many}
