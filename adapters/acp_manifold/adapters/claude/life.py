"""What the sessions of the backend share while it runs."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from acp_manifold.bridge.backend import Host
from acp_manifold.bridge.ledger import state_directory

if TYPE_CHECKING:
    from acp_manifold.adapters.claude.carried import Carried
    from acp_manifold.adapters.claude.guards import Guards
    from acp_manifold.adapters.claude.shelf import Shelf

logger = logging.getLogger(__name__)


class Serving(Protocol):
    """A session that a process of ours serves, in whatever way."""

    @property
    def id(self) -> str:
        """The session."""
        ...

    def title_appended(self, title: str) -> bool:
        """A title was appended to its transcript; True if it is out of date."""
        ...

    async def rename(self, title: str) -> str:
        """See `BackendSession.rename`."""
        ...

    async def run(self) -> None:
        """Serve until the process has ended."""
        ...

    def close(self) -> None:
        """The session is let go."""
        ...


S = TypeVar("S", bound=Serving)


class Life:
    """One for each `ClaudeBackend.running`."""

    def __init__(self, host: Host, config: Path, tasks: TaskGroup) -> None:
        self.host = host
        self.tasks = tasks
        self._config = config
        self.carried: dict[str, Carried] = {}
        """By session id, for as long as the session is followed."""
        self.pids: set[int] = set()
        """Our own processes: to others, they are what holds a session."""
        self.live: dict[str, Serving] = {}
        """Who serves which session now."""
        self._guards: Guards | None = None
        self._guard_files = state_directory() / "claude-titles"
        self._shelf: Shelf | None = None

    @property
    def guards(self) -> Guards:
        """Titles that are kept in transcripts that others have open. Imported with the first look at a title."""
        if self._guards is None:
            from acp_manifold.adapters.claude.guards import Guards

            self._guards = Guards(self._guard_files, self._config, self.host, self.tasks, self.pids, self.live)
        return self._guards

    def take_up_guards(self) -> None:
        """Go on with what an earlier life of the agent, or another agent, guards, if there is anything."""
        try:
            names = os.listdir(self._guard_files)
        except FileNotFoundError:
            return
        except OSError as exc:
            logger.warning("claude: what was guarded can't be read: %s", exc)
            return
        if any(name.endswith(".json") for name in names):
            self.guards.take_up()

    @property
    def shelf(self) -> Shelf:
        """What the CLI offered last. Imported with the first session."""
        if self._shelf is None:
            from acp_manifold.adapters.claude.shelf import FILE, Shelf

            self._shelf = Shelf(state_directory() / FILE, os.environ)
        return self._shelf

    async def refuse_if_held(self, session_id: str) -> None:
        """See `registry.refuse_if_held`."""
        from acp_manifold.adapters.claude.registry import refuse_if_held

        await to_thread.run_sync(refuse_if_held, self._config, session_id, frozenset(self.pids))

    @contextmanager
    def serving(self, pid: int, session: Serving) -> Generator[None]:
        """A process of ours serves a session for as long as the context is open."""
        self.pids.add(pid)
        self.live[session.id] = session
        try:
            yield
        finally:
            self.pids.discard(pid)
            for session_id in [known for known, live in self.live.items() if live is session]:
                del self.live[session_id]

    @asynccontextmanager
    async def serve(self, pid: int, make: Callable[[TaskGroup], S]) -> AsyncGenerator[S]:
        """A session that a process of ours serves for as long as the context is open; all of it ends with that.

        Args:
            pid: The process.
            make: Makes the session; gets the scope of its tasks.
        """
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            session = make(tasks)
            tasks.start_soon(session.run)
            try:
                with self.serving(pid, session):
                    yield session
            except Exception as exc:
                # Carried past the task group, which would wrap it: the caller is to see it as it was raised.
                failure = exc
            finally:
                session.close()
                tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    def carry(self, session_id: str, *, stored: bool) -> Carried:
        """What a session keeps from one process to the next.

        Args:
            session_id: Which.
            stored: Whether it is in the store, so that an agent before this one may have kept something for it.
        """
        carried = self.carried.get(session_id)
        if carried is None:
            from acp_manifold.adapters.claude.carried import Carried
            from acp_manifold.adapters.claude.kept import Kept

            carried = self.carried[session_id] = Carried()
            carried.keep_in(Kept(session_id), known=stored)
        return carried

    def moved(self, session: Serving, carried: Carried) -> None:
        """A session goes by another id from now on."""
        from acp_manifold.adapters.claude.kept import Kept

        self.live[session.id] = session
        self.carried[session.id] = carried
        carried.keep_in(Kept(session.id))
        carried.keep()


@asynccontextmanager
async def living(host: Host, config: Path) -> AsyncGenerator[Life]:
    """The life of the backend in one hub; everything of it ends with the context."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        life = Life(host, config, tasks)
        life.take_up_guards()
        try:
            yield life
        except Exception as exc:
            # Carried past the task group, which would wrap it: the caller is to see it as it was raised.
            failure = exc
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
