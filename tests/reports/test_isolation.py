"""What happens in one session stays there: the field reports on questions, cancels and deaths beside other sessions."""

from __future__ import annotations

import os
import re
import signal
from itertools import product
from typing import Any

import anyio
import pytest

from acp_manifold.translators.narrow import JsonObject, obj, text
from tests.fakes import fake_claude as fc
from tests.fakes import fake_codex as fx
from tests.live.client import Client, Pending, Question, leave_open
from tests.waiting import until

from .conftest import Fakes, Start
from .test_faults import alive

pytestmark = pytest.mark.anyio

MAKE = fx.command("c1", "make")
ASKS_CLAUDE = [fc.call("toolu_1", "Bash", {"command": "make"}), fc.ask("r1", "toolu_1", "make"), fc.wait("answer")]
ASKS_CODEX = [fx.started(MAKE), fx.ask_command("c1", "make"), fx.wait("answer")]
TITLED = "Payments rework"


async def opened(agent: Client, fakes: Fakes, name: str, backend: str) -> str:
    return await agent.new_session(str(fakes.directory(name)), backend)


async def entitled(agent: Client, session: str, title: str = TITLED) -> None:
    """Set a title. In mid-turn, all that was sent to the session's CLI before has arrived when that is answered."""
    assert await agent.request("session/set_title", {"sessionId": session, "title": title}) == {"title": title}


async def asked(agent: Client, session: str) -> tuple[Pending, Question]:
    """A prompt on its way and the question it has led to."""
    turn = agent.prompt(session, "go")
    return turn, await agent.question(session)


def pid_of(fakes: Fakes, session: str) -> int:
    """The newest process of a Claude session."""
    return int([start["pid"] for start in fakes.claude.starts() if start["session"] == session][-1])


async def stopped(turn: Pending, limit: float = 5.0) -> str:
    return text(await turn.answer(limit), "stopReason")


def place(agent: Client, turn: Pending) -> int:
    """Where among the lines heard the answer is."""
    assert turn.response is not None
    return agent.lines.index(turn.response)


def conversation(agent: Client, session: str) -> list[int]:
    """Where among the lines heard those of a session are, titles left out."""
    return [
        index
        for index, line in enumerate(agent.lines)
        if (params := obj(line, "params")).get("sessionId") == session
        and obj(params, "update").get("sessionUpdate") != "session_info_update"
    ]


def last_state(agent: Client, session: str) -> str:
    """The last status of the last tool call of a session."""
    return [text(update, "status") for update in agent.heard(session) if "status" in update][-1]


async def everything_else_works(agent: Client, fakes: Fakes, *waiting: str) -> None:
    """While `waiting` wait: list, make, rename and close sessions, and have one of each CLI ask and be answered."""
    for backend in ("claude", "codex"):
        with anyio.fail_after(10):
            other = await opened(agent, fakes, "other", backend)
            turn, question = await asked(agent, other)
            listed = {text(row, "sessionId") for row in await agent.list_sessions()}
            assert other in listed
            question.choose(question.option("allow_once"))
            assert await stopped(turn) == "end_turn"
            assert agent.said(other) == "made"
            for session in (*waiting, other):
                await entitled(agent, session)
            await agent.request("session/close", {"sessionId": other})


@pytest.mark.case("M01")
async def test_a_question_left_open_holds_up_nobody(fakes: Fakes, bridge: Start) -> None:
    fakes.claude.plays([fc.wait("user"), *ASKS_CLAUDE, fc.returns("toolu_1", ""), fc.say("made"), fc.end()])
    fakes.codex.plays(*[[*ASKS_CODEX, fx.delta("made"), fx.done()]] * 2)
    async with bridge() as agent:
        agent.on_question = leave_open
        sessions = [await opened(agent, fakes, name, name) for name in ("claude", "codex")]
        waiting = [await asked(agent, session) for session in sessions]
        await everything_else_works(agent, fakes, *sessions)
        for session, (turn, question) in zip(sessions, waiting, strict=True):
            assert not turn.done and not question.withdrawn.is_set() and agent.said(session) == ""
            question.choose(question.option("allow_once"))
            assert await stopped(turn) == "end_turn"
            assert agent.said(session) == "made"


