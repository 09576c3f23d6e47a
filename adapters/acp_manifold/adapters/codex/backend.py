"""Codex as a backend of the hub: one app-server, started early (`early`) or when first needed, and again after it died.

Importing this is cheap, since backends are found before the event loop and the bridge are imported.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from acp_manifold.bridge.backend import (
    AuthMethod,
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
from acp_manifold.bridge.errors import BackendGone, LoginNeeded, SessionNotFound

from . import program as programs
from .config import names_of, refuse_what_is_not_taken, thread_params
from .ids import is_thread_id
from .limits import Limits

if TYPE_CHECKING:
    from acp_manifold.bridge.transport import Spawn
    from acp_manifold.translators.auth import AuthStatus
    from acp_manifold.translators.updates import Update

    from .life import Life
    from .server import AppServer
    from .session import CodexSession

logger = logging.getLogger(__name__)


class CodexBackend:
    """The backend `codex`. See `bridge.backend.Backend` for what each method promises."""

    name = "codex"
    label = "Codex"
    install_hint = "pip install openai-codex-cli-bin, or npm install -g @openai/codex"
    mcp_sse = False
    has_archive = True
    store_of = "codex"
    endpoint_types: tuple[str, ...] = ("openai",)
    spawn: Spawn | None = None
    """What runs the app-server; None: it is real."""

    def __init__(self) -> None:
        self.limits = Limits()
        """How long the app-server may take."""
        self._life: Life | None = None

    def program(self) -> Program | None:
        """The CLI to start, or None."""
        return programs.find_program()

    @property
    def auth(self) -> AuthMethod:
        """How to log in, by the program that is there."""
        return self.auth_methods[0]

    @property
    def auth_methods(self) -> tuple[AuthMethod, ...]:
        """Every way to log in."""
        shown = programs.login_command()
        program = self.program()
        command = (*(program.command if program is not None else ("codex",)), "login")
        return (
            AuthMethod(
                "codex-login",
                "Log in with the Codex CLI",
                f"Run `{shown} login` in a terminal for a ChatGPT account, or "
                f"`printenv OPENAI_API_KEY | {shown} login --with-api-key` for an API key.",
                command,
            ),
            AuthMethod(
                "codex-device",
                "Log in with the Codex CLI, in a browser on another device",
                f"Run `{shown} login --device-auth` in a terminal.",
                (*command, "--device-auth"),
            ),
            AuthMethod(
                "codex-api-key",
                "Codex with an OpenAI API key",
                "Codex stores the key that the editor sends, or the one in CODEX_API_KEY or OPENAI_API_KEY of this "
                "agent's environment, as its login.",
                key_of="openai",
            ),
        )

    def login_environment(self) -> dict[str, str]:
        """The person's environment; see `Backend.login_environment`."""
        return programs.person_environment()

    @asynccontextmanager
    async def running(self, host: Host) -> AsyncGenerator[None]:
        """The backend's life in the hub."""
        from .life import living

        async with living(self, host) as self._life:
            try:
                yield
            finally:
                self._life = None

    async def warm_up(self) -> None:
        """Start the app-server; an error is kept for the first request that needs it."""
        await self._living.warm_up()

    async def login(self) -> Login:
        """Whether Codex has a login."""
        from .login import login_of

        return await login_of(self._server, programs.codex_home())

    async def status(self) -> AuthStatus:
        """The login for people; see `Backend.status`."""
        from . import accounts

        return await accounts.status(self._server, programs.codex_home())

    async def authenticate(self, method: AuthMethod, key: str | None) -> None:
        """Store a key that is given, or look whether there is a login now; see `Backend.authenticate`.

        A key in the environment takes the place of no login that there is.
        """
        from . import accounts

        if method.key_of is not None:
            if key is None and (await self.status()).state == "unauthenticated":
                key = accounts.key_in_environment()
            if key is not None:
                await accounts.log_in(await self._living.need(), key)
        if (await self.status()).state == "unauthenticated":
            raise LoginNeeded(f"{self.label} has no login yet. {method.description}")

    async def logout(self) -> None:
        """End the stored login; see `Backend.logout`."""
        from . import accounts

        if accounts.has_stored_login(programs.codex_home()) or self._server is not None:
            await accounts.logout(await self._living.need())

    def login_files(self) -> tuple[Path, ...]:
        """See `Backend.login_files`."""
        from . import accounts

        return (accounts.auth_file(programs.codex_home()),)

    @property
    def _server(self) -> AppServer | None:
        return self._life.server if self._life is not None else None

    async def inspect(self) -> Inspection:
        """The CLI, its store and who has it open."""
        from .inspect import inspection

        return await inspection(self.program())

    async def _has_login(self) -> None:
        """A client's endpoint counts as a login."""

    async def _no_login(self) -> LoginNeeded | None:
        """Why no session can be begun, if it is certain that there is no login."""
        return LoginNeeded.at_start(self.label, self.auth.description) if await self.login() == "out" else None

    @asynccontextmanager
    async def session(
        self, spec: SessionSpec, events: SessionEvents, *, resume: str | None = None
    ) -> AsyncGenerator[CodexSession]:
        """Serve a thread for as long as the context is open."""
        life = self._living
        if resume is not None and not is_thread_id(resume):
            raise SessionNotFound(resume)
        refuse_what_is_not_taken(spec.mcp_servers)
        server = await life.need()
        names = await _names(server, spec)
        # Asked for before the import, since the answer takes longer. Nothing is awaited between the two.
        new = server.client.begin("thread/start", thread_params(spec, names)) if resume is None else None
        from .session import open_session

        no_login = self._no_login if spec.endpoint is None else self._has_login
        async with open_session(
            server, spec, names, events, life.remember, new or resume or "", no_login, life.shelf
        ) as session:
            yield session

    @contextmanager
    def follow(self, session_id: str, cwd: str) -> Generator[None]:
        """Report titles that other programs give a thread."""
        life = self._living
        with life.index.follow(session_id):
            try:
                yield
            finally:
                life.forget(session_id)

    @contextmanager
    def follow_list(self, cwd: str, changed: Callable[[str | None], None]) -> Generator[None]:
        """Report changes of Codex' table of threads, which all its processes write."""
        from .changes import follow_threads

        with follow_threads(programs.codex_home(), self._living.host, changed):
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

    async def replay(
        self, session_id: str, emit: Callable[[Update], None], room: Callable[[], Awaitable[None]] = no_wait
    ) -> None:
        """Tell the whole history of a thread."""
        if not is_thread_id(session_id):
            raise SessionNotFound(session_id)
        from .store import replay_thread

        await replay_thread(await self._living.need(), session_id, emit, room)

    async def refuse_if_held(self, session_id: str) -> None:
        """Look at the writer lock of a thread, where the system tells of locks, and whether it is archived."""
        from .archive import refuse_if_held

        await refuse_if_held(await self._living.need(), programs.codex_home(), session_id)

    async def fork(self, session_id: str, spec: SessionSpec) -> str:
        """Copy a thread."""
        if not is_thread_id(session_id):
            raise SessionNotFound(session_id)
        refuse_what_is_not_taken(spec.mcp_servers)
        from .archive import fork_thread

        server = await self._living.need()
        return await fork_thread(server, session_id, thread_params(spec, await _names(server, spec)))

    async def archive(self, session_id: str, archived: bool) -> None:
        """Put a thread into Codex' archive, or take it out."""
        if not is_thread_id(session_id):
            raise SessionNotFound(session_id)
        from .archive import archive_thread

        await archive_thread(await self._living.need(), session_id, archived)

    async def rename(self, session_id: str, title: str) -> str:
        """Title a thread that is at rest; it need not be loaded."""
        if not is_thread_id(session_id):
            raise SessionNotFound(session_id)
        from .store import set_name

        return await set_name(await self._living.need(), session_id, title)

    async def delete(self, session_id: str) -> bool:
        """Remove a thread for good, unless copies of it are built on it; see `Backend.delete`."""
        if not is_thread_id(session_id):
            return True
        from .archive import delete_thread

        return await delete_thread(await self._living.need(), session_id)

    def lab(self, folder: Path, model_url: str) -> dict[str, str]:
        """Make a private home for the scripted model."""
        from .lab import make_lab

        return make_lab(folder, model_url)

    @property
    def _living(self) -> Life:
        if self._life is None:
            raise BackendGone("The Codex backend is not running")
        return self._life


async def _names(server: AppServer, spec: SessionSpec) -> dict[str, str]:
    """What Codex is to call the client's MCP servers; see `config.names_of`."""
    return names_of(spec.mcp_servers, await server.configured_servers(spec.cwd)) if spec.mcp_servers else {}
