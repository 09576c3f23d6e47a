"""A CLI that plays what the prompt says, in this process: the soak test's and the delay figure's backend.

A prompt is a list of words, each a thing that happens: `say:N` N updates, `tool` a tool call,
`ask` a question, `mute` a question that nobody will answer, `withdraw` one that the CLI takes back
itself, `hang` nothing until an interrupt, `crash` the end of the CLI, `mute+crash` its end with a
question open. A session in ten has a real process beside it, so that there are children to lose.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path

import anyio
from anyio.lowlevel import checkpoint

from acp_manifold.bridge.backend import BackendSession, SessionEvents, SessionRow, SessionSpec
from acp_manifold.bridge.errors import BackendGone, SessionNotFound
from acp_manifold.bridge.process import spawn
from acp_manifold.bridge.starting import Launch
from acp_manifold.translators.acp.prompts import typed_text
from acp_manifold.translators.updates import MessageChunk, Prompt, Text, ToolCall, ToolCallUpdate, TurnEnd
from tests.bridge.scripted import QUESTION, ScriptedBackend, ScriptedSession

WORD = "word "
"""The text of one update."""

ANSWERED, MUTE = "answered", "mute"
"""Beginnings of the ids of tool calls that are asked about: the client answers one kind and leaves the other."""

_CHILD_EVERY = 10
_BURST = 4
"""Updates said without letting anybody else have a turn."""

_SOON = 0.005
"""Seconds after which a CLI thinks better of its question."""


class PlayedSession(ScriptedSession):
    """A session whose CLI does what the prompt says."""

    @property
    def _played(self) -> PlayedBackend:
        assert isinstance(self.backend, PlayedBackend)
        return self.backend

    async def prompt(self, prompt: Prompt) -> TurnEnd:
        """Play a prompt."""
        played = self._played
        self._interrupted = anyio.Event()
        played.stored.setdefault(self.id, SessionRow(self.id, self.spec.cwd, played.tick()))
        for number, word in enumerate(typed_text(prompt).split()):
            name, _, times = word.partition(":")
            if self._interrupted.is_set():
                return TurnEnd("cancelled")
            await _WORDS[name](self, int(times or 1), f"{played.turns}-{number}")
        played.turns += 1
        return TurnEnd("cancelled" if self._interrupted.is_set() else "end_turn")

    async def generate_title(self, prompt_text: str) -> str | None:
        """A title for every session."""
        return f"About {prompt_text[:20]}"

    async def tell(self, times: int, turn: str) -> None:
        """Say so many words."""
        played = self._played
        for number in range(times):
            self.events.update(MessageChunk("agent", Text(WORD), turn))
            played.said += 1
            if number % _BURST == 0:
                await checkpoint()

    async def use_tool(self, times: int, turn: str) -> None:
        """Call a tool and have its result."""
        for number in range(times):
            call = f"tool-{turn}-{number}"
            self.events.update(ToolCall(call, "ls", "execute"))
            await checkpoint()
            self.events.update(ToolCallUpdate(call, status="completed", content=(Text("README.md"),)))

    async def inquire(self, times: int, turn: str) -> None:
        """Ask, and take what is answered."""
        for number in range(times):
            await self._ask(f"{ANSWERED}-{turn}-{number}")

    async def inquire_mute(self, times: int, turn: str) -> None:
        """Ask somebody who doesn't answer."""
        await self._ask(f"{MUTE}-{turn}")

    async def withdraw(self, times: int, turn: str) -> None:
        """Ask, and take the question back."""
        for number in range(times):
            with anyio.move_on_after(_SOON):
                await self._ask(f"{MUTE}-{turn}-{number}")

    async def hang(self, times: int, turn: str) -> None:
        """Do nothing until interrupted."""
        await self._interrupted.wait()

    async def crash(self, times: int, turn: str) -> None:
        """Be gone."""
        self.die("the scripted CLI crashed")
        raise BackendGone("the scripted CLI crashed")

    async def crash_asking(self, times: int, turn: str) -> None:
        """Be gone while a question is open."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._ask, f"{MUTE}-{turn}")
            await anyio.sleep(_SOON)
            tasks.cancel_scope.cancel()
        await self.crash(times, turn)

    async def _ask(self, call: str) -> None:
        await self.events.ask(QUESTION._replace(tool_call=QUESTION.tool_call._replace(id=call)))


_WORDS: dict[str, Callable[[PlayedSession, int, str], Awaitable[None]]] = {
    "say": PlayedSession.tell,
    "tool": PlayedSession.use_tool,
    "ask": PlayedSession.inquire,
    "mute": PlayedSession.inquire_mute,
    "withdraw": PlayedSession.withdraw,
    "hang": PlayedSession.hang,
    "crash": PlayedSession.crash,
    "mute+crash": PlayedSession.crash_asking,
}


class PlayedBackend(ScriptedBackend):
    """A backend of such sessions, that keeps nothing of one that has ended but its row in the store."""

    def __init__(self) -> None:
        super().__init__("played")
        self.said = 0
        """Updates that were said so far, those of tool calls left out."""
        self.turns = 0
        self.live: dict[str, PlayedSession] = {}
        """Sessions that are served right now."""
        self._numbers: Iterator[int] = count(1)

    @asynccontextmanager
    async def session(
        self, spec: SessionSpec, events: SessionEvents, *, resume: str | None = None
    ) -> AsyncGenerator[BackendSession]:
        """Serve a session, one in ten with a process of its own."""
        await checkpoint()
        if resume is not None and resume not in self.stored:
            raise SessionNotFound(resume)
        number = next(self._numbers)
        session = PlayedSession(self, resume or spec.id or f"{self.name}-{number}", spec, events, resume is not None)
        self.live[session.id] = session
        try:
            if number % _CHILD_EVERY:
                yield session
            else:
                async with spawn(Launch(("cat",), cwd=spec.cwd, env=os.environ, name=session.id)):
                    yield session
        finally:
            del self.live[session.id]

    @contextmanager
    def follow(self, session_id: str, cwd: str) -> Generator[None]:
        """Watch a file of the session, as the adapters do."""
        assert self._host is not None
        end = self._host.watch(Path(cwd) / f"{session_id}.jsonl", lambda: None)
        try:
            yield
        finally:
            end()

    def clean_up(self, session_id: str) -> None:
        """Drop a session from the store behind the bridge's back, as a CLI does with old ones."""
        self.stored.pop(session_id, None)
