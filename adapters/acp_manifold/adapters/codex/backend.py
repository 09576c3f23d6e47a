"""Codex as a backend of the hub: one app-server, started when first needed and again after it died.

Importing this is cheap, since it happens before the client's first request is answered; the rest
of the package is imported when the app-server is first needed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus

from acp_manifold.bridge.backend import (
    AuthMethod,
    Host,
    ListQuery,
    Login,
    Program,
    SessionEvents,
    SessionRow,
    SessionSpec,
    StoreOrigin,
)
from acp_manifold.bridge.errors import BackendGone, BridgeError, LoginNeeded, SessionNotFound
from acp_manifold.bridge.starting import Started, pipe, start

from . import program as programs
from .greeting import GREETING
from .ids import is_thread_id
from .index import TitleIndex
from .limits import Limits

if TYPE_CHECKING:
    from acp_manifold.translators.codex.threads import ThreadRow
    from acp_manifold.translators.updates import Update

    from .server import AppServer
    from .session import CodexSession

logger = logging.getLogger(__name__)

T = TypeVar("T")

_INDEX = "session_index.jsonl"
"""Codex' list of renames, in its home."""


class CodexBackend:
    """The backend `codex`. See `bridge.backend.Backend` for what each method promises."""

    name = "codex"
    label = "Codex"
    install_hint = "pip install openai-codex-cli-bin, or npm install -g @openai/codex"

    def __init__(self) -> None:
        self.limits = Limits()
        """How long the app-server may take."""
        self._life: _Life | None = None
        self._early: Started | None = None

    def program(self) -> Program | None:
        """The CLI to start, or None."""
        return programs.find_program()

    @property
    def auth(self) -> AuthMethod:
        """How to log in, by the program that is there."""
        command = programs.login_command()
        return AuthMethod(
            "codex-login",
            "Log in with the Codex CLI",
            f"Run `{command} login` in a terminal for a ChatGPT account, or "
            f"`printenv OPENAI_API_KEY | {command} login --with-api-key` for an API key.",
        )

    def prestart(self) -> None:
        """Start the app-server and greet it; its answer is read when there is an event loop.

        It ends by itself when its stdin does, so it needs nobody to end it if we don't come to use it.
        """
        program = self.program()
        if program is None:
            return
        try:
            self._early = start(programs.server_command(program), programs.neutral_directory(), programs.environment())
            os.write(pipe(self._early.process.stdin).fileno(), GREETING + b"\n")
        except OSError as exc:
            # It has ended already: who adopts it finds out, and tells why.
            logger.info("codex: the app-server took no greeting: %s", exc)
        except BackendGone as exc:
            logger.info("codex: %s", exc.message)

    def take_started(self) -> Started | None:
        """The app-server that was started early, once."""
        early, self._early = self._early, None
        return early

    @asynccontextmanager
    async def running(self, host: Host) -> AsyncGenerator[None]:
        """The backend's life in the hub."""
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            self._life = _Life(self, host, tasks)
            try:
                yield
            except Exception as exc:
                # Carried past the task group, which would wrap it: the caller is to see it as it was raised.
                failure = exc
            finally:
                self._life = None
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def warm_up(self) -> None:
        """Start the app-server; an error is kept for the first request that needs it."""
        await self._living.warm_up()

    async def login(self) -> Login:
        """Whether Codex has a login."""
        from .login import login_of

        server = self._life.server if self._life is not None else None
        return await login_of(server, programs.codex_home())

    async def _no_login(self) -> LoginNeeded | None:
        """Why no session can be begun, if it is certain that there is no login."""
        return LoginNeeded.at_start(self.label, self.auth.description) if await self.login() == "out" else None

    @asynccontextmanager
    async def session(
        self, spec: SessionSpec, events: SessionEvents, *, resume: str | None = None
    ) -> AsyncGenerator[CodexSession]:
        """Serve a thread for as long as the context is open."""
        life = self._living
        if resume is not None:
            if not is_thread_id(resume):
                raise SessionNotFound(resume)
            resume = resume.lower()
        server = await life.need()
        from .session import open_session

        async with open_session(server, spec, events, life.remember, resume, self._no_login) as session:
            yield session

    @contextmanager
    def follow(self, session_id: str, cwd: str) -> Generator[None]:
        """Report titles that other programs give a thread."""
        with self._living.index.follow(session_id):
            yield

    async def list(self, query: ListQuery) -> list[SessionRow]:
        """Threads of the store, newest first."""
        from .store import list_threads

        life = self._living
        rows = await life.read(lambda server: list_threads(server, query))
        return [life.row(row) for row in rows]

    async def find(self, session_id: str) -> SessionRow | None:
        """The row of one thread, or None."""
        life = self._living
        if not is_thread_id(session_id):
            return None
        from .store import find_thread

        row = await life.read(lambda server: find_thread(server, session_id))
        return life.row(row) if row is not None else None

    async def replay(self, session_id: str, emit: Callable[[Update], None]) -> None:
        """Tell the whole history of a thread."""
        if not is_thread_id(session_id):
            raise SessionNotFound(session_id)
        from .store import replay_thread

        await replay_thread(await self._living.need(), session_id, emit)

    async def rename(self, session_id: str, title: str) -> str:
        """Title a thread that is at rest; it need not be loaded."""
        if not is_thread_id(session_id):
            raise SessionNotFound(session_id)
        from .store import set_name

        return await set_name(await self._living.need(), session_id, title)

    async def delete(self, session_id: str) -> None:
        """Remove a thread for good."""
        from .store import delete_thread

        if is_thread_id(session_id):
            await delete_thread(await self._living.need(), session_id)

    def lab(self, folder: Path, model_url: str) -> dict[str, str]:
        """Make a private home for the scripted model."""
        from .lab import make_lab

        return make_lab(folder, model_url)

    @property
    def _living(self) -> _Life:
        if self._life is None:
            raise BackendGone("The Codex backend is not running")
        return self._life


