"""Many sessions of both CLIs on one connection, and what it takes to tell them apart.

Each session says words, writes a file and runs a command of its own, so that whatever reaches
another one is seen there.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio

from acp_manifold.adapters.codex.program import PATH_VARIABLE, find_program
from acp_manifold.bridge.survivors import MARK_VARIABLE
from acp_manifold.translators.narrow import text

from .client import ANSWER_LIMIT, Client, Pending, Question
from .lab import Lab
from .leftovers import bearing

WORDS = 12
"""Words of each part of a session's text."""

TWO, SIX, EIGHT = (("claude", "codex") * half for half in (1, 3, 4))
"""The backends of so many sessions, in the order of their numbers."""

TYPED, EIGHT_TYPED = (("claude-tui", "codex") * half for half in (2, 4))
"""With those of the interactive program, which has the store of `claude` to itself."""

_SHELL = {"claude": "RUN[{}]", "claude-tui": "RUN[{}]", "codex": "RUNESC[{}]"}
"""A command that each CLI asks about as it is configured out of the box."""


class Fifo:
    """A named pipe between a command and the test; what one says waits there for the other."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)

    async def line(self) -> str:
        """Wait for the next that the command says."""
        with anyio.fail_after(ANSWER_LIMIT):
            await anyio.wait_readable(self._fd)
        return os.read(self._fd, 4096).decode().strip()

    def say(self, line: str) -> None:
        """Say a line to the command."""
        os.write(self._fd, line.encode() + b"\n")

    def close(self) -> None:
        """Let go of the pipe."""
        os.close(self._fd)


@dataclass(frozen=True, eq=False, slots=True)
class One:
    """One of the sessions."""

    number: int
    backend: str
    id: str
    agent: Client
    lab: Lab

    @property
    def title(self) -> str:
        """The name it was opened with."""
        return title_of(self.number)

    @property
    def file(self) -> Path:
        """What `writes` writes."""
        return Path(self.lab.cwd) / f"made-{self.number}.txt"

    def part(self, number: int) -> str:
        """Some words that no other session and no other part says, on a line of their own."""
        return "".join(f"s{self.number}p{number}w{word} " for word in range(WORDS)) + "\n"

    def parts(self, count: int) -> str:
        """The first so many parts."""
        return "".join(self.part(number) for number in range(count))

    def says(self, number: int) -> str:
        """Script: say this part."""
        return f"TEXT<<{self.part(number)}>>"

    def runs(self, command: str) -> str:
        """Script: run a command that the CLI asks about."""
        return _SHELL[self.backend].format(command)

    def writes(self) -> str:
        """Script: write the session's own file, about which the CLI asks."""
        return self.runs(f"echo {self.number} > {self.file.name}")

    def prompt(self, script: str) -> Pending:
        """Send a prompt."""
        return self.agent.prompt(self.id, script)

    @property
    def said(self) -> str:
        """All that it has said so far."""
        return self.agent.said(self.id)

    def history(self, part: int) -> str:
        """The model request whose prompt was to say this part: all that the CLI knows of the conversation."""
        (body,) = (r.body for r in self.lab.model.requests if r.asked.prompt == self.says(part))
        return json.dumps(body).replace("\\n", "\n")

    async def question(self) -> Question:
        """Wait for an open question, and see that it is about this session's own file."""
        question = await self.agent.question(self.id)
        assert f"made-{self.number}.txt" in json.dumps(question.tool_call), question.tool_call
        return question

    @property
    def call_ends(self) -> list[object]:
        """The last status of each of its tool calls, in the order of their beginnings."""
        events = (u for u in self.agent.heard(self.id) if u["sessionUpdate"] in ("tool_call", "tool_call_update"))
        return list({u["toolCallId"]: u["status"] for u in events if "status" in u}.values())

    @property
    def process(self) -> int:
        """The process of a Claude Code session."""
        (pid,) = (
            pid
            for pid in bearing(str(self.lab.folder))
            if arguments(pid)[-1:] in (self._option("--resume"), self._option("--session-id"))
        )
        return pid

    @property
    def resumed(self) -> bool:
        """Whether its process was started to go on with a conversation."""
        return arguments(self.process)[-1:] == self._option("--resume")

    def _option(self, name: str) -> list[str]:
        return [f"{name}={self.id}"]