@pytest.mark.case("M01")
async def test_a_session_whose_cli_is_slow_to_start_holds_up_nobody(fakes: Fakes, bridge: Start) -> None:
    fakes.claude.plays([], cwd=fakes.directory("slow"), late="awake")
    fakes.claude.plays([fc.wait("user"), *ASKS_CLAUDE, fc.say("made"), fc.end()], cwd=fakes.directory("other"))
    fakes.codex.replies("thread/start", {"usual": True, "gate": "awake"}, {"usual": True})
    fakes.codex.plays([*ASKS_CODEX, fx.delta("made"), fx.done()])
    fakes.codex.titles(None)
    async with bridge() as agent:
        agent.on_question = leave_open
        slow = await opened(agent, fakes, "slow", "claude")
        turn = agent.prompt(slow, "go")
        ours: JsonObject = {"_meta": {"acp-manifold": {"backend": "codex"}}}
        making = agent.start("session/new", {"cwd": str(fakes.directory("slow")), "mcpServers": [], **ours})
        await until(lambda: fakes.codex.requests("thread/start"))
        await everything_else_works(agent, fakes, slow)
        assert not turn.done and not making.done
        fakes.claude.open("awake")
        fakes.codex.open("awake")
        assert await stopped(turn) == "end_turn"
        assert agent.said(slow) == "ok" and fakes.claude.titles(slow) == [TITLED]
        assert await agent.ask(text(await making.answer(), "sessionId"), "go") == "end_turn"


NOTICE = fc.emit({"type": "system", "subtype": "task_notification", "task_id": "b1", "status": "completed"})
OF_THE_NOTICE: dict[str, Any] = {"origin": {"kind": "task-notification"}, "num_turns": 0, "user_message_uuids": []}


@pytest.mark.case("M05")
async def test_a_task_notice_ends_neither_the_prompt_after_a_resume_nor_another_sessions(
    fakes: Fakes, bridge: Start
) -> None:
    answers = [NOTICE, fc.end(**OF_THE_NOTICE), fc.say("Looking. "), fc.gate("report"), fc.say("All green"), fc.end()]
    fakes.claude.plays([], [fc.wait("user"), *answers], cwd=fakes.directory("a"))
    fakes.claude.plays([fc.wait("user"), fc.say("Mine. "), fc.gate("go"), fc.end("ok")], cwd=fakes.directory("b"))
    async with bridge() as agent:
        a = await opened(agent, fakes, "a", "claude")
        b = await opened(agent, fakes, "b", "claude")
        await agent.ask(a, "hello")
        await agent.request("session/close", {"sessionId": a})
        resume: JsonObject = {"sessionId": a, "cwd": str(fakes.directory("a")), "mcpServers": []}
        await agent.request("session/resume", resume)
        other = agent.prompt(b, "go")
        await agent.hears(b, "Mine. ")
        turn = agent.prompt(a, "status?")
        await agent.hears(a, "Looking. ")
        await agent.list_sessions()
        assert not turn.done and not other.done
        fakes.claude.open("go")
        assert await stopped(other) == "end_turn"
        assert not turn.done
        fakes.claude.open("report")
        assert await stopped(turn) == "end_turn"
        assert "All green" in agent.said(a) and max(conversation(agent, a)) < place(agent, turn)
        assert agent.said(b) == "Mine. "


