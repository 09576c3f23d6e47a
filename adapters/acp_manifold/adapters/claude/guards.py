"""Titles put into a transcript that another process has open: put there again when an older one comes back.

A Claude Code process keeps its session's title in memory and appends it again once it has written 64 KB,
over a title that somebody else put into the file meanwhile; it notices such a title only when it
looks at the file before that (measured, Claude Code 2.1.332). A re-append can be told from a person who
renames back: only the latter renews `at` in the file `custom-title.json` beside the transcript.

A guard lasts until its process has ended, in a file of ours across restarts of the agent. Every agent that
has a session open takes up what others write there, so that it matters to none when another one ends.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Container
from pathlib import Path
from typing import Final, Literal, TypeAlias

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.at_rest import write_title
from acp_manifold.adapters.claude.guard_file import Guard, read_guard, save_guard
from acp_manifold.adapters.claude.registry import Holder, holder_of
from acp_manifold.adapters.claude.titles_in import beside, titles_after
from acp_manifold.adapters.claude.until import changed_or_ended
from acp_manifold.bridge.backend import Host
from acp_manifold.bridge.errors import InvalidRequest

logger = logging.getLogger(__name__)

SETTLE: Final = 2.0
"""Seconds that a title is guarded with nobody seen to have the session.

A Claude Code 2.1.332 that starts on it reads the transcript before it is in the registry, after 0.4 s.
"""

SIDECAR_LAG: Final = 0.25
"""Seconds by which `custom-title.json` may come behind the record of the same rename: 0.044 were seen (2.1.332)."""

REWRITES: Final = 5
"""How often in a row a title is written again with next to nothing written in between.

A process brings an older one back once it has written 32 KB and more: what comes sooner, and again and again, is
somebody's who means it, such as an agent that can't see our guards.
"""

_NEXT_TO_NOTHING: Final = 4096
"""Bytes."""

STALE: Final = 10.0
"""Seconds after which a guard is given up that nobody was seen to need, and no agent has ended."""

_BELL: Final = "changed"
"""The file beside the guards that is touched behind each new one: to watch it is to hear of them all."""

Found: TypeAlias = Literal["stands", "written again", "renamed"]
"""What a look at the transcript found, and what was done: `renamed` if the last title there is a person's."""


class _Patience:
    """Counts how often in a row a title was written again with nothing to show for it."""

    def __init__(self) -> None:
        self._size = -_NEXT_TO_NOTHING
        self._left = REWRITES

    def is_over(self, size: int) -> bool:
        """It was written again, at this size of the transcript."""
        self._left = REWRITES if size - self._size >= _NEXT_TO_NOTHING else self._left - 1
        self._size = size
        return self._left <= 0


