"""What the replayed backends have in the place of a program, its processes and a login."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from acp_manifold.adapters.replay.stage import Stage
from acp_manifold.adapters.replay.transport import Replayed
from acp_manifold.bridge.backend import AuthMethod, Inspection, Login, Program
from acp_manifold.bridge.starting import Launch
from acp_manifold.bridge.taps import taps
from acp_manifold.bridge.transport import Spawn
from acp_manifold.translators.auth import AuthStatus


class ReplayedBackend:
    """Stands before an adapter's own class, and replaces what of it asks for the real CLI.

    Args:
        stage: The private world; whoever made it closes it.
        store: The CLI's store in it.
        version: Of the CLI that was recorded.
    """

    name: str
    spawn: Spawn | None

    def __init__(self, stage: Stage, store: Path, version: str | None) -> None:
        super().__init__()
        self.stage = stage
        self._place = store
        self._version = version
        self.spawn = self._played

    def program(self) -> Program | None:
        """The recording; see `Backend.program`."""
        return Program((self.name,), "a recording", self._version or "unknown")

    @property
    def auth_methods(self) -> tuple[AuthMethod, ...]:
        """None that would be needed; see `Backend.auth_methods`."""
        return (AuthMethod("replay", "A recording", "Nothing is to be done: a recording needs no login."),)

    def prestart(self) -> None:
        """Nothing: a recording is up at once."""

    async def login(self) -> Login:
        """See `Backend.login`."""
        return "in"

    async def status(self) -> AuthStatus:
        """See `Backend.status`."""
        return AuthStatus("authenticated")

    async def authenticate(self, method: AuthMethod, key: str | None) -> None:
        """See `Backend.authenticate`."""

    async def logout(self) -> None:
        """See `Backend.logout`."""

    async def inspect(self) -> Inspection:
        """See `Backend.inspect`."""
        return Inspection(self._version, self._place, None)

    def transport(self, launch: Launch) -> Replayed:
        """What plays in the place of a process.

        Raises:
            BackendGone: No recording has it.
        """
        raise NotImplementedError

    @asynccontextmanager
    async def _played(self, launch: Launch) -> AsyncGenerator[Replayed]:
        """Play a process for as long as the context is open; see `process.spawn`."""
        replayed = self.transport(launch)
        replayed.place = taps.open("backend", self.name, launch.session, launch.command)
        taps.note(replayed.place, {"note": "start"})
        try:
            yield replayed
        finally:
            asked = not replayed.exited
            replayed.end()
            taps.ended(replayed.place, replayed.how, asked=asked, said=replayed.stderr_tail)