@pytest.mark.case("M05")
async def test_what_a_cli_says_unasked_between_two_prompts_answers_neither(fakes: Fakes, bridge: Start) -> None:
    unasked = [fc.say("Task b1 is done. ", message_id="u1"), fc.end("Task b1 is done. ", **OF_THE_NOTICE)]
    plain = [fc.say("And tidied up. ", message_id="u2"), fc.end("And tidied up. ", user_message_uuids=[])]
    own = [fc.wait("user"), fc.say("Second. ", message_id="m2"), fc.gate("go"), fc.end()]
    fakes.claude.plays(
        [fc.wait("user"), fc.end("First. "), fc.gate("unasked"), NOTICE, *unasked, *plain, *own],
        cwd=fakes.directory("a"),
    )
    stray: JsonObject = {"id": "turn-of-its-own", "items": [], "status": "inProgress", "error": None}
    by_itself = [
        fx.notify("turn/started", threadId="$T0", turn=stray),
        fx.notify("item/agentMessage/delta", threadId="$T0", turnId=stray["id"], itemId="u1", delta="Unasked. "),
        fx.notify("turn/completed", threadId="$T0", turn={**stray, "status": "completed"}),
    ]
    again = fx.notify("turn/completed", threadId="$T0", turn={**stray, "status": "completed"})
    fakes.codex.plays(
        [fx.delta("First. "), fx.done()],
        [fx.gate("unasked"), *by_itself, fx.delta("Mine. "), fx.gate("stray"), again, fx.delta("Still. "), fx.done()],
        [fx.delta("Second. "), fx.gate("go"), fx.done()],
    )
    async with bridge() as agent:
        claude = await opened(agent, fakes, "a", "claude")
        codex = await opened(agent, fakes, "a", "codex")
        beside = await opened(agent, fakes, "b", "codex")
        for session in (claude, codex):
            assert await agent.ask(session, "one") == "end_turn"
        other = agent.prompt(beside, "go")
        for fake in (fakes.claude, fakes.codex):
            fake.open("unasked")
        await agent.hears(claude, "And tidied up. ")
        await agent.hears(beside, "Mine. ")
        turns = [agent.prompt(session, "two") for session in (claude, codex)]
        for session in (claude, codex):
            await agent.hears(session, "Second. ")
        fakes.codex.open("stray")
        assert await stopped(other) == "end_turn"
        assert not any(turn.done for turn in turns)
        for fake in (fakes.claude, fakes.codex):
            fake.open("go")
        assert [await stopped(turn) for turn in turns] == ["end_turn"] * 2
        assert agent.said(claude).endswith("Second. ") and agent.said(codex).endswith("Second. ")
        assert agent.said(beside) == "Mine. Still. "


@pytest.mark.case("C03")
async def test_a_cancelled_turn_is_cancelled_whatever_its_cli_makes_of_it(fakes: Fakes, bridge: Start) -> None:
    result = {"type": "result", "subtype": "success", "is_error": False, "session_id": "$S", "result": "x"}
    idle = {"type": "system", "subtype": "session_state_changed", "state": "idle", "session_id": "$S"}
    endings: dict[str, fc.Json] = {
        "success": result,
        "error": {**result, "is_error": True, "result": "boom"},
        "idle": idle,
    }
    for name, line in endings.items():
        begun = [fc.wait("user"), fc.say("working"), fc.wait("interrupt"), fc.say(" on", message_id="msg_2")]
        fakes.claude.plays([*begun, fc.emit(line)], cwd=fakes.directory(name))
    begun = [fx.delta("working"), fx.wait("interrupt"), fx.delta(" on")]
    fakes.codex.plays([*begun, fx.done("completed")], [*begun, fx.done("failed", message="boom")])
    fakes.codex.titles(None)
    async with bridge() as agent:
        sessions = [await opened(agent, fakes, name, "claude") for name in endings]
        sessions += [await opened(agent, fakes, "a", "codex") for _ in range(2)]
        turns: list[Pending] = []
        for session in sessions:
            turns.append(agent.prompt(session, "go"))
            await agent.hears(session, "working")
        for session in sessions:
            agent.notify("session/cancel", {"sessionId": session})
        assert [await stopped(turn) for turn in turns] == ["cancelled"] * 5
        for session, turn in zip(sessions, turns, strict=True):
            await entitled(agent, session)
            assert agent.said(session) == "working on"
            assert max(conversation(agent, session)) < place(agent, turn)
            assert await agent.ask(session, "again") == "end_turn"


