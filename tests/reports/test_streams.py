"""Framing, size, noise and interleaving: groups F, M and S of the field reports."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import as_objects, obj, text
from tests.fakes import fake_claude as fc
from tests.fakes import fake_codex as fx
from tests.live.client import Client
from tests.waiting import until

from .conftest import Fakes, Start

pytestmark = pytest.mark.anyio

SEPARATORS = "a\u2028b\u2029c\u0085d\u000be\u000cf"


async def two_codex_sessions(agent: Client, fakes: Fakes) -> tuple[str, str]:
    first = await agent.new_session(str(fakes.directory("a")), "codex")
    return first, await agent.new_session(str(fakes.directory("b")), "codex")


@pytest.mark.case("M02")
async def test_interleaved_threads_keep_to_their_sessions_and_strangers_are_dropped(
    fakes: Fakes, bridge: Start
) -> None:
    steps = [fx.gate("both")]
    for index in range(100):
        for turn, name in ((0, "a"), (1, "b")):
            steps.append(
                fx.notify(
                    "item/agentMessage/delta",
                    threadId=f"$T{turn}",
                    turnId=f"$U{turn}",
                    itemId=name,
                    delta=f"{name}{index} ",
                )
            )
        if index % 10 == 5:
            steps.append(fx.notify("item/agentMessage/delta", threadId="t-unknown", turnId="u", itemId="z", delta="zz"))
            steps.append(
                fx.notify("item/agentMessage/delta", threadId="$T0", turnId="u-stale", itemId="o", delta="old")
            )
    fakes.codex.plays([fx.gate("b done"), fx.done()], [*steps, fx.done()])
    async with bridge() as agent:
        a, b = await two_codex_sessions(agent, fakes)
        asked_a = agent.prompt(a, "go")
        await until(fakes.codex.prompts)
        asked_b = agent.prompt(b, "go")
        fakes.codex.open("both")
        assert (await asked_b.answer())["stopReason"] == "end_turn"
        assert not asked_a.done
        fakes.codex.open("b done")
        assert (await asked_a.answer())["stopReason"] == "end_turn"
        assert agent.said(a) == "".join(f"a{index} " for index in range(100))
        assert agent.said(b) == "".join(f"b{index} " for index in range(100))


@pytest.mark.case("F01")
async def test_long_lines_pass_both_ways_and_one_over_the_limit_costs_one_error(fakes: Fakes, bridge: Start) -> None:
    eight = "x" * (8 * 1024 * 1024)
    sizes = [65_535, 65_536, 65_537]
    work = fakes.directory("claude")
    fakes.claude.plays(
        [
            fc.wait("user"),
            fc.say(eight),
            fc.end(),
            fc.wait("user"),
            *[fc.say("y" * n, message_id=str(n)) for n in sizes],
            fc.end(),
        ],
        cwd=work,
    )
    fakes.codex.plays([fx.delta(eight), fx.done()])
    async with bridge() as agent:
        claude = await agent.new_session(str(work), "claude")
        codex = await agent.new_session(str(work), "codex")
        huge = "0123456789abcdef" * (10 * 1024 * 1024 // 16)
        assert (await agent.prompt(claude, huge).answer(60))["stopReason"] == "end_turn"
        (heard,) = fakes.claude.users()
        assert hashlib.sha256(heard.encode()).digest() == hashlib.sha256(huge.encode()).digest()
        assert agent.said(claude) == eight
        await agent.ask(claude, "sizes")
        assert len(agent.said(claude)) == len(eight) + sum(sizes)
        assert await agent.ask(codex, "go") == "end_turn"
        assert agent.said(codex) == eight
        agent.send_line(
            b'{"jsonrpc":"2.0","id":1,"method":"session/list","params":{"x":"' + b"z" * (64 * 1024 * 1024) + b'"}}'
        )
        assert len(await agent.list_sessions()) == 2
        errors = [obj(line, "error") for line in agent.lines if "error" in line]
        assert [error["code"] for error in errors] == [-32600]
        assert "67108864" in text(errors[0], "message")


@pytest.mark.case("F02")
async def test_only_a_line_feed_ends_a_message(fakes: Fakes, bridge: Start) -> None:
    work = fakes.directory("claude")
    fakes.claude.plays(
        [
            fc.wait("user"),
            fc.raw(b"\r\n\n"),
            fc.say(SEPARATORS),
            fc.raw(b'{"type":"system","subtype":"status","session_id":"$S"}\r\n'),
            fc.end(),
        ],
        cwd=work,
    )
    fakes.codex.plays([fx.raw(b"\n\r\n"), fx.delta(SEPARATORS), fx.done()])
    async with bridge() as agent:
        for backend in ("claude", "codex"):
            session = await agent.new_session(str(work), backend)
            assert await agent.ask(session, SEPARATORS) == "end_turn"
            assert agent.said(session) == SEPARATORS
            stored = await agent.request("session/set_title", {"sessionId": session, "title": SEPARATORS})
            assert stored == {"title": "a b c d e f"}
        assert fakes.claude.users() == fakes.codex.prompts() == [SEPARATORS]


NOISE = [
    b"Update available!\n",
    b"[1,2]\n",
    b'"text"\n',
    b"\x1b[33mwarning\x1b[0m\n",
    b'{"timestamp":"x","level":"info","message":"y"}\n',
    b'{"type":\n',
]


@pytest.mark.case("F03")
async def test_noise_on_a_backends_stdout_is_noted_once_and_skipped(fakes: Fakes, bridge: Start) -> None:
    work = fakes.directory("claude")
    noise = [fc.raw(line) for line in NOISE]
    fakes.claude.plays([*noise, fc.wait("user"), *noise, fc.say("one"), *noise, fc.end()], cwd=work)
    fakes.codex.begins(*[fx.raw(line) for line in NOISE])
    fakes.codex.plays([*[fx.raw(line) for line in NOISE], fx.delta("two"), fx.done()])
    async with bridge("--verbose") as agent:
        for backend, said in (("claude", "one"), ("codex", "two")):
            session = await agent.new_session(str(work), backend)
            assert await agent.ask(session, "go") == "end_turn"
            assert agent.said(session) == said
    assert fakes.stderr.count("Update available!") >= 2


@pytest.mark.case("K04")
async def test_a_chatty_stderr_stops_nothing_and_its_end_is_in_the_error(fakes: Fakes, bridge: Start) -> None:
    work = fakes.directory("claude")
    flood = [fc.stderr("e" * 1023 + "\n", 3000), fc.stderr("z" * (2 * 1024 * 1024))]
    fakes.claude.plays(
        [
            fc.wait("user"),
            *flood,
            fc.say("still here"),
            fc.end(),
            fc.wait("user"),
            fc.stderr("\nfatal: marker-42\n"),
            fc.leave(3),
        ],
        cwd=work,
    )
    fakes.codex.plays(
        [fx.stderr("e" * 1023 + "\n", 3000), fx.delta("still here"), fx.done()],
        [fx.stderr("\nfatal: marker-42\n"), fx.leave(3)],
    )
    async with bridge() as agent:
        for backend in ("claude", "codex"):
            session = await agent.new_session(str(work), backend)
            assert await agent.ask(session, "go") == "end_turn"
            assert agent.said(session) == "still here"
            error = await agent.prompt(session, "again").error()
            assert "marker-42" in error.message and "status 3" in error.message
            assert len(error.message) < 10_000


@pytest.mark.case("S02")
async def test_a_commands_output_costs_the_client_its_size_not_its_square(fakes: Fakes, bridge: Start) -> None:
    running = fx.command("c1", "make")
    fakes.codex.plays(
        [
            fx.started(running),
            fx.prints("c1", "o" * 1023 + "\n", 5000),
            fx.completed(fx.command("c1", "make", "completed", exitCode=0)),
            fx.done(),
        ]
    )
    async with bridge() as agent:
        session = await agent.new_session(str(fakes.directory("a")), "codex")
        assert await agent.ask(session, "go") == "end_turn"
        updates = [u for u in agent.heard(session) if u.get("toolCallId") == "c1"]
        sent = sum(len(text(obj(item, "content"), "text")) for u in updates for item in as_objects(u.get("content")))
        assert 1_000_000 < sent < 15_000_000
        assert updates[-1]["status"] == "completed"


@pytest.mark.case("S02")
async def test_a_tool_result_of_twenty_megabytes_is_capped_with_a_note(
    fakes: Fakes, bridge: Start, tmp_path: Path
) -> None:
    work = fakes.directory("claude")
    fakes.claude.plays(
        [
            fc.wait("user"),
            fc.call("toolu_1", "Bash", {"command": "cat big"}),
            fc.returns("toolu_1", "r" * (20 * 1024 * 1024)),
            fc.say("done"),
            fc.end(),
        ],
        cwd=work,
    )
    async with bridge() as agent:
        session = await agent.new_session(str(work), "claude")
        assert await agent.ask(session, "go") == "end_turn"
        updates = [u for u in agent.heard(session) if u.get("toolCallId") == "toolu_1"]
        assert updates[-1]["status"] == "completed"
        assert sum(len(repr(u)) for u in updates) < 4_000_000
        shown = text(obj(as_objects(updates[-1]["content"])[-1], "content"), "text")
        assert "left out" in shown[:200]
