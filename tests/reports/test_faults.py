"""Start, login, environment, cancel and the end: groups A, C, K, L and P of the field reports."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from acp_manifold.translators.narrow import JsonObject, as_objects, text
from tests.fakes import fake_claude as fc
from tests.fakes import fake_codex as fx
from tests.live.client import reject
from tests.live.leftovers import bearing
from tests.waiting import until

from .conftest import Fakes, Start

pytestmark = pytest.mark.anyio


def alive(pids: list[int]) -> list[int]:
    found: list[int] = []
    for pid in pids:
        with suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z":
                found.append(pid)
    return found


@pytest.mark.case("C02")
async def test_a_cancel_before_claude_has_said_anything(fakes: Fakes, bridge: Start) -> None:
    work = fakes.directory("a")
    aborted = {"subtype": "error_during_execution", "is_error": True}
    fakes.claude.plays(
        [fc.wait("user"), fc.wait("interrupt"), fc.emit({"type": "result", "session_id": "$S", **aborted})], cwd=work
    )
    async with bridge() as agent:
        session = await agent.new_session(str(work), "claude")
        turn = agent.prompt(session, "x")
        await until(fakes.claude.users)
        agent.notify("session/cancel", {"sessionId": session})
        assert (await turn.answer(2))["stopReason"] == "cancelled"
        assert await agent.ask(session, "y") == "end_turn"
        at_once = agent.prompt(session, "z")
        agent.notify("session/cancel", {"sessionId": session})
        assert (await at_once.answer(2))["stopReason"] == "cancelled"
        assert await agent.ask(session, "end") == "end_turn"


@pytest.mark.case("C02")
async def test_a_cancel_before_codex_has_started_the_turn_waits_for_its_id(fakes: Fakes, bridge: Start) -> None:
    fakes.codex.plays([fx.hold("late"), fx.wait("interrupt"), fx.done("interrupted")])
    async with bridge() as agent:
        session = await agent.new_session(str(fakes.directory("a")), "codex")
        turn = agent.prompt(session, "x")
        await until(fakes.codex.prompts)
        agent.notify("session/cancel", {"sessionId": session})
        await agent.list_sessions()
        assert fakes.codex.requests("turn/interrupt") == []
        fakes.codex.open("late")
        assert (await turn.answer(2))["stopReason"] == "cancelled"
        (interrupt,) = fakes.codex.requests("turn/interrupt")
        assert interrupt["threadId"] == session and interrupt["turnId"]
        assert await agent.ask(session, "y") == "end_turn"
        at_once = agent.prompt(session, "z")
        agent.notify("session/cancel", {"sessionId": session})
        assert (await at_once.answer(2))["stopReason"] == "cancelled"
        assert len(fakes.codex.requests("turn/interrupt")) <= 2
        assert await agent.ask(session, "end") == "end_turn"


@pytest.mark.case("P03")
@pytest.mark.parametrize("decisions", [["accept", "acceptForSession", "decline", "cancel"], ["accept", "cancel"], None])
async def test_the_first_refusal_declines_one_call_and_stopping_is_labelled(
    fakes: Fakes, bridge: Start, decisions: list[str] | None
) -> None:
    fakes.codex.plays(
        [
            fx.started(fx.command("c1", "rm -r build")),
            fx.ask_command("c1", "rm -r build", decisions),
            fx.wait("answer"),
            fx.completed(fx.command("c1", "rm -r build", "declined")),
            fx.delta("other way"),
            fx.done(),
        ]
    )
    async with bridge() as agent:
        agent.on_question = reject
        session = await agent.new_session(str(fakes.directory("a")), "codex")
        assert await agent.ask(session, "go") == "end_turn"
        (answer,) = fakes.codex.answers()
        assert answer["result"] == {"decision": "decline"}
        (question,) = agent.questions
        refusals = [o for o in as_objects(question.params["options"]) if text(o, "kind").startswith("reject")]
        assert "stop" not in text(refusals[0], "name").lower()
        assert all("stop" in text(option, "name").lower() for option in refusals[1:])
        assert agent.said(session) == "other way"
        statuses = [u["status"] for u in agent.heard(session) if u.get("toolCallId") == "c1" and "status" in u]
        assert statuses[-1] == "failed"


@pytest.mark.case("A01")
async def test_the_clis_get_a_clean_environment_and_our_own_reading_the_same_stores(
    fakes: Fakes, bridge: Start
) -> None:
    decoy = Path(fakes.env["HOME"]) / ".claude" / "projects" / "-decoy"
    decoy.mkdir(parents=True)
    (decoy / "11111111-2222-4333-8444-555555555555.jsonl").write_text('{"type":"user"}\n')
    fakes.env.update(CLAUDECODE="1", CLAUDE_CODE_ENTRYPOINT="cli", CLAUDE_CODE_SSE_PORT="1", CODEX_SANDBOX="seatbelt")
    async with bridge() as agent:
        session = await agent.new_session(str(fakes.directory("a")), "claude")
        assert await agent.ask(session, "hi") == "end_turn"
        (start,) = fakes.claude.starts()
        env = start["env"]
        assert "CLAUDECODE" not in env and "CLAUDE_CODE_SSE_PORT" not in env
        assert env["CLAUDE_CONFIG_DIR"] == str(fakes.claude.config) and env["HOME"] and env["PATH"]
        assert [row["sessionId"] for row in await agent.list_sessions()] == [session]
        await agent.request("session/set_title", {"sessionId": session, "title": "Mine"})
        assert fakes.claude.titles(session)[-1] == "Mine"
        await agent.request("session/delete", {"sessionId": session})
        assert not list(fakes.claude.config.glob("projects/*/*.jsonl"))


@pytest.mark.case("A01")
async def test_blank_store_variables_mean_the_usual_places(fakes: Fakes, bridge: Start) -> None:
    fakes.env.update(CLAUDE_CONFIG_DIR="", CODEX_HOME="")
    home, work = Path(fakes.env["HOME"]), fakes.directory("a")
    (home / ".codex").mkdir()
    (home / ".codex" / "auth.json").write_text('{"OPENAI_API_KEY": "sk-test-fake"}')
    async with bridge() as agent:
        for backend in ("claude", "codex"):
            session = await agent.new_session(str(work), backend)
            assert await agent.ask(session, "hi") == "end_turn"
    assert list((home / ".claude").glob("projects/*/*.jsonl"))
    assert list(work.iterdir()) == []


@pytest.mark.case("A02")
async def test_login_and_limit_problems_come_in_the_right_code(fakes: Fakes, bridge: Start) -> None:
    work = fakes.directory("a")
    limit = "Usage limit reached, resets 3am"
    fakes.claude.plays(
        [
            fc.wait("user"),
            fc.end(limit, is_error=True),
            fc.wait("user"),
            fc.end("Invalid API key · Please run /login", is_error=True),
        ],
        cwd=work,
    )
    fakes.codex.plays(
        [fx.done("failed", message="401 from the provider", codexErrorInfo="unauthorized")],
        [fx.done("failed", message=limit, codexErrorInfo="usageLimitExceeded")],
    )
    async with bridge() as agent:
        claude = await agent.new_session(str(work), "claude")
        codex = await agent.new_session(str(work), "codex")
        error = await agent.prompt(claude, "1").error()
        assert error.code != -32000 and limit in error.message
        assert (await agent.prompt(claude, "2").error()).code == -32000
        assert await agent.ask(claude, "3") == "end_turn"
        assert (await agent.prompt(codex, "1").error()).code == -32000
        error = await agent.prompt(codex, "2").error()
        assert error.code != -32000 and limit in error.message
        assert await agent.ask(codex, "3") == "end_turn"
        assert "sk-ant-test-fake" not in str(agent.lines) and "sk-test-fake" not in str(agent.lines)


@pytest.mark.case("A02")
async def test_a_backend_without_a_login_says_so_and_the_other_works(fakes: Fakes, bridge: Start) -> None:
    del fakes.env["ANTHROPIC_API_KEY"]
    async with bridge() as agent:
        error = await agent.fails("session/new", {"cwd": str(fakes.directory("a")), "mcpServers": []})
        assert error.code == -32000 and "claude" in error.message.lower()
        assert (await agent.fails("authenticate", {"methodId": "claude-login"})).code == -32000
        session = await agent.new_session(str(fakes.directory("a")), "codex")
        assert await agent.ask(session, "hi") == "end_turn"
    assert fakes.claude.starts() == []


@pytest.mark.case("A04")
async def test_a_cli_that_dies_at_its_start_says_its_status_and_last_words(fakes: Fakes, bridge: Start) -> None:
    fakes.claude.plays([fc.stderr("SyntaxError: marker\n"), fc.leave(1)], cwd=fakes.directory("bad"))
    async with bridge() as agent:
        session = await agent.new_session(str(fakes.directory("bad")), "claude")
        for _ in range(2):
            error = await agent.prompt(session, "hi").error(5)
            assert "marker" in error.message and "status 1" in error.message
        assert len(fakes.claude.starts()) <= 4
        other = await agent.new_session(str(fakes.directory("good")), "claude")
        assert await agent.ask(other, "hi") == "end_turn"


@pytest.mark.case("A04")
@pytest.mark.parametrize("name", ["claude", "codex"])
async def test_a_program_that_is_missing_is_named_for_its_backend_alone(fakes: Fakes, bridge: Start, name: str) -> None:
    other = {"claude": "codex", "codex": "claude"}[name]
    fakes.env[{"claude": "CLAUDE_CODE_EXECUTABLE", "codex": "CODEX_PATH"}[name]] = "/no/such/program"
    async with bridge() as agent:
        params: JsonObject = {
            "cwd": str(fakes.directory("a")),
            "mcpServers": [],
            "_meta": {"acp-manifold": {"backend": name}},
        }
        error = await agent.fails("session/new", params)
        assert "/no/such/program" in error.message
        session = await agent.new_session(str(fakes.directory("a")), other)
        assert await agent.ask(session, "hi") == "end_turn"


@pytest.mark.case("L01")
async def test_a_conversation_that_the_cli_does_not_find_is_not_found(fakes: Fakes, bridge: Start) -> None:
    work = fakes.directory("a")
    async with bridge() as agent:
        session = await agent.new_session(str(work), "claude")
        await agent.ask(session, "hi")
        await agent.request("session/close", {"sessionId": session})
        fakes.claude.plays([fc.stderr(f"No conversation found with session ID: {session}\n"), fc.leave(1)], cwd=work)
        await agent.request("session/resume", {"sessionId": session, "cwd": str(work), "mcpServers": []})
        assert (await agent.prompt(session, "hi").error()).code == -32002
        fakes.claude.transcript(session).unlink()
        assert (await agent.prompt(session, "hi").error()).code == -32002


@pytest.mark.case("K02")
async def test_close_ends_the_whole_tree_of_one_session(fakes: Fakes, bridge: Start) -> None:
    for name in ("a", "b"):
        fakes.claude.plays(
            [fc.spawn(stubborn=True), fc.wait("user"), fc.say("up"), fc.end()], cwd=fakes.directory(name)
        )
    async with bridge() as agent:
        a = await agent.new_session(str(fakes.directory("a")), "claude")
        b = await agent.new_session(str(fakes.directory("b")), "claude")
        for session in (a, b):
            await agent.ask(session, "hi")
        spawned = {e["session"]: e["pids"] for e in fakes.claude.log() if e["what"] == "spawned"}
        assert alive(spawned[a]) and alive(spawned[b])
        await agent.request("session/close", {"sessionId": a}, limit=5)
        assert alive(spawned[a]) == [] and alive(spawned[b]) == spawned[b]
        assert await agent.ask(b, "still there") == "end_turn"


@pytest.mark.case("K02")
@pytest.mark.parametrize("how", ["end of input", "SIGTERM", "nobody reads"])
async def test_the_end_of_the_bridge_ends_everything_cleanly(fakes: Fakes, how: str) -> None:
    work = fakes.directory("a")
    fakes.claude.plays(
        [
            fc.spawn(stubborn=True),
            fc.wait("user"),
            fc.say("up"),
            fc.ask("r1", "toolu_1", "rm -r build"),
            fc.wait("answer"),
        ],
        cwd=work,
    )
    output, output_of_bridge = os.pipe()
    with (fakes.folder / "stderr.log").open("wb") as log:
        process = await anyio.open_process(
            [sys.executable, "-m", "acp_manifold.bridge"],
            env=fakes.env,
            cwd=fakes.folder,
            stdout=output_of_bridge,
            stderr=log,
        )
    os.close(output_of_bridge)
    assert process.stdin is not None
    stdin, heard = process.stdin, b""

    async def say(method: str, number: int, **params: object) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        await stdin.send(json.dumps(message).encode() + b"\n")

    async with process:
        await say("initialize", 0, protocolVersion=1)
        await say("session/new", 1, cwd=str(work), mcpServers=[])
        with anyio.fail_after(10):
            while b'"sessionId":"' not in heard:
                await anyio.wait_readable(output)
                heard += os.read(output, 65536)
            session = heard.split(b'"sessionId":"')[1].split(b'"')[0].decode()
            await say("session/prompt", 2, sessionId=session, prompt=[{"type": "text", "text": "x"}])
            while b"request_permission" not in heard:
                await anyio.wait_readable(output)
                heard += os.read(output, 65536)
        pids = [*fakes.claude.children(), fakes.claude.starts()[0]["pid"]]
        assert alive(pids) == pids
        with anyio.fail_after(5):
            if how == "SIGTERM":
                process.send_signal(signal.SIGTERM)
            elif how == "nobody reads":
                os.close(output)
                await say("session/list", 3)
            else:
                await process.stdin.aclose()
            assert await process.wait() == 0
        assert alive(pids) == []
        assert bearing(str(fakes.folder)) == {}
    if how != "nobody reads":
        os.close(output)
    assert "Traceback" not in (fakes.folder / "stderr.log").read_text()


def open_files(pid: int) -> Iterator[str]:
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):  # closed since it was listed
            yield re.sub(r"(pipe|socket):.*", r"\1", os.readlink(f"/proc/{pid}/fd/{fd}"))


@pytest.mark.case("K02")
async def test_thirty_sessions_opened_and_closed_leave_no_descriptor_and_no_child(fakes: Fakes, bridge: Start) -> None:
    async with bridge("--backend", "claude") as agent:

        def state() -> tuple[list[str], int]:
            (pid,) = [pid for pid, command in bearing(str(fakes.folder)).items() if "acp_manifold.bridge" in command]
            children = [
                p for p, command in bearing(str(fakes.folder)).items() if "fake" in command or "claude" in command
            ]
            return sorted(open_files(pid)), len(children)

        async def once() -> None:
            session = await agent.new_session(str(fakes.directory("a")))
            await agent.ask(session, "hi")
            await agent.request("session/close", {"sessionId": session})

        await once()
        before = state()
        for _ in range(30):
            await once()
        # The thread of the file watch ends a moment after the last subscription.
        await until(lambda: not Counter(state()[0]) - Counter(before[0]) and state()[1] <= before[1])
