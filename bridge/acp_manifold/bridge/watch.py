"""One file watcher for the whole hub: who wants to hear about a file, or all files of a folder, subscribes here.

watchfiles keeps a thread for each watch, so there is one watch over the directories of all
subscribed files; it is started with the first subscription and begun anew when the set of
directories changes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import anyio
from anyio import to_thread

logger = logging.getLogger(__name__)

DEBOUNCE_MS = 50
STEP_MS = 20
"""With these two, a change was heard 30 ms after it was on disk; watchfiles 1.x wakes up once a step, idle or not."""

RETRY = 5.0
"""Seconds until directories that could not be watched are tried again: the system's watches may be used up."""


class Watcher:
    """Subscriptions to files, and the loop that serves them."""

    def __init__(self) -> None:
        self._subscriptions: dict[Path, list[Callable[[], None]]] = {}
        self._members: dict[Path, set[Path]] = {}
        """The subscribed files by directory: there may be thousands, in few directories."""
        self._folders: dict[Path, list[Callable[[Path | None], None]]] = {}
        self._changed = anyio.Event()
        self._failed = False
        """Whether the watch that was begun last could not be, or broke off."""

    def watch(self, path: Path, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` soon after the file at `path` appeared, grew or went; the returned function ends it."""
        path = _resolved(path)
        self._subscriptions.setdefault(path, []).append(changed)
        if path.parent not in self._members:
            self._wake()
        self._members.setdefault(path.parent, set()).add(path)

        def unsubscribe() -> None:
            callbacks = self._subscriptions.get(path, [])
            if changed in callbacks:
                callbacks.remove(changed)
            if not callbacks and self._subscriptions.pop(path, None) is not None:
                self._leave(path)

        return unsubscribe

    def watch_folder(self, folder: Path, changed: Callable[[Path | None], None]) -> Callable[[], None]:
        """Call `changed` soon after a file right in `folder` appeared, changed or went; the returned function ends it.

        It is called with the file, or with None when anything may have changed. The folder need not exist yet.
        """
        folder = folder.resolve()
        if folder not in self._folders:
            self._wake()
        self._folders.setdefault(folder, []).append(changed)

        def unsubscribe() -> None:
            callbacks = self._folders.get(folder, [])
            if changed in callbacks:
                callbacks.remove(changed)
            if not callbacks and self._folders.pop(folder, None) is not None:
                self._wake()

        return unsubscribe

    def _leave(self, path: Path) -> None:
        members = self._members[path.parent]
        members.discard(path)
        if not members:
            del self._members[path.parent]
            self._wake()

    def _wake(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Serve the subscriptions until cancelled."""
        while True:
            directories = self._directories()
            self._changed, self._failed = anyio.Event(), False
            if not directories:
                await self._changed.wait()
                continue
            async with anyio.create_task_group() as tg:
                stop = anyio.Event()
                tg.start_soon(self._serve, directories, stop)
                try:
                    await self._wait_for_other(directories)
                finally:
                    # The watch's thread sleeps until its stop event is set: set it before cancelling.
                    stop.set()
            if self._failed:
                self._failed = False
                with anyio.move_on_after(RETRY):
                    await self._wait_for_other(directories)

    async def _wait_for_other(self, directories: frozenset[Path]) -> None:
        while not self._failed and self._directories() == directories:
            await self._changed.wait()
            self._changed = anyio.Event()

    def _directories(self) -> frozenset[Path]:
        """For every file its directory or, while that is missing, the nearest one above that is there."""
        return frozenset(_nearest(directory) for directory in (*self._members, *self._folders))

    async def _serve(self, directories: frozenset[Path], stop: anyio.Event) -> None:
        # In a thread: the import takes 10 ms, and begins just when a new session's answer is due.
        await to_thread.run_sync(import_module, "watchfiles")
        from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType]

        # What changed between the subscription and the start of the watch is told by this first call.
        self._tell(None)
        try:
            async for changes in awatch(
                *directories,
                watch_filter=None,
                debounce=DEBOUNCE_MS,
                step=STEP_MS,
                stop_event=stop,
                recursive=False,
                rust_timeout=2**31 - 1,
            ):
                self._tell({Path(name) for _, name in changes})
        except OSError as exc:
            # Often a directory that went away between the look and the watch: the next round looks again.
            logger.warning("What other programs change in %d folders is heard late: %s", len(directories), exc)
            self._failed = True
            self._wake()

    def _tell(self, changed: set[Path] | None) -> None:
        """Call those whose file changed, or a directory that leads to it; all of them if nobody knows what changed."""
        files: set[Path] = set()
        for directory, members in self._members.items():
            if changed is None or not changed.isdisjoint((directory, *directory.parents)):
                files |= members
                self._wake()
        if changed is not None:
            files |= changed & self._subscriptions.keys()
        for path in files:
            for callback in list(self._subscriptions.get(path, ())):
                self._call(path, callback)
        for folder in list(self._folders):
            self._tell_folder(folder, changed)

    def _tell_folder(self, folder: Path, changed: set[Path] | None) -> None:
        news: list[Path | None] = [path for path in changed or () if path.parent == folder]
        if changed is None or not changed.isdisjoint((folder, *folder.parents)):
            news = [None]
            self._wake()
        for callback in list(self._folders[folder]):
            for path in news:
                self._call(path or folder, partial(callback, path))

    @staticmethod
    def _call(path: Path, callback: Callable[[], object]) -> None:
        """Tell one subscriber; a fault of its own costs nobody else the watch."""
        try:
            callback()
        except Exception:
            logger.exception("A change of %s could not be taken in", path)


def _resolved(path: Path) -> Path:
    """The path with the links of its directory resolved, as the watch will name it."""
    return path.parent.resolve() / path.name


def _nearest(directory: Path) -> Path:
    while not directory.is_dir() and directory != directory.parent:
        directory = directory.parent
    return directory
