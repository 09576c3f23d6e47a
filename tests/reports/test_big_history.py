"""Opening a huge conversation (case S01): told as it is read, at the client's pace, in bounded memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import JsonObject
from tests.fakes import fake_claude as fc
from tests.live.leftovers import bearing
from tests.waiting import until

from .conftest import Fakes, Start

pytestmark = pytest.mark.anyio

MEGABYTE = 1024 * 1024
PICTURES = 40
SIZE = 300 * MEGABYTE


def grow(transcript: Path, session: str, cwd: Path) -> None:
    """Make it `SIZE` bytes long: pictures of two megabytes among words, and what was sent to the model."""
    said: JsonObject = {"sessionId": session, "cwd": str(cwd), "timestamp": "2026-01-01T10:00:00.000Z"}
    padding = json.dumps({"type": "api-request-blob", "message": "context " * 8000, **said}).encode() + b"\n"
    picture = {"type": "base64", "media_type": "image/png", "data": "iVBORw0K" * (2 * MEGABYTE // 8)}
    with transcript.open("ab") as file:
        for number in range(PICTURES):
            words = {"type": "text", "text": f"picture {number}"}
            content = [words, {"type": "image", "source": picture}]
            record = {"type": "user", "uuid": f"u{number}", "message": {"role": "user", "content": content}, **said}
            file.write(json.dumps(record).encode() + b"\n")
            while file.tell() < SIZE * (number + 1) // PICTURES:
                file.write(padding)


def bridge_of(fakes: Fakes) -> Path:
    (pid,) = [pid for pid, command in bearing(str(fakes.folder)).items() if "acp_manifold.bridge" in command]
    return Path(f"/proc/{pid}")


def figure(file: Path, name: str) -> int:
    """A number of bytes from a file of /proc."""
    (line,) = [line for line in file.read_text().splitlines() if line.startswith(name)]
    return int(line.split()[1]) * (1024 if line.endswith("kB") else 1)


@pytest.mark.case("S01")
async def test_a_history_of_300_megabytes_is_told_as_it_is_read_at_the_clients_pace(
    fakes: Fakes, bridge: Start
) -> None:
    work = fakes.directory("big")
    fakes.claude.plays([fc.wait("user"), fc.say("first words"), fc.end()], cwd=work)
    async with bridge("--backend", "claude") as agent:
        session = await agent.new_session(str(work))
        await agent.ask(session, "hi")
        await agent.request("session/close", {"sessionId": session})
        grow(fakes.claude.transcript(session), session, work)
        process = bridge_of(fakes)
        before, read = figure(process / "status", "VmRSS"), figure(process / "io", "rchar")
        load = agent.start("session/load", {"sessionId": session, "cwd": str(work), "mcpServers": []})
        await agent.wait_for(lambda: "picture 0" in agent.said(session, "user_message_chunk"), "the first words")
        agent.stop_reading()
        assert figure(process / "io", "rchar") - read < SIZE // 3, "what is told first is not what is read last"
        # A client that reads nothing more holds up its own history alone.
        fakes.claude.plays([fc.wait("user"), fc.end()], cwd=fakes.directory("calm"))
        agent.start("session/new", {"cwd": str(fakes.directory("calm")), "mcpServers": []})
        await until(lambda: len(fakes.claude.starts()) > 2)
        assert not load.done and figure(process / "io", "rchar") - read < SIZE // 2
        agent.read_on()
        await load.answer(90)
        assert figure(process / "status", "VmHWM") - before < 150 * MEGABYTE
        told = agent.said(session, "user_message_chunk").replace("picture ", " ").split()
        assert told == ["hi", *map(str, range(PICTURES))]
        pictures = [body for body in agent.heard(session, "user_message_chunk") if "image" in str(body)[:200]]
        assert len(pictures) == PICTURES