class Guards:
    """All guards of the agent."""

    def __init__(
        self, folder: Path, config: Path, host: Host, tasks: TaskGroup, ours: set[int], live: Container[str]
    ) -> None:
        """
        Args:
            folder: Where to keep them across restarts.
            config: Claude Code's own folder, with the registry.
            host: Watches files.
            tasks: What they live in.
            ours: Our own processes, which never have a guarded session.
            live: The sessions they have: a title that another program gives one of these is put into its memory.
        """
        self._folder = folder
        self._config = config
        self._host = host
        self._tasks = tasks
        self._ours = ours
        self._live = live
        self._attending = False
        self._scopes: dict[str, anyio.CancelScope] = {}
        self._running: dict[str, float] = {}
        """When the title was written that is guarded now, for each of the scopes."""
        self._unsaved: set[str] = set()
        """Sessions whose guard is in no file."""
        self._unseen: set[str] = set()
        """Those whose transcript nobody has looked at since their guard was taken up."""
        self._looked = anyio.Event()

    def __len__(self) -> int:
        """How many titles are guarded by this agent now."""
        return len(self._running)

    def attend(self) -> None:
        """From now on, take up at once what other agents guard."""
        if self._attending:
            return
        self._attending = True
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as exc:
            logger.warning("claude: what other agents guard can't be taken up: %s", exc)
            return
        self._host.watch(self._folder / _BELL, self.take_up)

    def take_up(self) -> None:
        """Go on with what an earlier life of the agent, or another agent, guards."""
        try:
            names = sorted(os.listdir(self._folder))
        except FileNotFoundError:
            return
        except OSError as exc:
            logger.warning("claude: what was guarded can't be read: %s", exc)
            return
        for name in names:
            guard = read_guard(self._folder / name) if name.endswith(".json") else None
            if guard is None or guard.session_id in self._live or self._running.get(guard.session_id) == guard.at:
                continue
            if guard.held or time.time() - guard.at < STALE:
                self._unseen.add(guard.session_id)
                self._start(guard)
            else:
                # Nobody had it: what the transcript says now, somebody has put there since.
                self.end(guard.session_id)

    async def looked(self) -> None:
        """Wait until every title that was taken up has been looked at: what stands in the store is right then."""
        while self._unseen:
            await self._looked.wait()

    def _seen(self, session_id: str) -> None:
        self._unseen.discard(session_id)
        if not self._unseen:
            looked, self._looked = self._looked, anyio.Event()
            looked.set()

    async def hand_over(self, session_id: str) -> None:
        """The session is about to be ours: see to its title a last time, since its process may have ended just now."""
        guard = read_guard(self._file(session_id))
        if guard is not None and (guard.held or time.time() - guard.at < STALE):
            try:
                await to_thread.run_sync(keep, guard)
            except (OSError, ValueError, InvalidRequest) as exc:
                logger.warning("claude: the title of session %s can't be guarded: %s", session_id, exc)
        self.end(session_id)

    def write(self, path: Path, session_id: str, title: str) -> Guard:
        """Put a title into a transcript, and give what is to be guarded; for a thread of its own.

        Raises:
            FileNotFoundError: The transcript has gone.
            InvalidRequest: It can't be stored.
        """
        offset = path.stat().st_size
        before = read_guard(self._file(session_id))
        earlier, since = set[str](), 0
        if before is not None:
            earlier = {*before.earlier, before.title}
            # What stands ahead of that one was looked at then: of a long transcript that is nearly all.
            since = before.offset if before.path == path and before.offset <= offset else 0
        earlier.update(found.text for found in titles_after(path, since))
        stored = write_title(path, session_id, title)
        held = holder_of(self._config, session_id, frozenset(self._ours)) is not None
        guard = Guard(session_id, path, stored, tuple(sorted(earlier - {stored})), offset, time.time(), held)
        self._keep_file(guard)
        return guard

    def _keep_file(self, guard: Guard) -> None:
        self._unsaved.discard(guard.session_id)
        try:
            save_guard(self._file(guard.session_id), guard)
            (self._folder / _BELL).touch(0o600)
        except OSError as exc:
            self._unsaved.add(guard.session_id)
            logger.warning("claude: the title of session %s is guarded by this agent alone: %s", guard.session_id, exc)

    def _stands(self, guard: Guard) -> bool:
        """Whether this is still what is to be guarded: no agent has the session by now, and none has renamed it."""
        if guard.session_id in self._unsaved:
            return True
        kept = read_guard(self._file(guard.session_id))
        return kept is not None and kept.at == guard.at

    def begin(self, guard: Guard) -> None:
        """Guard the title just written."""
        self._start(guard, fresh=True)

    def end(self, session_id: str) -> None:
        """The session is ours now, or gone: nobody else brings a title back."""
        self._stop(session_id)
        try:
            self._file(session_id).unlink(missing_ok=True)
        except OSError as exc:
            logger.warning("claude: the guard of session %s can't be taken away: %s", session_id, exc)

    def _file(self, session_id: str) -> Path:
        return self._folder / f"{session_id}.json"

    def _stop(self, session_id: str) -> None:
        self._seen(session_id)
        self._running.pop(session_id, None)
        scope = self._scopes.pop(session_id, None)
        if scope is not None:
            scope.cancel()

    def _start(self, guard: Guard, *, fresh: bool = False) -> None:
        unseen = guard.session_id in self._unseen
        self._stop(guard.session_id)
        if unseen:
            self._unseen.add(guard.session_id)
        self._running[guard.session_id] = guard.at
        self._scopes[guard.session_id] = anyio.CancelScope()
        self._tasks.start_soon(self._run, guard, self._scopes[guard.session_id], fresh)

    async def _run(self, guard: Guard, scope: anyio.CancelScope, fresh: bool) -> None:
        with scope:
            try:
                await self._watch_over(guard, fresh)
            except (OSError, ValueError, InvalidRequest) as exc:
                logger.warning("claude: the title of session %s can't be guarded: %s", guard.session_id, exc)
            # Cancelled, by the end of the agent or by a later title, the file stays.
            if self._scopes.get(guard.session_id) is scope and self._stands(guard):
                self.end(guard.session_id)
            elif self._scopes.get(guard.session_id) is scope:
                self._stop(guard.session_id)

    async def _watch_over(self, guard: Guard, fresh: bool) -> None:
        """Keep a title for as long as somebody has the session.

        Args:
            guard: The title.
            fresh: Whether it was written just now, when it was seen whether somebody has it.
        """
        if not guard.held if fresh else await self._holder(guard) is None:
            if guard.held:
                # Whoever had it has ended since: its last words are there.
                await to_thread.run_sync(keep, guard)
                self._seen(guard.session_id)
            # Nobody is seen to have it: one look when whoever starts just now must be in the registry.
            await anyio.sleep(SETTLE)
        changed, stop, patience = anyio.Event(), None, _Patience()

        def wake() -> None:
            changed.set()

        try:
            while True:
                changed = anyio.Event()
                # Looked for before the file is: what it wrote before its end is seen then.
                holder = await self._holder(guard)
                begins = holder is not None and stop is None
                if begins:
                    stop = self._host.watch(guard.path, wake)
                    if self._stands(guard) and not guard.held:
                        self._keep_file(guard._replace(held=True))
                if fresh or not begins:
                    # The CLI writes who has renamed a moment after the title itself.
                    await anyio.sleep(SIDECAR_LAG)
                if not self._stands(guard) or not await self._keep(guard, patience) or holder is None:
                    return
                self._seen(guard.session_id)
                await changed_or_ended(changed.wait, holder.pid)
        finally:
            if stop is not None:
                stop()

    async def _keep(self, guard: Guard, patience: _Patience) -> bool:
        """Whether ours stands, written again if need be, and is to be guarded on."""
        size = await to_thread.run_sync(lambda: guard.path.stat().st_size)
        found = await to_thread.run_sync(keep, guard)
        if found == "written again" and patience.is_over(size):
            logger.warning("claude: session %s is renamed again and again; its title is let go", guard.session_id)
            return False
        return found != "renamed"

    async def _holder(self, guard: Guard) -> Holder | None:
        return await to_thread.run_sync(holder_of, self._config, guard.session_id, frozenset(self._ours))


def keep(guard: Guard) -> Found:
    """Write a title again if an older or a generated one took its place, unless a person has renamed the session.

    Raises:
        OSError: The transcript can't be read, or has gone.
        InvalidRequest: It can't be written.
    """
    found = titles_after(guard.path, guard.offset)
    last = found[-1] if found else None
    if last is not None and last.origin == "user" and last.text == guard.title:
        return "stands"
    by_a_person = last is not None and last.origin == "user" and last.text not in guard.earlier
    if by_a_person or beside(guard.path)[1] > guard.at:
        return "renamed"
    logger.info("claude: an older title came back to session %s: ours is written again", guard.session_id)
    write_title(guard.path, guard.session_id, guard.title)
    return "written again"
