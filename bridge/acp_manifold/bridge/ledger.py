"""What the backends' stores can't tell: who made a title, and aliases of session ids.

One SQLite file under the state directory, 0600, WAL, so that several bridges may use it at
once. It only ever adds to what the stores hold: with the file gone or damaged, sessions and
titles that a store has are still there.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from acp_manifold.translators.titles import Origin
from acp_manifold.translators.values import NamedTuple

from .private_db import connect, transaction

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 2
BUSY_SECONDS = 0.1
"""How long a write waits for another bridge's, which is short; the event loop waits with it."""

_SCHEMA = """
CREATE TABLE titles (
    backend TEXT NOT NULL, id TEXT NOT NULL, title TEXT NOT NULL, origin TEXT NOT NULL,
    PRIMARY KEY (backend, id)
) WITHOUT ROWID;
CREATE TABLE aliases (
    session TEXT NOT NULL PRIMARY KEY, backend TEXT NOT NULL, id TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX aliases_by_id ON aliases (backend, id);
"""

_SINCE_2 = """
CREATE TABLE marks (
    backend TEXT NOT NULL, id TEXT NOT NULL, mark TEXT NOT NULL,
    PRIMARY KEY (backend, mark, id)
) WITHOUT ROWID;
"""

Mark: TypeAlias = Literal["archived", "fork", "deleted"]
"""What a session is beside what its store says: in our archive, a copy that the store's list may not show yet, or
deleted, though the store keeps it as long as there are copies of it."""


class Key(NamedTuple):
    """A session as its backend knows it."""

    backend: str
    id: str


class TitleRecord(NamedTuple):
    """A title and who made it."""

    text: str
    origin: Origin


def state_directory(environ: Mapping[str, str] | None = None) -> Path:
    """Where our state lives: `$XDG_STATE_HOME/acp-manifold`, blank counts as unset; `environ` is our own by default."""
    environ = os.environ if environ is None else environ
    base = environ.get("XDG_STATE_HOME", "").strip()
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    root = Path(base) if base and Path(base).is_absolute() else home / ".local" / "state"
    return root / "acp-manifold"


def ledger_path() -> Path:
    """Where the ledger of this person is."""
    return state_directory() / "ledger.sqlite3"


