from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from acp_manifold.bridge import shutdown
from acp_manifold.bridge.errors import BackendGone
from acp_manifold.bridge.process import STDERR_TAIL, Child, spawn
from acp_manifold.bridge.starting import Launch
from acp_manifold.bridge.survivors import MARK_VARIABLE, survivors
from acp_manifold.bridge.taps import Place, Tap, taps
from acp_manifold.translators.narrow import JsonObject

pytestmark = pytest.mark.anyio

ECHO = ["cat"]

reads_proc = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def python(code: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", code]


class Lines:
    """What a child says, line by line."""

    def __init__(self) -> None:
        self._said: deque[bytes] = deque()
        self._more = anyio.Event()

    def take(self, line: bytes) -> None:
        self._said.append(line)
        self._more.set()

    async def next(self) -> bytes:
        with anyio.fail_after(10):
            while not self._said:
                self._more = anyio.Event()
                await self._more.wait()
        return self._said.popleft()

    def all(self) -> list[bytes]:
        return list(self._said)


@asynccontextmanager
async def running(command: list[str], **more: str) -> AsyncGenerator[Child]:
    async with spawn(Launch(command, cwd="/", env={**os.environ, **more}, name="fake 1234")) as child:
        yield child


@asynccontextmanager
async def speaking(command: list[str], *, limit: int = 64 * 1024 * 1024) -> AsyncGenerator[tuple[Child, Lines]]:
    """A child and what it says; ends when the child's stdout does."""
    lines = Lines()
    async with anyio.create_task_group() as tasks, running(command) as child:

        async def read() -> None:
            await child.read(lines.take, limit=limit)

        tasks.start_soon(read)
        yield child, lines


def alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0] != "Z"
        )
    except OSError:
        return False


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> list[str]:
    found: list[str] = []
    for task in Path("/proc/self/task").iterdir():
        found += (task / "children").read_text(encoding="utf-8").split()
    return found


# ---- lines, both ways


async def test_lines_go_in_and_come_out_in_order() -> None:
    async with speaking(ECHO) as (child, lines):
        for number in range(100):
            child.send(b"%d" % number)
        assert [await lines.next() for _ in range(100)] == [b"%d" % number for number in range(100)]


