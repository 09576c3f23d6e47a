"""The model as a server on loopback: routes a request to its API and plays the script that answers it."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio
from anyio.abc import ByteStream, SocketAttribute

from acp_manifold.translators.narrow import JsonObject, as_object

from . import anthropic, openai
from .control import Gate, Request, Titles
from .http import HttpConnection, HttpRequest
from .play import Player, ScriptedFailure
from .reply import Asked, Ids, Reply
from .script import parse, step_after


@dataclass(frozen=True, slots=True)
class _Api:
    read: Callable[[JsonObject], Asked]
    reply: Callable[[Asked, Ids], Reply]
    failure: Callable[[int], JsonObject]


_APIS: dict[str, _Api] = {
    "/v1/messages": _Api(anthropic.read, anthropic.reply, anthropic.failure),
    "/v1/responses": _Api(openai.read, openai.reply, openai.failure),
}

_FIXED: dict[str, JsonObject] = {
    "/v1/messages/count_tokens": {"input_tokens": 10},
}

_MODELS = "/v1/models"
"""The list of models, in the shape that both APIs have; Codex' own has it under `models`."""


class Model:
    """A running scripted model."""

    def __init__(self, *, keep_requests: bool = True) -> None:
        self.url = ""
        """`http://127.0.0.1:PORT`."""
        self.titles = Titles()
        self.requests: list[Request] = []
        """Every model request so far, in order of arrival; empty when they are not kept."""
        self.models: tuple[str, ...] = ()
        """The ids of the models it says it has; it answers to any."""
        self.lists: list[Mapping[str, str]] = []
        """The headers of every request for the list of models so far."""
        self._keep = keep_requests
        self._gates: dict[str, Gate] = {}
        self._ids = Ids(secrets.token_hex(4))

    def gate(self, name: str) -> Gate:
        """The gate that `GATE[name]` in a script waits at."""
        return self._gates.setdefault(name, Gate())

    def prompts(self) -> list[str]:
        """The prompts of all requests so far that don't ask for a title."""
        return [request.asked.prompt for request in self.requests if not request.asked.title]

    async def serve(self, stream: ByteStream) -> None:
        """Answer the requests of one connection until it ends."""
        async with stream:
            connection = HttpConnection(stream)
            try:
                while request := await connection.next():
                    if not await self._answer(connection, request):
                        return
            except ValueError:
                await connection.answer(400, {"error": {"message": "not an HTTP request this model understands"}})
            except anyio.BrokenResourceError:
                return

    async def _answer(self, connection: HttpConnection, request: HttpRequest) -> bool:
        """Answer one request; false when the connection can't be used any more."""
        api = _APIS.get(request.path) if request.method == "POST" else None
        if api is None:
            fixed = self._list(request) if request.path == _MODELS else _FIXED.get(request.path)
            error: JsonObject = {"error": {"type": "not_found_error", "message": "not here"}}
            await connection.answer(404 if fixed is None else 200, error if fixed is None else fixed)
            return True
        body = as_object(json.loads(request.body))
        entry = Request(request.path, body if self._keep else {}, api.read(body), headers=request.headers)
        if self._keep:
            self.requests.append(entry)
        return await self._reply(connection, api, entry)

    def _list(self, request: HttpRequest) -> JsonObject:
        if self._keep:
            self.lists.append(request.headers)
        return {"data": [{"id": name} for name in self.models], "models": []}

    async def _reply(self, connection: HttpConnection, api: _Api, entry: Request) -> bool:
        """Play the reply, and stop at once when the CLI hangs up."""
        answer = _Answer(connection, api, entry)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_cancel_when_hung_up, connection, tasks.cancel_scope)
            script = self.titles.next_script() if entry.asked.title else entry.asked.prompt
            await answer.play(script, self.gate, self._ids)
            tasks.cancel_scope.cancel()
        if entry.state == "open":
            entry.state = "dropped"
        entry.finished.set()
        return answer.usable


class _Answer:
    """One answer on its way: the bridge between the player and the connection."""

    def __init__(self, connection: HttpConnection, api: _Api, entry: Request) -> None:
        self._connection = connection
        self._api = api
        self._entry = entry
        self._begun = False
        self.usable = False
        """Whether the connection can take another request."""

    async def play(self, script: str, gate: Callable[[str], Gate], ids: Ids) -> None:
        asked = self._entry.asked
        reply = self._api.reply(asked, ids)
        step = step_after(parse(script), 0 if asked.title else asked.results)

        async def send(data: bytes) -> None:
            if not self._begun:
                self._begun = True
                await self._connection.begin(reply.content_type)
            await self._connection.piece(data)

        try:
            await Player(step, reply, send, gate).play(tools=asked.tools)
            self._entry.state = "answered"
            await self._connection.end()
            self.usable = True
        except ScriptedFailure as failure:
            self._entry.state = "failed"
            if not self._begun:
                await self._connection.answer(failure.status, self._api.failure(failure.status))
                self.usable = True
        except anyio.BrokenResourceError:
            self._entry.state = "dropped"


async def _cancel_when_hung_up(connection: HttpConnection, scope: anyio.CancelScope) -> None:
    await connection.hung_up()
    scope.cancel()


@asynccontextmanager
async def run_model(port: int = 0, *, keep_requests: bool = True) -> AsyncGenerator[Model]:
    """Run a model on loopback until the context ends; open answers are cut off then.

    Args:
        port: 0 takes a free one; `Model.url` tells which.
        keep_requests: Whether `Model.requests` is filled; a long run does better without.

    Raises:
        OSError: The port is taken.
    """
    model = Model(keep_requests=keep_requests)
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=port) as listener:
        model.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, model.serve)
            yield model
            tasks.cancel_scope.cancel()
