"""Recordings as files: what is written is what is read, and what can't be read is told."""

from __future__ import annotations

import gzip
import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_manifold.bridge.recording.format import FORMAT, Entry, Header, encode
from acp_manifold.bridge.recording.reader import BadRecording, read, read_header
from acp_manifold.bridge.recording.writer import write

RECORDINGS = Path(__file__).parents[3] / "recordings"
HEADER = Header("acp-manifold 1", {"claude": "2.1.332"}, "claude", "two words", "2026-12-01", ("home", "token"))
ENTRIES = (
    Entry(0.5, "client", "in", conn=1, line={"jsonrpc": "2.0", "method": "initialize"}, number=2),
    Entry(0.75, "backend", "out", backend="claude", process=1, session="s", line={"type": "user"}, number=3),
    Entry(1.0, "backend", "in", backend="claude", process=1, session="s", text="no JSON", number=4),
    Entry(1.25, "store", "in", backend="claude", session="s", file="projects/-p/s.jsonl", line={}, number=5),
    Entry(1.5, "bridge", session="s", line={"note": "title", "heard": "known"}, number=6),
)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_what_is_written_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "made" / name
    write(path, HEADER, ENTRIES)
    assert read(path) == (path, HEADER, ENTRIES, None)
    assert read_header(path) == HEADER
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_there_becomes_private_before_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("open to all")
    path.chmod(0o644)
    write(path, HEADER, ())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert b"open to all" not in path.read_bytes()


def test_the_layout_is_the_one_agreed_on() -> None:
    assert encode(HEADER.to_wire()) == (
        b'{"format":2,"tool":"acp-manifold 1","clis":{"claude":"2.1.332"},"backend":"claude","scenario":"two words",'
        b'"date":"2026-12-01","scrubbed":["home","token"]}'
    )
    assert encode(ENTRIES[1].to_wire()) == (
        b'{"t":0.75,"leg":"backend","dir":"out","backend":"claude","process":1,"session":"s","line":{"type":"user"}}'
    )


@given(st.text(st.characters(categories=["Cs", "L", "P", "Cc"])))
def test_any_text_survives_and_stays_one_line(words: str) -> None:
    line = encode(Entry(0.0, "client", "in", line={"text": words}).to_wire())
    assert b"\n" not in line
    assert json.loads(line)["line"]["text"] == json.loads(json.dumps(words))


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_cut_off_is_told_and_the_rest_is_there(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "a.jsonl"
    write(path, HEADER, ENTRIES)
    data = path.read_bytes()[:-20]
    path.write_bytes(gzip.compress(data) if packed else data)
    recording = read(path)
    assert recording.entries == ENTRIES[:-1]
    assert recording.cut is not None and recording.cut.startswith("line 6 is cut off after")


def test_a_gzip_file_that_is_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    lines = [Entry(float(n), "client", "in", line={"n": f"{n * 7919:x}"}) for n in range(5000)]
    write(path, HEADER, lines)
    path.write_bytes(path.read_bytes()[:-1000])
    recording = read(path)
    assert recording.cut is not None
    assert 1000 < len(recording.entries) < 5000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is no recording"),
        ("hello\n", "is no recording"),
        ('{"jsonrpc":"2.0"}\n', "is no recording"),
        ('{"format":3}\n', "of format 3, and this acp-manifold reads formats up to 2: update it"),
        ('{"format":2,"tool":7}\n', "line 1: the header is not as it should be: tool: "),
        ('{"format":0}\n', "format: "),
        ('{HEADER}\n[]\n{"t":0}\n', "line 2: is no JSON object"),
        ('{HEADER}\n{"t":0,"leg":"arm"}\n', "line 2: leg: must be one of client, backend, store, bridge, and is 'arm'"),
        ('{HEADER}\n{"t":0,"leg":"client","line":{}}\n', "line 2: dir: must be in or out, and is missing"),
        ('{HEADER}\n{"leg":"client","dir":"in","line":{}}\n', "line 2: t: must be a number of seconds, and is missing"),
        ('{HEADER}\n{"t":0,"leg":"client","dir":"in"}\n', "line 2: has neither a JSON object in `line`"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(text.replace("{HEADER}", encode(HEADER.to_wire()).decode()))
    with pytest.raises(BadRecording) as caught:
        read(path)
    assert said in caught.value.message
    assert str(path) in caught.value.message


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadRecording, match=r"nowhere\.jsonl can't be read: No such file"):
        read(tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize("path", sorted(RECORDINGS.rglob("*.jsonl")), ids=lambda path: path.stem)
def test_every_recording_there_is_can_be_read_whatever_its_format(path: Path) -> None:
    recording = read(path)
    backend, version = path.parts[-3:-1]
    assert recording.header.backend == backend
    assert recording.header.clis == {backend: version}
    assert recording.cut is None
    assert len(recording.entries) > 1
    assert recording.header.to_wire()["format"] == FORMAT
