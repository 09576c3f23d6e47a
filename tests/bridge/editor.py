"""An editor in the test's own process, on a bridge over memory streams."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from acp_manifold.bridge.backend import Backend
from acp_manifold.bridge.connection import Connection, Protocol
from acp_manifold.bridge.hub import Hub
from acp_manifold.bridge.ledger import Ledger
from acp_manifold.bridge.outbound import Outbound
from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, obj, text
from tests.schema import Schema, schema

PATIENCE = 5.0


class Refused(Exception):
    """A request was answered with an error."""

    def __init__(self, error: JsonObject) -> None:
        super().__init__(str(error))
        self.code = error["code"]
        self.message = text(error, "message")
        self.data = as_object(error.get("data"))


@dataclass
class Asked:
    """A question the bridge put to the editor."""

    id: object
    params: JsonObject
    editor: Editor

    def answer(self, option: str | None) -> None:
        outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
        self.reply({"outcome": outcome})

    def reply(self, result: object) -> None:
        self.editor.send({"jsonrpc": "2.0", "id": self.id, "result": result})


class Editor:
    """Keeps every line it got, in order; waits for lines by a predicate."""

    def __init__(self, incoming: MemoryObjectSendStream[bytes]) -> None:
        self.lines: list[JsonObject] = []
        self.judge: Schema | None = None
        """Checks every line as it comes."""
        self._methods: dict[object, str] = {}
        self._incoming = incoming
        self._news = anyio.Event()
        self._next_id = 0
        self._gate: anyio.Event | None = None

    # the link

    async def write(self, data: bytes) -> None:
        while self._gate is not None and not self._gate.is_set():
            await self._gate.wait()
        lines = [as_object(json.loads(line)) for line in data.splitlines()]
        self.lines += lines
        for line in lines if self.judge is not None else ():
            assert self.judge is not None
            self.judge.check(line, answers=None if "method" in line else self._methods.get(line.get("id")))
        self._news.set()
        self._news = anyio.Event()

    def stop_reading(self) -> None:
        self._gate = anyio.Event()

    def read_on(self) -> None:
        assert self._gate is not None
        self._gate.set()

    def hang_up(self) -> None:
        self._incoming.close()

    # what the editor says

    def send_bytes(self, data: bytes) -> None:
        self._incoming.send_nowait(data)

    def send(self, *messages: JsonObject) -> None:
        """Send messages in one write."""
        self.send_bytes(b"".join(json.dumps(message).encode() + b"\n" for message in messages))

    def ask(self, method: str, **params: object) -> int:
        """Send a request; its id."""
        self._next_id += 1
        self._methods[self._next_id] = method
        self.send({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params})
        return self._next_id

    def tell(self, method: str, **params: object) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def request(self, method: str, **params: object) -> JsonObject:
        return await self.answer(self.ask(method, **params))

    async def new(self, cwd: Path | str, backend: str | None = None, **meta: object) -> str:
        """A new session's id."""
        ours: JsonObject = {**({"backend": backend} if backend else {}), **meta}
        result = await self.request(
            "session/new", cwd=str(cwd), mcpServers=[], _meta={"acp-manifold": ours} if ours else {}
        )
        return text(result, "sessionId")

    def prompt(self, session_id: str, words: str) -> int:
        return self.ask("session/prompt", sessionId=session_id, prompt=[{"type": "text", "text": words}])

    # what the editor hears

    async def wait_for(self, wanted: Callable[[JsonObject], bool], since: int = 0) -> JsonObject:
        with anyio.fail_after(PATIENCE):
            while True:
                for line in self.lines[since:]:
                    if wanted(line):
                        return line
                await self._news.wait()

    async def answer(self, request_id: object) -> JsonObject:
        line = await self.wait_for(lambda m: "method" not in m and m.get("id") == request_id)
        if "error" in line:
            raise Refused(obj(line, "error"))
        return obj(line, "result")

    async def question(self, since: int = 0) -> Asked:
        line = await self.wait_for(lambda m: m.get("method") == "session/request_permission", since)
        return Asked(line["id"], obj(line, "params"), self)

    async def form(self, session_id: str) -> Asked:
        """A form, or a page to open, that the bridge put for a session."""

        def wanted(line: JsonObject) -> bool:
            return line.get("method") == "elicitation/create" and obj(line, "params").get("sessionId") == session_id

        line = await self.wait_for(wanted)
        return Asked(line["id"], obj(line, "params"), self)

    async def update(self, session_id: str, tag: str, since: int = 0) -> JsonObject:
        def wanted(line: JsonObject) -> bool:
            params = obj(line, "params")
            return params.get("sessionId") == session_id and obj(params, "update").get("sessionUpdate") == tag

        return obj(obj(await self.wait_for(wanted, since), "params"), "update")

    async def idle(self, session_id: str, turns: int = 1) -> JsonObject:
        """The state of a session that so many turns of it have ended in (ACP v2)."""

        def ends() -> list[JsonObject]:
            return [u for u in self.updates(session_id, "state_update") if "stopReason" in u]

        with anyio.fail_after(PATIENCE):
            while len(ends()) < turns:
                await self._news.wait()
        return ends()[turns - 1]

    def updates(self, session_id: str, tag: str | None = None) -> list[JsonObject]:
        found = [
            obj(obj(line, "params"), "update")
            for line in self.lines
            if line.get("method") == "session/update" and obj(line, "params").get("sessionId") == session_id
        ]
        return [update for update in found if tag in (None, update.get("sessionUpdate"))]

    def said(self, session_id: str) -> str:
        """All the agent's text in a session."""
        return "".join(text(obj(u, "content"), "text") for u in self.updates(session_id, "agent_message_chunk"))

    def titles(self, session_id: str) -> list[object]:
        return [u["title"] for u in self.updates(session_id, "session_info_update") if "title" in u]

    async def listed(self, **params: object) -> list[JsonObject]:
        return as_objects((await self.request("session/list", **params)).get("sessions"))

    def settled(self, request_id: object) -> bool:
        return any("method" not in line and line.get("id") == request_id for line in self.lines)

    async def round_trip(self) -> None:
        """Wait until the bridge has answered everything it could answer at once."""
        try:
            await self.request("no/such/method")
        except Refused:
            pass