@pytest.mark.case("F01")
@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 8 * 1024 * 1024])
async def test_long_lines_pass_unchanged_both_ways(size: int) -> None:
    line = (b"0123456789abcdef" * (size // 16 + 1))[:size]
    async with speaking(ECHO) as (child, lines):
        child.send(line)
        child.send(b"next")
        assert await lines.next() == line
        assert await lines.next() == b"next"


@pytest.mark.case("F01")
async def test_a_line_over_the_limit_is_skipped_and_the_next_one_read(caplog: pytest.LogCaptureFixture) -> None:
    async with speaking(ECHO, limit=100_000) as (child, lines):
        child.send(b"x" * 100_001)
        child.send(b"y" * 100_000)
        assert await lines.next() == b"y" * 100_000
    assert caplog.text.count("skipped a line") == 1


@pytest.mark.case("F02")
async def test_only_a_newline_ends_a_line() -> None:
    line = "a\u2028b\u2029c\u0085d\u000be\u000cf".encode()
    async with speaking(ECHO) as (child, lines):
        child.send(line + b"\r")
        child.send(b"")
        child.send(b"\r")
        child.send(line)
        assert [await lines.next(), await lines.next()] == [line, line]


async def test_all_lines_of_a_child_that_died_are_delivered() -> None:
    code = "import os; os.write(1, b'line\\n' * 10000 + b'last'); os.kill(os.getpid(), 9)"
    lines = Lines()
    async with running(python(code)) as child:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child.read, lines.take)
                assert await child.wait() == -signal.SIGKILL
    assert lines.all() == [b"line"] * 10000 + [b"last"]


async def test_lines_may_be_read_after_the_child_has_ended() -> None:
    lines = Lines()
    async with running(["sh", "-c", "echo one; echo two"]) as child:
        with anyio.fail_after(10):
            await child.wait()
            await child.read(lines.take)
    assert lines.all() == [b"one", b"two"]


async def test_reading_ends_with_the_child_though_another_process_holds_its_pipe() -> None:
    lines = Lines()
    async with running(["sh", "-c", "echo one; sleep 60 & exit 0"]) as child:
        with anyio.fail_after(10):
            await child.read(lines.take)
            assert await child.wait() == 0
    assert lines.all() == [b"one"]


async def test_sending_never_blocks_on_a_child_that_does_not_read() -> None:
    async with running(["sleep", "60"]) as child:
        started = time.monotonic()
        for _ in range(100):
            child.send(b"x" * 100_000)
        assert time.monotonic() - started < 1
        await child.kill()
        child.send(b"to nobody")


async def test_what_the_reader_raises_reaches_its_caller() -> None:
    def refuse(line: bytes) -> None:
        raise KeyError(line)

    async with running(["sh", "-c", "echo one"]) as child:
        with anyio.fail_after(10), pytest.raises(KeyError):
            await child.read(refuse)


# ---- the end


async def test_status_and_last_words_are_told() -> None:
    async with running(["sh", "-c", "printf '\\033[31mSyntaxError:\\033[0m marker\\n' >&2; exit 3"]) as child:
        with anyio.fail_after(5):
            assert await child.wait() == 3
        assert child.describe_exit() == "exited with status 3; last on stderr:\nSyntaxError: marker"


async def test_the_frames_of_a_panic_are_left_out_and_what_stands_around_them_is_told() -> None:
    frames = "".join(f"   {number}: <unknown>\n             at ./x.rs:{number}\n" for number in range(30))
    said = f"thread 'main' panicked: marker\nstack backtrace:\n{frames}and then: another\n"
    async with running(["sh", "-c", 'printf %s "$0" >&2; exit 1', said]) as child:
        with anyio.fail_after(5):
            assert await child.wait() == 1
        expected = "exited with status 1; last on stderr:\nthread 'main' panicked: marker\nand then: another"
        assert child.describe_exit() == expected


async def test_a_signal_is_named() -> None:
    async with running(["sleep", "60"]) as child:
        assert child.describe_exit() == "is still running"
        with anyio.fail_after(5):
            await child.kill()
            assert await child.wait() == -signal.SIGKILL
        assert child.describe_exit() == "was killed by SIGKILL"


async def test_several_may_wait_for_the_end() -> None:
    statuses: list[int] = []

    async def wait(child: Child) -> None:
        statuses.append(await child.wait())

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks, running(["sh", "-c", "read line; exit 7"]) as child:
            for _ in range(3):
                tasks.start_soon(wait, child)
            child.send(b"go")
            await child.wait()
    assert statuses == [7, 7, 7]


@pytest.mark.case("K04")
async def test_a_chatty_stderr_stops_nobody_and_is_kept_in_bounds() -> None:
    code = """
import os, sys
os.write(2, b'first-megabyte\\n')
for _ in range(3 * 1024):
    os.write(2, b'e' * 1023 + b'\\n')
rest = b'E' * (2 * 1024 * 1024)
while rest:
    rest = rest[os.write(2, rest):]
os.write(1, b'turn done\\n')
sys.stdin.buffer.readline()
os.write(2, b'\\nfatal: marker-42\\n')
sys.exit(3)
"""
    async with speaking(python(code)) as (child, lines):
        assert await lines.next() == b"turn done"
        assert len(child.stderr_tail) <= STDERR_TAIL
        child.send(b"die")
        with anyio.fail_after(5):
            assert await child.wait() == 3
        told = child.describe_exit()
    assert "status 3" in told
    assert "fatal: marker-42" in told
    assert "first-megabyte" not in told
    assert len(told) < 8000
    assert len(child.stderr_tail) == STDERR_TAIL


@reads_proc
@pytest.mark.case("A04")
@pytest.mark.parametrize(
    ("program", "cwd", "cause"),
    [
        ("{tmp}/missing", "/", "no such program"),
        ("no-such-program-at-all", "/", "no such program on the PATH"),
        ("{tmp}/plain", "/", "not executable"),
        ("{tmp}/lost", "/", "interpreter"),
        ("{tmp}/foreign", "/", "no program for this machine"),
        ("cat", "{tmp}/nowhere", "working directory {tmp}/nowhere does not exist"),
        ("{tmp}/missing", "{tmp}/nowhere", "working directory"),
        ("cat", "{tmp}/plain", "working directory {tmp}/plain is not a directory"),
        ("cat\0", "/", "null byte"),
    ],
)
async def test_a_start_that_fails_names_its_cause(program: str, cwd: str, cause: str, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("text", encoding="utf-8")
    (tmp_path / "lost").write_text("#!/no/such/interpreter\n", encoding="utf-8")
    (tmp_path / "lost").chmod(0o755)
    (tmp_path / "foreign").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))
    (tmp_path / "foreign").chmod(0o755)
    program, cwd, cause = (text.replace("{tmp}", str(tmp_path)) for text in (program, cwd, cause))
    files = open_files()
    with pytest.raises(BackendGone) as caught:
        async with spawn(Launch([program], cwd=cwd, env=dict(os.environ), name="fake")):
            raise AssertionError("it started")
    assert cause in caught.value.message
    assert program in caught.value.message
    assert open_files() == files


