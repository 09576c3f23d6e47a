"""The program's hooks, heard over HTTP on loopback, and the settings file that has it call them.

One server for the backend, on a port of the system's choice and on 127.0.0.1 alone. Each session has a
path that nobody can guess; a request to any other path, or under another host's name, is refused. The
program gets the URL in a settings file of its own (`--settings`), which only the person can read and which
goes with the session; nothing of the person's settings is touched, and their own hooks run as ever
(Claude Code 2.1.332 merges them).
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shlex
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import anyio
import h11
from anyio.abc import SocketAttribute, SocketStream, TaskStatus

from acp_manifold.translators.narrow import JsonObject, as_object

logger = logging.getLogger(__name__)

HEARD: Final = {
    "UserPromptSubmit": "",
    "MessageDisplay": "",
    "PreToolUse": "",
    "PermissionRequest": "",
    "Elicitation": "",
    "Notification": "elicitation_complete",
}
"""The hooks that are asked for, and what about. Each call holds the program up for a moment, so these alone."""

PATIENCE: Final = 7 * 24 * 3600
"""Seconds that the program waits for an answer: a person may be asked on a Friday."""

BODY_LIMIT: Final = 64 * 1024 * 1024
"""Bytes of the largest call taken; a tool's input may hold a file."""

Answerer: TypeAlias = Callable[[JsonObject], Awaitable[JsonObject]]
"""Takes what a hook is called with and gives the answer; cancelled when the program no longer waits for it."""


class HookServer:
    """Serves the hooks of all sessions of the backend. Made by `serve_hooks`."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._sessions: dict[str, Answerer] = {}

    @contextmanager
    def heard(self, answerer: Answerer) -> Generator[str]:
        """The URL whose calls `answerer` gets for as long as the context is open."""
        path = f"/{secrets.token_urlsafe(32)}"
        self._sessions[path] = answerer
        try:
            yield f"http://127.0.0.1:{self._port}{path}"
        finally:
            del self._sessions[path]

    async def serve(self, stream: SocketStream) -> None:
        """One connection, which may make any number of calls."""
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=64 * 1024)
        async with stream:
            try:
                while await self._serve_one(stream, connection):
                    connection.start_next_cycle()
            except h11.RemoteProtocolError as exc:
                logger.info("claude-tui: a connection that speaks no HTTP was closed: %s", exc)
            except (anyio.BrokenResourceError, anyio.ClosedResourceError) as exc:
                logger.debug("claude-tui: a hook's connection is gone: %s", exc)

    async def _serve_one(self, stream: SocketStream, connection: h11.Connection) -> bool:
        """Whether another call may come on this connection."""
        called = await _request(stream, connection)
        if called is None:
            return False
        request, body = called
        answerer = self._sessions.get(request.target.decode("ascii", "replace"))
        host = dict(request.headers).get(b"host", b"").decode("ascii", "replace")
        if answerer is None or request.method != b"POST" or host != f"127.0.0.1:{self._port}":
            logger.warning("claude-tui: refused a call that no session has asked for")
            await _respond(stream, connection, 404, {})
            return False
        answer = await _answered(stream, answerer, body)
        if answer is None:
            return False
        await _respond(stream, connection, 200, answer)
        return connection.our_state is h11.DONE and connection.their_state is h11.DONE


async def serve_hooks(*, task_status: TaskStatus[HookServer]) -> None:
    """Serve until cancelled; the server is handed over as soon as it listens."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0) as listener:
        server = HookServer(listener.extra(SocketAttribute.local_port))
        task_status.started(server)
        await listener.serve(server.serve)


@contextmanager
def settings_file(folder: Path, session_id: str, url: str, status: Path) -> Generator[Path]:
    """The file that has the program call `url` and tell how it stands, for as long as the context is open.

    What Claude Code 2.1.332 tells the command of its status line, at its start and after each message, is the only
    place where it says how much its context holds. Nothing of that is painted.

    Args:
        folder: A directory of ours; made if it is missing.
        session_id: Whose file it is: one that a killed agent has left is written anew.
        url: What to call.
        status: The file that gets what a status line is told; one that is there keeps its permissions.

    Raises:
        OSError: It can't be written.
    """
    hook = {"type": "http", "url": url, "timeout": PATIENCE}
    line = {"type": "command", "command": f"cat >{shlex.quote(str(status))}"}
    settings = {
        "hooks": {name: [{"matcher": about, "hooks": [hook]}] for name, about in HEARD.items()},
        "statusLine": line,
    }
    with private_file(folder / f"{session_id}.json", json.dumps(settings)) as path:
        yield path


@contextmanager
def private_file(path: Path, text: str) -> Generator[Path]:
    """A file that only the person can read, for as long as the context is open; its folder is made if it is missing.

    Raises:
        OSError: It can't be written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


async def _request(stream: SocketStream, connection: h11.Connection) -> tuple[h11.Request, bytes] | None:
    """The next call; None if there is none any more."""
    request: h11.Request | None = None
    body = bytearray()
    while True:
        event = connection.next_event()
        if event is h11.NEED_DATA:
            try:
                connection.receive_data(await stream.receive())
            except anyio.EndOfStream:
                connection.receive_data(b"")
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_LIMIT:
                raise h11.RemoteProtocolError(f"a call of more than {BODY_LIMIT} bytes")
        elif isinstance(event, h11.EndOfMessage) and request is not None:
            return request, bytes(body)
        else:
            return None


async def _answered(stream: SocketStream, answerer: Answerer, body: bytes) -> JsonObject | None:
    """The answer to a call; None if the program no longer waits for it."""
    answer: JsonObject | None = None
    async with anyio.create_task_group() as race:

        async def ask() -> None:
            nonlocal answer
            try:
                answer = await answerer(as_object(json.loads(body)))
            except Exception:
                # Boundary: whatever breaks us, the program goes on as if it had no hook.
                logger.exception("claude-tui: a hook could not be answered")
                answer = {}
            race.cancel_scope.cancel()

        async def gone() -> None:
            # The program sends nothing while it waits: what comes is the end of the connection.
            try:
                await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
                pass
            race.cancel_scope.cancel()

        race.start_soon(ask)
        race.start_soon(gone)
    return answer


async def _respond(stream: SocketStream, connection: h11.Connection, status: int, answer: JsonObject) -> None:
    body = json.dumps(answer).encode()
    headers = [("content-type", "application/json"), ("content-length", str(len(body)))]
    sent = connection.send(h11.Response(status_code=status, headers=headers)) or b""
    sent += connection.send(h11.Data(data=body)) or b""
    sent += connection.send(h11.EndOfMessage()) or b""
    await stream.send(sent)
