"""A process for a session, from its command line to the end of all that belongs to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.command import arguments, mcp_config_file
from acp_manifold.adapters.claude.life import Life
from acp_manifold.adapters.claude.live_title import NAME
from acp_manifold.adapters.claude.lock import lock_folder, locked
from acp_manifold.adapters.claude.session import ClaudeSession
from acp_manifold.adapters.claude.store import Store
from acp_manifold.bridge import process
from acp_manifold.bridge.backend import Host, SessionEvents, SessionSpec
from acp_manifold.bridge.errors import BackendGone
from acp_manifold.bridge.starting import Launch
from acp_manifold.bridge.taps import taps
from acp_manifold.bridge.transport import Spawn


@asynccontextmanager
async def serve(
    command: tuple[str, ...],
    env: Mapping[str, str],
    spec: SessionSpec,
    events: SessionEvents,
    host: Host,
    store: Store,
    session_id: str,
    life: Life,
    *,
    resumed: bool,
    spawn: Spawn | None = None,
) -> AsyncGenerator[ClaudeSession, None]:
    """Run a process for a session for as long as the context is open.

    Args:
        command: The CLI.
        env: Its whole environment.
        spec: Where and with what.
        events: Whom to tell.
        host: Whom to tell of titles.
        store: Where its transcripts are.
        session_id: The session.
        life: What the sessions of the backend share.
        resumed: Whether it is in the store, and to be gone on with.
        spawn: Runs it; None: as a real process.

    Raises:
        InvalidRequest: Another agent has the session.
        BackendGone: It can't be started.
    """
    carried = life.carry(session_id, stored=resumed)
    with locked(lock_folder(), session_id) as lock, mcp_config_file(spec.mcp_servers) as mcp_config:
        words = arguments(session_id, resume=resumed, spec=spec, mcp_config=mcp_config, carried=carried)
        name = f"{NAME} {session_id[:8]}"
        launch = Launch((*command, *words), spec.cwd, env, name, backend=NAME, session=session_id)
        async with (spawn or process.spawn)(launch) as child:
            # The end of an input without a prompt costs Claude Code 2.1.332 0.4 s of CPU, a signal 0.1 s.
            child.unused = True

            def made(tasks: TaskGroup) -> ClaudeSession:
                session = ClaudeSession(
                    session_id,
                    child,
                    tasks,
                    spec,
                    events,
                    host,
                    store,
                    resumed,
                    life,
                    carried,
                    lock,
                    life.shelf.mark(command),
                )
                if mcp_config is not None:
                    tasks.start_soon(_take_away, mcp_config, session)
                return session

            async with life.serve(child.pid, made) as session:
                with kept(store, NAME, session_id, spec.cwd):
                    yield session


@contextmanager
def kept(store: Store, backend: str, session_id: str, cwd: str) -> Generator[None]:
    """Whoever listens is told where the CLI keeps a session, for as long as the context is open."""
    taps.keep(backend, session_id, store.root, lambda: store.expected_path(session_id, cwd))
    try:
        yield
    finally:
        taps.forget(backend, session_id)


async def _take_away(mcp_config: Path, session: ClaudeSession) -> None:
    """The CLI has read the file by its handshake: nothing of it need be there should we be killed."""
    try:
        await session.ready()
    except BackendGone:
        return  # The end of the session takes it away.
    await anyio.Path(mcp_config).unlink(missing_ok=True)
