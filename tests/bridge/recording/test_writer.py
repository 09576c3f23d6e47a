"""A recording that is written anew is whole, or what was there stays."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from acp_manifold.bridge.recording.format import Entry, Header
from acp_manifold.bridge.recording.reader import read
from acp_manifold.bridge.recording.writer import write

HEADER = Header("acp-manifold 0", {}, None, "a scene", "2026-01-01", ())

PROGRAM = """
import resource, sys
from pathlib import Path
from acp_manifold.bridge.recording.reader import read
from acp_manifold.bridge.recording.writer import write
path = Path(sys.argv[1])
recording = read(path)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write(path, recording.header, recording.entries * 2)
except OSError as exc:
    print(exc.filename, exc.strerror)
"""


def entries(count: int) -> list[Entry]:
    return [Entry(float(n), "client", "in", conn=1, line={"text": "x" * 100}) for n in range(count)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_what_was_there_is_replaced_and_private_and_nothing_lies_beside_it(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    write(path, HEADER, entries(3))
    path.chmod(0o644)
    write(path, HEADER, entries(5))
    assert len(read(path).entries) == 5
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == [name]


def test_a_link_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "real.jsonl"
    write(path, HEADER, entries(1))
    (tmp_path / "link.jsonl").symlink_to(path)
    write(tmp_path / "link.jsonl", HEADER, entries(2))
    assert (tmp_path / "link.jsonl").is_symlink()
    assert len(read(path).entries) == 2


def test_where_it_does_not_fit_what_was_there_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write(path, HEADER, entries(25))
    before = path.read_bytes()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split(" ", 1) == [str(path), "File too large\n"]
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.jsonl"]


def test_what_is_no_file_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        write(pipe, HEADER, entries(2))
        said, _ = reader.communicate(timeout=60)
    assert said.count(b"\n") == 3
