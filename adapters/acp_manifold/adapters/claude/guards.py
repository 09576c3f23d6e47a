"""Titles put into a transcript that another process has open: put there again when an older one comes back.

A Claude Code process keeps its session's title in memory and appends it again once it has written 64 KB,
over a title that somebody else put into the file meanwhile; it notices such a title only when it
looks at the file before that (measured, Claude Code 2.1.332). A re-append can be told from a person who
renames back: only the latter renews `at` in the file `custom-title.json` beside the transcript.

A guard lasts until its process has ended, in a file of ours across restarts of the agent. Every agent that
has a session open takes up what others write there, so that it matters to none when another one ends.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Awaitable, Callable, Container
from pathlib import Path
from typing import Final, NamedTuple

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.at_rest import write_title
from acp_manifold.adapters.claude.registry import Holder, holder_of
from acp_manifold.adapters.claude.titles_in import beside, titles_after
from acp_manifold.bridge.backend import Host
from acp_manifold.bridge.descriptors import readable
from acp_manifold.bridge.errors import InvalidRequest
from acp_manifold.translators.narrow import JsonObject, as_int, as_list, as_object, as_str

logger = logging.getLogger(__name__)

SETTLE: Final = 2.0
"""Seconds that a title is guarded with nobody seen to have the session.

A Claude Code 2.1.332 that starts on it reads the transcript before it is in the registry, after 0.4 s.
"""

SIDECAR_LAG: Final = 0.25
"""Seconds by which `custom-title.json` may come behind the record of the same rename: 0.044 were seen (2.1.332)."""

STALE: Final = 10.0
"""Seconds after which a guard is given up that nobody was seen to need, and no agent has ended."""

_BELL: Final = "changed"
"""The file beside the guards that is touched behind each new one: to watch it is to hear of them all."""

_LOOK_AGAIN: Final = 5.0
"""Seconds between two looks where the end of a process can't be awaited (macOS)."""


