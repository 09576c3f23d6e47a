"""The agent process: one hub, one client on stdin and stdout, until either ends."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Sequence

import anyio

from .backend import Backend
from .backends import NoBackend, find_backends
from .connection import Connection
from .hub import INTERRUPT_GRACE, Hub
from .ledger import Ledger, state_directory
from .outbound import Outbound
from .stdio import open_stdio

logger = logging.getLogger(__name__)

LAST_WORDS_SECONDS = 1.0
"""How long a client that has closed our stdin is given to read what was still to be said."""

END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def serve(
    names: Sequence[str] = (), *, grace: float = INTERRUPT_GRACE, log_file: str | None = None, verbose: bool = False
) -> int:
    """Be an agent until stdin ends or a signal comes.

    Args:
        names: The backends to serve; none means every installed one.
        grace: Seconds a backend has to heed an interrupt.
        log_file: Where to log beside stderr.
        verbose: Whether to log everything.

    Returns:
        The exit status: 0 after a clean end, 2 when there is nothing to serve.
    """
    start_logging(log_file, verbose)
    try:
        backends = find_backends(names)
    except NoBackend as exc:
        sys.stderr.write(f"acp-manifold: {exc.message}\n")
        return 2
    anyio.run(_serve, backends, grace)
    return 0


async def _serve(backends: list[Backend], grace: float) -> None:
    hub = Hub(backends, Ledger(state_directory() / "ledger.sqlite3"), grace=grace)
    async with open_stdio() as (receive, write), anyio.create_task_group() as tg:
        tg.start_soon(_end_on_signal, tg.cancel_scope)
        outbound = Outbound(write)
        async with anyio.create_task_group() as writing:
            writing.start_soon(outbound.run)
            async with hub.running():
                await Connection(hub, outbound).run(receive)
            outbound.close()
            writing.cancel_scope.deadline = anyio.current_time() + LAST_WORDS_SECONDS
        tg.cancel_scope.cancel()


async def _end_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(*END_SIGNALS) as signals:
        async for number in signals:
            logger.info("ending on %s", signal.Signals(number).name)
            scope.cancel()


def start_logging(log_file: str | None, verbose: bool) -> None:
    """Log to stderr and, when asked, to a private file. stdout is the protocol's alone."""
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
