"""A replayed agent for a program of one's own: in this process over memory streams, or as a process."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from acp_manifold.adapters.replay import close, replay
from acp_manifold.adapters.replay.client import Client
from acp_manifold.bridge.backend import Backend
from acp_manifold.bridge.connection import Connection
from acp_manifold.bridge.hub import Hub
from acp_manifold.bridge.ledger import Ledger, ledger_path
from acp_manifold.bridge.outbound import Outbound
from acp_manifold.bridge.serve import INTERRUPT_GRACE

Send = Callable[[bytes], Awaitable[None]]
Receive = Callable[[], Awaitable[bytes]]


def command(recording: str | Path, speed: str = "instant") -> list[str]:
    """What starts a replayed agent as a process, for a client that starts its agents itself."""
    return [sys.executable, "-m", "acp_manifold.bridge", "--backend", f"replay:{recording}?speed={speed}"]


@asynccontextmanager
async def running(recording: str | Path, speed: str = "instant") -> AsyncGenerator[tuple[Send, Receive]]:
    """A replayed agent in this process, for as long as the context is open; one at a time.

    Gives what sends bytes to it, and what gives its bytes, none at its end. The environment of the process leads to
    private stores meanwhile.

    Raises:
        NoBackend: There is nothing that could be replayed.
    """
    backends = replay(f"{recording}?speed={speed}")
    try:
        async with _served(backends) as ends:
            yield ends
    finally:
        close(backends)


@asynccontextmanager
async def _served(backends: Sequence[Backend]) -> AsyncGenerator[tuple[Send, Receive]]:
    to_agent, agent_in = anyio.create_memory_object_stream[bytes](float("inf"))
    agent_out, from_agent = anyio.create_memory_object_stream[bytes](float("inf"))
    hub = Hub(backends, Ledger(ledger_path()), grace=INTERRUPT_GRACE)
    outbound = Outbound(agent_out.send)
    failure: Exception | None = None
    async with to_agent, agent_in, agent_out, from_agent, hub.running(), anyio.create_task_group() as tasks:
        tasks.start_soon(outbound.run)
        tasks.start_soon(Connection(hub, outbound).run, agent_in.receive)
        try:
            yield to_agent.send, from_agent.receive
        except Exception as exc:
            failure = exc  # Carried past the task group, which would wrap it.
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


@asynccontextmanager
async def connected(recording: str | Path, version: int = 1, speed: str = "instant") -> AsyncGenerator[Client]:
    """A client of a replayed agent in this process, initialized."""
    async with running(recording, speed) as (send, receive), joined(send, receive, version) as client:
        yield client


@asynccontextmanager
async def started(
    recording: str | Path,
    version: int = 1,
    speed: str = "instant",
    env: dict[str, str] | None = None,
    record: Path | None = None,
) -> AsyncGenerator[Client]:
    """A client of a replayed agent that is a process, initialized; with `record` that is recorded itself."""
    environment = dict(os.environ) if env is None else env
    words = [*command(recording, speed), *(["--record", str(record)] if record is not None else [])]
    async with await anyio.open_process(words, env=environment, stderr=None) as process:
        assert process.stdin is not None and process.stdout is not None
        async with joined(process.stdin.send, process.stdout.receive, version) as client:
            yield client
        await process.stdin.aclose()
        await process.wait()


@asynccontextmanager
async def joined(send: Send, receive: Receive, version: int) -> AsyncGenerator[Client]:
    """A client, initialized, on a link to an agent."""
    outbound = Outbound(send)
    client = Client(outbound, version)
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(outbound.run)
        tasks.start_soon(client.run, receive)
        try:
            await client.initialize()
            yield client
        except Exception as exc:
            failure = exc  # Carried past the task group, which would wrap it.
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
