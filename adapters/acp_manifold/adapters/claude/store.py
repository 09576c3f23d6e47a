"""Claude Code's store of conversations: `projects/<folder>/<session id>.jsonl` under its config directory.

A session id is checked for its shape before it is ever put into a path, and what is no regular file
is no transcript, whatever its name. Methods without `async` are quick or meant for a worker thread;
the long ones go there by themselves, in bounded slices.
"""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import anyio
from anyio import to_thread

from acp_manifold.adapters.claude import scan, titles_in
from acp_manifold.adapters.claude.catalogue import SLICE, Catalogue
from acp_manifold.adapters.claude.index import Index
from acp_manifold.adapters.claude.transcripts import Transcript, copies_of, folder_name
from acp_manifold.bridge.backend import ListQuery, SessionRow

logger = logging.getLogger(__name__)


class Store:
    """The transcripts under one config directory.

    Args:
        config_dir: That of the CLI.
        index: Where to keep what was read over restarts; None keeps it in memory only.
    """

    def __init__(self, config_dir: Path, index: Path | None = None) -> None:
        self.root = config_dir
        """The config directory."""
        self._projects = config_dir / "projects"
        self._catalogue = Catalogue(self._projects, Index(index))
        self._turn = anyio.Lock()
        """Lists come one after the other, since the second need not read what the first reads; behind their back
        the work is done in small pieces, between which they come first."""
        self._work = anyio.Event()
        self._tended = False

    async def page(self, query: ListQuery) -> list[SessionRow]:
        """Sessions, newest first; see `Backend.list`."""
        catalogue = self._catalogue
        async with self._turn:
            changed = await to_thread.run_sync(catalogue.refresh)
            for start in range(0, len(changed), SLICE):
                await to_thread.run_sync(catalogue.read, changed[start : start + SLICE])
            while (rows := await to_thread.run_sync(catalogue.page, query)) is None:
                pass
            if not self._tended:
                await to_thread.run_sync(catalogue.save)
        self._work.set()
        return rows

    async def find(self, session_id: str) -> SessionRow | None:
        """The row of one session; see `Backend.find`."""
        row = await to_thread.run_sync(self._catalogue.find, session_id)
        self._work.set()
        return row

    def is_archived(self, session_id: str) -> bool:
        """Whether the title of a session says so; reads the store, for a thread."""
        row = self._catalogue.find(session_id)
        return row is not None and row.archived

    async def tend(self) -> None:
        """Until cancelled, do behind each list's back what it did not wait for, so that the next one has it."""
        self._tended = True
        try:
            while True:
                await self._work.wait()
                self._work = anyio.Event()
                more = True
                while more:
                    async with self._turn:
                        more = await to_thread.run_sync(self._catalogue.tend)
        finally:
            self._tended = False

    def locate(self, session_id: str) -> Path | None:
        """The transcript of a session, the newest if there are several; None for what is no session id."""
        newest = self._newest(session_id)
        return Path(newest.path) if newest is not None else None

    def expected_path(self, session_id: str, cwd: str) -> Path:
        """Where the transcript of a session is or, while there is none, where the CLI will make it."""
        return self.locate(session_id) or self._projects / folder_name(cwd) / f"{session_id}.jsonl"

    def folder_of(self, cwd: str) -> Path:
        """Where the CLI keeps the transcripts of sessions of a directory."""
        return self._projects / folder_name(cwd)

    def custom_title_after(self, session_id: str, offset: int) -> str | None:
        """The last custom title behind the first `offset` bytes of the session's transcript."""
        path = self.locate(session_id)
        try:
            return scan.custom_title_after(path, offset) if path is not None else None
        except OSError as exc:
            logger.info("%s can't be read: %s", path, exc.strerror)
            return None

    def custom_titles_after(self, session_id: str, offset: int) -> list[str]:
        """Every custom title behind the first `offset` bytes of the session's transcript, in order."""
        path = self.locate(session_id)
        try:
            return titles_in.custom_titles(path, offset) if path is not None else []
        except OSError as exc:
            logger.info("%s can't be read: %s", path, exc.strerror)
            return []

    def told(self, session_id: str) -> tuple[str | None, float]:
        """The title that a Claude Code process was last told for the session, and when; see `titles_in.beside`."""
        path = self.locate(session_id)
        return titles_in.beside(path) if path is not None else (None, 0.0)

    def ends_with(self, session_id: str, uuid: str) -> bool:
        """Whether a record of that `uuid` is at the end of the session's transcript; True if that can't be told."""
        path = self.locate(session_id)
        try:
            return path is not None and scan.is_near_end(path, uuid)
        except OSError as exc:
            logger.info("%s can't be read: %s", path, exc.strerror)
            return True

    def delete(self, session_id: str) -> None:
        """Remove every transcript of a session, and the folder beside each that belongs to it alone."""
        for transcript in copies_of(self._projects, session_id):
            path = Path(transcript.path)
            path.unlink(missing_ok=True)
            _remove_folder(path.with_suffix(""))
            self._catalogue.forget(transcript.path)

    def _newest(self, session_id: str) -> Transcript | None:
        copies = copies_of(self._projects, session_id)
        return max(copies, key=lambda transcript: transcript.mark.mtime_ns, default=None)


def _remove_folder(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.is_dir():
        shutil.rmtree(folder, ignore_errors=True)
