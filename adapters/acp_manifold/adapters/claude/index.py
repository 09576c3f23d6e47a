"""What was read of the transcripts, kept over restarts: an SQLite file that may be thrown away at any time.

What it says of a transcript counts only while the file's size, time and inode are the same, or if it
grew behind what was read (see `scan`). Several bridges may use it at once. A damaged file is
removed and built anew.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from acp_manifold.adapters.claude.scan import Reading
from acp_manifold.adapters.claude.transcripts import Mark, session_id_of
from acp_manifold.bridge.private_db import connect, transaction
from acp_manifold.translators.claude.listing import Facts

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger(__name__)

Row: TypeAlias = tuple[object, ...]
"""What is kept of an entry, made by `row_of`."""

SCHEMA_VERSION = 2
BUSY_SECONDS = 2.0
"""How long a worker thread waits for another bridge's write, which takes milliseconds."""

_FACTS = (
    "first_cwd, last_cwd, custom, custom_at, generated, generated_at, first_typed, updated_at, "
    "begun, has_message, sidechain, model, model_at, cost, cost_at, forked_from"
)
_READING = 'read_size, "end", anchor, searched, head, sought'
_MARK = "size, mtime_ns, inode"
_COLUMNS = f"path, {_MARK}, {_READING}, {_FACTS}"
_SCHEMA = f"CREATE TABLE transcripts ({_COLUMNS}, PRIMARY KEY (path)) WITHOUT ROWID"
_PUT = f"INSERT OR REPLACE INTO transcripts ({_COLUMNS}) VALUES ({', '.join('?' * len(_COLUMNS.split(',')))})"


class Entry:
    """A transcript, and what was read of the state of it that `mark` names."""

    __slots__ = ("id", "mark", "path", "reading")

    def __init__(self, path: str, mark: Mark, reading: Reading) -> None:
        self.path = path
        self.id = session_id_of(path)
        self.mark = mark
        self.reading = reading

    @property
    def key(self) -> tuple[str, str]:
        """Its place in the list, the newest being the greatest: by what was said last, or else by the file's time."""
        return self.reading.facts.updated_at or _moment(self.mark.mtime_ns), self.id


class Index:
    """The file. Never raises for a bad one; methods are for worker threads, any number at a time."""

    def __init__(self, path: Path | None) -> None:
        """Keep it at `path`; None keeps nothing."""
        self._path = path
        self.usable = path is not None
        """False once it is certain that nothing can be kept."""

    def load(self, folder: Path) -> list[Entry]:
        """All that is known of transcripts under a folder."""
        if self._path is None or not self._path.exists():
            return []
        root = os.fsencode(folder)
        entries: list[Entry] = []

        def select(db: sqlite3.Connection) -> None:
            # The character behind the slash: all paths under the folder are between the two.
            sql = f"SELECT {_COLUMNS} FROM transcripts WHERE path BETWEEN ? AND ?"
            entries.extend(map(_entry, db.execute(sql, (root + b"/", root + b"0"))))

        return entries if self._guarded(select) else []

    def save(self, rows: Sequence[Row], gone: Sequence[str]) -> None:
        """Note the rows of entries, and forget the paths of transcripts that are there no more.

        What can't be written now, since another bridge is writing, is read anew after a restart.
        """
        forgotten = [(os.fsencode(path),) for path in gone]

        def write(db: sqlite3.Connection) -> None:
            with transaction(db):
                db.executemany("DELETE FROM transcripts WHERE path = ?", forgotten)
                db.executemany(_PUT, rows)

        if not self._guarded(write):
            self._guarded(write)

    def _guarded(self, act: Callable[[sqlite3.Connection], None]) -> bool:
        """Whether `act` on the file went well, or can't; what is wrong with it decides what becomes of it."""
        import sqlite3  # Not at the top: nobody needs it before the first list.

        if not self.usable or self._path is None:
            return True
        try:
            with closing(connect(self._path, SCHEMA_VERSION, _upgrade, busy=BUSY_SECONDS)) as db:
                act(db)
        except sqlite3.OperationalError as exc:
            if getattr(exc, "sqlite_errorcode", None) not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                self._give_up(exc)
        except OSError as exc:
            self._give_up(exc)
        except (sqlite3.DatabaseError, TypeError, ValueError) as exc:
            self._remove(exc)
            return False
        return True

    def _give_up(self, exc: Exception) -> None:
        logger.warning("the list index %s can't be used, lists are read anew after a restart: %s", self._path, exc)
        self.usable = False

    def _remove(self, exc: Exception) -> None:
        logger.warning("the list index %s is damaged (%s): it is built anew", self._path, exc)
        try:
            for rest in ("", "-wal", "-shm"):
                Path(f"{self._path}{rest}").unlink(missing_ok=True)
        except OSError as again:
            self._give_up(again)


def _moment(mtime_ns: int) -> str:
    return datetime.fromtimestamp(mtime_ns / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _upgrade(db: sqlite3.Connection, found: int) -> None:
    if found:
        db.execute("DROP TABLE transcripts")
    db.execute(_SCHEMA)


def row_of(entry: Entry) -> Row | None:
    """What is kept of an entry; None if it holds text that can't be written: JSON may bring half a surrogate pair."""
    reading, facts = entry.reading, entry.reading.facts
    try:
        "".join(text for text in (facts.custom, facts.generated, facts.first_typed) if text).encode()
    except UnicodeEncodeError:
        return None
    return (
        os.fsencode(entry.path),
        *entry.mark,
        *(reading.size, reading.end, reading.anchor, reading.searched, reading.head, reading.sought),
        *(facts.first_cwd, facts.last_cwd, facts.custom, facts.custom_at, facts.generated, facts.generated_at),
        *(facts.first_typed, facts.updated_at, facts.begun, facts.has_message, facts.sidechain),
        *(facts.model, facts.model_at, facts.cost, facts.cost_at, facts.forked_from),
    )


def _entry(row: tuple[Any, ...]) -> Entry:
    """The entry of a row: columns hold what `row_of` gave, in its order."""
    path, size, mtime_ns, inode, read_size, end, anchor, searched, head, sought, *facts = row
    name = os.fsdecode(path)
    reading = Reading(name, Facts(*facts), read_size, end, anchor, searched, head, sought)
    return Entry(name, Mark(size, mtime_ns, inode), reading)
