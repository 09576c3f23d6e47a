"""SQLite files of our own under the state directory: 0600, WAL, with a version, used by several agents at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3


def connect(
    path: Path | None, version: int, upgrade: Callable[[sqlite3.Connection, int], None], *, busy: float
) -> sqlite3.Connection:
    """Open a file, made if it is not there, and bring it to a version.

    Args:
        path: The file; None for one in memory.
        version: That of the schema in use.
        upgrade: Makes the schema out of what an older version had, 0 for nothing at all. It runs in a transaction.
        busy: Seconds that a statement waits while another agent writes.

    Raises:
        OSError: It can't be made or opened, or was made by a later version.
        sqlite3.Error: It is damaged, or the disk doesn't take it.
    """
    import sqlite3  # Not at the top: nobody needs it before the first session.

    if path is not None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    db = sqlite3.connect(":memory:" if path is None else path, isolation_level=None, timeout=busy)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        _bring_to(db, version, upgrade)
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Generator[None]:
    """All of the block's statements are in the file at its end, or none."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _bring_to(db: sqlite3.Connection, version: int, upgrade: Callable[[sqlite3.Connection, int], None]) -> None:
    if _version(db) == version:
        return
    with transaction(db):
        found = _version(db)  # Another agent may just have done it.
        if found < version:
            upgrade(db, found)
            db.execute(f"PRAGMA user_version = {version}")
    if found > version:
        raise OSError(f"made by a later version (schema {found})")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
