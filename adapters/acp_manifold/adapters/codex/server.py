"""One life of `codex app-server`: started, greeted, its lines routed to the threads they belong to.

A line belongs to the thread it names, found by one look into a table. A line of a thread nobody
here serves is dropped, with a note at debug level: it is never guessed at (case M02).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Protocol

import anyio
from anyio.abc import TaskStatus

from acp_manifold.bridge.backend import Program
from acp_manifold.bridge.errors import METHOD_NOT_FOUND, BackendGone, RemoteError
from acp_manifold.bridge.process import Child, spawn
from acp_manifold.bridge.starting import Started
from acp_manifold.bridge.version import __version__
from acp_manifold.translators.codex.failures import without_keys
from acp_manifold.translators.narrow import JsonObject, as_str, obj, text

from .client import Client, RequestId
from .program import environment, neutral_directory, server_command

logger = logging.getLogger(__name__)

_LAST_WORDS = 1.0
"""Seconds to wait for the exit status of a server that closed its output."""

NEVER_USED = (
    "account/rateLimits/updated",
    "app/list/updated",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/readState/changed",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "turn/diff/updated",
)
"""Notifications we ask not to get. They are a sixth of the bytes of a short text turn, and two thirds of a turn with
five patches, whose `turn/diff/updated` repeats the whole turn's diff after each (codex-cli 0.163.0)."""


class Route(Protocol):
    """Whoever serves a thread. All calls come from the reader's task and must not block."""

    def notified(self, method: str, params: JsonObject) -> None:
        """A notification about the thread."""
        ...

    def asked(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """A request about the thread, to be answered through the client."""
        ...

    def server_gone(self, reason: BackendGone) -> None:
        """The server ended; nothing more will come."""
        ...


class AppServer:
    """A running app-server, or one that has ended."""

    def __init__(self, child: Child, named: Callable[[str, str], None]) -> None:
        """
        Args:
            child: The process.
            named: Told the id and the title of every thread that gets one.
        """
        self.child = child
        self.client = Client(child.send, self._notified, self._asked)
        self.routes: dict[str, Route] = {}
        """Thread id -> who serves it."""
        self._named = named
        self._renames: dict[str, list[_Rename]] = {}

    @property
    def alive(self) -> bool:
        """Whether it still serves."""
        return self.client.gone is None

    async def greet(self, limit: float) -> None:
        """Shake hands.

        Raises:
            BackendGone: It ended, refused, or gave no answer within `limit` seconds.
        """
        params: JsonObject = {
            "clientInfo": {"name": "acp-manifold", "title": "acp-manifold", "version": __version__},
            "capabilities": {
                "experimentalApi": True,
                "requestAttestation": False,
                "optOutNotificationMethods": list(NEVER_USED),
            },
        }
        try:
            with anyio.fail_after(limit):
                await self.client.request("initialize", params)
        except TimeoutError:
            raise BackendGone(f"Codex app-server gave no answer to `initialize` within {limit:g} s") from None
        except RemoteError as exc:
            raise BackendGone(f"Codex app-server refused `initialize`: {exc.message}") from exc
        self.client.notify("initialized")

    async def read(self) -> None:
        """Take its lines until its end, then tell everybody."""
        await self.child.read(self.client.on_line)
        with anyio.move_on_after(_LAST_WORDS):
            await self.child.wait()
        how = self.child.describe_exit() if self.child.exited else "closed its output"
        self.end(BackendGone(f"Codex app-server {without_keys(how)}"))

    def end(self, reason: BackendGone) -> None:
        """Settle everything that waits for the server; once."""
        if not self.alive:
            return
        self.client.close(reason)
        routes, self.routes = self.routes, {}
        for route in routes.values():
            route.server_gone(reason)

    # -- routing --------------------------------------------------------------------------------

    def _notified(self, method: str, params: JsonObject) -> None:
        thread_id = params.get("threadId")
        if thread_id is None:
            thread_id = obj(params, "thread").get("id")
        route = self.routes.get(thread_id) if isinstance(thread_id, str) else None
        if route is not None:
            route.notified(method, params)
        handler = _ANYWHERE.get(method)
        if handler is not None:
            handler(self, params)
        elif route is None:
            logger.debug("codex: dropped %s of thread %s, which is not open here", method, thread_id)

    def _asked(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        route = self.routes.get(text(params, "threadId"))
        if route is not None:
            route.asked(request_id, method, params)
            return
        logger.warning("codex: refused %s of thread %s, which is not open here", method, params.get("threadId"))
        self.client.refuse(request_id, METHOD_NOT_FOUND, f"nobody here answers {method}")

    # -- titles ---------------------------------------------------------------------------------

    async def rename(self, thread_id: str, title: str, patience: float = 1.0) -> str | None:
        """Set a thread's name and give back the one the server then told, or None if it told none in time.

        Raises:
            RemoteError: It refused.
            BackendGone: It is gone.
        """
        rename = _Rename()
        waiting = self._renames.setdefault(thread_id, [])
        waiting.append(rename)
        try:
            await self.client.request("thread/name/set", {"threadId": thread_id, "name": title})
            # The server answers first and tells the name with the next line.
            with anyio.move_on_after(patience):
                await rename.told.wait()
        finally:
            if rename in waiting:
                waiting.remove(rename)
            if not waiting:
                self._renames.pop(thread_id, None)
        return rename.name

    def name_updated(self, params: JsonObject) -> None:
        """A thread got a name, by us or on another connection of this server."""
        thread_id, name = text(params, "threadId"), as_str(params.get("threadName"))
        if not name:
            return
        waiting = self._renames.get(thread_id)
        if waiting:
            rename = waiting.pop(0)
            rename.name = name
            rename.told.set()
        self._named(thread_id, name)

    def warned(self, params: JsonObject) -> None:
        """Codex has something to say about its set-up."""
        logger.info("codex: %s", text(params, "message") or text(params, "summary"))


class _Rename:
    """A rename of ours whose notification has not come yet."""

    __slots__ = ("name", "told")

    def __init__(self) -> None:
        self.told = anyio.Event()
        self.name: str | None = None


_ANYWHERE: dict[str, Callable[[AppServer, JsonObject], None]] = {
    "thread/name/updated": AppServer.name_updated,
    "configWarning": AppServer.warned,
    "deprecationNotice": AppServer.warned,
    "warning": AppServer.warned,
}
"""Notifications that count whether or not their thread is open here."""


async def serve(
    program: Program,
    named: Callable[[str, str], None],
    *,
    limit: float,
    started: Started | None = None,
    task_status: TaskStatus[AppServer] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Run one app-server until it ends or this is cancelled; started means that it answered the handshake.

    Raises:
        BackendGone: It did not come up. Once it is up nothing is raised: its end is told to the routes.
    """
    failure: BackendGone | None = None
    async with spawn(
        server_command(program),
        cwd=neutral_directory(),
        env=environment(),
        name="codex app-server",
        started=started,
    ) as child:
        server = AppServer(child, named)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(server.read)
                try:
                    await server.greet(limit)
                    task_status.started(server)
                except BackendGone as exc:
                    failure = exc
                    tasks.cancel_scope.cancel()
        finally:
            server.end(failure or BackendGone("Codex app-server was ended"))
    if failure is not None:
        raise failure
