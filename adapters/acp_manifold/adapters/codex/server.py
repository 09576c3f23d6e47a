"""One life of `codex app-server`: started, greeted, its lines routed to the threads they belong to.

A line belongs to the thread it names, found by one look into a table. A line of a thread nobody
here serves is dropped, with a note at debug level: it is never guessed at (case M02).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

import anyio
from anyio.abc import TaskGroup, TaskStatus

from acp_manifold.bridge import process
from acp_manifold.bridge.backend import Program
from acp_manifold.bridge.errors import METHOD_NOT_FOUND, BackendGone, BridgeError, InvalidRequest, RemoteError
from acp_manifold.bridge.forking import Started
from acp_manifold.bridge.starting import Launch
from acp_manifold.bridge.taps import taps
from acp_manifold.bridge.transport import Spawn, Transport
from acp_manifold.translators.auth import Endpoint
from acp_manifold.translators.codex.failures import without_keys
from acp_manifold.translators.narrow import JsonObject, as_str, obj, text
from acp_manifold.translators.values import NamedTuple

from .client import Client, RequestId
from .greeting import GREETING, GREETING_ID
from .limits import Limits
from .program import environment, neutral_directory, server_command
from .stubborn import unload

if TYPE_CHECKING:
    from acp_manifold.translators.updates import Notice

logger = logging.getLogger(__name__)

_LAST_WORDS = 1.0
"""Seconds to wait for the exit status of a server that closed its output."""

EARLY_THREADS = 16
"""How many threads of sub-agents may have lines that wait for who follows them."""

EARLY_LINES = 64
"""How many lines of one of them; as of codex-cli 0.163.0 there are none, since the call is told to end before."""

FINISH_LIMIT = 1.0
"""Seconds for the end of a server to wait for threads that are in the archive just now (see `stubborn`)."""

UNLOAD_LIMIT = 1.0
"""Seconds for a thread to be unloaded once nobody follows it; codex-cli 0.163.0 takes 0.02 s."""


class Route(Protocol):
    """Whoever serves a thread. All calls come from the reader's task and must not block."""

    def notified(self, method: str, params: JsonObject) -> None:
        """A notification about the thread."""
        ...

    def asked(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """A request about the thread, to be answered through the client."""
        ...

    async def room(self) -> None:
        """Wait while whoever is told of the thread is too far behind to be told more."""
        ...

    def noticed(self, notice: Notice) -> None:
        """The server has something to say that is about no thread."""
        ...

    def server_gone(self, reason: BackendGone) -> None:
        """The server ended; nothing more will come."""
        ...


class AppServer:
    """A running app-server, or one that has ended."""

    def __init__(self, child: Transport, named: Callable[[str, str], None], limits: Limits) -> None:
        """
        Args:
            child: The process.
            named: Told the id and the title of every thread that gets one.
            limits: How long it may take.
        """
        self.child = child
        self.limits = limits
        self.client = Client(child.send, self._notified, self._asked, self.check, limits.answer)
        self.led: dict[str, Endpoint | None] = {}
        """By thread, the endpoint it was opened with here; a thread that is still loaded keeps it."""
        self.instructed: dict[str, str] = {}
        """By thread, the client's further instructions that were last said in it."""
        self.routes: dict[str, Route] = {}
        """Thread id -> who serves it."""
        self._early: dict[str, list[_Line]] = {}
        """What was told of threads of sub-agents before the one that began them was told to have done so."""
        self.early_servers: dict[str, list[_Line]] = {}
        """What was told of the MCP servers of threads that are not open here, or not yet."""
        self._fed: set[Route] = set()
        """Who was told something since the last read."""
        self.doubted = False
        """Whether it has left something unanswered, so that it should be checked before it is relied on."""
        self.told_faults: set[tuple[str, str]] = set()
        """Thread and MCP server for each fault a person was told of: a thread that comes back tells none twice."""
        self._held: dict[str, object] = {}
        self._freeing: dict[str, anyio.Event] = {}
        self._unloading: dict[str, anyio.Event] = {}
        self._ended = anyio.Event()
        # Shielded until `finish`, so that what was begun can be brought to its end.
        self._life = anyio.CancelScope(shield=True)
        self._tasks: TaskGroup | None = None
        self._named = named
        self._renames: dict[str, list[_Rename]] = {}
        self._noted: list[Notice] = []
        """What the server said about no thread in particular, each once."""
        self._untold: list[Notice] = []
        """What of it nobody was there to hear."""

    @property
    def alive(self) -> bool:
        """Whether it still serves."""
        return self.client.gone is None

    async def greet(self) -> None:
        """Shake hands, where `GREETING` was sent already.

        Raises:
            BackendGone: It ended, refused, or gave no answer in time.
        """
        limit = self.limits.start
        try:
            with anyio.fail_after(limit):
                await self.client.hear("initialize", GREETING_ID)
        except TimeoutError:
            raise BackendGone(f"Codex app-server gave no answer to `initialize` within {limit:g} s") from None
        except RemoteError as exc:
            raise BackendGone(f"Codex app-server refused `initialize`: {exc.message}") from exc
        self.client.notify("initialized")

    async def live(self) -> None:
        """Take its lines until its end, or until `finish`."""
        with self._life:
            async with anyio.create_task_group() as self._tasks:
                await self._read()

    async def _read(self) -> None:
        await self.child.read(self.client.on_line, room=self._room)
        with anyio.move_on_after(_LAST_WORDS):
            await self.child.wait()
        how = self.child.describe_exit() if self.child.exited else "closed its output"
        self.end(BackendGone(f"Codex app-server {without_keys(how)}"))

    async def _room(self) -> None:
        fed, self._fed = self._fed, set()
        # Meanwhile nothing is read, so that no silence of the server means anything.
        self.client.paused = True
        try:
            for route in fed:
                await route.room()
        finally:
            self.client.paused = False

    async def check(self) -> None:
        """Find out whether it is still there. One that shows no sign of life is frozen, and is killed.

        A line of any kind is a sign of life: a server that is slow to answer may be at work for other threads.

        Raises:
            BackendGone: It is not there.
        """
        self.doubted = False
        if self.client.paused:
            return
        lines = self.client.lines
        with anyio.move_on_after(self.limits.probe):
            try:
                await self.client.ask("thread/loaded/list", {"limit": 1})
            except RemoteError as exc:
                logger.debug("codex: the probe was refused: %s", exc.message)
        if self.client.lines != lines or self.client.paused:
            return
        reason = BackendGone(
            "Codex app-server was frozen: it left a request unanswered and gave no sign of life for "
            f"{self.limits.probe:g} s. It was killed; try again, and a new one is started"
        )
        logger.warning("%s", reason.message)
        self.end(reason)
        await self.child.kill()
        raise reason

    def end(self, reason: BackendGone) -> None:
        """Settle everything that waits for the server; once."""
        if not self.alive:
            return
        self.client.close(reason)
        routes, self.routes = self.routes, {}
        for route in routes.values():
            route.server_gone(reason)
        for freed in self._freeing.values():
            freed.set()
        self._ended.set()

    async def finish(self, reason: BackendGone) -> None:
        """Have it serve no more; whatever is with it is settled, and one that left something unanswered is killed."""
        with anyio.move_on_after(FINISH_LIMIT, shield=True):
            for freed in list(self._freeing.values()):
                await freed.wait()
        self.end(reason)
        self._life.cancel()
        if self.doubted:
            # It would not heed the end of its input either.
            await self.child.kill()

    async def ended(self) -> None:
        """Wait until it no longer serves."""
        await self._ended.wait()

    # -- who has which thread -------------------------------------------------------------------

    def claim(self, thread_id: str, holder: object) -> None:
        """Have a thread for oneself until `let_go`.

        Raises:
            InvalidRequest: Somebody has it.
        """
        if self._held.setdefault(thread_id, holder) is not holder:
            raise InvalidRequest(
                f"Session {thread_id} is open here already", {"reason": "already_open", "sessionId": thread_id}
            )

    def let_go(self, thread_id: str, holder: object) -> None:
        """The thread is anybody's again, if the holder had it."""
        if self._held.get(thread_id) is holder:
            del self._held[thread_id]
        if self.routes.get(thread_id) is holder:
            del self.routes[thread_id]

    def is_held(self, thread_id: str) -> bool:
        """Whether somebody has the thread."""
        return thread_id in self._held

    def release(self, thread_id: str, *, stubborn: bool = False) -> None:
        """Begin to let a thread go: what it left running ends, and it is unloaded, so that anybody can open it.

        Args:
            thread_id: Which; it is in the store, or nothing is left of it.
            stubborn: Whether its turn would not stop.
        """
        if self.alive and self._tasks is not None and thread_id not in self._freeing:
            self._freeing[thread_id] = anyio.Event()
            self._tasks.start_soon(self._free, thread_id, stubborn)

    async def _free(self, thread_id: str, stubborn: bool) -> None:
        try:
            if stubborn:
                await unload(self.client, thread_id)
            else:
                await self._unfollow(thread_id)
        except BridgeError as exc:
            logger.debug("codex session %s: while it was let go: %s", thread_id, exc.message)
        finally:
            self._freeing.pop(thread_id).set()

    async def _unfollow(self, thread_id: str) -> None:
        unloaded = self._unloading[thread_id] = anyio.Event()
        try:
            params: JsonObject = {"threadId": thread_id}
            clean, left = (
                self.client.begin(method, params)
                for method in ("thread/backgroundTerminals/clean", "thread/unsubscribe")
            )
            with suppress(RemoteError):
                await self.client.result(clean)
            if text(await self.client.result(left), "status") == "notLoaded":
                return
            with anyio.move_on_after(UNLOAD_LIMIT) as patience:
                await unloaded.wait()
            if patience.cancelled_caught:
                logger.info("codex session %s: Codex keeps it loaded, and other programs out, for now", thread_id)
        finally:
            del self._unloading[thread_id]

    def unloaded(self, params: JsonObject) -> None:
        """A thread is not loaded any more."""
        thread_id = text(params, "threadId")
        self.led.pop(thread_id, None)
        if thread_id in self._unloading:
            self._unloading[thread_id].set()

    async def freed(self, thread_id: str) -> None:
        """Wait until the thread is not being let go."""
        if thread_id in self._freeing:
            await self._freeing[thread_id].wait()

    # -- routing --------------------------------------------------------------------------------

    def _notified(self, method: str, params: JsonObject) -> None:
        thread_id = params.get("threadId")
        if thread_id is None:
            thread_id = obj(params, "thread").get("id")
        route = self.routes.get(thread_id) if isinstance(thread_id, str) else None
        if route is not None:
            self._fed.add(route)
            route.notified(method, params)
        handler = ANYWHERE.get(method)
        if handler is not None:
            handler(self, params)
        elif route is None and not self._is_early(_Line(method, params)):
            logger.debug("codex: dropped %s of thread %s, which is not open here", method, thread_id)
            taps.dropped("codex", None, method, f"thread {thread_id} is not open here")

    def _asked(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        route = self.routes.get(text(params, "threadId"))
        if route is not None:
            route.asked(request_id, method, params)
            return
        if self._is_early(_Line(method, params, request_id)):
            return
        logger.warning("codex: refused %s of thread %s, which is not open here", method, params.get("threadId"))
        self.client.refuse(request_id, METHOD_NOT_FOUND, f"nobody here answers {method}")

    def _is_early(self, line: _Line) -> bool:
        """Whether a line is kept: for a sub-agent that nobody follows yet, or a thread that is being opened.

        On a busy machine codex-cli 0.163.0 tells of a thread's MCP servers before it answers `thread/start`.
        """
        thread_id = text(line.params, "threadId")
        if line.method == "mcpServer/startupStatus/updated":
            self.early_servers.setdefault(thread_id, []).append(line)
            if len(self.early_servers) > EARLY_THREADS:
                del self.early_servers[next(iter(self.early_servers))]
            return True
        turn = obj(line.params, "turn")
        if line.method == "turn/started" and turn.get("rootTurnId") not in (None, turn.get("id")):
            self._early.setdefault(thread_id, [])
            while len(self._early) > EARLY_THREADS:
                self._refuse(self._early.pop(next(iter(self._early))))
        early = self._early.get(thread_id)
        if early is None or len(early) >= EARLY_LINES:
            return False
        early.append(line)
        return True

    def follow(self, thread_id: str, route: Route) -> None:
        """Have a thread served, from its first line on."""
        self.routes[thread_id] = route
        for line in (*self.early_servers.pop(thread_id, ()), *self._early.pop(thread_id, ())):
            if line.request_id is None:
                self._notified(line.method, line.params)
            else:
                self._asked(line.request_id, line.method, line.params)

    def _refuse(self, lines: list[_Line]) -> None:
        for line in lines:
            if line.request_id is not None:
                self.client.refuse(line.request_id, METHOD_NOT_FOUND, f"nobody here answers {line.method}")

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

    async def configured_servers(self, cwd: str) -> frozenset[str]:
        """The names of the MCP servers in the configuration that holds in a directory; none if it can't be read.

        Raises:
            BackendGone: It is gone.
        """
        try:
            result = await self.client.request("config/read", {"cwd": cwd, "includeLayers": False})
        except RemoteError as exc:
            # Whoever starts a thread with it is told what is wrong with it.
            logger.debug("codex: the configuration of %s can't be read: %s", cwd, exc.message)
            return frozenset()
        return frozenset(obj(obj(result, "config"), "mcp_servers"))

    def skills_changed(self, params: JsonObject) -> None:
        """Skills were added, changed or removed, for whichever threads."""
        for route in list(self.routes.values()):
            route.notified("skills/changed", params)

    def warned(self, params: JsonObject) -> None:
        """Codex has something to say about its set-up."""
        logger.info("codex: %s", text(params, "message") or text(params, "summary"))
        if as_str(params.get("threadId")) is None:
            self._note("warning" if "message" in params else "configWarning", params)

    def limited(self, params: JsonObject) -> None:
        """How much of the account's limits is used."""
        self._note("account/rateLimits/updated", params)

    def _note(self, method: str, params: JsonObject) -> None:
        # Seldom needed, and not before there is a session.
        from acp_manifold.translators.codex import notices

        notice = notices.of(method, params)
        if notice is None or notice in self._noted:
            return
        self._noted.append(notice)
        for route in self.routes.values():
            route.noticed(notice)
        if not self.routes:
            self._untold.append(notice)

    def welcome(self, route: Route) -> None:
        """Tell a route what was said while there was none."""
        untold, self._untold = self._untold, []
        for notice in untold:
            route.noticed(notice)


class _Line(NamedTuple):
    """A notification, or a request, of the server."""

    method: str
    params: JsonObject
    request_id: RequestId | None = None


class _Rename:
    """A rename of ours whose notification has not come yet."""

    __slots__ = ("name", "told")

    def __init__(self) -> None:
        self.told = anyio.Event()
        self.name: str | None = None


ANYWHERE: dict[str, Callable[[AppServer, JsonObject], None]] = {
    "thread/name/updated": AppServer.name_updated,
    "skills/changed": AppServer.skills_changed,
    "configWarning": AppServer.warned,
    "deprecationNotice": AppServer.warned,
    "warning": AppServer.warned,
    "account/rateLimits/updated": AppServer.limited,
    "thread/closed": AppServer.unloaded,
}
"""Notifications that count whether or not their thread is open here."""


async def serve(
    program: Program,
    named: Callable[[str, str], None],
    *,
    limits: Limits,
    started: Started | None = None,
    spawn: Spawn | None = None,
    task_status: TaskStatus[AppServer] = anyio.TASK_STATUS_IGNORED,
) -> None:
    """Run one app-server until it ends or this is cancelled; started means that it answered the handshake.

    Raises:
        BackendGone: It did not come up. Once it is up nothing is raised: its end is told to the routes.
    """
    failure: BackendGone | None = None
    launch = Launch(
        server_command(program),
        neutral_directory(),
        environment(),
        "codex app-server",
        started=started,
        guarded=False,
        backend="codex",
    )
    async with (spawn or process.spawn)(launch) as child:
        if started is None:
            child.send(GREETING)
        elif child.place.tap is not None:
            child.place.tap("out", GREETING)
        server = AppServer(child, named, limits)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.live)
            try:
                await server.greet()
                task_status.started(server)
                await server.ended()
            except BackendGone as exc:
                failure = exc
            finally:
                await server.finish(failure or BackendGone("Codex app-server was ended"))
    if failure is not None:
        raise failure
