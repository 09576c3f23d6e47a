"""A store of many conversations to be listed: transcripts of the shape that Claude Code 2.1.332 writes."""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from acp_manifold.translators.narrow import JsonObject

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_SEED = 4


def fill(config: Path, transcripts: int, projects: int, size: int, work: Path) -> list[Path]:
    """Write the transcripts of a config directory and give their paths, oldest conversation first.

    Args:
        config: The config directory; its `projects` folder is made.
        transcripts: How many; every fourth has a custom title, every other a generated one.
        projects: How many folders they are spread over.
        size: Bytes of each, more or less.
        work: A directory that is there; the conversations are from directories in it that are not.
    """
    chance = random.Random(_SEED)
    padding = _padding(size)
    paths: list[Path] = []
    for number in range(transcripts):
        session_id = str(UUID(int=chance.getrandbits(128), version=4))
        project = number % projects
        folder = config / "projects" / f"-project-{project}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{session_id}.jsonl"
        lines = _transcript(number, session_id, f"{work}/{project}", padding)
        path.write_bytes(b"".join(lines))
        moment = (_BEGIN + timedelta(minutes=number)).timestamp()
        os.utime(path, (moment, moment))
        paths.append(path)
    return paths


def _transcript(number: int, session_id: str, cwd: str, padding: list[bytes]) -> list[bytes]:
    stamp = (_BEGIN + timedelta(minutes=number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    said = {"sessionId": session_id, "cwd": cwd, "timestamp": stamp, "isSidechain": False, "version": "2.1.332"}
    last: JsonObject = {"type": "last-prompt", "lastPrompt": f"Look into matter {number}", "sessionId": session_id}
    titles: list[JsonObject] = []
    if number % 2:
        titles.append({"type": "ai-title", "aiTitle": f"Matter {number} looked into", "sessionId": session_id})
    if number % 4 == 0:
        titles.append({"type": "custom-title", "customTitle": f"Named {number}", "sessionId": session_id})
    asked: JsonObject = {"type": "user", "message": {"role": "user", "content": f"Look into matter {number}"}, **said}
    answer: JsonObject = {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "model": "claude-opus-5-20260101",
            "content": [{"type": "text", "text": "There is more to it than one would think. " * 20}],
            "usage": {"input_tokens": 4, "cache_read_input_tokens": 20000, "output_tokens": 200},
        },
        **said,
    }
    return [
        _line({"type": "queue-operation", "operation": "enqueue", "timestamp": stamp, "sessionId": session_id}),
        _line(asked),
        *padding,
        *map(_line, titles),
        _line(answer),
        _line(last),
        _line({"type": "atis-latch", "atis": True, "sessionId": session_id}),
        _line({"type": "cost-state", "sessionId": session_id, "totalCostUSD": 0.01, "totalAPIDuration": 2000}),
    ]


def _padding(size: int) -> list[bytes]:
    """What stands between the prompt and the answer: attachments and what was sent to the model."""
    piece = 8000
    record: JsonObject = {"type": "attachment", "attachment": {"type": "text", "text": "context " * (piece // 8)}}
    return [_line(record)] * (size // piece)


def _line(record: JsonObject) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"
