"""Following the sub-agents of a program: each from its first record, once its call was told."""

from __future__ import annotations

import json
from pathlib import Path

from acp_manifold.adapters.claude_tui.agents import Agents
from acp_manifold.translators.narrow import JsonObject


def write(folder: Path, name: str, call_id: str, *records: JsonObject) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"agent-{name}.meta.json").write_text(json.dumps({"toolUseId": call_id}))
    with (folder / f"agent-{name}.jsonl").open("a") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)


def test_each_is_followed_from_its_beginning_as_soon_as_its_call_was_told(tmp_path: Path) -> None:
    folder, told, seen = tmp_path / "subagents", set[str](), list[tuple[str, str, object]]()
    write(folder, "old", "t0", {"n": 0})
    agents = Agents(folder, lambda agent, call, record: seen.append((agent, call, record["n"])), told.__contains__)
    told.add("t0")
    agents.read()
    assert seen == [], "one of an earlier program"
    write(folder, "a", "t1", {"n": 1})
    write(folder, "b", "t2", {"n": 2})
    agents.read()
    told.add("t2")
    agents.read()
    assert seen == [("b", "t2", 2)]
    told.add("t1")
    agents.read()
    # What it does when its end was told is its own all the same.
    told.clear()
    write(folder, "b", "t2", {"n": 3})
    agents.read()
    agents.read()
    assert seen == [("b", "t2", 2), ("a", "t1", 1), ("b", "t2", 3)]


def test_what_is_half_written_or_missing_waits(tmp_path: Path) -> None:
    folder, seen = tmp_path / "subagents", list[object]()
    agents = Agents(folder, lambda agent, call, record: seen.append(record["n"]), lambda call: call == "t1")
    agents.read()
    folder.mkdir()
    (folder / "agent-a.meta.json").write_text('{"toolUseId": "t')
    agents.read()
    assert seen == []
    write(folder, "a", "t1", {"n": 1})
    agents.read()
    assert seen == [1]
