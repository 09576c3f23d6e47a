"""What `--record` writes while the real CLIs run."""

from __future__ import annotations

import os
import signal
import stat
from collections import Counter
from pathlib import Path

import pytest

from acp_manifold.adapters.replay.agent import connected
from acp_manifold.adapters.replay.conversation import Conversation, Talk
from acp_manifold.bridge.recording.format import Entry
from acp_manifold.bridge.recording.reader import Recording, read
from acp_manifold.translators.narrow import obj, text

from .conftest import MakeLab, both_and_codex_in_v2
from .lab import backends, started
from .leftovers import bearing

pytestmark = [pytest.mark.anyio, pytest.mark.live]

SECRET = "plänted-secret-0123456789"
IN_MCP = "behind the cellar door"
BEARER = "abcdefgh.12345678"


def kinds(recording: Recording) -> Counter[str]:
    return Counter(f"{entry.leg} {entry.dir}" for entry in recording.entries)


def of(recording: Recording, leg: str, way: str | None) -> list[Entry]:
    return [entry for entry in recording.entries if entry.leg == leg and entry.dir == way]


@pytest.mark.case("R02")
@both_and_codex_in_v2
async def test_every_line_of_both_legs_is_recorded_and_no_secret_is(
    lab: MakeLab, tmp_path: Path, backend: str, version: int
) -> None:
    world = lab(backend)
    world.env["PLANTED_API_KEY"] = SECRET
    path = tmp_path / "made" / "it.jsonl"
    async with started(world, "--backend", backend, "--record", str(path), version=version) as agent:
        await agent.initialize()
        env = [{"name": "PLACE", "value": IN_MCP}]
        server = {"type": "stdio", "name": "s", "command": "/bin/true", "args": [], "env": env}
        meta = {"acp-manifold": {"backend": backend}}
        opened = await agent.request("session/new", {"cwd": world.cwd, "mcpServers": [server], "_meta": meta})
        session = text(opened, "sessionId")
        private = f"{SECRET}, by ann@example.org, Authorization: Bearer {BEARER}, in {world.env['HOME']}/x"
        assert await agent.ask(session, f"SAY[3] and {private}") == "end_turn"
        await agent.request("session/set_title", {"sessionId": session, "title": f"It is {SECRET}"})
        crossed = agent.said(session)
    recording = read(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert recording.cut is None
    assert list(recording.header.clis) == [backend]
    assert recording.header.backend == backend
    data = path.read_bytes()
    for secret in (SECRET, IN_MCP, BEARER, "ann@example.org", os.path.join(world.env["HOME"], "x")):
        assert secret.encode() not in data
        assert os.fsencode(secret) not in data
    methods = [text(entry.line or {}, "method") for entry in of(recording, "client", "in")]
    assert methods == ["initialize", "session/new", "session/prompt", "session/set_title"]
    chunks = [obj(obj(entry.line or {}, "params"), "update") for entry in of(recording, "client", "out")]
    said = "".join(
        text(obj(chunk, "content"), "text") for chunk in chunks if text(chunk, "sessionUpdate") == "agent_message_chunk"
    )
    assert said == crossed
    assert all(entry.session == session for entry in recording.entries if entry.leg in ("store",))
    assert of(recording, "backend", "in") and of(recording, "backend", "out")
    notes = [text(entry.line or {}, "note") for entry in of(recording, "bridge", None)]
    assert notes[0] == "start" and notes[-1] == "exit" and "title" in notes
    if backend == "claude":
        assert of(recording, "store", "in")


@pytest.mark.parametrize("backend", ["claude", "codex"])
async def test_a_killed_cli_is_killed_in_the_replay_with_the_same_words(
    lab: MakeLab, tmp_path: Path, backend: str
) -> None:
    world = lab(backend)
    path = tmp_path / "it.jsonl"
    async with started(world, "--backend", backend, "--titles", "off", "--record", str(path)) as agent:
        await agent.initialize()
        session = await agent.new_session(world.cwd, backend)
        turn = agent.prompt(session, "SAY[2] GATE[never]")
        await agent.hears(session, "word1")
        (program,) = [found.program() for found in backends([backend])]
        assert program is not None
        (pid,) = [pid for pid, line in bearing(str(world.folder)).items() if line.startswith(program.command[0])]
        os.kill(pid, signal.SIGKILL)
        error = await turn.error()
    assert "was killed by SIGKILL" in error.message
    (ended,) = [
        entry.line or {} for entry in of(read(path), "bridge", None) if (entry.line or {}).get("asked") is False
    ]
    assert ("stderr" in ended) == ("last on stderr" in error.message)
    async with connected(path) as client:
        await Talk(client, str(tmp_path), backend).have(Conversation.of("new", "prompt SAY[2] GATE[never]", "fail"))
        failed = [obj(message, "error") for message in client.heard if "error" in message]
    assert [text(told, "message") for told in failed] == [error.message]


async def test_of_the_interactive_program_its_hooks_and_its_transcript_are_recorded(
    lab: MakeLab, tmp_path: Path
) -> None:
    world = lab("claude-tui", "codex")
    path = tmp_path / "it.jsonl"
    async with started(world, "--record", str(path)) as agent:
        await agent.initialize()
        session = await agent.new_session(world.cwd, "claude-tui")
        assert await agent.ask(session, "SAY[3]") == "end_turn"
    recording = read(path)
    mine = [entry for entry in recording.entries if entry.backend == "claude-tui"]
    assert {entry.session for entry in mine} == {session}
    calls = [entry.line or {} for entry in mine if entry.leg == "backend" and entry.dir == "in"]
    hooks = [text(call, "hook_event_name") for call in calls]
    assert "Stop" in hooks or "UserPromptSubmit" in hooks
    kinds_of_records = {text(entry.line or {}, "type") for entry in mine if entry.leg == "store"}
    assert {"user", "assistant"} <= kinds_of_records
