"""A host and a client for the backend that do as the test says, and remember."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from acp_manifold.adapters.claude import ClaudeBackend
from acp_manifold.bridge.backend import BackendSession, SessionSpec, StoreOrigin
from acp_manifold.bridge.watch import Watcher
from acp_manifold.translators.forms import WITHDRAWN, Form, FormAnswer
from acp_manifold.translators.updates import Commands, MessageChunk, Prompt, Question, Text, Update


class Listener:
    """`SessionEvents` of a test."""

    def __init__(self) -> None:
        self.updates: list[Update] = []
        self.questions: list[Question] = []
        self.forms: list[Form] = []
        self.form_answer: FormAnswer | None = None
        """What forms are answered with; None leaves them open until they are withdrawn."""
        self.pages_done: list[str] = []
        self.choice: str | None = "allow"
        """What questions are answered with; None leaves them open until they are withdrawn."""
        self.withdrawn = 0
        self.names: list[str] = []
        """Ids that the conversation moved to."""
        self._changed = anyio.Event()

    def update(self, update: Update) -> None:
        self.updates.append(update)
        self._wake()

    def moved(self, session_id: str) -> None:
        self.names.append(session_id)
        self._wake()

    async def room(self) -> None:
        """Whoever hears here keeps up."""

    async def ask(self, question: Question) -> str | None:
        self.questions.append(question)
        self._wake()
        if self.choice is not None:
            return self.choice
        try:
            await anyio.sleep_forever()
            return None
        finally:
            self.withdrawn += 1
            self._wake()

    async def ask_form(self, form: Form) -> FormAnswer:
        self.forms.append(form)
        self._wake()
        if self.form_answer is not None:
            return self.form_answer
        try:
            await anyio.sleep_forever()
            return WITHDRAWN
        finally:
            self.withdrawn += 1
            self._wake()

    def form_done(self, form_id: str) -> None:
        self.pages_done.append(form_id)
        self._wake()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something told here makes the condition true."""
        while not condition():
            await self._changed.wait()

    @property
    def said(self) -> str:
        """All the agent said."""
        chunks = [update for update in self.updates if isinstance(update, MessageChunk) and update.role == "agent"]
        return "".join(chunk.content.text for chunk in chunks if isinstance(chunk.content, Text))

    @property
    def conversation(self) -> list[Update]:
        """What the CLI says and does: the updates without the lists of commands, and without what was typed."""
        return [update for update in self.updates if not isinstance(update, Commands) and not _typed(update)]

    def _wake(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


def _typed(update: Update) -> bool:
    return isinstance(update, MessageChunk) and update.role == "user"


class ScriptedHost:
    """`Host` of a test: real watching, remembered titles."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, StoreOrigin]] = []
        self.watcher = Watcher()
        self._changed = anyio.Event()

    def title_heard(self, backend: str, session_id: str, title: str, origin: StoreOrigin) -> None:
        self.heard.append((title, origin))
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    def watch(self, path: Path, changed: Callable[[], None]) -> Callable[[], None]:
        return self.watcher.watch(path, changed)

    def watch_folder(self, folder: Path, changed: Callable[[Path | None], None]) -> Callable[[], None]:
        return self.watcher.watch_folder(folder, changed)

    async def until_changed(self, path: Path, condition: Callable[[], bool]) -> None:
        """Wait until a change of the file makes the condition true."""
        changed = anyio.Event()

        def wake() -> None:
            changed.set()

        stop = self.watch(path, wake)
        try:
            while not condition():
                await changed.wait()
                changed = anyio.Event()
        finally:
            stop()

    async def until_heard(self, title: str, origin: StoreOrigin) -> None:
        """Wait until this title was heard."""
        while (title, origin) not in self.heard:
            await self._changed.wait()


@asynccontextmanager
async def hub(backend: ClaudeBackend) -> AsyncGenerator[ScriptedHost]:
    """A running backend."""
    host = ScriptedHost()
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(host.watcher.run)
        try:
            async with backend.running(host):
                yield host
        except Exception as exc:
            # Carried past the task group, which would wrap it.
            failure = exc
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@asynccontextmanager
async def opened(
    backend: ClaudeBackend, cwd: Path, listener: Listener | None = None, *, resume: str | None = None
) -> AsyncGenerator[BackendSession]:
    """A session of a backend of its own hub."""
    async with hub(backend), backend.session(SessionSpec(str(cwd)), listener or Listener(), resume=resume) as session:
        yield session


def saying(words: str) -> Prompt:
    """A prompt of one text."""
    return (Text(words),)
