"""What `--record` does, told apart with agents that are replayed: where it writes, what it leaves out, how it fails."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.replay.agent import command, joined, started
from acp_manifold.adapters.replay.conversation import Conversation, Talk
from acp_manifold.bridge.errors import RemoteError
from acp_manifold.bridge.recording.reader import read, read_header
from acp_manifold.translators.narrow import obj, text

from .corpus import case

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("backend", ["claude", "codex"])


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "PATH": "", "HOME": str(home)}


@both
async def test_a_folder_gets_a_file_for_each_session_and_each_can_be_replayed(backend: str, tmp_path: Path) -> None:
    found = case(backend, "two-sessions")
    folder = tmp_path / "recorded"
    folder.mkdir()
    async with started(found.path, env=environment(tmp_path), record=folder) as client:
        await Talk(client, str(tmp_path)).have(Conversation.of(*found.scenario.steps))
        begun = [text(obj(said, "result"), "sessionId") for said in client.heard if said.get("answer") == "session/new"]
    files = {file.stem: file for file in folder.iterdir()}
    assert sorted(files) == sorted(begun)
    for session, steps in zip(begun, (("SAY[3] in a", "A"), ("SAY[2] in b", "B")), strict=True):
        assert stat.S_IMODE(files[session].stat().st_mode) == 0o600
        assert list(read_header(files[session]).clis) == [backend]
        client_sessions = {entry.session for entry in read(files[session]).entries if entry.leg == "client"}
        assert client_sessions <= {session, None}
        async with started(files[session], env=environment(tmp_path)) as client:
            words, title = steps
            conversation = Conversation().new().prompt(words).end().rename(title).list()
            await Talk(client, str(tmp_path)).have(conversation)


@both
async def test_a_path_that_cannot_be_written_costs_one_note_and_no_session(backend: str, tmp_path: Path) -> None:
    found = case(backend, "two-turns")
    (tmp_path / "file").write_text("no folder")
    words = [*command(found.path), "--record", str(tmp_path / "file" / "a.jsonl")]
    log = tmp_path / "log"
    with log.open("wb") as errors:
        async with await anyio.open_process(words, env=environment(tmp_path), stderr=errors) as process:
            assert process.stdin is not None and process.stdout is not None
            async with joined(process.stdin.send, process.stdout.receive, 1) as client:
                await Talk(client, str(tmp_path)).have(Conversation.of(*found.scenario.steps))
            await process.stdin.aclose()
            assert await process.wait() == 0
    noted = [line for line in log.read_text().splitlines() if "recorded" in line]
    assert noted == [f"acp-manifold: nothing more is recorded: {tmp_path / 'file'}: {noted[0].rpartition(': ')[2]}"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is full")
async def test_a_full_disk_costs_one_note_and_no_session(tmp_path: Path) -> None:
    found = case("codex", "two-turns")
    words = [*command(found.path), "--record", "/dev/full"]
    log = tmp_path / "log"
    with log.open("wb") as errors:
        async with await anyio.open_process(words, env=environment(tmp_path), stderr=errors) as process:
            assert process.stdin is not None and process.stdout is not None
            async with joined(process.stdin.send, process.stdout.receive, 1) as client:
                await Talk(client, str(tmp_path)).have(Conversation.of(*found.scenario.steps))
            await process.stdin.aclose()
            assert await process.wait() == 0
    assert log.read_text().count("nothing more is recorded: /dev/full: No space left on device") == 1


@both
async def test_one_session_is_recorded_on_request_until_it_is_ended(backend: str, tmp_path: Path) -> None:
    found = case(backend, "two-sessions")
    path = tmp_path / "asked.jsonl"
    async with started(found.path, env=environment(tmp_path)) as client:
        talk = Talk(client, str(tmp_path))
        await talk.have(Conversation.of("new a", "new b"))
        begun = [text(obj(said, "result"), "sessionId") for said in client.heard if said.get("answer") == "session/new"]
        await client.ask("_acp-manifold/record", {"path": str(path), "sessionId": begun[1]})
        with pytest.raises(RemoteError, match="being recorded already"):
            await client.ask("_acp-manifold/record", {"path": str(path)})
        await talk.have(Conversation.of("on b", "prompt SAY[2] in b", "end", "on a", "prompt SAY[3] in a", "end"))
        assert await client.ask("_acp-manifold/record", {}) == {"recording": None}
        await talk.have(Conversation.of("on b", "rename B"))
        with pytest.raises(RemoteError, match="Nothing is recorded on request"):
            await client.ask("_acp-manifold/record", {})
        with pytest.raises(RemoteError, match="is there already"):
            await client.ask("_acp-manifold/record", {"path": str(path)})
    recording = read(path)
    assert {entry.session for entry in recording.entries} <= {begun[1], None}
    methods = [text(entry.line or {}, "method") for entry in recording.entries if entry.leg == "client"]
    assert "session/prompt" in methods and "session/set_title" not in methods
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


PROGRAM = """
import sys
from acp_manifold.bridge import agent, methods, link_v1, link_v2, process
print(*sorted(name for name in sys.modules if "recording" in name or "replay" in name))
"""


def test_nothing_of_it_is_imported_by_who_does_not_record() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == ""