@pytest.mark.case("C05")
async def test_a_second_prompt_waits_and_a_cancel_ends_it_unsent(fakes: Fakes, bridge: Start) -> None:
    held = [fc.wait("user"), fc.say("two", message_id="2"), fc.end(), fc.wait("user"), fc.say("five", message_id="5")]
    fakes.claude.plays(
        [
            *[fc.wait("user"), fc.say("one", message_id="1"), fc.gate("go"), fc.end()],
            *[*held, fc.wait("interrupt"), fc.end(is_error=True)],
        ]
    )
    fakes.codex.plays(
        [fx.delta("one"), fx.gate("go"), fx.done()],
        [fx.delta("two"), fx.done()],
        [fx.delta("five"), fx.gate("never"), fx.done()],
    )
    async with bridge() as agent:
        for backend, fake in (("claude", fakes.claude), ("codex", fakes.codex)):

            def heard(backend: str = backend) -> list[str]:
                return fakes.claude.users() if backend == "claude" else fakes.codex.prompts()

            session = await opened(agent, fakes, "a", backend)
            first, second = agent.prompt(session, "one"), agent.prompt(session, "two")
            await agent.hears(session, "one")
            await entitled(agent, session)
            assert heard() == ["one"] and not first.done
            fake.open("go")
            assert [await stopped(turn) for turn in (first, second)] == ["end_turn"] * 2
            _, two = conversation(agent, session)[-2:]
            assert place(agent, first) < two < place(agent, second)
            running, waiting = agent.prompt(session, "five"), agent.prompt(session, "six")
            await agent.hears(session, "five")
            agent.notify("session/cancel", {"sessionId": session})
            assert [await stopped(turn) for turn in (running, waiting)] == ["cancelled"] * 2
            await entitled(agent, session)
            assert heard() == ["one", "two", "five"]
            assert await agent.ask(session, "seven") == "end_turn"
            assert heard() == ["one", "two", "five", "seven"]
            assert agent.said(session) == "onetwofiveok"


@pytest.mark.case("C07")
async def test_a_cli_that_ignores_the_interrupt_is_ended_and_its_session_goes_on(fakes: Fakes, bridge: Start) -> None:
    stubborn = [fc.wait("user"), fc.spawn(), fc.say("working"), fc.gate("never")]
    fakes.claude.plays(stubborn, [], cwd=fakes.directory("a"), deaf=True)
    fakes.claude.plays([fc.wait("user"), fc.say("begun"), fc.gate("go"), fc.end()], cwd=fakes.directory("b"))
    fakes.codex.plays(
        [fx.delta("working"), fx.wait("interrupt"), fx.gate("never")],
        [fx.delta("begun"), fx.gate("go"), fx.done()],
    )
    async with bridge("--interrupt-grace", "0.5") as agent:
        stuck = [await opened(agent, fakes, "a", backend) for backend in ("claude", "codex")]
        others = [await opened(agent, fakes, "b", backend) for backend in ("claude", "codex")]
        turns: list[Pending] = []
        for session in stuck:
            turns.append(agent.prompt(session, "go"))
            await agent.hears(session, "working")
            await entitled(agent, session)
        unaffected: list[Pending] = []
        for session in others:
            unaffected.append(agent.prompt(session, "go"))
            await agent.hears(session, "begun")
        pids = [pid_of(fakes, stuck[0]), *fakes.claude.children()]
        assert alive(pids) == pids
        for session in stuck:
            agent.notify("session/cancel", {"sessionId": session})
        assert [await stopped(turn, 8) for turn in turns] == ["cancelled"] * 2
        for session in stuck:
            assert await agent.ask(session, "again") == "end_turn"
        assert alive(pids) == [] and not any(turn.done for turn in unaffected)
        assert f"--resume={stuck[0]}" in fakes.claude.starts()[-1]["argv"]
        assert [params["threadId"] for params in fakes.codex.requests("thread/resume")] == [stuck[1]]
        for fake in (fakes.claude, fakes.codex):
            fake.open("go")
        assert [await stopped(turn) for turn in unaffected] == ["end_turn"] * 2
        shown = {row["sessionId"]: row.get("title") for row in await agent.list_sessions()}
        assert [shown[session] for session in stuck] == [TITLED] * 2
    assert len(fakes.codex.starts()) == 1