class Listening:
    """Who hears what crosses to a child, and what is noted of it."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.notes: list[JsonObject] = []

    def at(self, place: Place) -> Tap:
        return lambda way, line: self.sent.append(line) if way == "out" else None

    def note(self, note: JsonObject, backend: str | None = None, session: str | None = None) -> None:
        self.notes.append({key: value for key, value in note.items() if key != "process"})

    def follow(self, backend: str, session: str, root: Path, path: Path) -> None:
        """Nothing: only what other tests have left open has a store."""


@pytest.fixture
def listening() -> Iterator[Listening]:
    listener = Listening()
    taps.listen(listener)
    yield listener
    taps.listen(None)


async def test_who_listens_hears_how_one_ended_by_itself_and_nothing_that_it_was_sent_later(
    listening: Listening,
) -> None:
    command = python("import sys; sys.stdin.readline(); sys.exit('no more')")
    async with spawn(Launch(command, "/", dict(os.environ), "fake", backend="fake", session="s")) as child:
        child.send(b"one")
        with anyio.fail_after(20):
            await child.wait()
        child.send(b"two")
    assert listening.sent == [b"one"]
    ended = {"note": "exit", "how": "exited with status 1", "asked": False, "stderr": "no more\n"}
    assert listening.notes == [{"note": "start"}, ended]


async def test_of_one_that_we_end_nothing_is_noted_that_it_said(listening: Listening) -> None:
    command = python("import sys; print('up', file=sys.stderr, flush=True); print('up', flush=True); sys.stdin.read()")
    lines = Lines()
    async with spawn(Launch(command, "/", dict(os.environ), "fake", backend="fake")) as child:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(child.read, lines.take)
            assert await lines.next() == b"up"
            tasks.cancel_scope.cancel()
    assert listening.notes[1:] == [{"note": "exit", "how": "exited with status 0", "asked": True}]


async def test_the_environment_is_what_was_given_and_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OURS_ALONE", "1")
    lines = Lines()
    async with spawn(Launch(["/usr/bin/env"], cwd="/", env={"A": "1", "BLANK": ""}, name="env")) as child:
        with anyio.fail_after(5):
            await child.read(lines.take)
    assert sorted(lines.all()) == sorted([f"{MARK_VARIABLE}={child.mark}".encode(), b"A=1", b"BLANK="])


@reads_proc
async def test_an_exception_passes_the_scope_as_it_was_raised() -> None:
    started: list[int] = []
    with pytest.raises(KeyError, match="ours"):
        async with running(ECHO) as child:
            started.append(child.pid)
            raise KeyError("ours")
    assert started and not alive(started[0])


# ---- the ladder


async def ended_after(command: list[str]) -> tuple[Child, float]:
    """Run until the child has said that it is ready, leave, and tell how long the end took."""
    async with speaking(command) as (child, lines):
        await lines.next()
        started = time.monotonic()
    return child, time.monotonic() - started


async def test_a_child_that_ends_with_its_input_is_not_signalled() -> None:
    child, seconds = await ended_after(["sh", "-c", "echo ready; cat; exit 5"])
    assert child.describe_exit() == "exited with status 5"
    assert seconds < shutdown.INPUT_CLOSED_WAIT


async def test_what_was_sent_last_still_reaches_the_child(tmp_path: Path) -> None:
    target = tmp_path / "got"
    async with running(["sh", "-c", f"cat > {shlex.quote(str(target))}"]) as child:
        child.send(b"x" * 1_000_000)
        child.send(b"last")
    assert target.read_bytes() == b"x" * 1_000_000 + b"\nlast\n"


async def test_a_child_that_ignores_the_end_of_its_input_is_terminated() -> None:
    child, seconds = await ended_after(["sh", "-c", "echo ready; exec sleep 60"])
    assert child.describe_exit() == "was killed by SIGTERM"
    assert shutdown.INPUT_CLOSED_WAIT <= seconds < shutdown.INPUT_CLOSED_WAIT + 1


async def test_a_child_that_never_had_anything_to_do_is_signalled_at_once_and_alone() -> None:
    ends = "trap 'kill $!; exit 7' TERM; sleep 60 & echo ready; wait; cat; exit 5"
    async with speaking(["bash", "-c", ends]) as (child, lines):
        await lines.next()
        child.unused = True
        started = time.monotonic()
    assert child.describe_exit() == "exited with status 7"
    assert time.monotonic() - started < shutdown.INPUT_CLOSED_WAIT


@pytest.mark.case("K02")
async def test_a_child_that_ignores_everything_is_killed_in_time() -> None:
    child, seconds = await ended_after(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 60; done"])
    assert child.describe_exit() == "was killed by SIGKILL"
    assert seconds < 4


FAMILY = """
import os, signal, subprocess, sys
stubborn = "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.write(1, b'.'); signal.pause()"
grandchild = subprocess.Popen([sys.executable, '-I', '-S', '-c', stubborn], stdout=subprocess.PIPE)
grandchild.stdout.read(1)
shell = subprocess.Popen(['sleep', '999'], start_new_session=True)
stubborn_shell = subprocess.Popen(
    [sys.executable, '-I', '-S', '-c', stubborn], stdout=subprocess.PIPE, start_new_session=True)