class Guard(NamedTuple):
    """A title of ours that is to stay."""

    session_id: str
    path: Path
    title: str
    earlier: tuple[str, ...]
    """Titles that were in the transcript before: what a process may still have in memory."""
    offset: int
    """Size of the transcript before ours was written."""
    at: float
    """When it was written, in seconds since 1970."""
    held: bool = False
    """Whether another process was seen to have the session."""


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
            guard = _read(self._folder / name) if name.endswith(".json") else None
            if guard is None or guard.session_id in self._live or self._running.get(guard.session_id) == guard.at:
                continue
            if guard.held or time.time() - guard.at < STALE:
                self._start(guard)
            else:
                # Nobody had it: what the transcript says now, somebody has put there since.
                self.end(guard.session_id)

    def write(self, path: Path, session_id: str, title: str) -> Guard:
        """Put a title into a transcript, and give what is to be guarded; for a thread of its own.

        Raises:
            FileNotFoundError: The transcript has gone.
            InvalidRequest: It can't be stored.
        """
        offset = path.stat().st_size
        before = _read(self._file(session_id))
        earlier = {found.text for found in titles_after(path, 0)} | set(before.earlier if before is not None else ())
        stored = write_title(path, session_id, title)
        held = holder_of(self._config, session_id, frozenset(self._ours)) is not None
        guard = Guard(session_id, path, stored, tuple(sorted(earlier - {stored})), offset, time.time(), held)
        self._keep_file(guard)
        return guard

    def _keep_file(self, guard: Guard) -> None:
        self._unsaved.discard(guard.session_id)
        try:
            _save(self._file(guard.session_id), guard)
            (self._folder / _BELL).touch(0o600)
        except OSError as exc:
            self._unsaved.add(guard.session_id)
            logger.warning("claude: the title of session %s is guarded by this agent alone: %s", guard.session_id, exc)

    def _stands(self, guard: Guard) -> bool:
        """Whether this is still what is to be guarded: no agent has the session by now, and none has renamed it."""
        if guard.session_id in self._unsaved:
            return True
        kept = _read(self._file(guard.session_id))
        return kept is not None and kept.at == guard.at

    def begin(self, guard: Guard) -> None:
        """Guard the title just written."""
        self._start(guard)

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
        self._running.pop(session_id, None)
        scope = self._scopes.pop(session_id, None)
        if scope is not None:
            scope.cancel()

    def _start(self, guard: Guard) -> None:
        self._stop(guard.session_id)
        self._running[guard.session_id] = guard.at
        self._scopes[guard.session_id] = anyio.CancelScope()
        self._tasks.start_soon(self._run, guard, self._scopes[guard.session_id])

    async def _run(self, guard: Guard, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                await self._watch_over(guard)
            except (OSError, InvalidRequest) as exc:
                logger.warning("claude: the title of session %s can't be guarded: %s", guard.session_id, exc)
            # Cancelled, by the end of the agent or by a later title, the file stays.
            if self._scopes.get(guard.session_id) is scope and self._stands(guard):
                self.end(guard.session_id)
            elif self._scopes.get(guard.session_id) is scope:
                self._stop(guard.session_id)

    async def _watch_over(self, guard: Guard) -> None:
        if await self._holder(guard) is None:
            # Nobody is seen to have it: one look when whoever starts just now must be in the registry.
            await anyio.sleep(SETTLE)
        changed = anyio.Event()

        def wake() -> None:
            changed.set()

        stop: Callable[[], None] | None = None
        try:
            while True:
                changed = anyio.Event()
                # Looked for before the file is: what it wrote before its end is seen then.
                holder = await self._holder(guard)
                if holder is not None and stop is None:
                    stop = self._host.watch(guard.path, wake)
                    if self._stands(guard) and not guard.held:
                        self._keep_file(guard._replace(held=True))
                else:
                    # The CLI writes who has renamed a moment after the title itself.
                    await anyio.sleep(SIDECAR_LAG)
                if not self._stands(guard) or not await to_thread.run_sync(keep, guard) or holder is None:
                    return
                await _first(changed.wait, holder.pid)
        finally:
            if stop is not None:
                stop()

    async def _holder(self, guard: Guard) -> Holder | None:
        return await to_thread.run_sync(holder_of, self._config, guard.session_id, frozenset(self._ours))


async def _first(changed: Callable[[], Awaitable[object]], pid: int) -> None:
    """Wait for a change, or for the end of a process, whatever comes first."""
    async with anyio.create_task_group() as race:

        async def over(wait: Callable[[], Awaitable[object]]) -> None:
            await wait()
            race.cancel_scope.cancel()

        race.start_soon(over, changed)
        race.start_soon(over, lambda: _end_of(pid))


async def _end_of(pid: int) -> None:
    if sys.platform != "linux":
        await anyio.sleep(_LOOK_AGAIN)
        return
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await readable(descriptor)
    finally:
        os.close(descriptor)


def keep(guard: Guard) -> bool:
    """Write a title again if an older or a generated one took its place; False if a person has renamed the session.

    Raises:
        OSError: The transcript can't be read, or has gone.
        InvalidRequest: It can't be written.
    """
    found = titles_after(guard.path, guard.offset)
    last = found[-1] if found else None
    if last is not None and last.origin == "user" and last.text == guard.title:
        return True
    by_a_person = last is not None and last.origin == "user" and last.text not in guard.earlier
    if by_a_person or beside(guard.path)[1] > guard.at:
        return False
    logger.info("claude: an older title came back to session %s: ours is written again", guard.session_id)
    write_title(guard.path, guard.session_id, guard.title)
    return True


def _save(path: Path, guard: Guard) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept: JsonObject = {**guard._asdict(), "path": str(guard.path), "earlier": list(guard.earlier)}
    new = path.with_suffix(f".{os.getpid()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(kept, file)
    new.replace(path)


def _read(path: Path) -> Guard | None:
    try:
        kept = as_object(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as exc:
        logger.info("%s can't be read: %s", path, exc)
        return None
    session_id, where, title, at = (
        as_str(kept.get("session_id")),
        as_str(kept.get("path")),
        as_str(kept.get("title")),
        kept.get("at"),
    )
    if session_id is None or where is None or title is None or not isinstance(at, int | float):
        return None
    earlier = tuple(found for found in as_list(kept.get("earlier")) if isinstance(found, str))
    offset, held = as_int(kept.get("offset")) or 0, kept.get("held") is True
    return Guard(session_id, Path(where), title, earlier, offset, float(at), held)
