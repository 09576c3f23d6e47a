"""The title of a session whose process is ours: kept until there is a store for it, then set through the process.

The owning process must do it: it keeps the title in memory and writes it again every so often, over
whatever another program put into the transcript (measured, Claude Code 2.1.332). What is told back
is read from the transcript.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.control import Control, Pending
from acp_manifold.adapters.claude.store import Store
from acp_manifold.bridge.backend import Host, SessionSpec
from acp_manifold.bridge.errors import BackendFault, BackendGone
from acp_manifold.translators.narrow import JsonObject

logger = logging.getLogger(__name__)

RENAME_LIMIT: Final = 10.0
"""Seconds for the answer to a rename: 3 ms when idle or in mid-turn, 20 ms with a question open (2.1.332)."""

READ_BACK_LIMIT: Final = 2.0
"""Seconds for the record to appear in a transcript that the first prompt is only about to make."""


class LiveTitle:
    """One for each process."""

    def __init__(
        self,
        session_id: str,
        spec: SessionSpec,
        host: Host,
        store: Store,
        control: Control,
        ready: Callable[[], Awaitable[None]],
        *,
        stored: bool,
        name: str,
    ) -> None:
        self._id = session_id
        self._cwd = spec.cwd
        self._host = host
        self._store = store
        self._control = control
        self._ready = ready
        self._stored = stored
        self._name = name
        self._kept = spec.title

    def write_first(self, tasks: TaskGroup) -> None:
        """The first user message is about to be sent: send the kept title ahead of it."""
        self._stored = True
        kept, self._kept = self._kept, None
        if kept is not None:
            tasks.start_soon(self._confirm, self._control.post(self._request(kept)))

    async def rename(self, title: str) -> str:
        """Set the title and give back what is stored.

        Raises:
            BackendFault: The CLI refused, or has stored nothing in time.
            BackendGone: The process ended.
        """
        if not self._stored:
            self._kept = title
            return title
        self._kept = None
        await self._ready()
        before = await to_thread.run_sync(self._store.size, self._id)
        await self._control.request(self._request(title), RENAME_LIMIT)
        return await self._read_back(before)

    def _request(self, title: str) -> JsonObject:
        # `host`: under `remote`, the default, it would count as renamed from another machine.
        return {"subtype": "rename_session", "title": title, "source": "host", "session_id": self._id}

    async def _confirm(self, pending: Pending) -> None:
        try:
            await self._control.settle(pending, RENAME_LIMIT)
        except BackendGone:
            pass  # The prompt that follows tells it.
        except BackendFault as exc:
            logger.warning("%s: the title set before the first prompt was not stored: %s", self._name, exc.message)

    async def _read_back(self, before: int) -> str:
        """The title record written behind the first `before` bytes of the transcript."""
        changed = anyio.Event()

        def wake() -> None:
            changed.set()

        stop = self._host.watch(self._store.expected_path(self._id, self._cwd), wake)
        try:
            with anyio.move_on_after(READ_BACK_LIMIT):
                while True:
                    stored = await to_thread.run_sync(self._store.custom_title_after, self._id, before)
                    if stored is not None:
                        return stored
                    await changed.wait()
                    changed = anyio.Event()
        finally:
            stop()
        stored = await to_thread.run_sync(self._store.custom_title_after, self._id, before)
        if stored is None:
            raise BackendFault(f"Claude Code took the title of session {self._id} but has not stored it; set it again")
        return stored
