"""The running agent: one hub, one client on stdin and stdout, until either ends."""

from __future__ import annotations

import logging
import signal
from collections.abc import Sequence

import anyio

from .backend import Backend
from .connection import Connection, Protocol
from .hub import Hub
from .ledger import Ledger, ledger_path
from .outbound import Outbound
from .stdio import open_stdio

logger = logging.getLogger(__name__)

LAST_WORDS_SECONDS = 1.0
"""How long a client that has closed our stdin is given to read what was still to be said."""

END_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(
    backends: Sequence[Backend], *, grace: float, idle: float, name_them: bool, protocol: Protocol = "auto"
) -> None:
    """Serve one client on stdin and stdout until it ends or a signal of `END_SIGNALS` comes.

    Args:
        backends: Whom to serve by, the default one first; at least one.
        grace: Seconds a backend has to heed an interrupt.
        idle: Seconds after which an idle session's backend is let go; 0: never.
        name_them: Whether sessions without a title are asked for a generated one.
        protocol: Which versions of ACP the client may have.
    """
    anyio.run(_run, backends, grace, idle, name_them, protocol)


async def _run(backends: Sequence[Backend], grace: float, idle: float, name_them: bool, protocol: Protocol) -> None:
    hub = Hub(backends, Ledger(ledger_path()), grace=grace, idle=idle, name_them=name_them)
    async with open_stdio() as (receive, write), anyio.create_task_group() as tg:
        tg.start_soon(_end_on_signal, tg.cancel_scope)
        outbound, writing = Outbound(write), anyio.CancelScope()
        tg.start_soon(_write, outbound, writing)
        async with hub.running():
            await Connection(hub, outbound, protocol).run(receive)
            outbound.close()
            writing.deadline = anyio.current_time() + LAST_WORDS_SECONDS
        tg.cancel_scope.cancel()


async def _write(outbound: Outbound, scope: anyio.CancelScope) -> None:
    with scope:
        await outbound.run()


async def _end_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(*END_SIGNALS) as signals:
        async for number in signals:
            logger.info("ending on %s", signal.Signals(number).name)
            scope.cancel()