@asynccontextmanager
async def editors(
    *backends: Backend,
    count: int = 1,
    ledger: Ledger | None = None,
    grace: float = 10.0,
    idle: float = 0.0,
    name_them: bool = True,
    initialize: bool = True,
    can: JsonObject | None = None,
    versions: Sequence[int] = (),
) -> AsyncGenerator[list[Editor]]:
    """So many editors, each with a connection of its own to one hub over `backends`.

    Those of `versions`, if given, speak these protocol versions, and every line of theirs is judged.
    """
    hub = Hub(backends, ledger or Ledger(None), grace=grace, idle=idle, name_them=name_them)
    async with hub.running(), anyio.create_task_group() as tg:
        found = [connect(hub, tg) for _ in versions or range(count)]
        for editor, version in zip_longest(found, versions):
            if version is not None:
                editor.judge = schema(version)
            if version == 2:
                info = {"name": "editor", "version": "0"}
                await editor.request("initialize", protocolVersion=2, info=info, capabilities=can or {})
            elif initialize:
                await editor.request("initialize", protocolVersion=1, clientCapabilities=can or {})
        try:
            yield found
        finally:
            for editor in found:
                editor.hang_up()
            tg.cancel_scope.cancel()


def connect(hub: Hub, tg: TaskGroup, protocol: Protocol = "auto") -> Editor:
    """An editor on a connection of its own to `hub`."""
    send, receive = anyio.create_memory_object_stream[bytes](1000)
    editor = Editor(send)
    outbound = Outbound(editor.write)
    tg.start_soon(outbound.run)
    tg.start_soon(_serve, Connection(hub, outbound, protocol), receive)
    return editor


async def _serve(connection: Connection, receive: MemoryObjectReceiveStream[bytes]) -> None:
    async with receive:
        await connection.run(receive.receive)


@asynccontextmanager
async def editor_on(
    *backends: Backend, ledger: Ledger | None = None, grace: float = 10.0, idle: float = 0.0
) -> AsyncGenerator[Editor]:
    """One editor, initialized, on a bridge over `backends`."""
    async with editors(*backends, ledger=ledger, grace=grace, idle=idle) as found:
        yield found[0]
