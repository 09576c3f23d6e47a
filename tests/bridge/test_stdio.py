from __future__ import annotations

import os
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import IO

import pytest

ECHO = textwrap.dedent(
    """
    import logging, os, subprocess, sys
    import anyio
    from acp_manifold.bridge.outbound import Outbound
    from acp_manifold.bridge.stdio import open_stdio

    async def main():
        async with open_stdio() as (receive, write):
            print("a stray print")
            os.write(1, b"a stray write\\n")
            subprocess.run(["echo", "a stray child"], check=True)
            outbound = Outbound(write, lambda: os.write(2, b"nobody reads\\n"))
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(outbound.run)
                while data := await receive():
                    for line in data.splitlines():
                        outbound.send_line(line)
                outbound.close()
        print("blocking" if os.get_blocking(1) else "non-blocking", file=sys.stderr)

    anyio.run(main)
    """
)

STRAY = {"a stray print", "a stray write", "a stray child"}


def start(stdin: int | IO[bytes], stdout: int | IO[bytes]) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", ECHO], stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, env=env)


def end(process: subprocess.Popen[bytes]) -> set[str]:
    """Wait for a clean end; what was said on stderr."""
    _, said = process.communicate(timeout=20)
    assert process.returncode == 0, said
    return set(said.decode().splitlines())


@pytest.mark.case("F03")
def test_pipes_carry_the_protocol_and_nothing_else() -> None:
    process = start(subprocess.PIPE, subprocess.PIPE)
    heard, said = process.communicate(b"one\ntwo\n", timeout=20)
    assert process.returncode == 0
    assert heard == b"one\ntwo\n"
    assert set(said.decode().splitlines()) == STRAY | {"blocking"}


@pytest.mark.case("F03")
def test_unix_sockets_work_as_they_come_from_node() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(20)
        process = start(theirs, theirs)  # type: ignore[arg-type]
        theirs.close()
        ours.sendall(b"one\n")
        assert ours.recv(100) == b"one\n"
        ours.sendall(b"two\n")
        assert ours.recv(100) == b"two\n"
        ours.shutdown(socket.SHUT_WR)
        assert ours.recv(100) == b""
        assert end(process) == STRAY | {"blocking"}


def test_files_work_too(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b"one\ntwo\n")
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        end(start(stdin, stdout))
    assert (tmp_path / "out").read_bytes() == b"one\ntwo\n"


def test_no_input_at_all_is_an_end() -> None:
    assert end(start(subprocess.DEVNULL, subprocess.DEVNULL)) == STRAY | {"blocking"}


def test_a_terminal_works() -> None:
    ours, theirs = os.openpty()
    process = start(theirs, subprocess.PIPE)
    os.close(theirs)
    os.write(ours, b"one\n\x04")
    heard, _ = process.communicate(timeout=20)
    os.close(ours)
    assert process.returncode == 0
    assert heard == b"one\n"


@pytest.mark.case("F01")
def test_megabytes_pass_through_a_reader_that_is_slow_to_start() -> None:
    process = start(subprocess.PIPE, subprocess.PIPE)
    line = b"x" * 60_000 + b"\n"
    heard, _ = process.communicate(line * 100, timeout=20)
    assert process.returncode == 0
    assert heard.replace(b"\n", b"") == b"x" * 6_000_000


@pytest.mark.case("K02")
def test_a_client_that_closed_its_end_is_noticed_and_the_end_is_clean() -> None:
    reading, writing = os.pipe()
    process = start(subprocess.PIPE, writing)
    os.close(writing)
    os.close(reading)
    assert process.stdin is not None
    process.stdin.write(b"one\n")
    process.stdin.close()
    process.stdin = None
    assert end(process) == STRAY | {"nobody reads", "blocking"}
