"""A client's news of logins: `auth/status_update`, to one that has asked for the status, whenever it is another one.

Nothing is watched for a client that has never asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from acp_manifold.translators.acp import auth
from acp_manifold.translators.narrow import JsonObject

from .logins import statuses

if TYPE_CHECKING:
    from .hub import Hub

logger = logging.getLogger(__name__)


class AuthNews:
    """What one client was told last, and the watch for anything else."""

    def __init__(self, hub: Hub, notify: Callable[[str, JsonObject], None]) -> None:
        self._hub = hub
        self._notify = notify
        self._told: JsonObject | None = None
        self._looking = False
        self._stale = False
        self._watches = ExitStack()

    async def asked(self) -> JsonObject:
        """The answer to `auth/status`; from the first one on the client hears of changes."""
        first = self._told is None
        if first:
            self._told = {}
            for backend in self._hub.backends.values():
                for path in backend.login_files():
                    self._watches.callback(self._hub.watch(path, self.look))
            self._hub.login_listeners.append(self.look)
            self._watches.callback(self._hub.login_listeners.remove, self.look)
        self._told = await self._status()
        return self._told

    def look(self) -> None:
        """Something may have changed: find out, and tell. What comes meanwhile is found out afterwards."""
        self._stale = True
        if not self._looking:
            self._looking = True
            self._hub.start_soon(self._look)

    async def _look(self) -> None:
        try:
            while self._stale:
                self._stale = False
                status = await self._status()
                if self._told is not None and status != self._told:
                    self._told = status
                    self._notify("auth/status_update", status)
        finally:
            self._looking = False

    async def _status(self) -> JsonObject:
        return auth.status_result(self._hub.default.name, await statuses(self._hub))

    def close(self) -> None:
        """The client is gone."""
        self._told = None
        self._watches.close()
