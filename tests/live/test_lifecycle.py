"""Forks, the archive, loads in mid-turn and further directories, on the real CLIs (issue 5)."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import termios
import time
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, obj, text

from .client import Client, leave_open
from .conftest import MakeLab, all_and_v2, served
from .lab import Lab, backends, beside, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]
both_backends = pytest.mark.parametrize("backend", ["claude", "claude-tui", "codex"])

ASKS = {
    name: f"{run}[touch {{0}}] ;; " for name, run in (("claude", "RUN"), ("claude-tui", "RUN"), ("codex", "RUNESC"))
}
"""A command that each CLI asks about as it is configured out of the box."""


def opening(session: str, cwd: str, **more: object) -> JsonObject:
    return {"sessionId": session, "cwd": cwd, "mcpServers": [], **more}


async def rows(agent: Client, **params: object) -> dict[str, JsonObject]:
    return {text(row, "sessionId"): row for row in await agent.list_sessions(**params)}


def told(agent: Client, session: str, since: int = 0) -> list[str]:
    """What was said in a session, messages joined, with the statuses of its calls between."""
    found: list[tuple[str, str]] = []
    for update in agent.updates[since:]:
        if update.session != session:
            continue
        if "message" in update.kind:
            if not update.body.get("content"):
                continue
            name = update.kind.removesuffix("_chunk").removesuffix("_message")
            blocks = as_objects(update.body["content"]) or [obj(update.body, "content")]
            words = "".join(text(block, "text") for block in blocks)
            found[-1:] = (
                [(name, found[-1][1] + words)] if found and found[-1][0] == name else [*found[-1:], (name, words)]
            )
        elif update.kind in ("tool_call", "tool_call_update"):
            call = ("call", text(update.body, "toolCallId"))
            # In v2 a call begins with the first update of it.
            if update.kind == "tool_call" or (agent.version == 2 and call not in found):
                found.append(call)
    return [f"{name}: {words}" for name, words in found]


@all_and_v2
async def test_a_fork_is_there_before_its_first_prompt_and_goes_on_by_itself(
    lab: MakeLab, backend: str, version: int
) -> None:
    both = lab(*served(backend))
    elsewhere = both.directory("elsewhere")
    async with started(both, version=version) as agent:
        await agent.initialize()
        source = await agent.new_session(both.cwd, backend)
        await agent.ask(source, "RUN[echo hi] ;; TEXT<<first answer>>")
        await agent.request("session/set_title", {"sessionId": source, "title": "Mine"})
        running = agent.prompt(source, "TEXT<<part\n>> GATE[on] TEXT<<rest>>")
        await agent.hears(source, "part")
        # The source is live and in the middle of a turn: it goes on, and what is complete is in the copy.
        fork = text(await agent.request("session/fork", opening(source, elsewhere)), "sessionId")
        listed = await rows(agent)
        assert set(listed) == {source, fork} and listed[fork]["title"] == "Mine"
        assert (listed[source]["cwd"], listed[fork]["cwd"]) == (both.cwd, elsewhere)
        assert fork in await rows(agent, cwd=elsewhere)
        renamed = await agent.request("session/set_title", {"sessionId": fork, "title": "Copy"})
        assert renamed == {"title": "Copy"}
        both.model.gate("on").set()
        assert (await running.answer())["stopReason"] == "end_turn"
        assert await agent.ask(source, "TEXT<<in the source>>") == "end_turn"
        await agent.request("session/close", {"sessionId": fork})
    async with started(both, version=version) as agent:
        await agent.initialize()
        listed = await rows(agent)
        assert (listed[fork]["title"], listed[source]["title"]) == ("Copy", "Mine")
        await agent.load(fork, elsewhere)
        said = told(agent, fork)
        assert said[0] == "user: RUN[echo hi] ;; TEXT<<first answer>>" and "agent: first answer" in said
        assert await agent.ask(fork, "TEXT<<in the copy>>") == "end_turn"
        assert "first answer" in json.dumps(both.model.requests[-1].body), "the model is told what was said before"
        listed = await rows(agent)
        assert list(listed) == [fork, source] and listed[fork]["title"] == "Copy"
        await agent.load(source, both.cwd)
        assert told(agent, source)[-1] == "agent: in the source"
        assert "in the copy" not in str(told(agent, source))


@both_backends
async def test_a_session_that_another_agent_has_is_refused_with_the_fork_that_works(lab: MakeLab, backend: str) -> None:
    both = lab(*served(backend))
    async with started(both) as agent:
        await agent.initialize()
        assert await rows(agent) == {}, "two app-servers can't make a store at the same moment (codex-cli 0.163.0)"
        async with started(beside(both)) as other:
            await other.initialize()
            owner = await other.new_session(both.cwd, backend)
            await other.ask(owner, "TEXT<<mine>>")
            for method in ("session/load", "session/resume"):
                error = await agent.fails(method, opening(owner, both.cwd))
                data = as_object(error.data)
                assert (error.code, data["reason"], data["try"]) == (-32600, "thread_active_writer", "session/fork")
                assert "session/fork" in error.message
            assert await agent.request("session/status", {"sessionId": owner}) == {"status": "saved"}
            fork = text(await agent.request("session/fork", opening(owner, both.cwd)), "sessionId")
            assert await agent.ask(fork, "TEXT<<copy>>") == "end_turn"
            assert await other.ask(owner, "TEXT<<goes on>>") == "end_turn"
        await agent.request("session/load", opening(owner, both.cwd))
        assert told(agent, owner)[-1] == "agent: goes on"


@all_and_v2
async def test_the_archive_hides_a_session_and_gives_it_back(lab: MakeLab, backend: str, version: int) -> None:
    both = lab(*served(backend))
    async with started(both, version=version) as agent:
        await agent.initialize()
        kept, session = [await agent.new_session(both.cwd, backend) for _ in range(2)]
        for one in (kept, session):
            await agent.ask(one, "TEXT<<words>>")
        agent.on_question = leave_open
        turn = agent.prompt(session, ASKS[backend].format("late") + "SAY[1]")
        question = await agent.question(session)
        for _ in range(2):
            assert await agent.request("session/archive", {"sessionId": session}) == {}
        assert (await turn.answer())["stopReason"] == "cancelled" and question.withdrawn.is_set()
        assert list(await rows(agent)) == [kept]
        if backend == "codex":
            for method in ("session/resume", "session/set_title"):
                error = await agent.fails(method, opening(session, both.cwd, title="No"))
                assert (error.code, as_object(error.data)["reason"]) == (-32600, "archived")
        else:
            await agent.request("session/set_title", {"sessionId": session, "title": "Put away"})
            await agent.load(session, both.cwd)
            assert await agent.ask(session, "TEXT<<still away>>") == "end_turn"
    async with started(both, version=version) as agent:
        await agent.initialize()
        assert [(i, row["archived"]) for i, row in (await rows(agent)).items()] == [(kept, False)]
        assert [(i, row["archived"]) for i, row in (await rows(agent, archived="only")).items()] == [(session, True)]
        assert set(await rows(agent, archived="include")) == {kept, session}
        for _ in range(2):
            assert await agent.request("session/unarchive", {"sessionId": session}) == {}
        assert set(await rows(agent)) == {kept, session} and await rows(agent, archived="only") == {}
        await agent.request("session/resume", opening(session, both.cwd))
        assert await agent.ask(session, "TEXT<<back>>") == "end_turn"


async def test_the_archive_of_claude_agent_acp_is_read_and_taken_back(lab: MakeLab) -> None:
    claude = lab("claude")
    async with started(claude) as agent:
        await agent.initialize()
        session = await agent.new_session(claude.cwd)
        await agent.ask(session, "TEXT<<words>>")
        (transcript,) = claude.folder.rglob(f"{session}.jsonl")
        record = {"type": "custom-title", "customTitle": "[archived] By another", "sessionId": session}
        with transcript.open("ab") as file:
            file.write(json.dumps(record).encode() + b"\n")
        await agent.wait_for(lambda: "By another" in agent.titles(session), "the title without its mark")
        await agent.request("session/close", {"sessionId": session})
        assert await rows(agent) == {}
        (row,) = (await rows(agent, archived="only")).values()
        assert (row["title"], row["archived"]) == ("By another", True)
        await agent.request("session/set_title", {"sessionId": session, "title": "Mine"})
        (row,) = (await rows(agent, archived="only")).values()
        assert row["title"] == "Mine", "renamed, it stays where it is"
        await agent.request("session/resume", opening(session, claude.cwd))
        await agent.request("session/unarchive", {"sessionId": session})
        (row,) = (await rows(agent)).values()
        assert (row["title"], row["archived"]) == ("Mine", False)
        titles = [json.loads(line) for line in transcript.read_bytes().splitlines() if b'"custom-title"' in line]
        assert titles[-1]["customTitle"] == "Mine"


@pytest.mark.parametrize("backend", ["claude", "claude-tui"])
@pytest.mark.case("T06")
async def test_no_title_of_the_client_archives_a_session(agent: Client, both: Lab, backend: str) -> None:
    session = await agent.new_session(both.cwd, backend, "[archived] Begun")
    await agent.ask(session, "TEXT<<words>>")
    assert (await rows(agent))[session]["title"] == "Begun"
    answer = await agent.request("session/set_title", {"sessionId": session, "title": "[archived] Mine"})
    assert answer == {"title": "Mine"}
    assert (await rows(agent))[session]["title"] == "Mine" == agent.titles(session)[-1]
    await agent.request("session/close", {"sessionId": session})
    answer = await agent.request("session/set_title", {"sessionId": session, "title": "[archived] [archived] At rest"})
    assert answer == {"title": "At rest"} and (await rows(agent))[session]["title"] == "At rest"


@all_and_v2
@pytest.mark.case("L06")
async def test_a_load_in_mid_turn_tells_all_so_far_once_and_the_turn_and_its_question_go_on(
    agent: Client, both: Lab, backend: str
) -> None:
    session = await agent.new_session(both.cwd, backend)
    await agent.ask(session, "TEXT<<before>>")
    agent.on_question = leave_open
    words = "TEXT<<said>> " + ASKS[backend].format("made") + "TEXT<<more\n>> GATE[on] TEXT<<and the end>>"
    turn = agent.prompt(session, f"RUN[echo one] ;; {words}")
    question = await agent.question(session)
    before, since = len(both.model.requests), len(agent.updates)
    await agent.load(session, both.cwd)
    loaded = told(agent, session, since)
    assert loaded[:3] == ["user: TEXT<<before>>", "agent: before", f"user: RUN[echo one] ;; {words}"]
    calls = [line for line in loaded if line.startswith("call: ")]
    assert len(calls) == len(set(calls)) and f"call: {question.tool_call['toolCallId']}" in calls
    question.choose(question.option("allow_once"))
    await agent.wait_for(lambda: "agent: more\n" in told(agent, session, since), "what comes after the answer")
    since = len(agent.updates)
    await agent.load(session, both.cwd)
    loaded = told(agent, session, since)
    both.model.gate("on").set()
    assert (await turn.answer())["stopReason"] == "end_turn"
    assert loaded[-1] == "agent: more\n" and told(agent, session, since)[-1] == "agent: more\nand the end"
    assert (Path(both.cwd) / "made").exists() and len(both.model.requests) > before
    since = len(agent.updates)
    await agent.load(session, both.cwd)
    whole = told(agent, session, since)
    assert whole == [*loaded[:-1], "agent: more\nand the end"], "at rest it is the same"
    since = len(agent.updates)
    await agent.request("session/resume", opening(session, both.cwd))
    assert told(agent, session, since) == []


@both_backends
async def test_the_cli_reads_and_writes_in_further_directories(agent: Client, both: Lab, backend: str) -> None:
    for config in both.folder.rglob("config.toml"):
        # Out of the box nothing may be written in a directory that was never trusted.
        config.write_text('sandbox_mode = "workspace-write"\n' + config.read_text())
    other, third = Path(both.directory("other")), Path(both.directory("third"))
    (other / "note.txt").write_text("found it\n")
    session = text(
        await agent.request(
            "session/new",
            {
                "cwd": both.cwd,
                "mcpServers": [],
                "additionalDirectories": [str(other)],
                "_meta": {"acp-manifold": {"backend": backend}},
            },
        ),
        "sessionId",
    )
    if backend != "codex":
        read = f'TOOL[Read {{"file_path": "{other}/note.txt"}}]'
    else:
        read = f"RUN[cat {other}/note.txt && echo written > {other}/made.txt]"
    assert await agent.ask(session, f"{read} ;; SAY[1]") == "end_turn"
    assert agent.questions == [], "what lies there needs no leave"
    assert "found it" in json.dumps(both.model.requests[-1].body)
    assert backend != "codex" or (other / "made.txt").read_text() == "written\n"
    await agent.request("session/close", {"sessionId": session})
    await agent.request("session/load", opening(session, both.cwd, additionalDirectories=[str(third)]))
    (third / "note.txt").write_text("and this\n")
    await agent.ask(session, read.replace(str(other), str(third)) + " ;; SAY[1]")
    assert agent.questions == [] and "and this" in json.dumps(both.model.requests[-1].body)


@both_backends
async def test_a_session_made_in_the_terminal_is_listed_renamed_loaded_and_gone_on_with(
    agent: Client, both: Lab, backend: str
) -> None:
    (cli,) = (one.program() for one in backends([backend]))
    assert cli is not None
    # Codex names what it is told in a terminal, too, if it is not ended before.
    both.model.titles.answer("Said from the terminal")
    if backend != "codex":
        command = [*cli.command, "-p", "--", "TEXT<<from the terminal>>"]
        await anyio.run_process(command, env=both.env, cwd=both.cwd, stdin=subprocess.DEVNULL)
    else:
        command = [*cli.command, "--no-daemon", "TEXT<<from the terminal>>"]
        await to_thread.run_sync(in_a_terminal, command, both)
    ((session, row),) = (await rows(agent)).items()
    assert "from the terminal" in text(row, "title") and row["cwd"] == both.cwd
    assert await agent.request("session/set_title", {"sessionId": session, "title": "Named"}) == {"title": "Named"}
    await agent.request("session/load", opening(session, both.cwd))
    assert told(agent, session) == ["user: TEXT<<from the terminal>>", "agent: from the terminal"]
    assert await agent.ask(session, "TEXT<<in the editor>>") == "end_turn"
    assert (await rows(agent))[session]["title"] == "Named"


def in_a_terminal(command: list[str], lab: Lab) -> None:
    """Run Codex' own program in a terminal until its first turn is stored, and end it."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    process = subprocess.Popen(
        command,
        env=lab.env | {"TERM": "xterm-256color"},
        cwd=lab.cwd,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    # Its threads alone: what else is in its home comes and goes.
    threads = Path(lab.env["CODEX_HOME"]) / "sessions"
    seen, until, key_at = b"", time.monotonic() + 20, 0.0
    try:
        while not any(b"agent_message" in path.read_bytes() for path in threads.rglob("rollout-*.jsonl")):
            assert time.monotonic() < until, seen[-2000:]
            if b"Meet" in seen and time.monotonic() > key_at:
                # News about models are in the way; they take no key at first, and none in quick succession.
                key_at = time.monotonic() + 0.5
                os.write(leader, b"\r")
            if select.select([leader], [], [], 0.2)[0]:
                piece = os.read(leader, 65536)
                seen += piece
                if b"\x1b[6n" in piece:
                    os.write(leader, b"\x1b[1;1R")
    finally:
        process.terminate()
        process.wait(10)
        os.close(leader)
