"""A session list that is followed: what changes in it is told, in few messages, for as long as somebody listens.

Changes come from the files of the stores, whoever wrote them, and from the sessions that are open
here. They are gathered until nothing came for a moment, then the rows are looked up, and those
that differ from what was told last are told. Nothing is polled, and nothing is read while nothing changes.
"""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial

import anyio
from anyio import to_thread

from acp_manifold.translators.acp.index import changes_params
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.values import NamedTuple

from .backend import Backend, ListQuery, SessionRow
from .errors import BridgeError, InvalidParams
from .hub import Hub
from .index_rows import rendered
from .ledger import Key
from .worktrees import same_place_in_worktrees

logger = logging.getLogger(__name__)

MAX_SUBSCRIPTIONS = 128
"""Of one connection."""

QUIET = 0.15
"""Seconds without a change before what has changed is told."""

LONGEST_WAIT = 1.0
"""Seconds after the first change when it is told at the latest."""

AT_MOST_EVERY = 1.0
"""Seconds between two messages about one session."""

NEWEST = 100
"""How many rows of a backend are compared when nobody knows which has changed."""


class _Told(NamedTuple):
    signature: str
    at: float


class LiveLists:
    """The subscriptions of one connection."""

    def __init__(self, hub: Hub, tell: Callable[[JsonObject], None]) -> None:
        """
        Args:
            hub: Whose list it is.
            tell: Takes the params of each `_session/list/changes`.
        """
        self._hub = hub
        self._tell = tell
        self._scopes: dict[str, anyio.CancelScope] = {}

    def subscribe(self, cwd: str) -> str:
        """Follow the sessions of a directory, those of its linked worktrees among them; gives the subscription's id.

        Raises:
            InvalidParams: There are too many.
        """
        if len(self._scopes) >= MAX_SUBSCRIPTIONS:
            raise InvalidParams(
                f"{MAX_SUBSCRIPTIONS} session lists are followed on this connection already: unsubscribe from one",
                {"reason": "too_many_subscriptions", "max": MAX_SUBSCRIPTIONS},
            )
        name, scope = str(uuid.uuid4()), anyio.CancelScope()
        followed = _Followed(self._hub, cwd, lambda rows, gone: self._tell(changes_params(name, rows, gone)))
        self._scopes[name] = scope
        self._hub.start_soon(partial(self._run, name, followed, scope))
        return name

    def unsubscribe(self, name: str) -> None:
        """End one, if there is one of that name."""
        scope = self._scopes.pop(name, None)
        if scope is not None:
            scope.cancel()

    def close(self) -> None:
        """End all."""
        for name in list(self._scopes):
            self.unsubscribe(name)

    async def _run(self, name: str, followed: _Followed, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await followed.run()
            except Exception:
                logger.exception("session list %s is not followed any more", name)
        followed.close()
        self._scopes.pop(name, None)


class _Followed:
    """One list that is followed, from when it is made until `close`; what has changed is told while `run` runs."""

    def __init__(self, hub: Hub, cwd: str, tell: Callable[[list[JsonObject], list[str]], None]) -> None:
        self._hub = hub
        self._cwd = cwd
        self._tell = tell
        self._places: frozenset[str] = frozenset()
        self._dirty: set[Key] = set()
        self._doubted: set[str] = set()
        """Backends of which any row may have changed."""
        self._news = anyio.Event()
        self._known: dict[Key, tuple[str, SessionRow]] = {}
        """The rows compared last, with our ids."""
        self._told: dict[Key, _Told] = {}

        self._stack = ExitStack()
        self._stack.enter_context(hub.listening(self._own))
        self._follow(cwd)

    def _follow(self, directory: str) -> None:
        for backend in self._hub.backends.values():
            self._stack.enter_context(backend.follow_list(directory, partial(self._heard, backend.name)))

    def close(self) -> None:
        """Listen to nothing any more."""
        self._stack.close()

    async def run(self) -> None:
        """Tell what changes, until cancelled."""
        directories = await to_thread.run_sync(same_place_in_worktrees, self._cwd)
        self._places = frozenset(map(os.path.realpath, directories))
        for directory in directories[1:]:
            self._follow(directory)
        await self._begin(directories)
        while True:
            await self._gather()
            await self._look(directories)

    def _own(self, key: Key) -> None:
        self._dirty.add(key)
        self._news.set()

    def _heard(self, backend: str, session_id: str | None) -> None:
        if session_id is None:
            self._doubted.add(backend)
        else:
            self._dirty.add(Key(backend, session_id))
        self._news.set()

    async def _gather(self) -> None:
        """Wait for a change, and then until there are no more for a moment."""
        # What was held back, since it was told just now, is due without anything new.
        due = min(map(self._due, self._dirty), default=None)
        with anyio.move_on_at(due) if due is not None else anyio.CancelScope():
            await self._news.wait()
        latest = anyio.current_time() + LONGEST_WAIT
        while self._news.is_set():
            self._news = anyio.Event()
            with anyio.move_on_at(min(latest, anyio.current_time() + QUIET)):
                await self._news.wait()
            if anyio.current_time() >= latest:
                self._news = anyio.Event()

    def _due(self, key: Key) -> float:
        """When a session may be told of again."""
        told = self._told.get(key)
        return told.at + AT_MOST_EVERY if told is not None else 0.0

    async def _begin(self, directories: Iterable[str]) -> None:
        """Note what there is, so that a change of anything can be told from the rest."""
        for backend in self._hub.backends.values():
            rows = await self._newest(backend, directories)
            self._known |= {Key(backend.name, row.id): (row.id, row) for row in rows or ()}

    async def _newest(self, backend: Backend, directories: Iterable[str]) -> list[SessionRow] | None:
        try:
            return [
                row
                for cwd in directories
                for row in await self._hub.list_rows(backend, ListQuery(NEWEST, cwd, archived="include"))
            ]
        except BridgeError as exc:
            logger.warning("%s can't list its sessions: %s", backend.name, exc.message)
            return None

    async def _look(self, directories: Iterable[str]) -> None:
        """Tell what has changed of the sessions in question."""
        doubted, self._doubted = self._doubted, set()
        for name in doubted:
            await self._compare(self._hub.backends[name], directories)
        now = anyio.current_time()
        ready = {key for key in self._dirty if now >= self._due(key)}
        self._dirty -= ready
        rows: list[JsonObject] = []
        gone: list[str] = []
        for key in ready:
            await self._look_at(key, rows, gone)
        if rows or gone:
            self._tell(rows, gone)

    async def _compare(self, backend: Backend, directories: Iterable[str]) -> None:
        """Find which of the newest rows have changed, or are gone."""
        rows = await self._newest(backend, directories)
        if rows is None:
            return
        found = {Key(backend.name, row.id): row for row in rows}
        self._dirty |= {key for key, row in found.items() if self._known.get(key, ("", None))[1] != row}
        oldest = min(row.updated_at for row in rows) if len(rows) >= NEWEST else ""
        self._dirty |= {
            key
            for key, (_, row) in self._known.items()
            if key.backend == backend.name and key not in found and row.updated_at >= oldest
        }

    def _belongs(self, cwd: str) -> bool:
        return os.path.realpath(cwd) in self._places

    async def _look_at(self, key: Key, rows: list[JsonObject], gone: list[str]) -> None:
        """Add the row of one session to `rows` if it says something new, or its id to `gone`."""
        try:
            row = await self._hub.find_row(key)
        except BridgeError as exc:
            logger.info("%s can't tell of session %s: %s", key.backend, key.id, exc.message)
            return
        if row is None:
            known = self._known.pop(key, None)
            self._told.pop(key, None)
            if known is not None:
                gone.append(known[0])
            return
        if not await to_thread.run_sync(self._belongs, row.cwd):
            return
        session_id, shown, signature = rendered(self._hub, key.backend, row)
        self._known[key] = (session_id, row)
        if key not in self._told or self._told[key].signature != signature:
            self._told[key] = _Told(signature, anyio.current_time())
            rows.append(shown)