class _Life:
    """What all sessions share between the start and the end of `CodexBackend.running`."""

    def __init__(self, backend: CodexBackend, host: Host, tasks: TaskGroup) -> None:
        self._backend = backend
        self._host = host
        self._tasks = tasks
        self._starting = anyio.Lock()
        self._kept: BridgeError | None = None
        self._generated: dict[str, str] = {}
        self.server: AppServer | None = None
        """The app-server that was started last; it may have ended."""
        self.index = TitleIndex(programs.codex_home() / _INDEX, host, self.heard)
        """The renames of other programs."""

    async def warm_up(self) -> None:
        """Start the app-server, keeping an error for the first need."""
        try:
            await self.need()
        except BridgeError as exc:
            logger.info("codex: %s", exc.message)
            self._kept = exc

    async def need(self) -> AppServer:
        """The live app-server, started if there is none: once for all who need it at the same moment.

        Raises:
            BackendGone: It can't be started, or did not come up.
        """
        async with self._starting:
            if self.server is not None and await self._serves(self.server):
                return self.server
            kept, self._kept = self._kept, None
            if kept is not None:
                raise kept
            program = self._backend.program()
            if program is None:
                raise BackendGone(f"Codex is not installed: {self._backend.install_hint}")
            self.server = await self._start(program)
            return self.server

    @staticmethod
    async def _serves(server: AppServer) -> bool:
        if server.doubted:
            try:
                await server.check()
            except BackendGone:
                return False
        return server.alive

    async def read(self, ask: Callable[[AppServer], Awaitable[T]]) -> T:
        """Ask for something that changes nothing; once more, of another server, if the first goes meanwhile."""
        server = await self.need()
        try:
            return await ask(server)
        except BackendGone as exc:
            logger.info("codex: asking again: %s", exc.message)
        return await ask(await self.need())

    async def _start(self, program: Program) -> AppServer:
        try:
            server: AppServer = await self._tasks.start(self._serve, program)
        except BackendGone as exc:
            if program.source == programs.PATH_VARIABLE:
                raise BackendGone(
                    f"{exc.message} ({programs.PATH_VARIABLE} names {program.command[0]})", exc.data
                ) from exc
            raise
        return server

    async def _serve(self, program: Program, *, task_status: TaskStatus[AppServer]) -> None:
        # Sessions are imported here too: between the answer to `initialize` and the first request there is time.
        from . import session  # noqa: F401  # pyright: ignore[reportUnusedImport]
        from .server import serve

        started = self._backend.take_started()
        limits = self._backend.limits
        await serve(program, self.named, limits=limits, started=started, task_status=task_status)

    # -- titles ---------------------------------------------------------------------------------

    def named(self, thread_id: str, title: str) -> None:
        """The app-server tells a thread's title."""
        self.index.told(thread_id, title)
        self.heard(thread_id, title)

    def heard(self, thread_id: str, title: str) -> None:
        """A thread got a title, by whomever."""
        self._host.title_heard(self._backend.name, thread_id, title, self._origin(thread_id, title))

    def remember(self, thread_id: str, title: str) -> None:
        """A generated title is about to be stored: its echo is no rename by a person."""
        self._generated[thread_id] = title

    def _origin(self, thread_id: str, title: str) -> StoreOrigin:
        return "generated" if self._generated.get(thread_id) == title else "user"

    def row(self, row: ThreadRow) -> SessionRow:
        """A thread as the bridge lists it."""
        title = row.name or row.preview
        origin = self._origin(row.id, row.name) if row.name else None
        return SessionRow(row.id, row.cwd, row.updated_at, title, origin)
