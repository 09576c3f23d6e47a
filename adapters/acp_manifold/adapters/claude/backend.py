"""The Claude Code backend: what the hub sees of it. Everything heavy is imported when it is first used."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from acp_manifold.adapters.claude.program import (
    checked_command,
    child_environment,
    config_dir,
    find_program,
    login_hint,
    person_environment,
)
from acp_manifold.bridge.backend import (
    AuthMethod,
    BackendSession,
    Host,
    Inspection,
    ListQuery,
    Login,
    Program,
    SessionEvents,
    SessionRow,
    SessionSpec,
    no_wait,
)
from acp_manifold.bridge.errors import BackendFault, BackendGone, LoginNeeded, SessionNotFound

if TYPE_CHECKING:
    from acp_manifold.adapters.claude.guard_file import Guard
    from acp_manifold.adapters.claude.life import Life
    from acp_manifold.adapters.claude.store import Store
    from acp_manifold.bridge.transport import Spawn
    from acp_manifold.translators.auth import AuthStatus
    from acp_manifold.translators.claude.records import Title
    from acp_manifold.translators.updates import Update

logger = logging.getLogger(__name__)


class ClaudeBackend:
    """Sessions served by Claude Code, one process each.

    Args:
        environ: The environment to look at and to hand on; looked at anew at each use.
    """

    name = "claude"
    label = "Claude Code"
    install_hint: str = "pip install claude-agent-sdk, or npm install -g @anthropic-ai/claude-code"
    mcp_sse = True
    has_archive = False
    store_of = "claude"
    endpoint_types: tuple[str, ...] = ("anthropic", "bedrock")
    """What Claude Code 2.1.332 speaks to an endpoint of which nothing but URL and headers is known."""
    spawn: Spawn | None = None
    """What runs its processes; None: they are real."""

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ: Mapping[str, str] = os.environ if environ is None else environ
        self._life: Life | None = None
        self._stores: dict[Path, Store] = {}
        self._logged_out = False
        """Whether a client has ended the login through us."""

    def program(self) -> Program | None:
        """The CLI to start; see `Backend.program`."""
        return find_program(self._environ)

    @property
    def auth(self) -> AuthMethod:
        """How to log in, by the program that is there."""
        return self.auth_methods[0]

    @property
    def auth_methods(self) -> tuple[AuthMethod, ...]:
        """Every way to log in; see `Backend.auth_methods`."""
        program = self.program()
        command = (*(program.command if program is not None else ("claude",)), "auth", "login")
        return (
            AuthMethod("claude-login", "Log in to Claude Code", login_hint(self._environ), command),
            AuthMethod(
                "claude-console",
                "Log in to Claude Code with the Anthropic Console",
                f"Billed by use. Run `{shlex.join(command)} --console` in a terminal.",
                (*command, "--console"),
            ),
            AuthMethod(
                "claude-api-key",
                "Claude Code with an Anthropic API key",
                "Set ANTHROPIC_API_KEY in the environment of this agent, and start it anew.",
            ),
        )

    def login_environment(self) -> dict[str, str]:
        """The person's environment; see `Backend.login_environment`."""
        return person_environment(self._environ)

    @asynccontextmanager
    async def running(self, host: Host) -> AsyncGenerator[None, None]:
        """Sessions share next to nothing; see `Backend.running`."""
        from acp_manifold.adapters.claude.life import living

        async with living(host, config_dir(self._environ)) as self._life:
            for store in self._stores.values():
                self._life.tasks.start_soon(store.tend)
            try:
                yield
            finally:
                self._life = None

    async def warm_up(self) -> None:
        """Nothing: a process serves one session, and what it takes to start one is imported for the first.

        Importing it ahead, in a thread, held up the first session of another backend.
        """

    async def login(self) -> Login:
        """Whether the CLI has a login; see `Backend.login`."""
        from acp_manifold.adapters.claude.login import login

        return login(self._environ)

    async def status(self) -> AuthStatus:
        """The login for people; see `Backend.status`."""
        from acp_manifold.adapters.claude import accounts

        return await accounts.status(self._command(), self._environ)

    async def authenticate(self, method: AuthMethod, key: str | None) -> None:
        """Look whether there is a login now; see `Backend.authenticate`."""
        if (await self.status()).state == "unauthenticated":
            raise LoginNeeded(f"{self.label} has no login yet. {method.description}")

    async def logout(self) -> None:
        """End the stored login; see `Backend.logout`."""
        from acp_manifold.adapters.claude import accounts

        self._logged_out = True
        await accounts.logout(self._command(), self._environ)

    def login_files(self) -> tuple[Path, ...]:
        """See `Backend.login_files`."""
        from acp_manifold.adapters.claude.login import login_files

        return login_files(self._environ)

    async def _has_no_login(self, cwd: str) -> bool:
        """Whether it is certain that there is none for a session in `cwd`.

        After a logout of ours the CLI is asked where the files don't tell: that session would not fail in vain.
        """
        from acp_manifold.adapters.claude.login import login

        found = login(self._environ, cwd)
        if found == "unknown" and self._logged_out:
            return (await self.status()).state == "unauthenticated"
        return found == "out"

    def _command(self) -> tuple[str, ...] | None:
        program = self.program()
        return program.command if program is not None else None

    async def inspect(self) -> Inspection:
        """The CLI, its store and who has it open; see `Backend.inspect`."""
        from acp_manifold.adapters.claude.inspect import inspection

        return await inspection(self.program(), self._environ)

    def session(
        self, spec: SessionSpec, events: SessionEvents, *, resume: str | None = None
    ) -> AbstractAsyncContextManager[BackendSession]:
        """Serve a session; see `Backend.session`."""
        return self._session(spec, events, resume)

    @asynccontextmanager
    async def _session(
        self, spec: SessionSpec, events: SessionEvents, resume: str | None
    ) -> AsyncGenerator[BackendSession, None]:
        program = self.program()
        if program is None:
            raise BackendGone(f"Claude Code is not installed: {self.install_hint}")
        command = checked_command(program, self._environ)
        if resume is None and spec.endpoint is None and await self._has_no_login(spec.cwd):
            raise LoginNeeded.at_start(self.label, self.auth.description)
        if resume is not None:
            if await self._store.find(resume) is None:
                raise SessionNotFound(resume)
            await self.refuse_if_held(resume)
            # From here on the process that brings a title back would be ours, and is told of each.
            await self._running_life.guards.hand_over(resume)
        session_id = resume or await self._free_id(spec.id)
        async with self._serve(command, spec, events, session_id, resumed=resume is not None) as session:
            yield session

    def _serve(
        self, command: tuple[str, ...], spec: SessionSpec, events: SessionEvents, session_id: str, *, resumed: bool
    ) -> AbstractAsyncContextManager[BackendSession]:
        """Have a process of `command` serve a session that nobody else has."""
        from acp_manifold.adapters.claude.serve import serve

        env = child_environment(self._environ)
        if spec.endpoint is not None:
            from acp_manifold.adapters.claude import endpoint

            env = endpoint.environment(env, spec.endpoint)
        life = self._running_life
        return serve(
            command, env, spec, events, life.host, self._store, session_id, life, resumed=resumed, spawn=self.spawn
        )

    async def _free_id(self, wanted: str | None) -> str:
        """The id for a new session: the one it had, unless there is a file by that name, which the CLI refuses."""
        from anyio import to_thread

        if wanted is not None and await to_thread.run_sync(self._store.locate, wanted) is None:
            return wanted
        from uuid import uuid4

        return str(uuid4())

    async def refuse_if_held(self, session_id: str) -> None:
        """Look into the registry of live processes; see `Backend.refuse_if_held`."""
        from anyio import to_thread

        from acp_manifold.adapters.claude.registry import refuse_if_held

        ours = self._life.pids if self._life is not None else ()
        await to_thread.run_sync(refuse_if_held, config_dir(self._environ), session_id, frozenset(ours))

    def follow(self, session_id: str, cwd: str) -> AbstractContextManager[None]:
        """Report titles appended to the session's transcript; see `Backend.follow`."""
        return self._follow(session_id, cwd)

    @contextmanager
    def _follow(self, session_id: str, cwd: str) -> Generator[None, None, None]:
        from acp_manifold.adapters.claude.tail import TitleTail
        from acp_manifold.translators.claude.archive import visible

        life = self._running_life
        life.guards.attend()
        host = life.host

        def heard(title: Title) -> None:
            live = life.live.get(session_id)
            if live is None or title.origin != "user" or not live.title_appended(title.text):
                host.title_heard(self.name, session_id, visible(title.text), title.origin)

        path = self._store.expected_path(session_id, cwd)
        stop = host.watch(path, TitleTail(path, heard).changed)
        try:
            yield
        finally:
            stop()
            if self._life is not None:
                self._life.carried.pop(session_id, None)

    def follow_list(self, cwd: str, changed: Callable[[str | None], None]) -> AbstractContextManager[None]:
        """Report changes of the transcripts in a directory's folder; see `Backend.follow_list`."""
        return self._follow_list(cwd, changed)

    @contextmanager
    def _follow_list(self, cwd: str, changed: Callable[[str | None], None]) -> Generator[None, None, None]:
        def touched(path: Path | None) -> None:
            if path is None:
                changed(None)
            elif path.suffix == ".jsonl":
                changed(path.stem)

        stop = self._running_life.host.watch_folder(self._store.folder_of(cwd), touched)
        try:
            yield
        finally:
            stop()

    async def list(self, query: ListQuery) -> list[SessionRow]:
        """Sessions of the store, newest first; see `Backend.list`."""
        await self._guarded()
        return await self._store.page(query)

    async def find(self, session_id: str) -> SessionRow | None:
        """The row of one session; see `Backend.find`."""
        from anyio import to_thread

        from acp_manifold.adapters.claude.transcripts import copies_of

        # Asked about the sessions of other backends too, for which the rest is not imported.
        if not await to_thread.run_sync(copies_of, config_dir(self._environ) / "projects", session_id):
            return None
        await self._guarded()
        return await self._store.find(session_id)

    async def _guarded(self) -> None:
        """What was guarded when we began has been looked at."""
        if self._life is not None:
            await self._life.guards.looked()

    async def replay(
        self, session_id: str, emit: Callable[[Update], None], room: Callable[[], Awaitable[None]] = no_wait
    ) -> None:
        """Tell the whole history; see `Backend.replay`."""
        from acp_manifold.adapters.claude.history import replay

        path = await self._path(session_id)
        try:
            await replay(path, emit, room)
        except FileNotFoundError as exc:
            raise SessionNotFound(session_id) from exc

    async def fork(self, session_id: str, spec: SessionSpec) -> str:
        """Copy the transcript; see `Backend.fork`."""
        from acp_manifold.adapters.claude.fork import fork

        path = await self._path(session_id)
        from uuid import uuid4

        copy = str(uuid4())
        try:
            await fork(path, self._store.expected_path(copy, spec.cwd), copy, spec.cwd)
        except FileNotFoundError as exc:
            raise SessionNotFound(session_id) from exc
        return copy

    async def archive(self, session_id: str, archived: bool) -> None:
        """Take the mark of another adapter out of the title; see `Backend.archive`."""
        from acp_manifold.translators.claude.archive import visible

        row = await self._store.find(session_id)
        if row is None:
            raise SessionNotFound(session_id)
        if archived or not row.archived:
            return
        title = visible(row.title or "")
        live = self._life.live.get(session_id) if self._life is not None else None
        if live is not None:
            await live.rename(title)
        else:
            await self._write_title(session_id, lambda: title)

    async def rename(self, session_id: str, title: str) -> str:
        """Title a session at rest; see `Backend.rename`. One whose title says that it is archived stays so."""
        from acp_manifold.translators.claude.archive import PREFIX, visible

        store = self._store

        def marked() -> str:
            return f"{PREFIX if store.is_archived(session_id) else ''}{visible(title)}"

        return visible(await self._write_title(session_id, marked))

    async def _write_title(self, session_id: str, title: Callable[[], str]) -> str:
        """Write a title at rest, all in one visit of a thread, and guard it.

        Args:
            session_id: Whose.
            title: Gives it; called in that thread.
        """
        from anyio import to_thread

        from acp_manifold.adapters.claude.at_rest import write_title

        guards = self._life.guards if self._life is not None else None
        store = self._store

        def write() -> Guard | str:
            path = store.locate(session_id)
            if path is None:
                raise SessionNotFound(session_id)
            if guards is None:
                return write_title(path, session_id, title())
            return guards.write(path, session_id, title())

        try:
            written = await to_thread.run_sync(write)
        except FileNotFoundError as exc:
            raise SessionNotFound(session_id) from exc
        except OSError as exc:
            raise BackendFault(f"The title of session {session_id} can't be stored: {exc.strerror}") from exc
        if guards is None or isinstance(written, str):
            return str(written)
        guards.begin(written)
        return written.title

    async def delete(self, session_id: str) -> bool:
        """Remove a session for good; see `Backend.delete`."""
        from anyio import to_thread

        from acp_manifold.adapters.claude.kept import Kept
        from acp_manifold.adapters.claude.lock import lock_folder, locked

        if await to_thread.run_sync(self._store.locate, session_id) is None:
            return True

        await self.refuse_if_held(session_id)
        # An agent that has opened it just now is in no registry yet.
        with locked(lock_folder(), session_id):
            if self._life is not None:
                self._life.guards.end(session_id)
            try:
                await to_thread.run_sync(self._store.delete, session_id)
            except OSError as exc:
                raise BackendFault(f"{exc.filename} can't be deleted: {exc.strerror}") from exc
            Kept(session_id).forget()
        return True

    def lab(self, folder: Path, model_url: str) -> dict[str, str]:
        """A private store and a scripted model; see `Backend.lab`."""
        from acp_manifold.adapters.claude.lab import prepare

        return prepare(folder, model_url)

    async def _path(self, session_id: str) -> Path:
        from anyio import to_thread

        path = await to_thread.run_sync(self._store.locate, session_id)
        if path is None or await self._store.find(session_id) is None:
            raise SessionNotFound(session_id)
        return path

    @property
    def _store(self) -> Store:
        from acp_manifold.adapters.claude.store import Store
        from acp_manifold.bridge.ledger import state_directory

        folder = config_dir(self._environ)
        if folder not in self._stores:
            index = state_directory(self._environ) / "claude-index.sqlite3"
            self._stores[folder] = store = Store(folder, index)
            if self._life is not None:
                self._life.tasks.start_soon(store.tend)
        return self._stores[folder]

    @property
    def _running_life(self) -> Life:
        if self._life is None:
            raise RuntimeError("the Claude Code backend is not running: enter `running` first")
        return self._life