@pytest.mark.case("P01")
async def test_closing_a_session_withdraws_its_own_question_alone(fakes: Fakes, bridge: Start) -> None:
    fakes.claude.plays([fc.wait("user"), *ASKS_CLAUDE, fc.returns("toolu_1", ""), fc.say("made"), fc.end()])
    fakes.codex.plays(*[[*ASKS_CODEX, fx.delta("made"), fx.done()]] * 2)
    async with bridge() as agent:
        agent.on_question = leave_open
        closed = [await opened(agent, fakes, "a", backend) for backend in ("claude", "codex")]
        kept = [await opened(agent, fakes, "b", backend) for backend in ("claude", "codex")]
        turns = {session: await asked(agent, session) for session in (*closed, *kept)}
        for session in closed:
            turn, question = turns[session]
            close = agent.start("session/close", {"sessionId": session})
            assert await close.answer(5) == {}
            assert await stopped(turn) == "cancelled"
            assert place(agent, turn) < place(agent, close)
            assert question.withdrawn.is_set()
        (refused,) = fakes.codex.answers()
        assert refused["result"] in ({"decision": "decline"}, {"decision": "cancel"})
        assert all(answer["response"]["behavior"] == "deny" for answer in fakes.claude.answers(closed[0]))
        for session in closed:
            turns[session][1].choose(turns[session][1].option("allow_once"))
        for session in kept:
            await entitled(agent, session)
            assert not turns[session][0].done and not turns[session][1].withdrawn.is_set()
        assert fakes.claude.answers(kept[0]) == [] and fakes.codex.answers() == [refused]
        for session in kept:
            turn, question = turns[session]
            question.choose(question.option("allow_once"))
            assert await stopped(turn) == "end_turn"
            assert agent.said(session) == "made"
        assert fakes.claude.answers(kept[0])[0]["response"]["behavior"] == "allow"
        assert fakes.codex.answers()[1]["result"] == {"decision": "accept"}
        assert not any("error" in line for line in agent.lines)


def verdicts(fakes: Fakes, session: str, backend: str) -> list[str]:
    """What the CLI of a session was answered; for Codex, what all of them were."""
    if backend == "claude":
        return [text(obj(answer, "response"), "behavior") for answer in fakes.claude.answers(session)]
    return [text(obj(answer, "result"), "decision") for answer in fakes.codex.answers()]


@pytest.mark.case("P02")
async def test_a_cancel_refuses_the_open_question_once_and_a_late_yes_runs_nothing(fakes: Fakes, bridge: Start) -> None:
    fakes.claude.plays([fc.wait("user"), *ASKS_CLAUDE, fc.wait("interrupt"), fc.end(is_error=True)])
    asks = [*ASKS_CODEX, fx.wait("interrupt"), fx.done("interrupted")]
    usual = [fx.delta("ok"), fx.done()]
    fakes.codex.plays(*[asks, usual] * 3)
    async with bridge() as agent:
        agent.on_question = leave_open
        for backend, dismissed in product(("claude", "codex"), ("never", "before the cancel", "behind the cancel")):
            session = await opened(agent, fakes, "a", backend)
            earlier = len(verdicts(fakes, session, backend))
            turn, question = await asked(agent, session)
            if dismissed == "before the cancel":
                question.dismiss()
            agent.notify("session/cancel", {"sessionId": session})
            if dismissed == "behind the cancel":
                question.dismiss()
            assert await stopped(turn) == "cancelled"
            assert question.withdrawn.is_set() or dismissed != "never"
            question.choose(question.option("allow_once"))
            await entitled(agent, session)
            (verdict,) = verdicts(fakes, session, backend)[earlier:]
            assert verdict in ("deny", "decline", "cancel")
            assert await agent.ask(session, "again") == "end_turn"
            assert verdicts(fakes, session, backend)[earlier:] == [verdict]
        assert len(fakes.claude.requests("interrupt")) == len(fakes.codex.requests("turn/interrupt")) == 3
        assert not any("error" in line for line in agent.lines)


