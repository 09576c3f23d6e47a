"""Random conversations of several sessions at once, and what must hold in every one of them.

A drawn list of moves is played on scripted backends without waiting in between, but where the
list says so. Whatever the order: each prompt gets one outcome, each update and each answer
reaches its own session and question, nothing of a closed session comes after its close, and
nothing is left at the end. `HYPOTHESIS_PROFILE=nightly` plays ten times as many.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias, cast

import anyio
import pytest
from anyio.abc import TaskGroup
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acp_manifold.bridge.errors import BackendFault
from acp_manifold.bridge.hub import Hub
from acp_manifold.bridge.ledger import Ledger
from acp_manifold.bridge.session import Session
from acp_manifold.translators.narrow import JsonObject, obj, text
from acp_manifold.translators.updates import Question

from .editor import Editor, connect
from .scripted import QUESTION, ScriptedBackend, ScriptedSession

RUNS = 2000 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 200
SESSIONS = 6

Move: TypeAlias = tuple[str, int, int]
"""What is done, to which session (modulo those there are), and a number that says how."""

MOVES = st.lists(
    st.tuples(
        st.sampled_from(
            ["new", "prompt", "prompt", "say", "say", "ask", "answer", "finish", "finish"]
            + ["cancel", "cancel_request", "close", "die", "fail", "deafen", "title", "wait", "load"]
        ),
        st.integers(0, SESSIONS - 1),
        st.integers(0, 7),
    ),
    min_size=5,
    max_size=60,
)


def owner(cli: ScriptedSession) -> str:
    """Our id of the session that a CLI serves; its own may be another one, after a crash before the first turn."""
    return cast(Session, cli.events).id


@dataclass
class Asked:
    """A question a scripted CLI has put, and the answer it got."""

    question: Question
    session: str
    answer: str | None = None
    answered: bool = False


@dataclass
class Play:
    """One list of moves on its way."""

    editor: Editor
    backends: list[ScriptedBackend]
    cwd: str
    tasks: TaskGroup
    sessions: list[str] = field(default_factory=list[str])
    prompts: dict[int, str] = field(default_factory=dict[int, str])
    """Request id -> session."""
    closes: dict[int, str] = field(default_factory=dict[int, str])
    others: list[int] = field(default_factory=list[int])
    said: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    asked: list[Asked] = field(default_factory=list[Asked])
    loads: Counter[str] = field(default_factory=Counter[str])
    """How often each session was loaded, which tells again what was said."""
    counter: int = 0

    def cli(self, session: str) -> ScriptedSession | None:
        """The live CLI of a session."""
        found = [c for b in self.backends for c in b.sessions if owner(c) == session and c.open and not c.lost]
        return found[-1] if found else None

    def next(self) -> int:
        self.counter += 1
        return self.counter

    async def new(self, _session: str, how: int) -> None:
        if len(self.sessions) < SESSIONS:
            self.sessions.append(await self.editor.new(self.cwd, self.backends[how % 2].name))

    async def prompt(self, session: str, how: int) -> None:
        self.prompts[self.editor.prompt(session, f"{session}|{self.next()}")] = session

    async def say(self, session: str, how: int) -> None:
        cli = self.cli(session)
        if cli is not None:
            word = f"{session}|{self.next()} "
            self.said.setdefault(session, []).append(word)
            cli.say(word, message_id=f"m{how % 2}")

    async def ask(self, session: str, how: int) -> None:
        cli = self.cli(session)
        if cli is not None:
            number = self.next()
            call = QUESTION.tool_call._replace(id=f"{session}|{number}")
            options = tuple(option._replace(id=f"{option.id}-{number}") for option in QUESTION.options)
            asked = Asked(Question(call, options), session)
            self.asked.append(asked)
            self.tasks.start_soon(self._put, cli, asked)

    async def _put(self, cli: ScriptedSession, asked: Asked) -> None:
        asked.answer = await cli.events.ask(asked.question)
        asked.answered = True

    async def answer(self, _session: str, how: int) -> None:
        lines = [line for line in self.editor.lines if line.get("method") == "session/request_permission"]
        if not lines:
            return
        line = lines[how % len(lines)]
        number = text(obj(obj(line, "params"), "toolCall"), "toolCallId").rsplit("|", 1)[1]
        option = ("yes", "no", "never")[how % 3] + "-" + (number if how != 5 else "999")
        outcome = {"outcome": "selected", "optionId": option}
        self.editor.send({"jsonrpc": "2.0", "id": line["id"], "result": {"outcome": outcome}})

    async def finish(self, session: str, how: int) -> None:
        cli = self.cli(session)
        if cli is not None:
            cli.finish()

    async def fail(self, session: str, how: int) -> None:
        cli = self.cli(session)
        if cli is not None:
            cli.fail(BackendFault("scripted failure"))

    async def die(self, session: str, how: int) -> None:
        cli = self.cli(session)
        if cli is not None:
            cli.die("scripted death")

    async def deafen(self, session: str, how: int) -> None:
        cli = self.cli(session)
        if cli is not None:
            cli.heeds = False

    async def cancel(self, session: str, how: int) -> None:
        self.editor.tell("session/cancel", sessionId=session)

    async def cancel_request(self, _session: str, how: int) -> None:
        if self.prompts:
            self.editor.tell("$/cancel_request", requestId=list(self.prompts)[how % len(self.prompts)])

    async def close(self, session: str, how: int) -> None:
        self.closes[self.editor.ask("session/close", sessionId=session)] = session

    async def load(self, session: str, how: int) -> None:
        method = ("session/load", "session/resume")[how % 2]
        self.loads[session] += method == "session/load"
        self.others.append(self.editor.ask(method, sessionId=session, cwd=self.cwd, mcpServers=[]))

    async def title(self, session: str, how: int) -> None:
        self.others.append(self.editor.ask("session/set_title", sessionId=session, title=f"title {self.next()}"))

    async def wait(self, _session: str, how: int) -> None:
        await self.editor.round_trip()

    @property
    def settled(self) -> bool:
        requests = [*self.prompts, *self.closes, *self.others]
        return all(map(self.editor.settled, requests)) and all(asked.answered for asked in self.asked)

    async def end(self) -> None:
        """Let everything come to its end: every CLI finishes whatever it still runs."""
        with anyio.fail_after(10):
            while not self.settled:
                for session in self.sessions:
                    await self.finish(session, 0)
                for line in self.editor.lines:
                    if line.get("method") == "session/request_permission":
                        self.editor.send({"jsonrpc": "2.0", "id": line["id"], "result": {}})
                await self.editor.round_trip()


def texts(editor: Editor, session: str) -> list[str]:
    return editor.said(session).split(" ")[:-1]


def check(play: Play) -> None:
    answers: dict[object, list[JsonObject]] = {}
    for line in play.editor.lines:
        if "method" not in line:
            answers.setdefault(line.get("id"), []).append(line)
    assert all(len(found) == 1 for found in answers.values()), "one answer to each request"
    assert set(play.prompts) <= set(answers), "each prompt has its outcome"
    for session in play.sessions:
        heard = texts(play.editor, session)
        own = [word.strip() for word in play.said.get(session, [])]
        assert all(word.startswith(f"{session}|") for word in heard), "each update in its own session"
        assert list(dict.fromkeys(heard)) == [word for word in own if word in set(heard)], "in order"
        assert all(heard.count(word) <= 1 + play.loads[session] for word in heard), "each once, and in each history"
    for backend in play.backends:
        for cli in backend.sessions:
            assert all(f"{owner(cli)}|" in repr(prompt) for prompt in cli.prompts), "each prompt to its own CLI"
    for asked in play.asked:
        number = asked.question.tool_call.id.rsplit("|", 1)[1]
        assert asked.answered and asked.answer in (None, f"yes-{number}", f"no-{number}"), "each answer to its question"
    for request, session in play.closes.items():
        assert_nothing_after_close(play.editor, request, session)


def assert_nothing_after_close(editor: Editor, request: int, session: str) -> None:
    """Between the answer to a close and the answer to whatever opened the session again there is nothing of it."""
    closed = next(i for i, line in enumerate(editor.lines) if "method" not in line and line.get("id") == request)
    for line in editor.lines[closed + 1 :]:
        if "method" not in line and "configOptions" in obj(line, "result"):
            return
        params = obj(line, "params")
        tag = obj(params, "update").get("sessionUpdate")
        assert params.get("sessionId") != session or tag == "session_info_update", "nothing after close"


async def play_all(moves: list[Move], cwd: str) -> None:
    backends = [ScriptedBackend("alpha"), ScriptedBackend("beta")]

    hub = Hub(backends, Ledger(None), grace=0.02)
    async with hub.running(), anyio.create_task_group() as tasks:
        editor = connect(hub, tasks)
        await editor.request("initialize", protocolVersion=1)
        play = Play(editor, backends, cwd, tasks)
        try:
            await play.new("", 0)
            for name, which, how in moves:
                move: Callable[..., object] = getattr(play, name)
                with suppress(IndexError):
                    await move(play.sessions[which % len(play.sessions)], how)  # type: ignore[misc]
            await play.end()
            check(play)
        finally:
            editor.hang_up()
        with anyio.fail_after(5):
            while hub.open_sessions:
                await anyio.lowlevel.checkpoint()
        assert not any(cli.open for backend in backends for cli in backend.sessions), "every CLI is let go"
        assert not any(backend.followed for backend in backends), "every watch is ended"
        tasks.cancel_scope.cancel()


@pytest.mark.case("M01")
@pytest.mark.case("C05")
@pytest.mark.case("P02")
@settings(max_examples=RUNS, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(MOVES)
def test_whatever_the_order_each_session_keeps_to_itself(moves: list[Move]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(play_all, moves, str(Path(folder)))
