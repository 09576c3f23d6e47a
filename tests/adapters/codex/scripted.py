"""The bridge's side of the Codex backend, as far as its tests need one: a hub and the clients of a session."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from acp_manifold.adapters.codex.backend import CodexBackend
from acp_manifold.adapters.codex.session import CodexSession
from acp_manifold.bridge.backend import SessionSpec
from acp_manifold.translators.forms import WITHDRAWN, Form, FormAnswer
from acp_manifold.translators.updates import Commands, MessageChunk, Question, Text, ToolOutput, Update
from tests.waiting import until


class ScriptedHost:
    """Keeps the titles it hears and the watches it is asked for."""

    def __init__(self) -> None:
        self.titles: list[tuple[str, str, str, str]] = []
        self.watches: dict[Path, Callable[[], None]] = {}
        self.folders: dict[Path, Callable[[Path | None], None]] = {}

    def title_heard(self, backend: str, session_id: str, title: str, origin: str) -> None:
        self.titles.append((backend, session_id, title, origin))

    def watch(self, path: Path, changed: Callable[[], None]) -> Callable[[], None]:
        self.watches[path] = changed
        return lambda: self.watches.pop(path, None) and None

    def watch_folder(self, folder: Path, changed: Callable[[Path | None], None]) -> Callable[[], None]:
        self.folders[folder] = changed
        return lambda: self.folders.pop(folder, None) and None


class ScriptedEvents:
    """Keeps what it is told; answers each question with the next of `answers`, or waits when there is none."""

    def __init__(self, *answers: str | None) -> None:
        self.updates: list[Update] = []
        self.questions: list[Question] = []
        self.forms: list[Form] = []
        self.form_answer: FormAnswer | None = None
        """What forms are answered with; None leaves them open until they are withdrawn."""
        self.pages_done: list[str] = []
        self.withdrawn = 0
        self.names: list[str] = []
        """Ids that the conversation moved to."""
        self._answers = list(answers)
        self._news = anyio.Event()

    def update(self, update: Update) -> None:
        self.updates.append(update)
        self._tell()

    def moved(self, session_id: str) -> None:
        self.names.append(session_id)
        self._tell()

    async def room(self) -> None:
        """Whoever hears here keeps up."""

    async def ask(self, question: Question) -> str | None:
        self.questions.append(question)
        self._tell()
        if self._answers:
            return self._answers.pop(0)
        try:
            await anyio.sleep_forever()
        finally:
            self.withdrawn += 1
            self._tell()
        return None

    async def ask_form(self, form: Form) -> FormAnswer:
        self.forms.append(form)
        self._tell()
        if self.form_answer is not None:
            return self.form_answer
        try:
            await anyio.sleep_forever()
        finally:
            self.withdrawn += 1
            self._tell()
        return WITHDRAWN

    def form_done(self, form_id: str) -> None:
        self.pages_done.append(form_id)
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    async def until(self, happened: Callable[[], object]) -> None:
        """Wait for something that an update or a question brings about."""
        while not happened():
            await self._news.wait()

    @property
    def conversation(self) -> list[Update]:
        """The updates without the lists of commands, which come when they are known."""
        return [update for update in self.updates if not isinstance(update, Commands)]

    @property
    def said(self) -> str:
        """All the agent said."""
        return "".join(
            update.content.text
            for update in self.updates
            if isinstance(update, MessageChunk) and update.role == "agent" and isinstance(update.content, Text)
        )

    @property
    def printed(self) -> str:
        """All that commands printed."""
        return "".join(update.data for update in self.updates if isinstance(update, ToolOutput))


@asynccontextmanager
async def running() -> AsyncGenerator[tuple[CodexBackend, ScriptedHost]]:
    """A running backend and its hub."""
    backend, host = CodexBackend(), ScriptedHost()
    async with backend.running(host):
        yield backend, host


@asynccontextmanager
async def one_session(
    cwd: Path, *answers: str | None, resume: str | None = None
) -> AsyncGenerator[tuple[CodexSession, ScriptedEvents]]:
    """One session of a backend of its own."""
    events = ScriptedEvents(*answers)
    async with running() as (backend, _), backend.session(SessionSpec(str(cwd)), events, resume=resume) as session:
        yield session, events


async def logged(happened: Callable[[], object]) -> None:
    """Wait for something in the log of the fake, which is another process."""
    await until(happened)
