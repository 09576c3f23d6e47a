"""What `acp-manifold doctor` finds out: CLIs, stores, logins, who has which session, our own state. Changes nothing.

Each backend is asked by the calls that serve the protocol (its program, its list, its login) and by
`Backend.inspect`. What is wrong is a sentence with what to do about it.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import anyio

from acp_manifold.translators.auth import Account, LoginState
from acp_manifold.translators.values import NamedTuple

from .backend import Backend, Held, ListQuery, Login, Program
from .backends import NoBackend, plugin_backend, wanted_plugins
from .errors import BridgeError
from .hub import Hub
from .ledger import SCHEMA_VERSION, ledger_path
from .once import run
from .version import __version__

_LOGINS: dict[LoginState, Login] = {
    "authenticated": "in",
    "not_required": "in",
    "unauthenticated": "out",
    "unknown": "unknown",
}

_ALL = 1_000_000
"""More sessions than anybody has."""


class BackendReport(NamedTuple):
    """What there is to say of one backend."""

    name: str
    label: str
    program: Program | None
    version: str | None
    login: Login
    accounts: tuple[str, ...]
    """The logins there are, the one that counts first."""
    endpoint: str | None
    """The endpoint that the person has configured, without secrets; None: the maker's own."""
    store: Path | None
    sessions: int | None
    """How many its list has; None if it can't be read."""
    held: tuple[Held, ...] | None
    """None where it can't be told."""
    problems: tuple[str, ...]


class Report(NamedTuple):
    """All of it."""

    version: str
    python: str
    executable: str
    platform: str
    state: Path
    ledger: str
    """What became of the ledger, for people."""
    backends: tuple[BackendReport, ...]
    problems: tuple[str, ...]
    """Everything that is wrong, those of the backends included; empty: all is well."""


async def examine(names: Sequence[str]) -> Report:
    """Look at everything, for the backends of these names; none means all.

    Raises:
        NoBackend: A name is unknown.
    """
    ledger, problems = ledger_state(ledger_path())
    backends, broken = _loaded(names)
    problems += broken
    installed = [backend for backend in backends if backend.program() is not None]
    found = {backend.name: _absent(backend, bool(names)) for backend in backends if backend not in installed}

    async def look(backend: Backend) -> None:
        found[backend.name] = await _examine(backend)

    async def look_at_all(hub: Hub) -> None:
        async with anyio.create_task_group() as tasks:
            for backend in hub.backends.values():
                tasks.start_soon(look, backend)

    if installed:
        await run(installed, look_at_all)
    elif not names:
        hints = "; ".join(f"{backend.label}: {backend.install_hint}" for backend in backends)
        problems.append(f"No coding CLI was found, so there is nothing to serve. Install one: {hints}")
    reports = tuple(found[backend.name] for backend in backends)
    return Report(
        __version__,
        platform.python_version(),
        sys.executable,
        platform.platform(),
        ledger_path().parent,
        ledger,
        reports,
        (*problems, *(problem for report in reports for problem in report.problems)),
    )


def _loaded(names: Sequence[str]) -> tuple[list[Backend], list[str]]:
    backends: list[Backend] = []
    problems: list[str] = []
    for plugin in wanted_plugins(names):
        try:
            backends.append(plugin_backend(plugin))
        except (ImportError, AttributeError) as exc:
            problems.append(
                f"The backend {plugin.name} can't be imported ({exc}): install its package anew, or remove it"
            )
    return backends, problems


def _absent(backend: Backend, asked_for: bool) -> BackendReport:
    problems = (f"{backend.label} is not installed: {backend.install_hint}",) if asked_for else ()
    return BackendReport(backend.name, backend.label, None, None, "unknown", (), None, None, None, None, problems)


async def _examine(backend: Backend) -> BackendReport:
    seen = await backend.inspect()
    problems = list(seen.problems)
    # A program that doesn't start is one problem: what it can't tell is not wrong as well.
    starts = seen.version is not None or backend.program() is None
    sessions: int | None = None
    try:
        sessions = len(await backend.list(ListQuery(_ALL)))
    except BridgeError as exc:
        if starts:
            problems.append(f"The sessions of {backend.label} can't be listed: {exc.message}")
    status = await backend.status()
    login = _LOGINS[status.state]
    if login == "out" and starts:
        problems.append(
            f"{backend.label} has no login, so that it begins no sessions. {backend.auth.description} "
            "If you don't use it, name the one you use: --backend NAME"
        )
    return BackendReport(
        backend.name,
        backend.label,
        backend.program(),
        seen.version,
        login,
        tuple(_account_words(account) for account in status.accounts),
        status.endpoint,
        seen.store,
        sessions,
        seen.held,
        tuple(problems),
    )


def _account_words(account: Account) -> str:
    more = ", ".join(word for word in (account.email, account.organization) if word)
    return f"{account.label} ({more})" if more else account.label


def ledger_state(path: Path) -> tuple[str, list[str]]:
    """What became of the ledger, and what is wrong with it or its place. It is read, and not changed."""
    if not path.exists():
        return "none yet", _unwritable(path.parent)
    import sqlite3

    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=1.0)) as db:
            version = int(db.execute("PRAGMA user_version").fetchone()[0])
            sound = db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
    except sqlite3.OperationalError as exc:
        return "can't be read", [f"The ledger {path} can't be read ({exc}): titles set now are kept in memory only"]
    except sqlite3.DatabaseError:
        sound, version = False, 0
    if not sound:
        return "damaged", [
            f"The ledger {path} is damaged. Nothing needs to be done: it is set aside and begun anew when a session "
            "is next used, and titles that a CLI has stored are still there"
        ]
    if version > SCHEMA_VERSION:
        return "of a newer version", [
            f"The ledger {path} was made by a newer acp-manifold (schema {version}): install that version, or move "
            "the file away"
        ]
    return "in order", _unwritable(path.parent)


def _unwritable(folder: Path) -> list[str]:
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if os.access(there, os.W_OK | os.X_OK) and there.is_dir():
        return []
    return [
        f"{folder} can't be written, so that titles are kept in memory only: make {there} a directory you can write"
    ]


__all__ = ["BackendReport", "NoBackend", "Report", "examine", "ledger_state"]
