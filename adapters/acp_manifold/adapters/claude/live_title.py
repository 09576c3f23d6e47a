"""The title of a session whose process is ours: kept until there is a store for it, then set through the process.

The owning process must do it: it keeps the title in memory and writes it again every so often, over
whatever another program put into the transcript (measured, Claude Code 2.1.332). What is told back
is read from the transcript. There is none before the CLI has begun the first turn, which a hook can
hold up as long as it likes: a title set meanwhile is in the CLI's memory, and is looked for when the
transcript appears.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.control import Control, Pending
from acp_manifold.adapters.claude.guards import SIDECAR_LAG
from acp_manifold.adapters.claude.store import Store
from acp_manifold.adapters.claude.titles_in import custom_titles
from acp_manifold.bridge.backend import Host, SessionSpec
from acp_manifold.bridge.errors import BackendFault, BackendGone
from acp_manifold.translators.claude.titles import given_form, stored_form
from acp_manifold.translators.narrow import JsonObject

logger = logging.getLogger(__name__)

NAME: Final = "claude"

_T = TypeVar("_T")

RENAME_LIMIT: Final = 10.0
"""Seconds for the answer to a rename: 3 ms when idle or in mid-turn, 20 ms with a question open (2.1.332)."""

READ_BACK_LIMIT: Final = 2.0
"""Seconds for the record to appear in a transcript that is there; it is there before the answer is (2.1.332)."""

AT_ONCE: Final = 16 * 1024
"""Bytes behind the place of a new title that are read without a thread; 250 are usual."""

_TRIES: Final = 3
"""How often a title is set that older ones are written over."""

OLDER_LIMIT: Final = 5.0
"""Seconds within which the record of a title that the CLI had before comes into the transcript; 0.2 are usual."""


class LiveTitle:
    """One for each process."""

    def __init__(
        self,
        session_id: str,
        spec: SessionSpec,
        host: Host,
        store: Store,
        control: Control,
        tasks: TaskGroup,
        ready: Callable[[], Awaitable[None]],
        *,
        stored: bool,
        name: str,
    ) -> None:
        self._id = session_id
        self._cwd = spec.cwd
        self._path: Path | None = None
        """The transcript, where it was last."""
        self._host = host
        self._store = store
        self._control = control
        self._tasks = tasks
        self._ready = ready
        self._stored = stored
        self._name = name
        self._kept = given_form(spec.title) if spec.title is not None else None
        self._confirming = anyio.CancelScope()
        """Around the look for a title that was set while there was no transcript; another title ends it."""
        self._known: str | None = None
        """The title in the CLI's memory, as far as it was told us or by us."""
        self._setting = anyio.Lock()
        """Held while a title is on its way to the CLI, so that none overtakes another."""
        self._older: dict[str, float] = {}
        """Titles that it had before, and until when they may still come into the transcript."""
        self._behind: dict[str, str | None] = {}
        """Such titles that have come since they were looked at last, with what was in the memory then."""
        self._putting_back = False
        self._foreign: str | None = None
        """The title that another program gave last."""
        self._adopting = 0
        """How many such titles are on their way into the memory of the process."""
        self._settled = anyio.Event()
        self._adopted: dict[str, float] = {}
        """Titles of other programs that were put there, and until when the process may tell us of them."""
        self._gone: str | None = None
        self._waiting: set[Callable[[], None]] = set()

    def write_first(self) -> None:
        """The first user message is about to be sent: send the kept title ahead of it."""
        self._stored = True
        kept, self._kept = self._kept, None
        if kept is not None:
            self._confirm_later(kept, self._control.post(self._request(kept)))

    async def settled(self) -> None:
        """Wait until the titles of other programs are in the memory of the process: a turn could write over them."""
        while self._adopting:
            await self._settled.wait()

    async def rename(self, title: str) -> str:
        """Set the title and give back what is stored, in a transcript or, while there is none, with the CLI.

        Raises:
            BackendFault: The CLI refused, or has stored nothing in time.
            BackendGone: The process ended.
        """
        title = given_form(title)
        if not self._stored:
            self._kept = title
            return title
        self._kept = None
        await self._ready()
        self._confirming.cancel()
        async with self._setting:
            for _ in range(_TRIES):
                stored = await self._set(title)
                if stored is not None:
                    return stored
                logger.info("%s: an older title was written behind the new one: set again", self._name)
        raise BackendFault(f"Claude Code writes older titles behind the new one of session {self._id}; set it again")

    async def _set(self, title: str) -> str | None:
        """Have the CLI set a title, and give back what it stored; None if it then wrote an older one behind it."""
        before = await self._size()
        await self._request_to_set(title)
        if before is None and await self._size() is None:
            if self._gone is not None:
                raise BackendGone(self._gone)
            self._confirm_later(title)
            return title
        return await self._read_back(before or 0, title)

    def moved(self, session_id: str) -> None:
        """The conversation goes on under another id."""
        self._id = session_id
        self._path = None

    def told(self, title: str) -> bool:
        """The process tells the title it has; whether that is news, not the echo of one that another program gave."""
        self._has(title)
        return self._adopted.get(title, 0.0) < anyio.current_time()

    def _has(self, title: str) -> None:
        """The title in the memory of the process from now on."""
        if self._known is not None and self._known != title:
            self._older[self._known] = anyio.current_time() + OLDER_LIMIT
        self._known = title

    def appended(self, title: str) -> bool:
        """A title was appended to the transcript. One by another program is put into the memory of the process.

        Else it would write its own over it, once it has written 64 KB (Claude Code 2.1.332).

        Returns:
            Whether it is one that the process had a moment ago, which counts for nothing: what was on its way to
            the file when a new one was set may come behind that.
        """
        if not self._stored or self._kept is not None or self._gone is not None:
            return False
        if stored_form(title) == self._known:
            return self._adopting > 0
        if self._is_older(title):
            self._behind[title] = self._known
            if not self._putting_back:
                self._putting_back = True
                self._tasks.start_soon(self._put_back)
            return True
        self._foreign = title
        self._adopting += 1
        self._tasks.start_soon(self._adopt, title, self._known, time.time())
        return False

    async def _put_back(self) -> None:
        """Set the title once more if an older one stands behind it, unless a person has renamed back.

        A row of renames brings its older titles all at once: they are looked at together.
        """
        try:
            while self._behind:
                behind, self._behind = self._behind, {}
                await anyio.sleep(SIDECAR_LAG)
                told, known = (await self._told())[0], self._known
                if told is not None and told in behind and behind[told] == known != told:
                    self._host.title_heard(NAME, self._id, told, "user")
                    self._foreign = told
                    self._adopting += 1
                    await self._adopt(told, known, time.time())
                elif known is not None and known in behind.values():
                    await self._set_again(known)
        finally:
            self._putting_back = False

    async def _adopt(self, title: str, known: str | None, heard_at: float) -> None:
        """Put the title of another program into the memory of the process, unless a newer one counts by then.

        Args:
            title: What was appended.
            known: What was in the memory then, as far as was known.
            heard_at: When that was, in seconds since 1970.
        """
        logger.info("%s: renamed by another program", self._name)
        self._adopted[stored_form(title)] = anyio.current_time() + OLDER_LIMIT
        try:
            await self._ready()
            async with self._setting:
                if self._known == known and self._foreign == title and await self._stands(title, known, heard_at):
                    await self._request_to_set(stored_form(title))
        except BackendGone:
            pass  # It will write no other title any more.
        except BackendFault as exc:
            logger.warning("%s: a title may not last: %s", self._name, exc.message)
        finally:
            self._adopting -= 1
            settled, self._settled = self._settled, anyio.Event()
            settled.set()

    async def _stands(self, title: str, known: str | None, heard_at: float) -> bool:
        """Whether a title appended by another program is the last there, but for what the process has written since.

        A big turn writes its own title over it before this is looked at (seen under load, in 3 of 500 renames). So
        does a person who renames back in the same moment, by the process itself: that is heeded, and told.
        """
        last = await self._last_title(0)
        if last != known or known is None:
            return last == title
        await anyio.sleep(SIDECAR_LAG)
        told, at = await self._told()
        if told == known and at > heard_at:
            self._host.title_heard(NAME, self._id, known, "user")
            return False
        return True

    async def _set_again(self, known: str) -> None:
        """Have the CLI set the title that is in its memory, if that is not the last in the transcript."""
        try:
            await self._ready()
            async with self._setting:
                if self._known == known and await self._last_title(0) != known:
                    await self._request_to_set(known)
        except BackendGone:
            pass  # It will write no other title any more.
        except BackendFault as exc:
            logger.warning("%s: a title may not last: %s", self._name, exc.message)

    async def _told(self) -> tuple[str | None, float]:
        return await to_thread.run_sync(self._store.told, self._id)

    def close(self, reason: str) -> None:
        """The process is gone: nothing more will be stored."""
        self._gone = reason
        for wake in list(self._waiting):
            wake()

    async def _request_to_set(self, title: str) -> None:
        """Have the CLI take a title into its memory; refused, it has there what it had."""
        before = self._known
        try:
            await self._control.request(self._request(title), RENAME_LIMIT)
        except BackendFault:
            if self._known == title:
                self._known = before
            raise

    def _request(self, title: str) -> JsonObject:
        self._has(title)
        # `host`: under `remote`, the default, it would count as renamed from another machine.
        return {"subtype": "rename_session", "title": title, "source": "host", "session_id": self._id}

    def _confirm_later(self, title: str, pending: Pending | None = None) -> None:
        self._confirming = anyio.CancelScope()
        self._tasks.start_soon(self._confirm, title, pending, self._confirming)

    async def _confirm(self, title: str, pending: Pending | None, scope: anyio.CancelScope) -> None:
        """See to it that a title set without a transcript is in the one that appears."""
        with scope:
            try:
                if pending is not None:
                    await self._control.settle(pending, RENAME_LIMIT)
                await self._in_transcript(self._size)
                if await self._comes(title):
                    return
                logger.info("%s: the title set before there was a transcript is not in it: set again", self._name)
                before = await self._size()
                await self._request_to_set(title)
                if await self._read_back(before or 0, title) is None:
                    await self._request_to_set(title)
            except BackendGone:
                pass  # The prompt that runs tells it.
            except BackendFault as exc:
                logger.warning("%s: the title set in the first turn was not stored: %s", self._name, exc.message)

    async def _comes(self, title: str) -> bool:
        """Whether this title is the last one in the transcript, now or soon."""

        async def is_last() -> bool | None:
            return await self._last_title(0) == title or None

        with anyio.move_on_after(READ_BACK_LIMIT):
            return await self._in_transcript(is_last)
        return await is_last() is True

    async def _read_back(self, before: int, title: str) -> str | None:
        """What was written behind the first `before` bytes of the transcript: `title`, or what the CLI made of it.

        None if the CLI has written an older title of its own behind it, which was on the way there already.

        Raises:
            BackendFault: None was written in time.
            BackendGone: The process ended first.
        """

        async def ours() -> list[str] | None:
            found = await self._titles(before)
            return found if title in found else None

        # It is there nearly always, and to watch for it costs more than to look.
        found = await ours() or []
        if not found:
            with anyio.move_on_after(READ_BACK_LIMIT):
                found = await self._in_transcript(ours)
        if not found:
            found = await self._titles(before)
        if not found:
            raise BackendFault(f"Claude Code took the title of session {self._id} but has not stored it; set it again")
        if title in found:
            # Another one behind it is a later rename by somebody else, and comes as such.
            return None if found[-1] != title and self._is_older(found[-1]) else title
        return found[-1]

    async def _in_transcript(self, look: Callable[[], Awaitable[_T | None]]) -> _T:
        """What `look` finds in the transcript, now or after a change of it.

        Raises:
            BackendGone: The process ended, and nothing was found then.
        """
        changed = anyio.Event()

        def wake() -> None:
            changed.set()

        stop = self._host.watch(self._store.expected_path(self._id, self._cwd), wake)
        self._waiting.add(wake)
        try:
            while True:
                gone = self._gone
                found = await look()
                if found is not None:
                    return found
                if gone is not None:
                    raise BackendGone(gone)
                await changed.wait()
                changed = anyio.Event()
        finally:
            self._waiting.discard(wake)
            stop()

    async def _size(self) -> int | None:
        """Bytes of the transcript; None without one. To look for it among all projects is for the first time."""
        size = _size_of(self._path)
        if size is None:
            self._path = await to_thread.run_sync(self._store.locate, self._id)
            size = _size_of(self._path)
        return size

    def _is_older(self, title: str) -> bool:
        return self._older.get(title, 0.0) >= anyio.current_time()

    async def _titles(self, offset: int) -> list[str]:
        """The titles behind the first `offset` bytes: looked for at once where the last one was, else everywhere.

        A few KB are read quicker than a thread is woken.
        """
        if self._path is not None:
            try:
                if os.stat(self._path).st_size - offset <= AT_ONCE and (found := custom_titles(self._path, offset)):
                    return found
            except OSError as exc:
                logger.debug("%s: the transcript can't be read where it was: %s", self._name, exc)
        return await to_thread.run_sync(self._store.custom_titles_after, self._id, offset)

    async def _last_title(self, offset: int) -> str | None:
        return await to_thread.run_sync(self._store.custom_title_after, self._id, offset)


def _size_of(path: Path | None) -> int | None:
    """Bytes of a file; None if there is none any more, or none that can be looked at."""
    try:
        return os.stat(path).st_size if path is not None else None
    except OSError as exc:
        logger.debug("%s can't be looked at: %s", path, exc.strerror)
        return None
