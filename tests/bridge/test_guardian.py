from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

BRIDGE = textwrap.dedent(
    """
    import os, sys
    import anyio
    from acp_manifold.bridge.guard import guard
    from acp_manifold.bridge.process import spawn
    from acp_manifold.bridge.starting import Launch

    FAMILY = '''
    import os, signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    shell = subprocess.Popen(['sleep', '999'], start_new_session=True)
    print(shell.pid, flush=True)
    signal.pause()
    '''

    async def main():
        said = anyio.Event()
        command = [sys.executable, "-I", "-S", "-c", FAMILY]
        async with spawn(Launch(["cat"], cwd="/", env=dict(os.environ), name="one")):
            async with spawn(Launch(command, cwd="/", env=dict(os.environ), name="two")) as child:
                def take(line):
                    print(guard.pid, child.pid, line.decode(), flush=True)
                await child.read(take)

    anyio.run(main)
    """
).replace("\n    import os, signal", "\nimport os, signal")

SHORT = textwrap.dedent(
    """
    import os

    import anyio
    from acp_manifold.bridge.guard import guard
    from acp_manifold.bridge.process import spawn
    from acp_manifold.bridge.starting import Launch

    async def main():
        async with spawn(Launch(["cat"], cwd="/", env=dict(os.environ), name="one")):
            print(guard.pid, flush=True)
        print(guard.pid, flush=True)

    anyio.run(main)
    """
)


def start(code: str) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env)


@contextmanager
def ends_of(pids: list[int]) -> Generator[list[int]]:
    """Descriptors that become readable when these processes, no children of ours, have ended."""
    descriptors = [os.pidfd_open(pid) for pid in pids]
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def all_end(descriptors: list[int], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    return all(select.select([fd], [], [], max(0.0, deadline - time.monotonic()))[0] for fd in descriptors)


def ignores(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line for line in status.splitlines() if line.startswith("SigIgn:"))
    return bool(int(mask.split()[1], 16) >> (number - 1) & 1)


def memory_kib(pid: int) -> int:
    """What the process holds for itself alone."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    return sum(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Private_"))


@pytest.mark.case("K02")
def test_children_die_with_a_bridge_that_was_killed() -> None:
    with start(BRIDGE) as bridge:
        assert bridge.stdout is not None
        guardian, child, shell = map(int, bridge.stdout.readline().split())
        # It comes up beside its first child: before that the signals would find nobody who ignores them.
        until = time.monotonic() + 5
        while not ignores(guardian, signal.SIGTERM) and time.monotonic() < until:
            os.sched_yield()
        assert ignores(guardian, signal.SIGTERM)
        assert memory_kib(guardian) < 10_000
        with ends_of([guardian, child, shell]) as descriptors:
            # Signals that reach a whole group or session don't stop it.
            os.kill(guardian, signal.SIGTERM)
            os.kill(guardian, signal.SIGINT)
            bridge.kill()
            assert all_end(descriptors, 5)


def test_the_guardian_ends_with_the_last_child() -> None:
    with start(SHORT) as bridge:
        assert bridge.stdout is not None
        first, second = bridge.stdout.readline().strip(), bridge.stdout.readline().strip()
        assert int(first) > 0
        assert second == b"None"
        assert not Path(f"/proc/{int(first)}").exists()
        assert bridge.wait(timeout=10) == 0
