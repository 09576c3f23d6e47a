"""Becoming an agent process: start CLIs, log, find the backends, then import the rest.

The order is the point. A CLI that takes a while to come up is started while Python still imports
the event loop and the bridge; by the time the first request is there, so is the CLI. So this imports
next to nothing before that.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager

from .plugins import plugins

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from collections.abc import Callable, Generator, Sequence
    from typing import NoReturn

    from .backend import Backend
    from .connection import Protocol

EARLY = "acp_manifold.backends.early"
"""Entry points that are called first of all, by the name of their backend: each starts what takes its CLI a while to
come up, raises nothing, and keeps for the backend what it has started. That ends when our process does."""

INTERRUPT_GRACE = 10.0
"""Seconds a backend has to heed an interrupt before it is ended, unless the command line says otherwise."""

IDLE_TIMEOUT = 900.0
"""Seconds after which an idle session's backend is let go, unless the command line says otherwise."""


def serve(
    names: Sequence[str] = (),
    *,
    grace: float = INTERRUPT_GRACE,
    idle: float = IDLE_TIMEOUT,
    name_them: bool = True,
    protocol: Protocol = "auto",
    record: str | None = None,
    log_file: str | None = None,
    verbose: bool = False,
) -> int:
    """Be an agent until stdin ends or a signal comes.

    Args:
        names: The backends to serve; none means every installed one.
        grace: Seconds a backend has to heed an interrupt.
        idle: Seconds after which an idle session's backend is let go; 0: never.
        name_them: Whether sessions without a title are asked for a generated one.
        protocol: Which versions of ACP the client may have: both, or one.
        record: The file, or the folder, that all that crosses is recorded into.
        log_file: Where to log beside stderr.
        verbose: Whether to log everything.

    Returns:
        The exit status: 0 after a clean end, 2 when there is nothing to serve or nowhere to log.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _leave)
    _begin_early(names)

    from .backends import NoBackend, find_backends

    try:
        start_logging(log_file, verbose)
        backends = find_backends(names)
    except OSError as exc:
        sys.stderr.write(f"acp-manifold: can't log to {log_file}: {exc.strerror}\n")
        return 2
    except NoBackend as exc:
        sys.stderr.write(f"acp-manifold: {exc.message}\n")
        return 2

    from .agent import run

    with _recorded(record, backends):
        run(backends, grace=grace, idle=idle, name_them=name_them, protocol=protocol)
    return 0


def _begin_early(names: Sequence[str]) -> None:
    for name, plugin in plugins(EARLY).items():
        if not names or name in names:
            # An entry point is untyped; see `EARLY` for what it promises.
            begin: Callable[[], None] = plugin.load()  # type: ignore[assignment]
            begin()


@contextmanager
def _recorded(record: str | None, backends: Sequence[Backend]) -> Generator[None]:
    if record is None:
        yield
        return
    from .recording.feed import begin
    from .taps import taps

    feed = begin(record, backends)
    taps.listen(feed)
    try:
        yield
    finally:
        taps.listen(None)
        feed.close()


def _leave(number: int, frame: object) -> NoReturn:
    """A signal before the event loop is there to take it: nothing is open yet, so nothing needs closing."""
    sys.exit(0)


def start_logging(log_file: str | None, verbose: bool) -> None:
    """Log to stderr and, when asked, to a private file. stdout is the protocol's alone."""
    import logging

    handlers: list[logging.Handler] = [logging.StreamHandler(sys.stderr)]
    if log_file is not None:
        descriptor = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        handlers.append(logging.StreamHandler(os.fdopen(descriptor, "a", encoding="utf-8")))
    logging.basicConfig(
        level=logging.DEBUG if verbose else logging.WARNING,
        format="%(asctime)s %(levelname).1s %(name)s: %(message)s",
        handlers=handlers,
    )
    # A pipe that stderr shares with stdout may be full for a moment: a lost log line is no fault to report.
    logging.raiseExceptions = False
    if not verbose:
        logging.getLogger("acp_manifold").setLevel(logging.WARNING)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)
