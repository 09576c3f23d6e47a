"""The command `acp-manifold doctor`: what was found, as text or JSON, and in words what is wrong."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from .once import NothingToServe, backend_option, note_on_stderr, say

if TYPE_CHECKING:
    from .backend import Held
    from .doctor import BackendReport, Report

LOGS = "on the agent's stderr, which the editor keeps; with --log-file FILE there as well"

MORE_LINES = 2
"""Of what is wrong, behind the first line; JSON has all."""

LOGINS = {
    "in": "there is one",
    "out": "none",
    "unknown": "can't be told without asking the network",
}


@click.command()
@backend_option
@click.option("as_json", "--json", is_flag=True, help="As a JSON object.")
def doctor(backends: tuple[str, ...], as_json: bool) -> None:
    """Look at the CLIs, their stores and logins, who has which session, and our own state.

    No session, setting or state is changed, and no model is asked. The exit status is 1 if something is wrong.
    """
    note_on_stderr()
    import anyio

    from .doctor import NoBackend, examine

    try:
        report = anyio.run(examine, backends)
    except NoBackend as exc:
        raise NothingToServe(exc.message) from exc
    if as_json:
        say(json.dumps(_as_json(report), indent=2))
    else:
        for line in _lines(report):
            say(line)
    sys.exit(1 if report.problems else 0)


def _lines(report: Report) -> Iterator[str]:
    yield f"acp-manifold {report.version}"
    yield f"  Python   {report.python}, {report.executable}"
    yield f"  system   {report.platform}"
    yield f"  state    {report.state} (ledger: {report.ledger})"
    yield f"  logs     {LOGS}"
    for backend in report.backends:
        yield ""
        yield from _backend_lines(backend)
    yield ""
    if not report.problems:
        yield "All is well."
        return
    yield "Wrong:"
    for problem in report.problems:
        first, *others = problem.splitlines()
        yield f"  * {first}"
        # A CLI's last words may end in a page of its stack.
        yield from (f"    {line}" for line in others[:MORE_LINES])


def _backend_lines(backend: BackendReport) -> Iterator[str]:
    if backend.program is None:
        yield f"{backend.label}: not installed, so not served"
        return
    yield backend.label
    yield f"  program  {shlex.join(backend.program.command)} (found by {backend.program.source})"
    yield f"  version  {backend.version or 'not told'}"
    yield f"  login    {'; '.join(backend.accounts) or LOGINS[backend.login]}"
    if backend.endpoint is not None:
        yield f"  endpoint {backend.endpoint}"
    count = "can't be listed" if backend.sessions is None else f"{backend.sessions} sessions"
    yield f"  store    {backend.store} ({count})"
    if backend.held is None:
        yield "  open     can't be told on this system"
    elif not backend.held:
        yield "  open     no session"
    for place, held in enumerate(backend.held or ()):
        yield f"  {'open' if place == 0 else '':<8} {_held_words(held)}"


def _held_words(held: Held) -> str:
    return f"{held.session_id} in {held.by}, pid {held.pid}"


def _as_json(report: Report) -> dict[str, object]:
    return {
        "ok": not report.problems,
        "problems": list(report.problems),
        "version": report.version,
        "python": {"version": report.python, "executable": report.executable},
        "platform": report.platform,
        "state": {"directory": str(report.state), "ledger": report.ledger},
        "logs": LOGS,
        "backends": [_backend_json(backend) for backend in report.backends],
    }


def _backend_json(backend: BackendReport) -> dict[str, object]:
    program = backend.program
    held = backend.held
    return {
        "name": backend.name,
        "label": backend.label,
        "command": list(program.command) if program is not None else None,
        "foundBy": program.source if program is not None else None,
        "version": backend.version,
        "login": backend.login,
        "accounts": list(backend.accounts),
        "endpoint": backend.endpoint,
        "store": str(backend.store) if backend.store is not None else None,
        "sessions": backend.sessions,
        "open": None if held is None else [{"sessionId": one.session_id, "pid": one.pid, "by": one.by} for one in held],
        "problems": list(backend.problems),
    }