@pytest.mark.case("P02")
async def test_a_question_its_cli_takes_back_takes_no_answer_and_no_other_question_with_it(
    fakes: Fakes, bridge: Start
) -> None:
    taken_back = fc.emit({"type": "control_cancel_request", "request_id": "r1"})
    fakes.claude.plays(
        [fc.wait("user"), *ASKS_CLAUDE[:2], fc.gate("back"), taken_back, fc.say("well"), fc.gate("go"), fc.end()],
        cwd=fakes.directory("a"),
    )
    fakes.claude.plays([fc.wait("user"), *ASKS_CLAUDE, fc.say("made"), fc.end()], cwd=fakes.directory("b"))
    fakes.codex.plays(
        [*ASKS_CODEX[:2], fx.gate("back"), fx.resolved(), fx.delta("well"), fx.gate("go"), fx.done()],
        [*ASKS_CODEX, fx.delta("made"), fx.done()],
    )
    async with bridge() as agent:
        agent.on_question = leave_open
        for backend, fake in (("claude", fakes.claude), ("codex", fakes.codex)):
            session = await opened(agent, fakes, "a", backend)
            beside = await opened(agent, fakes, "b", backend)
            turn, question = await asked(agent, session)
            other_turn, other = await asked(agent, beside)
            fake.open("back")
            await agent.hears(session, "well")
            with anyio.fail_after(5):
                await question.withdrawn.wait()
            question.choose(question.option("allow_once"))
            await entitled(agent, session)
            assert verdicts(fakes, session, backend) == [] and not other.withdrawn.is_set()
            fake.open("go")
            assert await stopped(turn) == "end_turn"
            other.choose(other.option("allow_once"))
            assert await stopped(other_turn) == "end_turn"
            assert agent.said(beside) == "made"
        assert not any("error" in line for line in agent.lines)


@pytest.mark.case("K01")
async def test_a_cli_that_is_killed_in_mid_turn_costs_that_turn_alone(fakes: Fakes, bridge: Start) -> None:
    asks = [fc.wait("user"), fc.stderr("fatal: marker-42\n"), *ASKS_CLAUDE]
    fakes.claude.plays(asks, [], cwd=fakes.directory("a"))
    fakes.claude.plays([fc.wait("user"), fc.say("begun"), fc.gate("go"), fc.end()], cwd=fakes.directory("b"))
    fakes.codex.plays([fx.delta("begun"), fx.gate("go"), fx.done()])
    async with bridge() as agent:
        agent.on_question = leave_open
        a = await opened(agent, fakes, "a", "claude")
        others = [await opened(agent, fakes, "b", backend) for backend in ("claude", "codex")]
        unaffected: list[Pending] = []
        for session in others:
            unaffected.append(agent.prompt(session, "go"))
            await agent.hears(session, "begun")
        turn, question = await asked(agent, a)
        await entitled(agent, a)
        os.kill(pid_of(fakes, a), signal.SIGKILL)
        error = await turn.error(5)
        assert "SIGKILL" in error.message and "marker-42" in error.message
        assert question.withdrawn.is_set() and last_state(agent, a) == "failed"
        assert not any(other.done for other in unaffected)
        assert await agent.ask(a, "again") == "end_turn"
        assert f"--resume={a}" in fakes.claude.starts()[-1]["argv"]
        os.kill(pid_of(fakes, a), signal.SIGKILL)
        assert await agent.ask(a, "at once after a death in its sleep") == "end_turn"
        for fake in (fakes.claude, fakes.codex):
            fake.open("go")
        assert [await stopped(other) for other in unaffected] == ["end_turn"] * 2
        assert TITLED in [row.get("title") for row in await agent.list_sessions() if row["sessionId"] == a]
    assert len(fakes.claude.starts()) == 4


