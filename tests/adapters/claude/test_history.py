"""What is read of a transcript to tell its history: every record of which something is told, and few others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_manifold.adapters.claude.history import replay
from acp_manifold.translators.claude.transcript import History
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import MessageChunk, OfSubagent, Subagent, Text, ToolCallUpdate, Update

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
    {
        **COMMON,
        "uuid": "5",
        "type": "system",
        "subtype": "local_command",
        "content": "<local-command-stdout>printed</local-command-stdout>",
    },
]


async def room() -> None:
    """Whoever hears here keeps up."""


def write(path: Path, *records: JsonObject) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record, separators=(",", ":")) + "\n" for record in records))


def call(uuid: str, call_id: str, name: str, **tool_input: object) -> JsonObject:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": tool_input}
    return {**COMMON, "uuid": uuid, "type": "assistant", "message": {"id": f"m{uuid}", "content": [block]}}


def words(uuid: str, said: str) -> JsonObject:
    message = {"id": f"m{uuid}", "content": [{"type": "text", "text": said}]}
    return {**COMMON, "uuid": uuid, "type": "assistant", "message": message}


async def test_what_sub_agents_did_is_told_behind_the_calls_that_began_them(tmp_path: Path) -> None:
    path, beside = tmp_path / "s.jsonl", tmp_path / "s" / "subagents"
    write(path, call("1", "a", "Task", description="Look"), words("2", "over"))
    inner = [call("3", "b", "Agent", description="Deeper"), words("4", "inner")]
    write(beside / "agent-x.jsonl", *({**record, "isSidechain": True} for record in inner))
    write(beside / "agent-y.jsonl", {**words("5", "deep"), "isSidechain": True})
    write(beside / "agent-x.meta.json", {"toolUseId": "a"})
    write(beside / "agent-y.meta.json", {"toolUseId": "b"})
    write(beside / "agent-z.meta.json", {"toolUseId": "of nobody"})
    told: list[Update] = []
    await replay(path, told.append, room)
    assert told[1] == Subagent("a", "running", "Look")
    assert told[3] == OfSubagent("a", Subagent("b", "running", "Deeper"))
    assert told[4] == OfSubagent("b", MessageChunk("agent", Text("deep"), "m5"))
    assert told[5] == OfSubagent("a", Subagent("b", "idle"))
    assert told[6] == OfSubagent("a", MessageChunk("agent", Text("inner"), "m4"))
    assert told[7:10] == [
        OfSubagent("a", ToolCallUpdate("b", status="failed")),
        Subagent("a", "idle"),
        MessageChunk("agent", Text("over"), "m2"),
    ]


@pytest.mark.parametrize("record", RECORDS)
async def test_whatever_something_is_told_of_is_read(tmp_path: Path, record: JsonObject) -> None:
    path = tmp_path / "transcript.jsonl"
    write(path, record)
    told: list[Update] = []
    await replay(path, told.append, room)
    assert told == History().feed(record) != []
