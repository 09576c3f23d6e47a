"""Claude Code's store of conversations: `projects/<folder>/<session id>.jsonl` under its config directory.

A session id is checked for its shape before it is ever put into a path, and what is no regular file
is no transcript, whatever its name. Methods without `async` are
quick or meant for a worker thread; the long ones go there by themselves, in bounded slices.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from anyio import to_thread

from acp_manifold.adapters.claude import scan
from acp_manifold.adapters.claude.regular import is_regular
from acp_manifold.bridge.backend import ListQuery, SessionRow
from acp_manifold.translators.claude.listing import Facts

logger = logging.getLogger(__name__)

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SLICE: Final = 64
"""Transcripts read in one go of a worker thread."""

_FOLDER_LIMIT: Final = 200
"""Characters of a project folder's name beyond which the CLI cuts it and adds a hash."""


class _File(NamedTuple):
    path: Path
    mtime_ns: int
    size: int

    @property
    def session_id(self) -> str:
        return self.path.stem


@dataclass(slots=True)
class _Known:
    """What was read of one state of one file."""

    file: _File
    facts: Facts
    searched: bool = False


class Store:
    """The transcripts under one config directory."""

    def __init__(self, config_dir: Path) -> None:
        self._projects = config_dir / "projects"
        self._known: dict[Path, _Known] = {}

    async def page(self, query: ListQuery) -> list[SessionRow]:
        """Sessions, newest first; see `Backend.list`."""
        files = await to_thread.run_sync(self._files)
        known: list[_Known] = []
        for start in range(0, len(files), _SLICE):
            known += await to_thread.run_sync(self._read_all, files[start : start + _SLICE])
        return await to_thread.run_sync(self._page, known, query)

    async def find(self, session_id: str) -> SessionRow | None:
        """The row of one session; see `Backend.find`."""
        return await to_thread.run_sync(self._find, session_id)

    def locate(self, session_id: str) -> Path | None:
        """The transcript of a session, the newest if there are several; None for what is no session id."""
        copies = self._copies(session_id)
        return max(copies, key=lambda file: file.mtime_ns).path if copies else None

    def expected_path(self, session_id: str, cwd: str) -> Path:
        """Where the transcript of a session is or, while there is none, where the CLI will make it."""
        return self.locate(session_id) or self._projects / _folder(cwd) / f"{session_id}.jsonl"

    def size(self, session_id: str) -> int | None:
        """Bytes of the session's transcript; None without one."""
        copies = self._copies(session_id)
        return max(copies, key=lambda file: file.mtime_ns).size if copies else None

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
            found = scan.titles_after(path, offset) if path is not None else []
        except OSError as exc:
            logger.info("%s can't be read: %s", path, exc.strerror)
            return []
        return [title.text for title in found if title.origin == "user"]

    def renamed_to(self, session_id: str) -> str | None:
        """The title that a Claude Code process was last told for the session, as it stands beside the transcript."""
        path = self.locate(session_id)
        return scan.beside(path)[0] if path is not None else None

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
        for file in self._copies(session_id):
            file.path.unlink(missing_ok=True)
            _remove_folder(file.path.with_suffix(""))
            self._known.pop(file.path, None)

    def _page(self, known: list[_Known], query: ListQuery) -> list[SessionRow]:
        rows = _one_each([(entry, _row(entry)) for entry in known if entry.facts.is_session])
        place = _real_path(query.cwd) if query.cwd is not None else None
        wanted = [(entry, row) for entry, row in rows if _is_wanted(row, place, query)]
        wanted.sort(key=lambda pair: (pair[1].updated_at, pair[1].id), reverse=True)
        return self._rows([entry for entry, _ in wanted[: query.limit]])

    def _files(self) -> list[_File]:
        return [file for folder in self._folders() for file in _transcripts(folder)]

    def _folders(self) -> list[Path]:
        try:
            with os.scandir(self._projects) as entries:
                return [Path(entry.path) for entry in entries if _is_folder(entry)]
        except OSError:
            return []

    def _copies(self, session_id: str) -> list[_File]:
        if _UUID.fullmatch(session_id) is None:
            return []
        paths = [folder / f"{session_id}.jsonl" for folder in self._folders()]
        return [file for path in paths if (file := _stat(path)) is not None]

    def _find(self, session_id: str) -> SessionRow | None:
        copies = sorted(self._copies(session_id), key=lambda file: file.mtime_ns, reverse=True)
        known = [entry for entry in self._read_all(copies) if entry.facts.is_session]
        rows = self._rows(known[:1])
        return rows[0] if rows else None

    def _read_all(self, files: list[_File]) -> list[_Known]:
        return [entry for file in files if (entry := self._read(file)) is not None]

    def _read(self, file: _File) -> _Known | None:
        known = self._known.get(file.path)
        if known is not None and known.file == file:
            return known
        try:
            known = self._known[file.path] = _Known(file, scan.scan(file.path))
        except OSError as exc:
            logger.info("%s can't be read: %s", file.path, exc.strerror)
            return None
        return known

    def _rows(self, page: list[_Known]) -> list[SessionRow]:
        for known in page:
            if not known.searched:
                try:
                    scan.search(known.file.path, known.facts)
                except OSError as exc:
                    logger.info("%s can't be read: %s", known.file.path, exc.strerror)
                known.searched = True
        return [_row(known) for known in page]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # A link that leads to itself, for one.


