"""What all Codex sessions share: the one app-server, started when first needed and again after it died."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus

from acp_manifold.bridge.backend import Host, Program, SessionRow, StoreOrigin
from acp_manifold.bridge.errors import BackendGone, BridgeError

from . import early
from . import program as programs
from .faults import is_crowded
from .index import TitleIndex

if TYPE_CHECKING:
    from acp_manifold.translators.codex.threads import ThreadRow

    from .backend import CodexBackend
    from .server import AppServer
    from .shelf import Shelf

logger = logging.getLogger(__name__)

T = TypeVar("T")

STARTS = 5
"""How often the app-server is started before it is given up, if others make the same home at the same moment."""

_INDEX = "session_index.jsonl"
"""Codex' list of renames, in its home."""


@asynccontextmanager
async def living(backend: CodexBackend, host: Host) -> AsyncGenerator[Life]:
    """The life of the backend in one hub; the app-server ends with it."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield Life(backend, host, tasks)
        except Exception as exc:
            # Carried past the task group, which would wrap it: the caller is to see it as it was raised.
            failure = exc
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


class Life:
    """What all sessions share between the start and the end of `CodexBackend.running`."""

    def __init__(self, backend: CodexBackend, host: Host, tasks: TaskGroup) -> None:
        self._backend = backend
        self.host = host
        """Who runs the backend."""
        self._tasks = tasks
        self._starting = anyio.Lock()
        self._kept: BridgeError | None = None
        self._generated: dict[str, str] = {}
        self._shelf: Shelf | None = None
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
        """Start it; again if it ended since another made the same home at that moment, which took that one some ms."""
        for _ in range(STARTS - 1):
            try:
                return await self._start_once(program)
            except BackendGone as exc:
                if not is_crowded(exc):
                    raise
                logger.info("codex: starting again: %s", exc.message)
        return await self._start_once(program)

    async def _start_once(self, program: Program) -> AppServer:
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
        from .server import serve

        started = early.take() if self._backend.spawn is None else None
        limits = self._backend.limits
        await serve(
            program, self.named, limits=limits, started=started, spawn=self._backend.spawn, task_status=task_status
        )

    # -- options --------------------------------------------------------------------------------

    @property
    def shelf(self) -> Shelf:
        """What the threads share of their options. Imported with the first session, behind `thread/start`."""
        if self._shelf is None:
            from .shelf import Shelf

            self._shelf = Shelf()
        return self._shelf

    def forget(self, thread_id: str) -> None:
        """A thread is no longer followed."""
        if self._shelf is not None:
            self._shelf.chosen.pop(thread_id, None)

    # -- titles ---------------------------------------------------------------------------------

    def named(self, thread_id: str, title: str) -> None:
        """The app-server tells a thread's title."""
        self.index.told(thread_id, title)
        self.heard(thread_id, title)

    def heard(self, thread_id: str, title: str) -> None:
        """A thread got a title, by whomever."""
        self.host.title_heard(self._backend.name, thread_id, title, self._origin(thread_id, title))

    def remember(self, thread_id: str, title: str) -> None:
        """A generated title is about to be stored: its echo is no rename by a person."""
        self._generated[thread_id] = title

    def _origin(self, thread_id: str, title: str) -> StoreOrigin:
        return "generated" if self._generated.get(thread_id) == title else "user"

    def row(self, row: ThreadRow) -> SessionRow:
        """A thread as the bridge lists it."""
        title = row.name or row.preview
        origin = self._origin(row.id, row.name) if row.name else None
        return SessionRow(row.id, row.cwd, row.updated_at, title, origin, archived=row.archived, model=row.model)
