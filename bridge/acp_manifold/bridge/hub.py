"""What the process owns once: the backends, the sessions, the title keeper, the ledger, the file watcher.

Connections come to it, several if need be. Its tables are changed synchronously and never
across an await; each session has a task scope of its own inside the hub's.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup, TaskStatus

from acp_manifold.translators.acp.requests import ListFilter, SessionSetup, absolute_path
from acp_manifold.translators.narrow import JsonObject, as_object, is_text
from acp_manifold.translators.titles import normalise
from acp_manifold.translators.updates import SessionInfo, Update
from acp_manifold.translators.values import NamedTuple

from .backend import Backend, ListQuery, SessionRow, SessionSpec, StoreOrigin
from .client import Client, Replay
from .errors import BackendFault, BridgeError, InvalidParams, InvalidRequest, LoginNeeded, SessionEnded, SessionNotFound
from .keyed_locks import KeyedLocks
from .ledger import Key, Ledger, TitleRecord
from .listing import PAGE, Page, Place, join, with_rows
from .taps import taps
from .titles import TitleKeeper
from .watch import Watcher

if TYPE_CHECKING:
    from acp_manifold.translators.auth import Endpoint

    from .session import Session

logger = logging.getLogger(__name__)

SEEN_LIMIT = 10_000
"""How many sessions that are not open it is remembered where they are."""

SWEEP_DELAY = 5.0
"""Seconds after the start before what was deleted, and was kept for its copies, is tried again: nobody waits for it."""

SWEEP_LIMIT = 2.0
"""Seconds a delete may take longer for that."""

END_LIMIT = 5.0
"""Seconds the end of one session may take; the ladder of its process is shorter."""


class Located(NamedTuple):
    """A session found in a store: whose it is, and its row."""

    backend: Backend
    row: SessionRow

    @property
    def key(self) -> Key:
        """The backend's name of it."""
        return Key(self.backend.name, self.row.id)


class Told(NamedTuple):
    """What is known of a session of a store."""

    id: str
    """What clients call it."""
    backend: str
    row: SessionRow
    title: TitleRecord
    """The title to show; without one (origin `none`) the first thing a person typed, perhaps nothing."""