def _transcripts(folder: Path) -> Iterator[_File]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(".jsonl")]
    except OSError:
        return
    for name in names:
        if _UUID.fullmatch(name.removesuffix(".jsonl")) and (file := _stat(folder / name)) is not None:
            yield file


def _stat(path: Path) -> _File | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return _File(path, status.st_mtime_ns, status.st_size) if is_regular(status) else None


def _row(known: _Known) -> SessionRow:
    facts, title = known.facts, known.facts.title
    return SessionRow(
        id=known.file.session_id,
        cwd=facts.cwd or "/",
        updated_at=facts.updated_at or _moment(known.file.mtime_ns),
        title=title.text if title is not None else facts.first_typed,
        title_origin=title.origin if title is not None else None,
    )


def _moment(mtime_ns: int) -> str:
    return datetime.fromtimestamp(mtime_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _one_each(rows: list[tuple[_Known, SessionRow]]) -> list[tuple[_Known, SessionRow]]:
    """One row for each id: of several copies the one written last."""
    newest: dict[str, tuple[_Known, SessionRow]] = {}
    for entry, row in rows:
        other = newest.get(row.id)
        if other is None or other[0].file.mtime_ns < entry.file.mtime_ns:
            newest[row.id] = (entry, row)
    return list(newest.values())


def _is_wanted(row: SessionRow, place: str | None, query: ListQuery) -> bool:
    if query.before is not None and (row.updated_at, row.id) >= query.before:
        return False
    return place is None or row.cwd == place or _real_path(row.cwd) == place


def _real_path(path: str) -> str:
    """The path with its links resolved, or as it is if it can be no path."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _remove_folder(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.is_dir():
        shutil.rmtree(folder, ignore_errors=True)


def _folder(cwd: str) -> str:
    """The name of the project folder of a directory: its real path with every other character a dash."""
    real = unicodedata.normalize("NFC", _real_path(cwd))
    name = re.sub(r"[^a-zA-Z0-9]", "-", real)
    return name if len(name) <= _FOLDER_LIMIT else f"{name[:_FOLDER_LIMIT]}-{_hash(real)}"


def _hash(name: str) -> str:
    """The hash that keeps cut folder names apart: 32 bits, signed, over UTF-16 units, its magnitude in base 36."""
    units = name.encode("utf-16-le", "surrogatepass")
    value = 0
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = (value * 31 + (high << 8 | low)) & 0xFFFFFFFF
    magnitude = value if value < 0x80000000 else 0x100000000 - value
    digits = ""
    while magnitude:
        magnitude, digit = divmod(magnitude, 36)
        digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits or "0"
