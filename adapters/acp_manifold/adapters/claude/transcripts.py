"""The files that are transcripts: which there are, what the system says of them, and how their folders are named."""

from __future__ import annotations

import logging
import os
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from acp_manifold.adapters.claude.regular import is_regular
from acp_manifold.translators.values import NamedTuple

logger = logging.getLogger(__name__)

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SUFFIX: Final = ".jsonl"
_NAME: Final = re.compile(_UUID.pattern + re.escape(_SUFFIX), re.IGNORECASE)
_NAME_LENGTH: Final = 36 + len(_SUFFIX)

_FOLDER_LIMIT: Final = 200
"""Characters of a project folder's name beyond which the CLI cuts it and adds a hash."""


class Mark(NamedTuple):
    """What the system says of a file: the same as before, and it is the file that was read."""

    size: int
    mtime_ns: int
    inode: int


class Transcript(NamedTuple):
    """A transcript as it is now."""

    path: str
    mark: Mark


class Changes(NamedTuple):
    """What a look found to be different from the one before."""

    changed: list[Transcript]
    """New ones too."""
    gone: list[str]


class Looks:
    """What was there at the last look at a store, to tell what is different at the next. For one thread at a time.

    Args:
        projects: The folder of the project folders.
        known: The marks that are known by path, as if from an earlier look.
    """

    def __init__(self, projects: Path, known: Mapping[str, Mark]) -> None:
        self._projects = projects
        self._marks: dict[str, dict[str, Mark]] = {}
        """By folder and name."""
        self._times: dict[str, int] = {}
        """When names were last added to a folder or taken from it, as it said at the last look."""
        for path, mark in known.items():
            folder, _, name = path.rpartition("/")
            self._marks.setdefault(folder, {})[name] = mark

    def look(self, *, closely: bool) -> Changes:
        """Look for new transcripts and for those that are gone; closely: for changes of all others too.

        The close look costs a system call for each transcript, the other one a call for each folder.
        """
        found = Changes([], [])
        there = _folders(self._projects)
        for folder in self._marks.keys() - set(there):
            found.gone.extend(f"{folder}/{name}" for name in self._marks.pop(folder))
        for folder in there:
            try:
                self._look_into(folder, closely, found)
            except OSError as exc:
                logger.info("%s can't be listed: %s", folder, exc.strerror)
        return found

    def forget(self, path: str) -> None:
        """A transcript could not be read: to be tried again at the next close look."""
        folder, _, name = path.rpartition("/")
        self._marks.get(folder, {}).pop(name, None)

    def _look_into(self, folder: str, closely: bool, found: Changes) -> None:
        time = os.stat(folder).st_mtime_ns
        if not closely and self._times.get(folder) == time:
            return
        self._times[folder] = time
        known = self._marks.get(folder, {})
        self._marks[folder] = marks = {}
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # Done for thousands of names: these are relative, and tuples are made when needed.
            for name in os.listdir(descriptor):
                mark = known.get(name)
                if mark is None and (len(name) != _NAME_LENGTH or _NAME.fullmatch(name) is None):
                    continue
                try:
                    status = os.stat(name, dir_fd=descriptor)
                except OSError:
                    continue
                if mark is not None and mark == (status.st_size, status.st_mtime_ns, status.st_ino):
                    marks[name] = mark
                elif is_regular(status):
                    marks[name] = mark = Mark(status.st_size, status.st_mtime_ns, status.st_ino)
                    found.changed.append(Transcript(f"{folder}/{name}", mark))
        finally:
            os.close(descriptor)
        found.gone.extend(f"{folder}/{name}" for name in known.keys() - marks.keys())


def copies_of(projects: Path, session_id: str) -> list[Transcript]:
    """The transcripts of one session; none for what is no session id, whatever it is."""
    if _UUID.fullmatch(session_id) is None:
        return []
    found = (transcript_at(f"{folder}/{session_id}{_SUFFIX}") for folder in _folders(projects))
    return [transcript for transcript in found if transcript is not None]


def transcript_at(path: str) -> Transcript | None:
    """The transcript at a path; None if there is no regular file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    mark = Mark(status.st_size, status.st_mtime_ns, status.st_ino)
    return Transcript(path, mark) if is_regular(status) else None


def session_id_of(path: str) -> str:
    """The session id that is the name of a transcript."""
    return path[-_NAME_LENGTH : -len(_SUFFIX)]


def folder_name(cwd: str) -> str:
    """The name of the project folder of a directory: its real path with every other character a dash."""
    real = unicodedata.normalize("NFC", real_path(cwd))
    name = re.sub(r"[^a-zA-Z0-9]", "-", real)
    return name if len(name) <= _FOLDER_LIMIT else f"{name[:_FOLDER_LIMIT]}-{_hash(real)}"


def real_path(path: str) -> str:
    """The path with its links resolved, or as it is if it can be no path."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return path


def _folders(projects: Path) -> list[str]:
    try:
        with os.scandir(projects) as entries:
            return [entry.path for entry in entries if _is_folder(entry)]
    except OSError:
        return []


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # A link that leads to itself, for one.


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