class Hub:
    """All sessions of the process."""

    def __init__(
        self, backends: Sequence[Backend], ledger: Ledger, *, grace: float, idle: float = 0.0, name_them: bool = True
    ) -> None:
        """
        Args:
            backends: Whom to serve by, the default one first; at least one.
            ledger: What the stores can't tell.
            grace: Seconds a backend has to heed an interrupt.
            idle: Seconds after which an idle session's backend is let go; 0: never.
            name_them: Whether sessions without a title are asked for a generated one.
        """
        self.backends = {backend.name: backend for backend in backends}
        self.default = backends[0]
        self.endpoints: dict[str, Endpoint] = {}
        """By backend, where the model requests of sessions opened from now on go, as a client has set it; secret."""
        self.login_listeners: list[Callable[[], None]] = []
        """Called when a login may have changed by what was asked of us."""
        self._ledger = ledger
        self._grace = grace
        self._idle = idle
        self._name_them = name_them
        self._keeper = TitleKeeper(ledger)
        self._watcher = Watcher()
        self._sessions: dict[str, Session] = {}
        self._by_key: dict[Key, Session] = {}
        self._seen: dict[str, Key] = {}
        """Our id -> the backend's name of sessions that were listed or open, those seen last at the end."""
        self._listeners: list[Callable[[Key], None]] = []
        """Whom to tell of sessions here whose row in the list may be another now."""
        self._changing = KeyedLocks()
        """Held for a session's id while where it is changes: opening, closing, deleting, writing at rest."""
        self._tasks: TaskGroup | None = None

    # -- life ---------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """The hub's life: at its end every session, process and watch is gone."""
        async with AsyncExitStack() as stack:
            stack.callback(self._ledger.close)
            for backend in self.backends.values():
                await stack.enter_async_context(backend.running(self))
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._watcher.run)
                try:
                    yield
                finally:
                    self._tasks.cancel_scope.cancel()

    def warm_up(self) -> None:
        """Start what would delay the first requests."""
        for backend in self.backends.values():
            self._group.start_soon(self._warm_up, backend)

    async def _warm_up(self, backend: Backend) -> None:
        try:
            await backend.warm_up()
        except BridgeError as exc:
            logger.warning("%s is not ready: %s", backend.name, exc.message)
        await anyio.sleep(SWEEP_DELAY)
        await self._sweep(backend)

    def start_soon(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        """Do some work that is no request's, for as long as the hub lives at most."""
        self._group.start_soon(work)

    def login_changed(self) -> None:
        """A login, or an endpoint that counts as one, may be another one now."""
        for heard in list(self.login_listeners):
            heard()

    @property
    def _group(self) -> TaskGroup:
        if self._tasks is None:
            raise RuntimeError("the hub is not running")
        return self._tasks

    # -- what backends ask of us (Host) ---------------------------------------------------------

    def watch(self, path: Path, changed: Callable[[], None]) -> Callable[[], None]:
        """See `Host.watch`."""
        return self._watcher.watch(path, changed)

    def watch_folder(self, folder: Path, changed: Callable[[Path | None], None]) -> Callable[[], None]:
        """See `Host.watch_folder`."""
        return self._watcher.watch_folder(folder, changed)

    def title_heard(self, backend: str, session_id: str, title: str, origin: StoreOrigin) -> None:
        """See `Host.title_heard`: weigh it, and tell the clients of the session if it is news."""
        key = Key(backend, session_id)
        heard = self._keeper.heard(key, title, origin)
        if taps.listener is not None:
            note: JsonObject = {"note": "title", "title": title, "origin": origin, "heard": heard}
            taps.listener.note(note, backend, session_id)
        session = self._by_key.get(key)
        if session is None:
            self._keeper.let_go(key)
            return
        if heard == "news":
            session.tell_title(self._keeper.current(key).text)
        elif heard == "discarded":
            self._group.start_soon(self._put_back, session)

    async def _put_back(self, session: Session) -> None:
        """Write our title again if the store now shows another one."""
        key = session.key
        if key is None:
            return

        async def shown() -> str | None:
            row = await session.backend.find(key.id)
            return row.title if row is not None and row.title_origin is not None else None

        try:
            await self._keeper.put_back(key, shown, session.rename)
        except BridgeError as exc:
            logger.warning("session %s: the title could not be put back: %s", session.id, exc.message)
        finally:
            self._let_title_go(key)

    def _let_title_go(self, key: Key) -> None:
        if key not in self._by_key:
            self._keeper.let_go(key)

    # -- opening --------------------------------------------------------------------------------

    def choose(self, name: str | None) -> Backend:
        """The backend of that name, or the default one.

        Raises:
            InvalidParams: No such backend here.
        """
        if name is None:
            return self.default
        backend = self.backends.get(name)
        if backend is None:
            raise InvalidParams(
                f"backend: {name[:40]!r} is not served here; choose one of {', '.join(self.backends)}",
                {"field": "backend", "choices": list(self.backends)},
            )
        return backend

    async def new(self, setup: SessionSetup, client: Client) -> Session:
        """A new session, attached to `client`.

        Raises:
            InvalidParams: `cwd` is no directory, or the backend is unknown.
            LoginNeeded: The CLI has no login.
            BridgeError: The CLI can't be started.
        """
        backend = self.choose(setup.backend)
        spec = spec_of(setup)
        title = normalise(setup.title or "")
        try:
            session = await self._start(backend, spec, client, known=None)
        except LoginNeeded as exc:
            others = [other.name for other in self.backends.values() if other is not backend]
            if setup.backend is not None or not others:
                raise
            raise LoginNeeded(f"{exc.message} Or begin sessions elsewhere: --backend {others[0]}", exc.data) from exc
        if title:
            await self._name_new(session, title)
        return session

    async def _name_new(self, session: Session, title: str) -> None:
        """Title a session that was just made; that it can't be stored is no reason not to have the session."""
        assert session.key is not None
        try:
            session.tell_title(await self._keeper.set(session.key, title, session.rename))
        except BridgeError as exc:
            logger.warning("session %s: its title could not be stored yet: %s", session.id, exc.message)
        except BaseException:
            await self._abandon(session)
            raise

    async def _abandon(self, session: Session) -> None:
        """End a session whose opening failed or was taken back."""
        with anyio.move_on_after(END_LIMIT, shield=True):
            await session.end()

    async def open(self, session_id: str, setup: SessionSetup, client: Client, replay: Replay | None) -> Session:
        """A session of a store, or one that is open here, attached to `client`.

        Args:
            session_id: Our id of it.
            setup: Where and with what; a session that is open here takes over what is new, and stays where it is.
            client: Whom to attach.
            replay: Gets the whole history first; None for none.

        Raises:
            InvalidParams: `cwd` is no directory.
            SessionNotFound: No backend has it.
            InvalidRequest: Another process has it: `data.try` then names the method that makes a copy.
            BridgeError: The CLI can't serve it.
        """
        try:
            return await self._open(session_id, spec_of(setup), client, replay)
        except InvalidRequest as exc:
            raise _with_way_out(exc) from exc

    async def _open(self, session_id: str, spec: SessionSpec, client: Client, replay: Replay | None) -> Session:
        async with self._changing.holding(self._lock_name(session_id)):
            session = self._sessions.get(session_id)
            located = await self._locate(session_id)
            if session is None and located is None:
                raise SessionNotFound(session_id)
            other = self._by_key.get(located.key) if located is not None else None
            if other is not None and other.id != session_id:
                raise InvalidRequest(
                    f"This session is open here under another id: {other.id}",
                    {"reason": "open_under_another_id", "sessionId": other.id},
                )
            if session is not None:
                await session.refit(spec)
                await self._join(session, client, replay)
                return session
            assert located is not None
            known = self._keeper.seen_in_store(located.key, located.row.title, located.row.title_origin)
            if located.row.archived and not located.backend.has_archive:
                # What is written while it is open need not say so.
                self._ledger.put_mark(located.key, "archived", True)
                self._tell_followers(located.key)
            if replay is not None:
                # A client is told nothing of a session that can't be opened.
                await located.backend.refuse_if_held(located.row.id)
            known_as = session_id, located.row.id
            session = await self._start(located.backend, spec, client, known=known_as, replay=replay)
        if known.origin != "none":
            session.tell_title(known.text)
        return session

    async def _join(self, session: Session, client: Client, replay: Replay | None) -> None:
        """Attach a client to a session that is open here, unless the session can't be served."""
        known = client in session.clients
        session.attach(client)
        try:
            await session.open()
            if replay is not None:
                row = await self.find_row(session.key) if session.key is not None else None
                from .history import tell_history

                await tell_history(session, row.id if row is not None else None, replay)
        except BaseException:
            if not known and session.detach(client):
                await self._abandon(session)
            raise
        if known and replay is not None:
            session.introduce(client)
        title = self._keeper.current(session.key).text if session.key is not None else ""
        if title:
            client.deliver(session.id, SessionInfo(title=title))

    async def fork(self, session_id: str, setup: SessionSetup, client: Client) -> Session:
        """A copy of a session, attached to `client`; the session itself, open here or elsewhere, goes on as it was.

        The copy has the history and the title, and whoever made the title. One of a session in which nothing was
        said yet is a new session of the same backend.

        Raises:
            InvalidParams: `cwd` is no directory.
            SessionNotFound: No backend has it.
            BridgeError: It can't be copied, or the CLI can't serve the copy.
        """
        spec = spec_of(setup)
        async with self._changing.holding(self._lock_name(session_id)):
            located, session = await self._find(session_id)
            if located is None:
                assert session is not None and session.key is not None
                backend, title, forked = session.backend, self._keeper.current(session.key), None
            else:
                backend, row = located.backend, located.row
                title = self._keeper.seen_in_store(located.key, row.title, row.title_origin)
                self._let_title_go(located.key)
                forked = await backend.fork(row.id, spec._replace(endpoint=self.endpoints.get(backend.name)))
        if forked is None:
            copy = await self._start(backend, spec, client, known=None)
            if title.origin != "none":
                await self._name_new(copy, title.text)
            return copy
        key = Key(backend.name, forked)
        self._ledger.put_mark(key, "fork", True)
        self._keeper.copied(key, title)
        try:
            copy = await self._start(backend, spec, client, known=(forked, forked))
        except BaseException:
            await self._take_back(backend, key)
            raise
        if title.origin != "none":
            copy.tell_title(title.text)
        return copy

    async def _take_back(self, backend: Backend, key: Key) -> None:
        """Remove a copy that can't be opened: nobody knows of it."""
        with anyio.move_on_after(END_LIMIT, shield=True):
            try:
                await backend.delete(key.id)
            except BridgeError as exc:
                logger.warning("%s: the copy %s could not be removed: %s", backend.name, key.id, exc.message)
        self._keeper.forget(key)

    async def _find(self, session_id: str) -> tuple[Located | None, Session | None]:
        """Where a session is in a store, and the session if it is open here; never neither.

        Raises:
            SessionNotFound: No backend has it.
        """
        session = self._sessions.get(session_id)
        if session is not None and session.key is not None:
            return await self._located_at(session.key), session
        located = await self._locate(session_id)
        if located is None:
            raise SessionNotFound(session_id)
        return located, self._by_key.get(located.key)

    async def _start(
        self,
        backend: Backend,
        spec: SessionSpec,
        client: Client,
        known: tuple[str, str] | None,
        replay: Replay | None = None,
    ) -> Session:
        from .session import Session

        session = Session(
            backend,
            spec._replace(endpoint=self.endpoints.get(backend.name), unnamed=not self._name_them),
            self._keeper,
            self._bind,
            grace=self._grace,
            idle=self._idle,
            name_it=self._name_them,
            known=known,
            choices=tuple(self.backends.values()),
        )
        session.changed = partial(self._changed, session)
        session.attach(client)
        if known is not None:
            # From now on a second request for it finds this one.
            self._sessions[session.id] = session
        await self._group.start(self._live, session)
        try:
            if known is None or replay is None:
                await session.open()
            else:
                from .history import open_telling

                await open_telling(session, known[1], replay)
        except BaseException:
            await self._abandon(session)
            raise
        return session

    async def _live(self, session: Session, *, task_status: TaskStatus[None]) -> None:
        try:
            await session.run(task_status=task_status)
        except Exception:
            logger.exception("session %s broke", session.id)
        finally:
            self._unbind(session)

    def _bind(self, session: Session, before: Key | None, *, left: Key | None) -> None:
        """The backend's name of a session is known or has changed: one look-up each way from now on.

        Our id follows a conversation that begins anew; what it leaves behind is listed under an id made here. Until
        something was said there is nothing to be found under the new name, so the ledger is told only then.
        """
        if before is not None and self._by_key.get(before) is session:
            del self._by_key[before]
        if session.key is None:
            return
        self._sessions[session.id] = session
        self._by_key[session.key] = session
        if before is not None and before != session.key:
            if left is not None:
                self._keeper.copy_key(before, session.key)
                return
            self._keeper.rename_key(before, session.key)
        if left is not None and left.id == session.id:
            self._seen.pop(left.id, None)
            from uuid import uuid4

            self._ledger.put_alias(str(uuid4()), left)
        if session.id != session.key.id:
            self._ledger.put_alias(session.id, session.key)

    def _unbind(self, session: Session) -> None:
        self._changed(session)
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        if session.key is not None and self._by_key.get(session.key) is session:
            del self._by_key[session.key]
            self._keeper.let_go(session.key)
            if session.prompted:
                self._see(session.id, session.key)

    # -- who follows the list -------------------------------------------------------------------

    @contextmanager
    def listening(self, changed: Callable[[Key], None]) -> Generator[None]:
        """Call `changed` when something done here may have changed what the list tells of a session."""
        self._listeners.append(changed)
        try:
            yield
        finally:
            self._listeners.remove(changed)

    def _changed(self, session: Session) -> None:
        if session.key is not None:
            self._tell_followers(session.key)

    def _tell_followers(self, key: Key) -> None:
        for listener in list(self._listeners):
            listener(key)

    def by_key(self, key: Key) -> Session | None:
        """The session that is open here under a backend's name."""
        return self._by_key.get(key)

    @property
    def open_sessions(self) -> list[Session]:
        """Every session that is open here."""
        return list(self._sessions.values())

    # -- sessions -------------------------------------------------------------------------------

    def session(self, session_id: str, client: Client) -> Session:
        """The session that is open here for `client`.

        Raises:
            SessionNotFound: There is none.
        """
        session = self._sessions.get(session_id)
        if session is None or client not in session.clients:
            raise SessionNotFound(
                session_id, f"Session not open on this connection: {session_id[:200]}. Load or resume it first."
            )
        return session

    def find(self, session_id: str, client: Client) -> Session | None:
        """As `session`, but None if there is none."""
        session = self._sessions.get(session_id)
        return session if session is not None and client in session.clients else None

    async def detach(self, client: Client, session: Session) -> None:
        """Take a client away from a session; one that is left with nobody ends."""
        if session.clients == [client]:
            await session.end()
        session.detach(client)

    def leave(self, client: Client) -> None:
        """A client is gone: its prompts and questions are settled, sessions left with nobody end."""
        for session in list(self._sessions.values()):
            if client in session.clients and session.detach(client):
                self._group.start_soon(session.end)

    async def close(self, session_id: str, client: Client) -> None:
        """Free what serves a session; its store stays.

        Raises:
            SessionNotFound: No backend has it.
        """
        session = self.find(session_id, client)
        if session is not None:
            # At once, also while the session is still being opened for somebody else.
            session.cancel_for(client)
        async with self._changing.holding(self._lock_name(session_id)):
            session = self.find(session_id, client)
            if session is not None:
                await self.detach(client, session)
            elif await self._locate(session_id) is None:
                raise SessionNotFound(session_id)

    async def delete(self, session_id: str) -> None:
        """Remove a session for good; one that no backend has is no error.

        It is gone for every client at once; one that its store keeps for its copies is removed with the last of them.

        Raises:
            BridgeError: It can't be removed, and is what it was; one that is open here goes on.
        """
        async with self._changing.holding(self._lock_name(session_id)):
            located = await self._locate(session_id)
            session = self._open_one(session_id, located)
            if session is not None and session.key is not None:
                backend, key = session.backend, session.key
                gone = await session.end_by(lambda: backend.delete(key.id))
            elif session is not None:
                await session.end()
                return
            elif located is not None:
                backend, key = located.backend, located.key
                gone = await backend.delete(key.id)
            else:
                return
            self._seen.pop(session_id, None)
            self._keeper.forget(key)
            if not gone:
                self._ledger.put_mark(key, "deleted", True)
                return
        with anyio.move_on_after(SWEEP_LIMIT):
            await self._sweep(backend)

    async def _sweep(self, backend: Backend) -> None:
        """Remove what was deleted, and was kept for its copies, if they are gone."""
        for deleted in self._ledger.marked(backend.name, "deleted"):
            try:
                gone = await backend.delete(deleted)
            except BridgeError as exc:
                logger.info("%s: the deleted session %s is still there: %s", backend.name, deleted, exc.message)
                continue
            if gone:
                self._ledger.put_mark(Key(backend.name, deleted), "deleted", False)

    def _is_deleted(self, key: Key) -> bool:
        return key.id in self._ledger.marked(key.backend, "deleted")

    async def archive(self, session_id: str, archived: bool) -> None:
        """Put a session into the archive, or take it out; one that is open here is closed before it goes in.

        Raises:
            SessionNotFound: No backend has it.
            InvalidRequest: Another process has it.
        """
        if archived and (session := self._sessions.get(session_id)) is not None:
            session.cancel()
        async with self._changing.holding(self._lock_name(session_id)):
            located, session = await self._find(session_id)
            if archived and located is not None and not located.backend.has_archive:
                await located.backend.refuse_if_held(located.row.id)
            if archived and session is not None:
                await session.end_by(partial(self._archive, session_id, archived))
            elif located is not None:
                await self._archive(session_id, archived)

    async def _archive(self, session_id: str, archived: bool) -> None:
        located = await self._locate(session_id)
        if located is None:
            return  # Nothing was ever said in it: with its end it is gone.
        await located.backend.archive(located.row.id, archived)
        if not located.backend.has_archive:
            self._ledger.put_mark(located.key, "archived", archived)
        self._tell_followers(located.key)

    async def is_open(self, session_id: str) -> bool:
        """Whether a session is open here, for any client.

        Raises:
            SessionNotFound: No backend has it.
        """
        return await self.opened(session_id) is not None

    async def opened(self, session_id: str) -> Session | None:
        """The session if it is open here, for any client; None for one that is only in a store.

        Raises:
            SessionNotFound: No backend has it.
        """
        session = self._sessions.get(session_id)
        if session is None:
            _, session = await self._find(session_id)
        return session

    async def set_title(self, session_id: str, title: str) -> str:
        """Set a title for a client and give back what is stored; every attached client is told.

        Raises:
            InvalidParams: Nothing of the title can be shown.
            SessionNotFound: No backend has the session.
            BridgeError: It can't be stored, with the reason.
        """
        async with self._changing.holding(self._lock_name(session_id)):
            session = self._sessions.get(session_id)
            found = None if session is not None else self._seen.get(session_id)
            if found is not None and self._is_deleted(found):
                raise SessionNotFound(session_id)
            if session is None and found is None:
                located = await self._locate(session_id)
                found = located.key if located is not None else None
            session = session or (self._by_key.get(found) if found is not None else None)
            key = session.key if session is not None else found
        if key is None:
            raise SessionNotFound(session_id)
        ours = session.id if session is not None else session_id
        try:
            stored = await self._keeper.set(key, title, lambda text: self._write_title(ours, text, found))
        except SessionNotFound:
            self._seen.pop(session_id, None)
            self._keeper.forget(key)
            raise
        finally:
            self._let_title_go(key)
        session = self._sessions.get(ours)
        if session is not None:
            session.tell_title(stored)
            await session.title_left(stored)
        return stored

    async def _write_title(self, session_id: str, title: str, found: Key | None) -> str:
        """Write a title where the session is: to whoever serves it, else into the store.

        Args:
            session_id: Our id of it.
            title: What to write.
            found: Where it is in a store, if it is known.
        """
        session = self._sessions.get(session_id)
        if session is not None:
            try:
                return await session.rename(title)
            except SessionEnded:
                logger.debug("session %s ended while it was titled: it is titled at rest", session_id)
        async with self._changing.holding(self._lock_name(session_id)):
            session = self._sessions.get(session_id)
            if session is not None:
                return await session.rename(title)
            if found is None:
                located = await self._locate(session_id)
                found = located.key if located is not None else None
            if found is None:
                raise SessionNotFound(session_id)
            return await self.backends[found.backend].rename(found.id, title)

    def _lock_name(self, session_id: str) -> str:
        """One name for a session, whichever of its ids a client uses: the backend's."""
        session = self._sessions.get(session_id) if is_text(session_id) else None
        if session is not None and session.key is not None:
            return session.key.id
        alias = self._ledger.alias(session_id) if is_text(session_id) else None
        return alias.id if alias is not None else session_id

    def _see(self, session_id: str, key: Key) -> None:
        """Remember where a session is, so that it need not be looked for to be titled."""
        self._seen.pop(session_id, None)
        self._seen[session_id] = key
        if len(self._seen) > SEEN_LIMIT:
            del self._seen[next(iter(self._seen))]

    def _open_one(self, session_id: str, located: Located | None) -> Session | None:
        """The session that is open here, by our id of it or as the store's `located`."""
        session = self._sessions.get(session_id)
        return self._by_key.get(located.key) if session is None and located is not None else session

    async def _locate(self, session_id: str) -> Located | None:
        """Find a session in the stores, by our id of it. Ids are text: one with half a surrogate pair is nobody's."""
        if not is_text(session_id):
            return None
        alias = self._ledger.alias(session_id)
        if alias is not None:
            return await self._located_at(alias)
        for name in self.backends:
            found = await self._located_at(Key(name, session_id))
            if found is not None:
                return found
        return None

    async def _located_at(self, key: Key) -> Located | None:
        row = await self.find_row(key)
        return Located(self.backends[key.backend], row) if row is not None else None

    async def find_row(self, key: Key) -> SessionRow | None:
        """The row of one session, archived or not; None if its backend has no such session, or is not served here."""
        backend = self.backends.get(key.backend)
        row = await backend.find(key.id) if backend is not None else None
        return row if row is not None and not self._is_deleted(key) else None

    # -- the list -------------------------------------------------------------------------------

    async def located(self, session_id: str) -> tuple[str, SessionRow] | None:
        """The backend and the row of a session of a store; None if there is none."""
        found = await self._locate(session_id)
        return (found.backend.name, found.row) if found is not None else None

    def is_archived(self, backend: str, row: SessionRow) -> bool:
        """Whether a session is in the archive of its store, or in ours."""
        return row.archived or row.id in self._ledger.marked(backend, "archived")

    async def page(self, wanted: ListFilter, after: Place | None) -> Page:
        """One page over all backends; one that can't tell its sessions is left out, with a note.

        Raises:
            BackendFault: None of them can.
        """
        everywhere = ListQuery(PAGE + 1, wanted.cwd, after.pair if after is not None else None, wanted.archived)
        lists: dict[str, list[SessionRow]] = {}
        faults: list[str] = []

        async def ask(backend: Backend) -> None:
            query = everywhere
            if not backend.has_archive:
                query = query._replace(in_our_archive=self._ledger.marked(backend.name, "archived"))
            try:
                rows = await self.list_rows(backend, query)
                lists[backend.name] = with_rows(rows, await self._unlisted(backend, rows), query)
            except BridgeError as exc:
                logger.warning("%s can't list its sessions: %s", backend.name, exc.message)
                faults.append(f"{backend.name}: {exc.message}")

        async with anyio.create_task_group() as tg:
            for backend in self.backends.values():
                tg.start_soon(ask, backend)
        if not lists:
            raise BackendFault("no backend can list its sessions: " + "; ".join(faults))
        return join(lists)

    async def list_rows(self, backend: Backend, query: ListQuery) -> list[SessionRow]:
        """A backend's answer to a query, without what was deleted; raises what `Backend.list` raises."""
        deleted = self._ledger.marked(backend.name, "deleted")
        rows = await backend.list(query._replace(limit=query.limit + len(deleted)))
        return [row for row in rows if row.id not in deleted][: query.limit]

    async def _unlisted(self, backend: Backend, rows: Sequence[SessionRow]) -> list[SessionRow]:
        """Copies that the backend's list does not show: Codex lists none before its first turn."""
        copies = self._ledger.marked(backend.name, "fork")
        if not copies:
            return []
        listed = copies & {row.id for row in rows}
        found = [(copy, await backend.find(copy)) for copy in copies - listed]
        for copy in [*listed, *(copy for copy, row in found if row is None)]:
            self._ledger.put_mark(Key(backend.name, copy), "fork", False)
        return [row for _, row in found if row is not None]

    def describe(self, page: Page) -> list[tuple[str, str, SessionRow, str | None]]:
        """For each row of a page: our id, the backend, the row, and the title to show."""
        for name, row in page.rows:
            session = self._by_key.get(Key(name, row.id))
            if session is not None and session.left is not None:
                session.part()
        aliases = {name: self._ledger.aliases(name) for name in self.backends}
        for name, row in page.rows:
            self._see(aliases[name].get(row.id, row.id), Key(name, row.id))
        titles = {name: self._ledger.titles(name) for name in self.backends}
        return [
            (
                aliases[name].get(row.id, row.id),
                name,
                row,
                self._keeper.shown(Key(name, row.id), row.title, row.title_origin, titles[name].get(row.id)),
            )
            for name, row in page.rows
        ]

    def shown_id(self, key: Key) -> str:
        """The id that clients know a backend's session by."""
        return self._ledger.aliases(key.backend).get(key.id, key.id)

    async def tell(self, session_id: str, emit: Callable[[Update], None] | None) -> Told:
        """A session of a store, without opening it: what is known of it, and to `emit`, if given, its whole history.

        Raises:
            SessionNotFound: No backend has it.
            BridgeError: The backend can't tell.
        """
        located = await self._locate(session_id)
        if located is None:
            raise SessionNotFound(session_id)
        key, row = located.key, located.row
        title = self._keeper.seen_in_store(key, row.title, row.title_origin)
        self._let_title_go(key)
        if title.origin == "none":
            title = TitleRecord(normalise(row.title or ""), "none")
        if emit is not None:
            await located.backend.replay(row.id, emit)
        return Told(self.shown_id(key), key.backend, row, title)


def _with_way_out(refusal: InvalidRequest) -> InvalidRequest:
    """A refusal to open what another process has, with what can be done instead; any other one as it is."""
    data = as_object(refusal.data)
    if data.get("reason") != "thread_active_writer":
        return refusal
    message = f"{refusal.message.rstrip('.')}, or go on in a copy of it (session/fork)"
    return InvalidRequest(message, {**data, "try": "session/fork"})


def spec_of(setup: SessionSetup) -> SessionSpec:
    """The spec of a setup whose directories are checked.

    Raises:
        InvalidParams: `cwd` or an additional directory is relative, or no directory.
    """
    _check_directory("cwd", setup.cwd)
    for index, directory in enumerate(setup.additional_directories):
        _check_directory(f"additionalDirectories[{index}]", directory)
    directories = setup.additional_directories
    if setup.more_directories:
        directories = (*directories, *(path for path in setup.more_directories if os.path.isdir(path)))
    return SessionSpec(
        setup.cwd, setup.mcp_servers, directories, system_prompt=setup.system_prompt, wishes=setup.wishes
    )


def _check_directory(field: str, path: str) -> None:
    absolute_path(field, path)
    shown = path[:200]
    if not os.path.exists(path):
        raise InvalidParams(f"{field}: there is no directory {shown!r}", {"field": field})
    if not os.path.isdir(path):
        raise InvalidParams(f"{field}: {shown!r} is not a directory", {"field": field})
