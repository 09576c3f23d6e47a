"""What the sessions of the backend share while it runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from acp_manifold.adapters.claude.carried import Carried


class Life:
    """One for each `ClaudeBackend.running`."""

    def __init__(self) -> None:
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
