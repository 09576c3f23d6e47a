"""The files that are transcripts: which there are, what the system says of them, and how their folders are named."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path
from typing import Final, NamedTuple

from acp_manifold.adapters.claude.regular import is_regular

_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SUFFIX: Final = ".jsonl"
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


def paths_of_transcripts(projects: Path) -> list[str]:
    """The path of every transcript there is, by their names; folders that can't be looked into are left out."""
    return [
        f"{folder}/{name}"
        for folder in _folders(projects)
        for name in _names(folder)
        if len(name) == _NAME_LENGTH and name.endswith(_SUFFIX) and _UUID.fullmatch(name, endpos=36)
    ]


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


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


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