@pytest.mark.case("K01")
async def test_the_death_of_the_app_server_costs_the_turns_it_ran_and_one_new_one_serves_all(
    fakes: Fakes, bridge: Start
) -> None:
    fakes.claude.plays([fc.wait("user"), fc.say("begun"), fc.gate("go"), fc.end()])
    asks = [fx.stderr("fatal: marker-42\n"), *ASKS_CODEX]
    fakes.codex.plays([fx.delta("idle"), fx.done()], asks, asks)
    async with bridge() as agent:
        agent.on_question = leave_open
        claude = await opened(agent, fakes, "a", "claude")
        unaffected = agent.prompt(claude, "go")
        await agent.hears(claude, "begun")
        idle, *asking = [await opened(agent, fakes, "a", "codex") for _ in range(3)]
        assert await agent.ask(idle, "go") == "end_turn"
        running = [await asked(agent, session) for session in asking]
        for session in asking:
            await entitled(agent, session)
        os.kill(fakes.codex.starts()[-1]["pid"], signal.SIGKILL)
        for session, (turn, question) in zip(asking, running, strict=True):
            error = await turn.error(5)
            assert "SIGKILL" in error.message and "marker-42" in error.message
            assert question.withdrawn.is_set() and last_state(agent, session) == "failed"
        again = [agent.prompt(session, "again") for session in (idle, *asking)]
        assert [await stopped(turn) for turn in again] == ["end_turn"] * 3
        resumed = [params["threadId"] for params in fakes.codex.requests("thread/resume")]
        assert sorted(resumed) == sorted([idle, *asking])
        assert not unaffected.done
        fakes.claude.open("go")
        assert await stopped(unaffected) == "end_turn"
        shown = {row["sessionId"]: row.get("title") for row in await agent.list_sessions()}
        assert [shown[session] for session in asking] == [TITLED] * 2
    assert len(fakes.codex.starts()) == 2 and len(fakes.claude.starts()) == 1


@pytest.mark.case("K01")
async def test_a_cli_that_dies_at_every_start_is_started_a_few_times_a_prompt_and_not_for_ever(
    fakes: Fakes, bridge: Start
) -> None:
    dies = [fc.stderr("fatal: marker-42\n"), fc.leave(1)]
    fakes.claude.plays([], dies, cwd=fakes.directory("a"))
    async with bridge("--verbose") as agent:
        sessions = {backend: await opened(agent, fakes, "a", backend) for backend in ("claude", "codex")}
        for session in sessions.values():
            assert await agent.ask(session, "well") == "end_turn"
        fakes.codex.begins(fx.stderr("fatal: marker-42\n"), fx.leave(1))
        for fake in (fakes.claude, fakes.codex):
            os.kill(fake.starts()[0]["pid"], signal.SIGKILL)
        noticed = [re.compile(f"session {session}: .* was killed by SIGKILL") for session in sessions.values()]
        await until(lambda: all(words.search(fakes.stderr) for words in noticed))
        for backend, starts in (("claude", fakes.claude.starts), ("codex", fakes.codex.starts)):
            for _ in range(2):
                before = len(starts())
                error = await agent.prompt(sessions[backend], "ill").error(5)
                assert "status 1" in error.message and "marker-42" in error.message
                assert len(starts()) - before <= 3
        fakes.claude.plays([], cwd=fakes.directory("a"))
        fakes.codex.begins()
        for session in sessions.values():
            assert await agent.ask(session, "well again") == "end_turn"
