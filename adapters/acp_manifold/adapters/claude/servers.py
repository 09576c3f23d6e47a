"""The MCP servers of one process: who is told that one can't be used, or that one holds the first prompt up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Literal

import anyio
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.control import Control
from acp_manifold.bridge.backend import SessionEvents
from acp_manifold.bridge.errors import BackendFault
from acp_manifold.translators.claude.frames import FAULTS, Init
from acp_manifold.translators.narrow import JsonObject, as_objects, text
from acp_manifold.translators.updates import Notice

logger = logging.getLogger(__name__)

PATIENCE: Final = 3.0
"""Seconds after the first prompt until it is told that MCP servers hold it up: Claude Code 2.1.332 begins when those of
its command line are up, or have had 30 s."""


class McpServers:
    """Told by the session of the head of each turn."""

    def __init__(
        self,
        own: frozenset[str],
        told: set[str],
        control: Control,
        tasks: TaskGroup,
        events: SessionEvents,
        name: str,
    ) -> None:
        """
        Args:
            own: The names of those that the client has given to the session.
            told: Those whose fault was told, whatever process served the session then.
            control: How to ask the process.
            tasks: The session's task group.
            events: Whom to tell.
            name: Whom log lines speak of.
        """
        self._own = own
        self._told = told
        self._control = control
        self._tasks = tasks
        self._events = events
        self._name = name
        self._begun = anyio.Event()
        """Set with the head of the first turn."""

    def prompted(self, over: Callable[[], bool]) -> None:
        """A prompt was sent; `over` says whether its turn has ended."""
        if self._own and not self._begun.is_set():
            self._tasks.start_soon(self._tell_of_wait, over)

    def turn_began(self, frame: Init) -> None:
        """Tell of servers that can't be used, each once until it works."""
        self._begun.set()
        if not frame.mcp_servers:
            return
        self._told -= {name for name, state in frame.mcp_servers if state == "connected"}
        new = {name for name, state in frame.mcp_servers if state in FAULTS} - self._told
        if new:
            self._told |= new
            self._tasks.start_soon(self._tell_faults, new)

    async def _tell_of_wait(self, over: Callable[[], bool]) -> None:
        with anyio.move_on_after(PATIENCE):
            await self._begun.wait()
        if self._begun.is_set() or over():
            return
        states = await self._states("what holds up the first prompt")
        late = [text(state, "name") for state in states if text(state, "status") == "pending"]
        late = [name for name in late if name in self._own]
        if late and not self._begun.is_set() and not over():
            words = "It begins when they are up, and without them after 30 seconds."
            self._events.update(Notice("info", f"Claude Code waits for MCP servers: {', '.join(late)}", words))

    async def _tell_faults(self, names: set[str]) -> None:
        from acp_manifold.translators.claude.reports import fault

        states = await self._states(f"why {sorted(names)} can't be used")
        why = {text(entry, "name"): fault(entry) for entry in states}
        for name in sorted(names):
            # Of the person's own servers it is enough to be told where that is no message in the conversation.
            severity: Literal["error", "warning"] = "error" if name in self._own else "warning"
            logger.warning("%s: MCP server %s: %s", self._name, name, why.get(name))
            self._events.update(Notice(severity, f"MCP server {name} can't be used", why.get(name)))

    async def _states(self, wanted: str) -> list[JsonObject]:
        """How they do; none if that can't be found out."""
        from acp_manifold.adapters.claude.commands import server_states

        try:
            return as_objects((await server_states(self._control)).get("mcpServers"))
        except BackendFault as exc:
            logger.info("%s: %s is not known: %s", self._name, wanted, exc.message)
            return []
