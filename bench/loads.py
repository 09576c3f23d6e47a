"""What a long conversation costs to open: `session/load` of many turns, by us and by the official adapters."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import anyio

from acp_manifold.adapters.demo.editor import start
from acp_manifold.translators.narrow import JsonObject, text

from .contestants import Cli, Contestant

TURNS = 1000

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_LIMIT = 600.0
_WORDS = "There is more to it than one would think. " * 20
_HISTORY = ("user_message_chunk", "agent_message_chunk", "tool_call")


@dataclass(frozen=True, slots=True)
class Load:
    """Times in seconds from the request."""

    first: float
    """To the first piece of the history."""
    whole: float
    """To the answer."""


async def prepare(cli: Cli, contestant: Contestant, env: Mapping[str, str], log: Path, cwd: Path) -> str:
    """Make a session of `TURNS` turns in the store of the environment, and give its id.

    Args:
        cli: Whose.
        contestant: Us, on that CLI.
        env: The whole environment.
        log: Takes the stderr.
        cwd: Where the session is.
    """
    if cli == "claude":
        return _transcript(Path(env["CLAUDE_CONFIG_DIR"]), cwd)
    with anyio.fail_after(_LIMIT):
        async with start((*contestant.command, "--titles", "off"), env, log, _ignore) as editor:
            await editor.initialize()
            session = await editor.new_session(str(cwd), cli)
            for number in range(TURNS):
                await editor.prompt(session, f"Look into matter {number} TEXT<<{_WORDS}>>")
            return session


async def measure(contestant: Contestant, env: Mapping[str, str], log: Path, session: str, cwd: Path) -> Load:
    """Start the contestant and have it load the session.

    Raises:
        BridgeError: It answered with an error or went away.
        TimeoutError: It took too long.
        AssertionError: Not all turns were told.
    """
    first, turns = 0.0, 0

    def hear(_session: str, update: JsonObject) -> None:
        nonlocal first, turns
        kind = text(update, "sessionUpdate")
        if kind in _HISTORY:
            first = first or time.perf_counter()
            turns += kind == "user_message_chunk"

    with anyio.fail_after(_LIMIT):
        async with start(contestant.command, env, log, hear) as editor:
            await editor.initialize()
            begun = time.perf_counter()
            await editor.ask("session/load", {"sessionId": session, "cwd": str(cwd), "mcpServers": []})
            ended = time.perf_counter()
    assert turns >= TURNS, f"{contestant.name} told {turns} of {TURNS} turns"
    return Load(first - begun, ended - begun)


def _transcript(config: Path, cwd: Path) -> str:
    """Write a transcript as Claude Code 2.1.332 does: each turn a prompt, a call, its result and an answer."""
    session = str(UUID(int=5, version=4))
    folder = config / "projects" / "".join(letter if letter.isalnum() else "-" for letter in str(cwd))
    folder.mkdir(parents=True, exist_ok=True)
    lines: list[bytes] = []
    last: str | None = None
    for number in range(TURNS):
        call = f"toolu_{number}"
        said: list[tuple[str, list[JsonObject]]] = [
            ("user", [{"type": "text", "text": f"Look into matter {number}"}]),
            ("assistant", [{"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"cat {number}"}}]),
            ("user", [{"type": "tool_result", "tool_use_id": call, "content": "what it says\n" * 20}]),
            ("assistant", [{"type": "text", "text": _WORDS}]),
        ]
        for place, (role, content) in enumerate(said):
            uuid = str(UUID(int=number * 10 + place + 1000, version=4))
            message: JsonObject = {"role": role, "content": content}
            if role == "assistant":
                message |= {"id": f"msg_{number}_{place}", "type": "message", "model": "claude-opus-5-20260101"}
                message |= {"usage": {"input_tokens": 4, "output_tokens": 200}, "stop_reason": None}
            stamp = (_BEGIN + timedelta(seconds=number * 10 + place)).isoformat(timespec="milliseconds")
            record: JsonObject = {
                "parentUuid": last,
                "isSidechain": False,
                "type": role,
                "message": message,
                "uuid": uuid,
                "timestamp": stamp.replace("+00:00", "Z"),
                "userType": "external",
                "entrypoint": "cli",
                "cwd": str(cwd),
                "sessionId": session,
                "version": "2.1.332",
            }
            lines.append(json.dumps(record, separators=(",", ":")).encode() + b"\n")
            last = uuid
    (folder / f"{session}.jsonl").write_bytes(b"".join(lines))
    return session


def _ignore(_session: str, _update: JsonObject) -> None:
    pass
