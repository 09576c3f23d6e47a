"""The session list over transcripts that the real Claude Code wrote, across restarts and other programs' renames."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from anyio import run_process

from acp_manifold.translators.narrow import JsonObject, text

from .conftest import MakeLab, both_versions
from .lab import backends, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]


def rename_elsewhere(transcript: Path, title: str) -> None:
    """What `rename_session` of the Python SDK writes, as another program would."""
    record = {"type": "custom-title", "customTitle": title, "sessionId": transcript.stem}
    with transcript.open("ab") as file:
        file.write(json.dumps(record, separators=(",", ":")).encode() + b"\n")


def told(rows: list[JsonObject]) -> list[tuple[str, str]]:
    return [(text(row, "sessionId"), text(row, "title")) for row in rows]


@both_versions
@pytest.mark.case("L02")
@pytest.mark.case("T10")
async def test_the_list_is_the_same_after_a_restart_and_has_renames_of_other_programs_at_once(
    lab: MakeLab, version: int
) -> None:
    claude = lab("claude")
    async with started(claude, version=version) as agent:
        await agent.initialize()
        older, newer = [await agent.new_session(claude.cwd, "claude") for _ in range(2)]
        await agent.ask(older, "TEXT<<one>>")
        await agent.ask(newer, "TEXT<<two>>")
        await agent.wait_for(lambda: agent.titles(older) and agent.titles(newer), "the generated titles")
        before = await agent.list_sessions()
    assert [session for session, _ in told(before)] == [newer, older]
    (transcript,) = claude.folder.rglob(f"{older}.jsonl")
    (index,) = claude.folder.rglob("claude-index.sqlite3")
    assert index.stat().st_mode & 0o777 == 0o600
    async with started(claude, version=version) as agent:
        await agent.initialize()
        assert await agent.list_sessions() == before
        rename_elsewhere(transcript, "Renamed elsewhere")
        renamed = await agent.list_sessions()
    assert told(renamed) == [told(before)[0], (older, "Renamed elsewhere")]
    assert [row["updatedAt"] for row in renamed] == [row["updatedAt"] for row in before]
    rename_elsewhere(transcript, "While we were away")
    async with started(claude, version=version) as agent:
        await agent.initialize()
        assert told(await agent.list_sessions())[1] == (older, "While we were away")
        await agent.request("session/resume", {"sessionId": older, "cwd": claude.cwd, "mcpServers": []})
        await agent.ask(older, "TEXT<<three>>")
        assert [session for session, _ in told(await agent.list_sessions())] == [older, newer]


@both_versions
async def test_what_codex_exec_did_is_in_the_list_and_goes_on_here(lab: MakeLab, version: int) -> None:
    codex = lab("codex")
    (program,) = [backend.program() for backend in backends(["codex"])]
    assert program is not None
    command = [*program.command, "exec", "--skip-git-repo-check", "TEXT<<by itself>>"]
    await run_process(command, env=codex.env, cwd=codex.cwd)
    async with started(codex, "--backend", "codex", "--titles", "off", version=version) as agent:
        await agent.initialize()
        here = await agent.new_session(codex.cwd)
        await agent.ask(here, "TEXT<<here>>")
        rows = {text(row, "sessionId"): text(row, "title") for row in await agent.list_sessions()}
        assert rows.pop(here) == "TEXT<<here>>" and list(rows.values()) == ["TEXT<<by itself>>"]
        (session,) = rows
        await agent.load(session, codex.cwd)
        assert agent.said(session) == "by itself"
        assert await agent.ask(session, "TEXT<<, and on>>") == "end_turn"
        assert agent.said(session) == "by itself, and on"
