"""Following a transcript: whole records, each once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_manifold.adapters.claude_tui.transcript import Follower
from acp_manifold.translators.narrow import JsonObject


@pytest.mark.case("W01")
def test_records_are_handed_on_whole_once_and_from_where_it_began(tmp_path: Path) -> None:
    path, seen = tmp_path / "t.jsonl", list[JsonObject]()
    path.write_bytes(b'{"n": 0}\n')
    follower = Follower(path, seen.append)
    assert not follower.read() and seen == []
    with path.open("ab") as file:
        for byte in (json.dumps({"n": 1, "word": "ü"}, ensure_ascii=False) + "\n").encode():
            file.write(bytes([byte]))
            file.flush()
            follower.read()
        file.write(b'{"n": 2}\n{"n": 3}{"n": 4}\nbroken\n{"n": 5}\n{"n"')
    assert follower.read()
    assert seen == [{"n": 1, "word": "ü"}, {"n": 2}, {"n": 3}, {"n": 4}, {"n": 5}]
    assert not follower.read()


def test_a_transcript_may_come_later_go_and_come_back(tmp_path: Path) -> None:
    path, seen = tmp_path / "t.jsonl", list[JsonObject]()
    follower = Follower(path, seen.append)
    assert not follower.read()
    path.write_text('{"n": 1}\n')
    assert follower.read()
    path.unlink()
    follower.read()
    path.write_text('{"n": 2}\n')
    follower.read()
    assert seen == [{"n": 1}, {"n": 2}]