class Ledger:
    """Titles with their origin, and aliases. All calls are short, synchronous and never raise for a bad file.

    What the file does not take now (another bridge is writing, the disk is full) is kept and
    written with the next call; what is kept counts over what the file says.
    """

    def __init__(self, path: Path | None) -> None:
        """Open lazily at `path`; None keeps everything in memory, for tests."""
        self._path = path
        self._db: sqlite3.Connection | None = None
        self._usable = True
        self._kept_titles: dict[Key, TitleRecord | None] = {}
        self._kept_aliases: dict[str, Key] = {}
        self._kept_marks: dict[tuple[Key, Mark], bool] = {}

    def title(self, key: Key) -> TitleRecord | None:
        """What we know about a session's title."""
        if key in self._kept_titles:
            return self._kept_titles[key]
        rows = self._read("SELECT title, origin FROM titles WHERE backend = ? AND id = ?", (key.backend, key.id))
        return _record(rows[0]) if rows else None

    def titles(self, backend: str) -> dict[str, TitleRecord]:
        """All titles we know of a backend's sessions, by its id."""
        rows = self._read("SELECT title, origin, id FROM titles WHERE backend = ?", (backend,))
        found = {str(row[2]): _record(row) for row in rows}
        found |= {key.id: record for key, record in self._kept_titles.items() if key.backend == backend}
        return {name: record for name, record in found.items() if record is not None}

    def put_title(self, key: Key, record: TitleRecord) -> None:
        """Remember a title."""
        self._kept_titles[key] = record
        self._flush()

    def alias(self, session: str) -> Key | None:
        """The backend's name of a session whose id is not the backend's own."""
        if session in self._kept_aliases:
            return self._kept_aliases[session]
        rows = self._read("SELECT backend, id FROM aliases WHERE session = ?", (session,))
        return Key(str(rows[0][0]), str(rows[0][1])) if rows else None

    def aliases(self, backend: str) -> dict[str, str]:
        """Our ids of a backend's sessions, by its id, where they differ."""
        rows = self._read("SELECT session, id FROM aliases WHERE backend = ?", (backend,))
        found = {str(row[0]): Key(backend, str(row[1])) for row in rows}
        found |= self._kept_aliases
        return {key.id: session for session, key in found.items() if key.backend == backend}

    def put_alias(self, session: str, key: Key) -> None:
        """Remember that `session` is the backend's `key`."""
        self._kept_aliases[session] = key
        self._flush()

    def marked(self, backend: str, mark: Mark) -> frozenset[str]:
        """The sessions of a backend, by its id, that bear a mark."""
        rows = self._read("SELECT id FROM marks WHERE backend = ? AND mark = ?", (backend, mark))
        found = {str(row[0]) for row in rows}
        for (key, kept), bears in self._kept_marks.items():
            if key.backend == backend and kept == mark:
                (found.add if bears else found.discard)(key.id)
        return frozenset(found)

    def put_mark(self, key: Key, mark: Mark, bears: bool) -> None:
        """Remember whether a session bears a mark."""
        self._kept_marks[key, mark] = bears
        self._flush()

    def forget(self, key: Key) -> None:
        """Drop the title and the marks of a session that is gone for good.

        Our id of it stays what it was: nobody's now, though a CLI may have another session by that name.
        """
        self._kept_titles[key] = None
        for mark in get_args(Mark):
            self._kept_marks[key, mark] = False
        self._flush()

    def close(self) -> None:
        """Write what is still kept, if that can be, and close the file."""
        self._flush()
        if self._keeps:
            logger.warning("the ledger %s did not take the last titles", self._path)
        self._disconnect()

    def _disconnect(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None

    @property
    def _keeps(self) -> bool:
        return bool(self._kept_titles or self._kept_aliases or self._kept_marks)

    def _flush(self) -> None:
        if not self._keeps:
            return
        db = self._open()
        if db is not None and self._guarded(lambda: self._save(db)):
            self._kept_titles.clear()
            self._kept_aliases.clear()
            self._kept_marks.clear()

    def _save(self, db: sqlite3.Connection) -> None:
        """Write all of it, or nothing."""
        with transaction(db):
            _save_titles(db, self._kept_titles)
            _save_aliases(db, self._kept_aliases)
            _save_marks(db, self._kept_marks)

    def _read(self, sql: str, values: tuple[str, ...]) -> list[tuple[object, ...]]:
        self._flush()
        rows: list[tuple[object, ...]] = []
        db = self._open()
        if db is not None:
            self._guarded(lambda: rows.extend(db.execute(sql, values)))
        return rows

    def _open(self) -> sqlite3.Connection | None:
        """The open file, if there is one that can be used."""
        if self._db is None and self._usable:

            def opens() -> None:
                self._db = connect(self._path, SCHEMA_VERSION, _upgrade, busy=BUSY_SECONDS)

            self._guarded(opens)
        return self._db

    def _guarded(self, act: Callable[[], None]) -> bool:
        """Whether `act` on the file went well; what is wrong with the file decides what becomes of it."""
        import sqlite3  # not at the top: nobody needs it before the first session

        try:
            act()
        except sqlite3.OperationalError as exc:
            if getattr(exc, "sqlite_errorcode", None) in (
                sqlite3.SQLITE_BUSY,
                sqlite3.SQLITE_LOCKED,
                sqlite3.SQLITE_FULL,
            ):
                logger.warning("the ledger %s is written later: %s", self._path, exc)
            else:
                self._give_up(exc)
        except (sqlite3.DatabaseError, OSError) as exc:
            if isinstance(exc, sqlite3.DatabaseError) and self._path is not None and self._set_aside(exc):
                return False
            self._give_up(exc)
        else:
            return True
        return False

    def _give_up(self, exc: Exception) -> None:
        logger.warning("the ledger %s can't be used, titles are kept in memory: %s", self._path, exc)
        self._disconnect()
        self._usable = False

    def _set_aside(self, exc: Exception) -> bool:
        """Move a damaged file out of the way, so that the next call begins a new one."""
        logger.warning("the ledger %s is damaged (%s): it is kept as %s.damaged", self._path, exc, self._path)
        self._disconnect()
        try:
            os.replace(str(self._path), f"{self._path}.damaged")
            for rest in ("-wal", "-shm"):
                Path(f"{self._path}{rest}").unlink(missing_ok=True)
        except OSError as again:
            logger.warning("it can't be moved: %s", again)
            return False
        return True


def _save_titles(db: sqlite3.Connection, titles: Mapping[Key, TitleRecord | None]) -> None:
    for key, record in titles.items():
        db.execute("DELETE FROM titles WHERE backend = ? AND id = ?", (key.backend, key.id))
        if record is not None:
            db.execute("INSERT INTO titles VALUES (?, ?, ?, ?)", (key.backend, key.id, record.text, record.origin))


def _save_aliases(db: sqlite3.Connection, aliases: Mapping[str, Key]) -> None:
    rows = [(session, alias.backend, alias.id) for session, alias in aliases.items()]
    db.executemany("INSERT OR REPLACE INTO aliases VALUES (?, ?, ?)", rows)


def _save_marks(db: sqlite3.Connection, marks: Mapping[tuple[Key, Mark], bool]) -> None:
    for (key, mark), bears in marks.items():
        db.execute("DELETE FROM marks WHERE backend = ? AND mark = ? AND id = ?", (key.backend, mark, key.id))
        if bears:
            db.execute("INSERT INTO marks VALUES (?, ?, ?)", (key.backend, key.id, mark))


def _upgrade(db: sqlite3.Connection, found: int) -> None:
    for schema in (_SCHEMA, _SINCE_2)[found:]:
        for statement in filter(str.strip, schema.split(";")):
            db.execute(statement)


def _record(row: tuple[object, ...]) -> TitleRecord | None:
    text, origin = row[0], row[1]
    for known in get_args(Origin):
        if known == origin and isinstance(text, str):
            return TitleRecord(text, known)
    return None
