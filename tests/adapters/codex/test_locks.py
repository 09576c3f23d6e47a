"""Who has which thread, told by the kernel's list of locks."""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path

import pytest

from acp_manifold.adapters.codex.locks import held_threads

linux = pytest.mark.skipif(sys.platform != "linux", reason="locks are told by /proc/locks")

THREAD = "0199a213-81c0-7800-8aa1-bbab2a035a5{}"


def lock_file(home: Path, name: str) -> Path:
    path = home / "thread-writer-locks" / f"{name}.lock"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return path


@linux
def test_a_lock_that_is_held_names_the_thread_and_the_process(tmp_path: Path) -> None:
    held, free = lock_file(tmp_path, THREAD.format(1)), lock_file(tmp_path, THREAD.format(2))
    lock_file(tmp_path, "no thread")
    with held.open() as file, free.open() as other:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = held_threads(tmp_path)
        assert found is not None
        assert [(one.session_id, one.pid) for one in found] == [(THREAD.format(1), os.getpid())]
        assert found[0].by == Path("/proc/self/comm").read_text().strip()
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)  # What is looked at is not touched.
    assert held_threads(tmp_path) == ()


def test_lines_of_waiting_processes_and_damaged_ones_are_passed_over(tmp_path: Path) -> None:
    status = lock_file(tmp_path, THREAD.format(1)).stat()
    file = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"
    table = tmp_path / "locks"
    table.write_text(f"1: -> FLOCK ADVISORY WRITE 7 {file} 0 EOF\n2: POSIX\n3: FLOCK ADVISORY WRITE 7 x 0 EOF\n")
    assert held_threads(tmp_path, table) == ()
    table.write_text(f"1: FLOCK  ADVISORY  WRITE 99999999 {file} 0 EOF\n1: -> FLOCK ADVISORY WRITE 7 {file} 0 EOF\n")
    found = held_threads(tmp_path, table)
    assert found is not None and [(one.pid, one.by) for one in found] == [(99999999, "a process")]


def test_where_nobody_tells_locks_nothing_is_known(tmp_path: Path) -> None:
    lock_file(tmp_path, THREAD.format(1))
    assert held_threads(tmp_path, tmp_path / "missing") is None
