"""What is read of a transcript to tell its history: every record of which something is told, and few others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_manifold.adapters.claude.history import replay
from acp_manifold.translators.claude.transcript import History
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import Update

pytestmark = pytest.mark.anyio

COMMON: JsonObject = {"sessionId": "s", "cwd": "/w", "isSidechain": False, "timestamp": "2026-01-01T00:00:00.000Z"}

RECORDS: list[JsonObject] = [
    {**COMMON, "uuid": "1", "type": "user", "message": {"role": "user", "content": "typed"}},
    {
        **COMMON,
        "uuid": "2",
        "type": "assistant",
        "message": {"id": "m", "role": "assistant", "content": [{"type": "text", "text": "said"}]},
    },
    {
        **COMMON,
        "uuid": "3",
        "type": "attachment",
        "attachment": {"type": "queued_command", "prompt": "added", "source_uuid": "q", "commandMode": "prompt"},
    },
    {**COMMON, "uuid": "4", "type": "system", "subtype": "compact_boundary"},
]


@pytest.mark.parametrize("record", RECORDS)
async def test_whatever_something_is_told_of_is_read(tmp_path: Path, record: JsonObject) -> None:
    path = tmp_path / "transcript.jsonl"
    path.write_text(json.dumps(record, separators=(",", ":")) + "\n")
    told: list[Update] = []

    async def room() -> None:
        """Whoever hears here keeps up."""

    await replay(path, told.append, room)
    assert told == History().feed(record) != []
