"""Eight sessions at once on one connection, four of each CLI: the field reports that two sessions can't show in full.

The four Claude Codes use the same ids for their messages, tool calls and requests, as do the four
threads of the one app-server: only the session tells them apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import obj, text
from tests.fakes import fake_claude as fc
from tests.fakes import fake_codex as fx
from tests.live.client import Client, Pending, Question, leave_open
from tests.live.leftovers import bearing
from tests.waiting import until

from .conftest import Fakes, Start
from .test_faults import alive

pytestmark = pytest.mark.anyio

BEGUN = "begun. "
MAKE = fx.command("c1", "make")
CALL = fc.call("toolu_1", "Bash", {"command": "make"})
ASKS_CLAUDE = [CALL, fc.ask("r1", "toolu_1", "make"), fc.wait("answer")]
ASKS_CODEX = [fx.started(MAKE), fx.ask_command("c1", "make"), fx.wait("answer")]


async def four(agent: Client, fakes: Fakes, backend: str) -> list[str]:
    """Sessions of one CLI, each in a directory of its own, made at once; titled, so that none is thought of."""
    meta = {"acp-manifold": {"backend": backend, "title": "one of eight"}}
    directories = [str(fakes.directory(f"{backend}{number}")) for number in range(4)]
    made = [agent.start("session/new", {"cwd": cwd, "mcpServers": [], "_meta": meta}) for cwd in directories]
    return [text(await each.answer(), "sessionId") for each in made]


def mixed(claude: Sequence[str], codex: Sequence[str]) -> list[str]:
    """All of them, now one CLI's, now the other's."""
    return list(chain.from_iterable(zip(claude, codex, strict=True)))


async def begin(agent: Client, claude: Sequence[str], codex: Sequence[str]) -> dict[str, Pending]:
    """Prompt all of them and wait until each has said `BEGUN`; threads begin in their order, for the fake plays so."""
    turns = {session: agent.prompt(session, "go") for session in claude}
    for session in codex:
        turns[session] = agent.prompt(session, "go")
        await agent.hears(session, BEGUN)
    for session in claude:
        await agent.hears(session, BEGUN)
    return turns


async def ask_all(agent: Client, claude: Sequence[str], codex: Sequence[str]) -> dict[str, tuple[Pending, Question]]:
    """Prompt all of them and wait until each has asked its question; threads ask in their order."""
    turns = {session: agent.prompt(session, "go") for session in claude}
    asked: dict[str, tuple[Pending, Question]] = {}
    for session in codex:
        turn = agent.prompt(session, "go")
        asked[session] = turn, await agent.question(session)
    return asked | {session: (turn, await agent.question(session)) for session, turn in turns.items()}


async def ends(turns: dict[str, Pending]) -> set[str]:
    return {text(await turn.answer(10), "stopReason") for turn in turns.values()}


def open_both(fakes: Fakes, name: str) -> None:
    fakes.claude.open(name)
    fakes.codex.open(name)


ROUNDS = 4
WORDS = 12
"""Words of each session in a round; a round begins when all eight have said those of the one before."""


def words(name: str, count: int) -> list[str]:
    return [f"{name}.{index} " for index in range(count)]


@pytest.mark.case("M02")
async def test_eight_interleaved_streams_arrive_whole_and_in_order_each_in_its_session(
    fakes: Fakes, bridge: Start
) -> None:
    for number in range(4):
        said = words(f"claude{number}", ROUNDS * WORDS)
        says = [fc.say(word, message_id=f"msg_{index}") for index, word in enumerate(said)]
        rounds = [[fc.gate(f"round{r}"), *says[r * WORDS : (r + 1) * WORDS]] for r in range(ROUNDS)]
        steps = [fc.wait("user"), fc.say(BEGUN, message_id="msg"), *chain.from_iterable(rounds), fc.gate("end")]
        fakes.claude.plays([*steps, fc.end()], cwd=fakes.directory(f"claude{number}"))
    deltas: list[fx.Step] = []
    for index in range(ROUNDS * WORDS):
        if index % WORDS == 0:
            deltas.append(fx.gate(f"round{index // WORDS}"))
        for number in range(4):
            ids = {"threadId": f"$T{number}", "turnId": f"$U{number}", "itemId": "msg_1"}
            deltas.append(fx.notify("item/agentMessage/delta", **ids, delta=f"codex{number}.{index} "))
        # The turn of one thread, the thread of another; then a turn and a thread that nobody has.
        for stranger in ({"threadId": "$T0", "turnId": "$U1"}, {"threadId": "$T2", "turnId": "u"}, {"threadId": "t"}):
            params = {"turnId": "$U3", "itemId": "msg_1", "delta": "zz", **stranger}
            deltas.append(fx.notify("item/agentMessage/delta", **params))
    waits = [fx.delta(BEGUN), fx.gate("end"), fx.done()]
    fakes.codex.plays(waits, waits, waits, [fx.delta(BEGUN), *deltas, fx.gate("end"), fx.done()])
    async with bridge() as agent:
        claude, codex = await four(agent, fakes, "claude"), await four(agent, fakes, "codex")
        turns = await begin(agent, claude, codex)
        names = {s: f"{kind}{n}" for kind, group in (("claude", claude), ("codex", codex)) for n, s in enumerate(group)}
        for number in range(ROUNDS):
            open_both(fakes, f"round{number}")
            for session, name in names.items():
                await agent.hears(session, f"{name}.{(number + 1) * WORDS - 1} ")
        assert not any(turn.done for turn in turns.values())
        open_both(fakes, "end")
        assert await ends(turns) == {"end_turn"}
        for session, name in names.items():
            assert agent.said(session) == BEGUN + "".join(words(name, ROUNDS * WORDS))
        assert {update.session for update in agent.updates} == set(names)
        for session, turn in turns.items():
            chunks = [index for index, line in enumerate(agent.lines) if is_chunk_of(line, session)]
            assert turn.response is not None and chunks[-1] < agent.lines.index(turn.response)


def is_chunk_of(line: dict[str, object], session: str) -> bool:
    params = obj(line, "params")
    return params.get("sessionId") == session and obj(params, "update").get("sessionUpdate") == "agent_message_chunk"


@pytest.mark.case("C01")
async def test_a_cancel_of_one_of_eight_leaves_seven_running(fakes: Fakes, bridge: Start) -> None:
    fakes.claude.plays(
        [fc.wait("user"), fc.say(BEGUN), fc.gate("go"), fc.say("to the end", message_id="msg_2"), fc.end()]
    )
    interrupted = [fc.wait("user"), fc.say(BEGUN), fc.wait("interrupt"), fc.end(is_error=True)]
    fakes.claude.plays(interrupted, cwd=fakes.directory("claude1"))
    fakes.claude.plays([], cwd=fakes.directory("ninth"))
    fakes.codex.plays(*[[fx.delta(BEGUN), fx.gate("go"), fx.delta("to the end"), fx.done()]] * 4)
    async with bridge() as agent:
        claude, codex = await four(agent, fakes, "claude"), await four(agent, fakes, "codex")
        ninth = await agent.new_session(str(fakes.directory("ninth")), "claude")
        turns = await begin(agent, claude, codex)
        one = turns.pop(claude[1])
        agent.notify("session/cancel", {"sessionId": claude[1]})
        beside = agent.prompt(ninth, "go")
        assert (await one.answer())["stopReason"] == "cancelled"
        assert (await beside.answer())["stopReason"] == "end_turn"
        another = turns.pop(codex[2])
        agent.notify("session/cancel", {"sessionId": codex[2]})
        assert (await another.answer())["stopReason"] == "cancelled"
        assert not any(turn.done for turn in turns.values())
        assert len(fakes.claude.requests("interrupt")) == len(fakes.claude.requests("interrupt", claude[1])) == 1
        assert [params["threadId"] for params in fakes.codex.requests("turn/interrupt")] == [codex[2]]
        open_both(fakes, "go")
        assert await ends(turns) == {"end_turn"}
        assert {agent.said(session) for session in turns} == {BEGUN + "to the end"}
        assert agent.said(claude[1]) == agent.said(codex[2]) == BEGUN


@pytest.mark.case("C02")
async def test_of_eight_prompts_in_one_write_those_cancelled_in_it_end_and_the_others_run(
    fakes: Fakes, bridge: Start
) -> None:
    fakes.codex.replies("turn/start", {"usual": True, "gate": "late"})
    async with bridge() as agent:
        claude, codex = await four(agent, fakes, "claude"), await four(agent, fakes, "codex")
        turns: dict[str, Pending] = {}
        for number, session in enumerate(mixed(claude, codex)):
            turns[session] = agent.prompt(session, "x")
            if number < 4:
                agent.notify("session/cancel", {"sessionId": session})
        cancelled = {session: turns.pop(session) for session in mixed(claude[:2], codex[:2])}
        await until(lambda: len(fakes.codex.requests("turn/start")) >= 2)
        fakes.codex.open("late")
        assert await ends(cancelled) == {"cancelled"}
        assert await ends(turns) == {"end_turn"}
        assert {agent.said(session) for session in turns} == {"ok"}
        assert {params["threadId"] for params in fakes.codex.requests("turn/interrupt")} <= set(codex[:2])
        assert not [request for session in claude[2:] for request in fakes.claude.requests("interrupt", session)]
        assert await ends({session: agent.prompt(session, "y") for session in cancelled}) == {"end_turn"}


@pytest.mark.case("P03")
async def test_eight_questions_answered_in_reverse_each_reach_their_own_cli_alone(fakes: Fakes, bridge: Start) -> None:
    yes, no = fc.returns("toolu_1", "built"), fc.returns("toolu_1", "refused", is_error=True)
    for number in range(4):
        result = yes if number % 2 else no
        script = [fc.wait("user"), *ASKS_CLAUDE, result, fc.say("and on"), fc.end()]
        fakes.claude.plays(script, cwd=fakes.directory(f"claude{number}"))
    over = [fx.completed(fx.command("c1", "make", status)) for status in ("declined", "completed")]
    fakes.codex.plays(*[[*ASKS_CODEX, over[number % 2], fx.delta("and on"), fx.done()] for number in range(4)])
    async with bridge() as agent:
        agent.on_question = leave_open
        claude, codex = await four(agent, fakes, "claude"), await four(agent, fakes, "codex")
        asked = await ask_all(agent, claude, codex)
        assert len({question.id for _, question in asked.values()}) == 8
        for left, session in reversed(list(enumerate(mixed(claude, codex)))):
            turn, question = asked[session]
            allowed = left // 2 % 2 == 1
            question.choose(question.option("allow_once" if allowed else "reject_once"))
            assert (await turn.answer(5))["stopReason"] == "end_turn"
            assert agent.said(session) == "and on"
            states = [text(update, "status") for update in agent.heard(session) if "status" in update]
            assert states[-1] == ("completed" if allowed else "failed")
            assert sum(other.done for other, _ in asked.values()) == 8 - left
        for number, session in enumerate(claude):
            (answer,) = fakes.claude.answers(session)
            assert answer["response"]["behavior"] == ("allow" if number % 2 else "deny")
            assert "interrupt" not in answer["response"]
        decisions = [(answer["id"], answer["result"]["decision"]) for answer in fakes.codex.answers()]
        assert decisions == [(3, "accept"), (2, "decline"), (1, "accept"), (0, "decline")]


@pytest.mark.case("K02")
async def test_closing_one_of_eight_ends_its_processes_alone_and_the_end_ends_all(fakes: Fakes, bridge: Start) -> None:
    fakes.claude.plays([fc.wait("user"), fc.spawn(), *ASKS_CLAUDE, fc.say("and on"), fc.end()])
    fakes.codex.plays(*[[fx.spawn(), *ASKS_CODEX, fx.delta("and on"), fx.done()]] * 4)
    async with bridge() as agent:
        agent.on_question = leave_open
        claude, codex = await four(agent, fakes, "claude"), await four(agent, fakes, "codex")
        asked = await ask_all(agent, claude, codex)
        trees = {start["session"]: [start["pid"]] for start in fakes.claude.starts()}
        for entry in fakes.claude.log():
            if entry["what"] == "spawned":
                trees[entry["session"]] += entry["pids"]
        server = [fakes.codex.starts()[0]["pid"], *fakes.codex.children()]
        assert alive(server) == server and all(len(alive(tree)) == 3 for tree in trees.values())
        for closed in (claude[0], codex[0]):
            await agent.request("session/close", {"sessionId": closed}, limit=5)
            turn, question = asked.pop(closed)
            assert (await turn.answer())["stopReason"] == "cancelled" and question.withdrawn.is_set()
        assert alive(trees.pop(claude[0])) == []
        assert alive(server)[:1] == server[:1] and all(alive(tree) == tree for tree in trees.values())
        assert [params["threadId"] for params in fakes.codex.requests("thread/unsubscribe")] == codex[:1]
        assert not any(turn.done or question.withdrawn.is_set() for turn, question in asked.values())
        for session in (claude[1], codex[1]):
            turn, question = asked[session]
            question.choose(question.option("allow_once"))
            assert (await turn.answer())["stopReason"] == "end_turn"
    assert alive([*server, *chain.from_iterable(trees.values())]) == []


def resident(fakes: Fakes) -> int:
    """The bytes of memory that the bridge has."""
    (pid,) = [pid for pid, command in bearing(str(fakes.folder)).items() if "-m acp_manifold.bridge" in command]
    (line,) = [row for row in Path(f"/proc/{pid}/status").read_text().splitlines() if row.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


@pytest.mark.case("K04")
async def test_a_flood_on_the_stderr_of_one_of_eight_is_kept_out_of_memory_and_of_the_others(
    fakes: Fakes, bridge: Start
) -> None:
    flood = [("first-words\n", 1), ("e" * 1023 + "\n", 3000), ("z" * (2 * 1024 * 1024), 1)]
    floods = [fc.gate("flood"), *[fc.stderr(words, times) for words, times in flood], fc.say("dry", message_id="2")]
    dies = [fc.wait("user"), fc.say("taken", message_id="3"), fc.stderr("\nfatal: marker-42\n"), fc.leave(3)]
    fakes.claude.plays([fc.wait("user"), fc.say(BEGUN), fc.gate("go"), fc.end()])
    fakes.claude.plays(
        [fc.wait("user"), fc.say(BEGUN), *floods, fc.gate("go"), fc.end(), *dies], cwd=fakes.directory("claude3")
    )
    server_floods = [fx.stderr(words, times) for words, times in flood]
    fakes.codex.plays(
        [fx.delta(BEGUN), fx.gate("flood"), *server_floods, fx.delta("dry"), fx.gate("go"), fx.done()],
        *[[fx.delta(BEGUN), fx.gate("go"), fx.done()]] * 3,
    )
    async with bridge() as agent:
        claude, codex = await four(agent, fakes, "claude"), await four(agent, fakes, "codex")
        turns = await begin(agent, claude, codex)
        before = resident(fakes)
        open_both(fakes, "flood")
        for session in (claude[3], codex[0]):
            await agent.hears(session, "dry")
        assert resident(fakes) - before < 5_000_000
        open_both(fakes, "go")
        assert await ends(turns) == {"end_turn"}
        error = await agent.prompt(claude[3], "again").error(10)
        assert "status 3" in error.message and "marker-42" in error.message
        assert "first-words" not in f"{error.message}{error.data}" and len(error.message) < 10_000
        others = [session for session in mixed(claude, codex) if session != claude[3]]
        assert await ends({session: agent.prompt(session, "again") for session in others}) == {"end_turn"}
    assert len(fakes.claude.starts()) == 4 and len(fakes.codex.starts()) == 1
