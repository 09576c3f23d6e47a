"""The editor's side of an ACP connection, as little as the demo and the bench need.

Starts an agent command, sends requests, hands updates to a function and permission questions to
another. The JSON-RPC of it is the bridge's own `Peer`, from the other end.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio.abc import Process

from acp_manifold.bridge.errors import MethodNotFound
from acp_manifold.bridge.outbound import Outbound
from acp_manifold.bridge.peer import Call, Peer
from acp_manifold.translators.narrow import JsonObject, as_object, obj, text

EXIT_SECONDS = 5.0
"""How long an agent may take to end after its input did."""

OnUpdate: TypeAlias = Callable[[str, JsonObject], None]
"""Called with the session's id and the update."""

OnQuestion: TypeAlias = Callable[[str, JsonObject], Awaitable[str | None]]
"""Called with the session's id and the question; gives the id of the chosen option, or None."""


class Editor:
    """A running agent and the connection to it. Made by `start`."""

    def __init__(self, process: Process, on_update: OnUpdate, on_question: OnQuestion) -> None:
        self.pid = process.pid
        self.status: int | None = None
        """The agent's exit status, once it has ended by itself and in time."""
        self.started = time.perf_counter()
        self._on_update = on_update
        self._on_question = on_question
        self._process = process
        self._outbound = Outbound(self._write)
        self._peer = Peer(self, self._outbound)

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request and give its result.

        Raises:
            RemoteError: The agent answered with an error.
            PeerGone: It is gone.
        """
        return as_object(await self._peer.request(method, params))

    def tell(self, method: str, params: JsonObject) -> None:
        """Send a notification."""
        self._peer.notify(method, params)

    async def initialize(self) -> JsonObject:
        """Open the connection, as ACP v1."""
        info = {"name": "acp-manifold-demo", "title": "acp-manifold demo", "version": "1"}
        return await self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}, "clientInfo": info})

    async def new_session(self, cwd: str, backend: str | None = None) -> str:
        """Open a session and give its id."""
        meta: JsonObject = {"_meta": {"acp-manifold": {"backend": backend}}} if backend else {}
        return text(await self.ask("session/new", {"cwd": cwd, "mcpServers": [], **meta}), "sessionId")

    async def prompt(self, session: str, words: str) -> str:
        """Run a whole turn and give its stop reason."""
        params: JsonObject = {"sessionId": session, "prompt": [{"type": "text", "text": words}]}
        return text(await self.ask("session/prompt", params), "stopReason")

    def request(self, method: str, params: JsonObject, call: Call) -> object:
        """Serve a request of the agent; of those only permission questions are known."""
        if method != "session/request_permission":
            raise MethodNotFound(f"This editor has no {method}")
        return self._answer(params)

    def notification(self, method: str, params: JsonObject) -> None:
        """Take note of an update."""
        if method == "session/update":
            self._on_update(text(params, "sessionId"), obj(params, "update"))

    def closed(self) -> None:
        """The agent is gone; whoever waits for an answer hears so from the peer."""

    async def run(self) -> None:
        """Read and write until the agent ends."""
        output = self._process.stdout
        assert output is not None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._outbound.run)
            await self._peer.run(output.receive)
            tasks.cancel_scope.cancel()

    async def stop(self) -> None:
        """End the agent's input and wait for it; one that takes too long is killed, and `status` stays None."""
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(EXIT_SECONDS):
                if self._process.stdin is not None:
                    await self._process.stdin.aclose()
                self.status = await self._process.wait()
            if self._process.returncode is None:
                self._process.kill()
            with anyio.move_on_after(EXIT_SECONDS):
                await self._process.aclose()

    async def _answer(self, params: JsonObject) -> JsonObject:
        option = await self._on_question(text(params, "sessionId"), params)
        chosen: JsonObject = {"outcome": "selected", "optionId": option}
        return {"outcome": {"outcome": "cancelled"} if option is None else chosen}

    async def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        await self._process.stdin.send(data)


async def no_answer(_session: str, _params: JsonObject) -> str | None:
    """An answer to permission questions: none."""
    return None


@asynccontextmanager
async def start(
    command: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    on_update: OnUpdate,
    on_question: OnQuestion = no_answer,
) -> AsyncGenerator[Editor]:
    """Start an agent and talk to it for as long as the context is open.

    Args:
        command: What to start; in a process group of its own, so that Ctrl-C reaches us first.
        env: Its whole environment.
        log: A file that takes its stderr.
        on_update: Hears of updates.
        on_question: Answers permission questions.
    """
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = await anyio.open_process(command, env=env, stderr=descriptor, start_new_session=True)
    finally:
        os.close(descriptor)
    editor = Editor(process, on_update, on_question)
    async with anyio.create_task_group() as tasks:
        try:
            tasks.start_soon(editor.run)
            yield editor
        finally:
            await editor.stop()
            tasks.cancel_scope.cancel()
