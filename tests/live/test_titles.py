"""A client's title against all that a real CLI, and a second one on the same session, do to it (issue 4)."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import cast

import anyio
import pytest

from acp_manifold.adapters.claude import ClaudeBackend
from acp_manifold.adapters.claude.program import config_dir
from acp_manifold.adapters.codex.backend import CodexBackend
from acp_manifold.adapters.codex.program import find_program
from acp_manifold.bridge.backend import BackendSession, Program, SessionSpec
from acp_manifold.translators.narrow import JsonObject, as_object, text
from tests.adapters.claude.scripted import Listener, opened, saying
from tests.adapters.codex.scripted import ScriptedEvents
from tests.adapters.codex.scripted import running as codex_running
from tests.waiting import until

from .client import Client
from .conftest import MakeLab, both_versions, of_claude_and_v2
from .lab import Lab, started
from .leftovers import bearing
from .torture import torture

pytestmark = [pytest.mark.anyio, pytest.mark.live]
of_claude = pytest.mark.parametrize("backend", ["claude", "claude-tui"])

BIG = "SAY[1] " + "filler " * 22_000
"""A prompt of 150 KB: what makes Claude Code 2.1.332 append its own idea of the title again."""


async def titled(agent: Client, session: str) -> object:
    rows = {text(row, "sessionId"): row for row in await agent.list_sessions()}
    return rows[session].get("title")


async def set_title(agent: Client, session: str, title: str) -> None:
    assert await agent.request("session/set_title", {"sessionId": session, "title": title}) == {"title": title}


def transcript(lab: Lab, session: str) -> Path:
    (path,) = (config_dir(lab.env) / "projects").glob(f"*/{session}.jsonl")
    return path


def append_title(path: Path, session: str, title: str) -> None:
    """What `rename_session()` of the Python SDK does to a transcript."""
    record = {"type": "custom-title", "customTitle": title, "sessionId": session}
    with path.open("a") as file:
        file.write(json.dumps(record) + "\n")


def last_record(path: Path) -> str:
    """The custom title that the CLI itself would show."""
    titles = [json.loads(line) for line in path.read_text().splitlines() if line.startswith('{"type":"custom-title"')]
    return str(titles[-1]["customTitle"])


def processes(lab: Lab) -> list[int]:
    found = bearing(str(lab.folder)).items()
    return [pid for pid, command in found if "--output-format" in command or "--settings" in command]


def here(lab: MakeLab, backend: str = "claude") -> Lab:
    place = lab(backend)
    return place if place.flags else replace(place, flags=("--backend", backend))


@asynccontextmanager
async def claude_agent(lab: Lab, *flags: str, version: int = 1) -> AsyncGenerator[Client]:
    async with started(lab, *flags, version=version) as agent:
        await agent.initialize()
        yield agent


async def named(agent: Client, lab: Lab, title: str) -> str:
    """A session with a turn and a title."""
    session = await agent.new_session(lab.cwd)
    await agent.ask(session, "SAY[1]")
    await set_title(agent, session, title)
    return session


@pytest.mark.case("T10")
@of_claude
@pytest.mark.parametrize("moment", ["idle", "in mid-turn"])
async def test_a_rename_by_another_program_outlives_a_big_turn_here(lab: MakeLab, moment: str, backend: str) -> None:
    both = here(lab, backend)
    async with claude_agent(both) as agent:
        session = await named(agent, both, "Ours")
        path = transcript(both, session)
        turn = agent.prompt(session, "LINES SAY[5] GATE[held]") if moment == "in mid-turn" else None
        if turn is not None:
            await agent.hears(session, "word4")
        append_title(path, session, "Theirs")
        await agent.wait_for(lambda: agent.titles(session)[-1] == "Theirs" or None, "the other title")
        both.model.gate("held").set()
        if turn is not None:
            await turn.answer()
        for _ in range(2):
            await agent.ask(session, BIG)
            assert await titled(agent, session) == "Theirs"
        await agent.request("session/close", {"sessionId": session})
        assert (await titled(agent, session), last_record(path)) == ("Theirs", "Theirs")
        assert agent.titles(session)[-1] == "Theirs"


@pytest.mark.parametrize(
    ("backend", "end"), [("claude", "clean exit"), ("claude", "kill -9"), ("claude-tui", "kill -9")]
)
async def test_a_title_for_a_session_of_another_process_outlives_its_big_turns(
    lab: MakeLab, backend: str, end: str
) -> None:
    both = here(lab, backend)
    async with claude_agent(both) as agent, owned(both) as owner:
        await owner.rename("Theirs")
        await owner.prompt(saying("SAY[1]"))
        path = transcript(both, owner.id)
        await set_title(agent, owner.id, "Ours")
        for _ in range(2):
            await owner.prompt(saying(BIG))
            await until(lambda: last_record(path) == "Ours")
            assert await titled(agent, owner.id) == "Ours"
        if end == "kill -9":
            for pid in processes(both):
                os.kill(pid, signal.SIGKILL)
            await owner.gone()
    async with claude_agent(both) as agent:
        assert await titled(agent, owner.id) == "Ours"
        await agent.load(owner.id, both.cwd)
        await agent.ask(owner.id, BIG)
        assert await titled(agent, owner.id) == "Ours"


async def test_a_person_who_renames_in_the_other_process_has_the_last_word(lab: MakeLab) -> None:
    both = here(lab)
    async with claude_agent(both) as agent, owned(both) as owner:
        await owner.prompt(saying("SAY[1]"))
        await set_title(agent, owner.id, "Ours")
        await owner.rename("Theirs")
        await owner.prompt(saying(BIG))
        assert last_record(transcript(both, owner.id)) == "Theirs"
        assert await titled(agent, owner.id) == "Theirs"


@asynccontextmanager
async def owned(lab: Lab) -> AsyncGenerator[BackendSession]:
    """A session of a Claude Code process that the agent knows nothing of."""
    with anyio.fail_after(60):
        async with opened(ClaudeBackend(lab.env), Path(lab.cwd), Listener()) as session:
            yield session


@pytest.mark.case("T04")
@pytest.mark.parametrize(("backend", "where"), [("claude", "live"), ("claude", "at rest"), ("claude-tui", "live")])
async def test_a_title_outlives_big_turns_compaction_and_the_end_of_the_cli(
    lab: MakeLab, backend: str, where: str
) -> None:
    both = here(lab, backend)
    async with claude_agent(both, "--idle-timeout", "0") as agent:
        session = await named(agent, both, "First")
        if where == "at rest":
            await agent.request("session/close", {"sessionId": session})
        await set_title(agent, session, "Ours")
        if where == "at rest":
            await agent.load(session, both.cwd)
        for words in (BIG, "/compact", BIG):
            await agent.ask(session, words)
            assert await titled(agent, session) == "Ours", words[:20]
        (pid,) = processes(both)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: processes(both) == [])
        assert await titled(agent, session) == "Ours"
        await agent.ask(session, BIG)
    async with claude_agent(both) as agent:
        assert await titled(agent, session) == "Ours"
        assert last_record(transcript(both, session)) == "Ours"


@of_claude_and_v2
@pytest.mark.case("T02")
async def test_generated_titles_in_the_transcript_never_replace_the_clients(
    lab: MakeLab, backend: str, version: int
) -> None:
    both = here(lab, backend)
    async with claude_agent(both, version=version) as agent:
        session = await named(agent, both, "Alpha")
        path = transcript(both, session)
        for number in range(2):
            with path.open("a") as file:
                generated = {"type": "ai-title", "aiTitle": f"Clean summary {number}", "sessionId": session}
                file.write(json.dumps(generated) + "\n")
            await agent.ask(session, "SAY[1]")
            assert await titled(agent, session) == "Alpha"
        assert set(agent.titles(session)) == {"Alpha"}
    async with claude_agent(both) as agent:
        assert await titled(agent, session) == "Alpha"


@pytest.mark.parametrize(("backend", "moments"), [("claude", 6), ("claude-tui", 3)])
async def test_renames_at_random_moments_of_resumes_are_all_kept(lab: MakeLab, backend: str, moments: int) -> None:
    """The CLI reads its transcript within some 20 ms of its start; a title written in them would be lost."""
    both = here(lab, backend)
    async with claude_agent(both) as agent:
        session = await named(agent, both, "Start")
        for number in range(moments):
            await agent.request("session/close", {"sessionId": session})
            params: JsonObject = {"sessionId": session, "cwd": both.cwd, "mcpServers": []}
            resuming = agent.start("session/resume", params)
            with anyio.move_on_after(number * 0.48 / moments):
                await resuming.answer()
            await set_title(agent, session, f"Title {number}")
            await resuming.answer()
            assert await titled(agent, session) == f"Title {number}"
            await agent.ask(session, BIG)
            assert await titled(agent, session) == f"Title {number}"


@of_claude_and_v2
async def test_after_clear_the_id_and_the_title_follow_the_conversation(
    lab: MakeLab, backend: str, version: int
) -> None:
    both = here(lab, backend)
    async with claude_agent(both, version=version) as agent:
        session = await named(agent, both, "Kept")
        await agent.ask(session, "TEXT<<before>>")
        assert await agent.ask(session, "/clear") == "end_turn"
        await agent.ask(session, "TEXT<<behind it>>")
        rows = {text(row, "sessionId"): row.get("title") for row in await agent.list_sessions()}
        assert len(rows) == 2 and set(rows.values()) == {"Kept"} and session in rows
        (other,) = set(rows) - {session}
        await set_title(agent, session, "Anew")
        await agent.ask(session, BIG)
        assert (await titled(agent, session), await titled(agent, other)) == ("Anew", "Kept")
    async with claude_agent(both, version=version) as agent:
        assert (await titled(agent, session), await titled(agent, other)) == ("Anew", "Kept")
        for one, said, unsaid in ((session, "behind it", "before"), (other, "before", "behind it")):
            await agent.load(one, both.cwd)
            assert said in agent.said(one) and unsaid not in agent.said(one)
            assert await agent.ask(one, "SAY[1]") == "end_turn"


async def test_a_short_torture_loses_no_title(lab: MakeLab) -> None:
    """`make titles-torture` in small."""
    run = await torture(lab(), renames=10, seed=7, per_life=6)
    assert run.lost == []
    assert run.renames >= 10 and run.checks > 60


@asynccontextmanager
async def codex_elsewhere(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[CodexBackend]:
    """Another app-server on the same store, that the agent knows nothing of."""
    for name, value in lab.env.items():
        monkeypatch.setenv(name, value)
    async with codex_running() as (backend, _):
        yield backend


async def test_a_codex_thread_of_another_process_takes_the_title_and_keeps_it(
    lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = lab("codex")
    async with started(both, "--backend", "codex") as agent:
        await agent.initialize()
        async with codex_elsewhere(both, monkeypatch) as other:
            async with other.session(SessionSpec(both.cwd), ScriptedEvents()) as owner:
                await owner.prompt(saying("SAY[1]"))
                await owner.rename("Theirs")
                await set_title(agent, owner.id, "Ours")
                await owner.prompt(saying(BIG))
                assert await titled(agent, owner.id) == "Ours"
                error = await agent.fails("session/resume", {"sessionId": owner.id, "cwd": both.cwd, "mcpServers": []})
                assert text(as_object(error.data), "reason") == "thread_active_writer"
                await owner.rename("Theirs again")
                assert await titled(agent, owner.id) == "Theirs again"
        assert await titled(agent, owner.id) == "Theirs again"


@both_versions
async def test_an_archived_codex_thread_is_not_titled_and_the_refusal_says_why(lab: MakeLab, version: int) -> None:
    both = lab("codex")
    async with started(both, "--backend", "codex", version=version) as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd)
        await agent.ask(session, "SAY[1]")
        await set_title(agent, session, "Before")
        (path,) = [path for path in both.folder.rglob("rollout-*.jsonl") if session in path.name]
    command = [*cast(Program, find_program()).command, "archive", session]
    done = await anyio.run_process(command, env=both.env, check=False)
    assert done.returncode == 0, (done.stdout, done.stderr, path)
    async with started(both, "--backend", "codex", version=version) as agent:
        await agent.initialize()
        error = await agent.fails("session/set_title", {"sessionId": session, "title": "After"})
        assert (error.code, text(as_object(error.data), "reason")) == (-32600, "archived")
        assert "unarchive" in error.message
