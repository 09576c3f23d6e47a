"""What the sessions of the backend share while it runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.carried import Carried


@asynccontextmanager
async def living() -> AsyncGenerator[Life]:
    """The life of the backend in one hub; its tasks end with it."""
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        try:
            yield Life(tasks)
        except Exception as exc:
            failure = exc  # Carried past the task group, which would wrap it.
        finally:
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


class Life:
    """One for each `ClaudeBackend.running`."""

    def __init__(self, tasks: TaskGroup) -> None:
        self.tasks = tasks
        self.carried: dict[str, Carried] = {}
        """By session id, for as long as the session is followed."""
        self.pids: set[int] = set()
        """Our own processes: to others, they are what holds a session."""

    @asynccontextmanager
    async def owning(self, pid: int) -> AsyncGenerator[None]:
        """A process is ours for as long as the context is open."""
        self.pids.add(pid)
        try:
            yield
        finally:
            self.pids.discard(pid)
