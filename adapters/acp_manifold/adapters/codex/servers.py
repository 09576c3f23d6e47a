"""The MCP servers of one thread: what each is called on either side, how it does, and who is told of a fault."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Literal

from acp_manifold.bridge.backend import SessionEvents
from acp_manifold.translators.narrow import JsonObject, text
from acp_manifold.translators.updates import Notice

logger = logging.getLogger(__name__)


class McpServers:
    """Told by the thread of every `mcpServer/startupStatus/updated`."""

    def __init__(self, names: Mapping[str, str], told: set[tuple[str, str]], events: SessionEvents) -> None:
        """
        Args:
            names: The client's name of each of its servers -> Codex'; see `config.names_of`.
            told: Thread and server of each fault that was told, whatever became of the thread since.
            events: Whom to tell.
        """
        self.names = names
        self.given = {used: given for given, used in names.items() if used != given}
        """Codex' name of a server -> the client's, where they differ."""
        self.faults: dict[str, str] = {}
        """Codex' name of a server -> why it did not start."""
        self._told = told
        self._events = events
        self._known: set[str] = set()

    @property
    def of_the_person(self) -> set[str]:
        """The servers that are configured for all sessions."""
        return self._known - set(self.names.values())

    def changed(self, thread_id: str, params: JsonObject) -> None:
        """A server starts, is ready, or failed. A fault is told once, until the server has worked."""
        name, status = text(params, "name"), text(params, "status")
        self._known.add(name)
        if status == "failed":
            self._failed(thread_id, name, text(params, "error"))
        elif status == "ready":
            self.faults.pop(name, None)
            self._told.discard((thread_id, name))

    def _failed(self, thread_id: str, name: str, error: str) -> None:
        from acp_manifold.translators.codex.reports import shortened

        why = self.faults[name] = shortened(error) or "Codex does not say why"
        logger.warning("codex session %s: MCP server %s: %s", thread_id, name, why)
        if (thread_id, name) not in self._told:
            self._told.add((thread_id, name))
            # Of the person's own servers it is enough to be told where that is no message in the conversation.
            severity: Literal["error", "warning"] = "error" if name in self.names.values() else "warning"
            self._events.update(Notice(severity, f"MCP server {self.given.get(name, name)} can't be used", why))