@dataclass(frozen=True, slots=True)
class Held:
    """A command of a session that tells when it runs, and then waits for the test."""

    up: Fifo
    go: Fifo

    @property
    def command(self) -> str:
        """What to run."""
        return f"echo $$ > {self.up.path.name}; read word < {self.go.path.name}"

    async def pid(self) -> int:
        """Wait until it runs; the process of its shell."""
        return int(await self.up.line())

    def end(self) -> None:
        """Let it come to its end."""
        self.go.say("on")


@contextmanager
def held(lab: Lab, count: int) -> Generator[list[Held]]:
    """So many commands that wait for the test."""
    pipes = [Fifo(Path(lab.cwd) / f"{name}-{number}") for number in range(count) for name in ("up", "go")]
    try:
        yield [Held(up, go) for up, go in zip(pipes[::2], pipes[1::2], strict=True)]
    finally:
        for pipe in pipes:
            pipe.close()


def title_of(number: int) -> str:
    """The title of the session with this number; a session that has one asks no model for it."""
    return f"Session {number}"


async def open_many(agent: Client, lab: Lab, backends: Sequence[str] = EIGHT) -> list[One]:
    """Open a session for each name, all at once and all in one directory."""

    def start(number: int, backend: str) -> Pending:
        ours = {"backend": backend, "title": title_of(number)}
        return agent.start("session/new", {"cwd": lab.cwd, "mcpServers": [], "_meta": {"acp-manifold": ours}})

    opening = [start(number, backend) for number, backend in enumerate(backends)]
    return [
        One(number, backend, text(await pending.answer(), "sessionId"), agent, lab)
        for number, (backend, pending) in enumerate(zip(backends, opening, strict=True))
    ]


async def all_hear(sessions: Iterable[One], part: int) -> None:
    """Wait until each of the sessions has said this part."""
    waiting = list(sessions)

    def look() -> bool:
        waiting[:] = [one for one in waiting if one.part(part) not in one.said]
        return not waiting

    agent = waiting[0].agent
    await agent.wait_for(look, f"part {part} of each session", ANSWER_LIMIT)


async def stop_reasons(turns: Iterable[Pending]) -> set[str]:
    """Wait for the end of all these turns; how they ended."""
    return {text(await turn.answer(), "stopReason") for turn in turns}


def texts(sessions: Iterable[One]) -> list[str]:
    """What each of the sessions has said."""
    return [one.said for one in sessions]


async def titles(agent: Client) -> dict[str, str]:
    """The session list: id -> title."""
    return {text(row, "sessionId"): text(row, "title") for row in await agent.list_sessions()}


def arguments(pid: int) -> list[str]:
    """The words of a process's command line; none when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1]
    except OSError:
        return []


def started_by(pid: int) -> dict[int, str]:
    """A CLI's process and all that comes from it: pid -> command line."""
    entries = Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0")
    (mark,) = (entry for entry in entries if entry.startswith(f"{MARK_VARIABLE}="))
    return bearing(mark)


def servers(lab: Lab) -> list[int]:
    """The processes of `codex app-server`."""
    return [pid for pid in bearing(str(lab.folder)) if "app-server" in arguments(pid)[1:2]]


async def gone(pids: Iterable[int], limit: float = 5.0) -> None:
    """Wait until none of these processes lives."""
    with anyio.fail_after(limit):
        for pid in pids:
            try:
                descriptor = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            try:
                await anyio.wait_readable(descriptor)
            finally:
                os.close(descriptor)


def counted_codex(lab: Lab) -> Callable[[], int]:
    """Count in this lab how often an app-server is started."""
    program = find_program()
    assert program is not None
    log, wrapper = lab.folder / "starts.txt", lab.folder / "counted-codex"
    wrapper.write_text(f'#!/bin/sh\necho "$1" >> {shlex.quote(str(log))}\nexec {shlex.join(program.command)} "$@"\n')
    wrapper.chmod(0o700)
    lab.env[PATH_VARIABLE] = str(wrapper)
    return lambda: log.read_text().split().count("app-server")