stubborn_shell.stdout.read(1)
print(grandchild.pid, shell.pid, stubborn_shell.pid, flush=True)
sys.stdin.read()
"""


@reads_proc
@pytest.mark.case("K02")
@pytest.mark.parametrize("how", ["left", "cancelled", "killed before"])
async def test_grandchildren_and_shells_of_their_own_session_end_too_and_a_stranger_does_not(how: str) -> None:
    pids: list[int] = []
    with anyio.fail_after(10):
        async with speaking(["sh", "-c", "echo ready; exec cat"]) as (other, other_lines):
            await other_lines.next()
            started = time.monotonic()
            with anyio.CancelScope() as scope:
                async with speaking(python(FAMILY)) as (child, lines):
                    pids = [child.pid, *map(int, (await lines.next()).split())]
                    assert all(map(alive, pids))
                    started = time.monotonic()
                    if how == "cancelled":
                        scope.cancel()
                    elif how == "killed before":
                        os.kill(child.pid, signal.SIGKILL)
                        await child.wait()
            assert time.monotonic() - started < 4
            assert [pid for pid in pids if alive(pid)] == []
            assert alive(other.pid)


@reads_proc
@pytest.mark.case("K02")
async def test_thirty_children_leave_nothing_behind() -> None:
    async def one() -> None:
        async with speaking(["sh", "-c", "echo ready; exec cat"]) as (child, lines):
            assert await lines.next() == b"ready"
            child.send(b"x")
            assert await lines.next() == b"x"

    await one()  # The event loop opens files of its own with the first child.
    before = open_files(), len(children())
    for _ in range(30):
        await one()
    assert (open_files(), len(children())) == before


@reads_proc
async def test_ended_processes_are_no_survivors() -> None:
    async with running(["sh", "-c", "sleep 60 & echo ready; exec cat"]) as child:
        lines = Lines()
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(child.read, lines.take)
                await lines.next()
                left = survivors({child.pid}, set())
                assert child.pid in left and len(left) == 2
                assert set(left) == set(survivors(set(), {child.mark}))
                await child.kill()
            # The kill is waited for by the child alone; the system clears its group away in a moment of its own.
            while survivors({child.pid}, {child.mark}):
                await checkpoint()
