"""What the backends' stores can't tell: who made a title, and aliases of session ids.

One SQLite file under the state directory, 0600, WAL, so that several bridges may use it at
once. It only ever adds to what the stores hold: with the file gone or damaged, sessions and
titles that a store has are still there.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_args

from acp_manifold.translators.titles import Origin

if TYPE_CHECKING:
    import sqlite3

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 1
BUSY_SECONDS = 2.0
"""How long a write waits for another bridge's; each is one short statement."""

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

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Key:
    """A session as its backend knows it."""

    backend: str
    id: str


@dataclass(frozen=True, slots=True)
class TitleRecord:
    """A title and who made it."""

    text: str
    origin: Origin


def state_directory() -> Path:
    """Where our state lives: `$XDG_STATE_HOME/acp-manifold`, blank counts as unset."""
    base = os.environ.get("XDG_STATE_HOME", "").strip()
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".local" / "state"
    return root / "acp-manifold"


class Ledger:
    """Titles with their origin, and aliases. All calls are short, synchronous and never raise for a bad file."""

    def __init__(self, path: Path | None) -> None:
        """Open lazily at `path`; None keeps everything in memory, for tests."""
        self._path = path
        self._db: sqlite3.Connection | None = None

    def title(self, key: Key) -> TitleRecord | None:
        """What we know about a session's title."""
        row = self._read("SELECT title, origin FROM titles WHERE backend = ? AND id = ?", (key.backend, key.id))
        return _record(row[0]) if row else None

    def titles(self, backend: str) -> dict[str, TitleRecord]:
        """All titles we know of a backend's sessions, by its id."""
        rows = self._read("SELECT title, origin, id FROM titles WHERE backend = ?", (backend,))
        return {str(row[2]): record for row in rows if (record := _record(row)) is not None}

    def put_title(self, key: Key, record: TitleRecord) -> None:
        """Remember a title."""
        self._write(
            "INSERT INTO titles VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET title = excluded.title,"
            " origin = excluded.origin",
            (key.backend, key.id, record.text, record.origin),
        )

    def alias(self, session: str) -> Key | None:
        """The backend's name of a session whose id is not the backend's own."""
        rows = self._read("SELECT backend, id FROM aliases WHERE session = ?", (session,))
        return Key(str(rows[0][0]), str(rows[0][1])) if rows else None

    def aliases(self, backend: str) -> dict[str, str]:
        """Our ids of a backend's sessions, by its id, where they differ."""
        rows = self._read("SELECT id, session FROM aliases WHERE backend = ?", (backend,))
        return {str(row[0]): str(row[1]) for row in rows}

    def put_alias(self, session: str, key: Key) -> None:
        """Remember that `session` is the backend's `key`."""
        self._write(
            "INSERT INTO aliases VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET backend = excluded.backend,"
            " id = excluded.id",
            (session, key.backend, key.id),
        )

    def forget(self, key: Key) -> None:
        """Drop all we know about a session that is gone for good."""
        self._write("DELETE FROM titles WHERE backend = ? AND id = ?", (key.backend, key.id))
        self._write("DELETE FROM aliases WHERE backend = ? AND id = ?", (key.backend, key.id))

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _read(self, sql: str, values: tuple[str, ...]) -> list[tuple[object, ...]]:
        return self._guarded(lambda db: db.execute(sql, values).fetchall(), [])

    def _write(self, sql: str, values: tuple[str, ...]) -> None:
        def write(db: sqlite3.Connection) -> None:
            db.execute(sql, values)

        self._guarded(write, None)

    def _guarded(self, act: Callable[[sqlite3.Connection], _T], otherwise: _T) -> _T:
        import sqlite3  # not at the top: nobody needs it before the first session

        try:
            return act(self._open())
        except (sqlite3.Error, OSError) as exc:
            logger.warning("the ledger %s can't be used, titles are kept in memory: %s", self._path, exc)
            self.close()
            if self._path is None:
                return otherwise
            self._set_aside(exc)
            return act(self._open())

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = _connect(self._path)
        return self._db

    def _set_aside(self, exc: Exception) -> None:
        """Move a damaged file out of the way; where that is not the trouble, go on in memory."""
        import sqlite3

        if isinstance(exc, sqlite3.DatabaseError) and not isinstance(exc, sqlite3.OperationalError) and self._path:
            try:
                os.replace(self._path, f"{self._path}.damaged")
                self._open()
                return
            except (sqlite3.Error, OSError) as again:
                logger.warning("no new ledger at %s: %s", self._path, again)
        self._path = None


def _connect(path: Path | None) -> sqlite3.Connection:
    import sqlite3

    if path is None:
        db = sqlite3.connect(":memory:", isolation_level=None)
    else:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)
    try:
        _prepare(db)
    except sqlite3.Error:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection) -> None:
    import sqlite3

    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    if _version(db) == SCHEMA_VERSION:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        if _version(db) == 0:
            for statement in filter(str.strip, _SCHEMA.split(";")):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    finally:
        db.execute("COMMIT")
    if _version(db) != SCHEMA_VERSION:
        raise sqlite3.OperationalError(f"made by another version (schema {_version(db)})")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _record(row: tuple[object, ...]) -> TitleRecord | None:
    text, origin = row[0], row[1]
    for known in get_args(Origin):
        if known == origin and isinstance(text, str):
            return TitleRecord(text, known)
    return None
