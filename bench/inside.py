"""A client and a bridge in this very process, joined by two real pipes: what is measured needs no CLI.

The bridge's end is made as `acp-manifold` makes its own on stdin and stdout. The client's end is
the bridge's `Peer` turned round, as in the demo, with everything it hears handed to two functions.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeAlias

import anyio

from acp_manifold.bridge.connection import Connection
from acp_manifold.bridge.descriptors import Sink, Source
from acp_manifold.bridge.errors import BridgeError, RemoteError
from acp_manifold.bridge.hub import Hub
from acp_manifold.bridge.outbound import Outbound
from acp_manifold.bridge.peer import Call, Peer
from acp_manifold.translators.narrow import JsonObject, as_object, obj, text

OnUpdate: TypeAlias = Callable[[str, JsonObject], None]
"""Called with the session's id and the update."""

OnQuestion: TypeAlias = Callable[[str, JsonObject], Awaitable[str | None]]
"""Called with the session's id and the question; gives the id of the chosen option. Cancelled with the question."""


class Client:
    """The client's end. Made by `joined`."""

    def __init__(self, outbound: Outbound, on_update: OnUpdate, on_question: OnQuestion) -> None:
        self.arrived = 0.0
        """When the bytes that are being looked at came out of the pipe, by `time.perf_counter`."""
        self._on_update = on_update
        self._on_question = on_question
        self._peer = Peer(self, outbound)
        self._source: Source | None = None

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request and give its result.

        Raises:
            RemoteError: It was answered with an error.
        """
        return as_object(await self._peer.request(method, params))

    def tell(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._peer.notify(method, params)

    async def new_session(self, cwd: str) -> str:
        """Open a session and give its id."""
        return text(await self.ask("session/new", {"cwd": cwd, "mcpServers": []}), "sessionId")

    async def prompt(self, session: str, words: str) -> str:
        """Run a whole turn and give its stop reason; an error's code, where that is the answer.

        Cancelling the call takes the prompt back.
        """
        params: JsonObject = {"sessionId": session, "prompt": [{"type": "text", "text": words}]}
        try:
            return text(await self.ask("session/prompt", params), "stopReason")
        except RemoteError as exc:
            return str(exc.remote_code)

    def request(self, method: str, params: JsonObject, call: Call) -> object:
        """Serve a permission question, all that a bridge asks here."""
        return self._answer(params)

    def notification(self, method: str, params: JsonObject) -> None:
        """Take note of an update."""
        if method == "session/update":
            self._on_update(text(params, "sessionId"), obj(params, "update"))

    def closed(self) -> None:
        """The bridge is gone; whoever waits for an answer hears so from the peer."""

    async def run(self, source: Source) -> None:
        """Read until the bridge ends."""

        async def receive() -> bytes:
            data = await source.receive()
            self.arrived = time.perf_counter()
            return data

        await self._peer.run(receive)

    async def _answer(self, params: JsonObject) -> JsonObject:
        option = await self._on_question(text(params, "sessionId"), params)
        chosen: JsonObject = {"outcome": "selected", "optionId": option}
        return {"outcome": {"outcome": "cancelled"} if option is None else chosen}


@asynccontextmanager
async def joined(hub: Hub, on_update: OnUpdate, on_question: OnQuestion) -> AsyncGenerator[Client]:
    """A client, initialized, on a connection to a hub that runs.

    Raises:
        BridgeError: The bridge refused it.
    """
    failure: BridgeError | None = None
    with _pipe() as (client_in, bridge_out), _pipe() as (bridge_in, client_out):
        to_client, to_bridge = Outbound(Sink(bridge_out).write), Outbound(Sink(client_out).write)
        sources = Source(client_in), Source(bridge_in)
        client = Client(to_bridge, on_update, on_question)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(to_client.run)
            tasks.start_soon(to_bridge.run)
            tasks.start_soon(client.run, sources[0])
            tasks.start_soon(Connection(hub, to_client).run, sources[1].receive)
            try:
                await client.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
                yield client
            except BridgeError as exc:
                failure = exc  # Carried past the task group, which would wrap it.
            finally:
                tasks.cancel_scope.cancel()
                for source in sources:
                    source.close()
    if failure is not None:
        raise failure


class _pipe:
    """A pipe whose ends don't block, closed with the context."""

    def __enter__(self) -> tuple[int, int]:
        self._ends = os.pipe()
        for end in self._ends:
            os.set_blocking(end, False)
        return self._ends

    def __exit__(self, *_: object) -> None:
        for end in self._ends:
            os.close(end)
