"""JSON-RPC as `codex app-server` speaks it: one line a message, no `jsonrpc` member.

Both sides count request ids from zero, so there are two tables: what we asked is here, what the
server asked is kept by whoever answers it. Lines are handled synchronously, in order, in the
reader's task. Nothing here knows what a method means.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import anyio

from acp_manifold.bridge.errors import BackendFault, BackendGone, ErrorObject, RemoteError
from acp_manifold.translators.narrow import JsonObject, as_int, as_object, obj, text

logger = logging.getLogger(__name__)

RequestId: TypeAlias = int | str

_SHOWN = 200
"""Characters of a line that a log note repeats."""

_LONE = re.compile("[\ud800-\udfff]")


class NoAnswer(BackendFault):
    """The server is alive and left this one request without an answer; what became of it is not known."""


class Asked:
    """A request of ours that was sent."""

    __slots__ = ("answered", "error", "id", "method", "result", "taken")

    def __init__(self, request_id: int, method: str, taken: Callable[[JsonObject], None] | None) -> None:
        self.id = request_id
        self.method = method
        self.taken = taken
        """See `Client.request`; may be set until the next await after the request was sent."""
        self.answered = anyio.Event()
        self.result: JsonObject = {}
        self.error: RemoteError | BackendGone | None = None

    def outcome(self) -> JsonObject:
        """The result, or the error raised."""
        if self.error is not None:
            raise self.error
        return self.result


class Client:
    """Our end of the link."""

    def __init__(
        self,
        send: Callable[[bytes], None],
        notified: Callable[[str, JsonObject], None],
        asked: Callable[[RequestId, str, JsonObject], None],
        check: Callable[[], Awaitable[None]],
        patience: float,
    ) -> None:
        """
        Args:
            send: Queues one line for the server.
            notified: Told of every notification: method and params.
            asked: Told of every request of the server, which is to be answered with `answer` or `refuse`.
            check: Finds out whether the server is alive; raises BackendGone if it is not.
            patience: Seconds without an answer after which that is done.
        """
        self.lines = 0
        """How many lines have come: when it grows, the server is alive."""
        self.paused = False
        """Whether nothing is read for now, so that no answer can come."""
        self._send_line = send
        self._notified = notified
        self._asked = asked
        self._check = check
        self._patience = patience
        self._pending: dict[int, Asked] = {}
        self._next = 0
        self._gone: BackendGone | None = None

    @property
    def gone(self) -> BackendGone | None:
        """Why the server is gone, once it is."""
        return self._gone

    # -- what we send ---------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: JsonObject,
        *,
        taken: Callable[[JsonObject], None] | None = None,
        limit: float = 0.0,
    ) -> JsonObject:
        """Ask the server and wait for its result, for a limited time.

        Args:
            method: What to ask.
            params: With what; never left out, since the server refuses a request without.
            taken: Called with the result in the reader's task, before any later line is looked at; also if
                the one who asked was cancelled meanwhile, or has given up.
            limit: Seconds a server that is alive may take, if that is more than the usual patience.

        Raises:
            RemoteError: It answered with an error.
            NoAnswer: It gave none in time, and is alive.
            BackendGone: It is gone, went meanwhile, or is frozen.
        """
        return await self.result(self.begin(method, params, taken), limit=limit)

    async def result(self, asked: Asked, *, limit: float = 0.0) -> JsonObject:
        """The second half of `request`: wait for the result of what `begin` has sent. Raises the same."""
        try:
            await self._wait(asked, limit)
        finally:
            self._leave(asked)
        return asked.outcome()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """As `request`, with no limit: for a caller that has one."""
        return await self._hear(self.begin(method, params))

    async def hear(self, method: str, request_id: int) -> JsonObject:
        """Wait, with no limit, for the answer to a request that somebody else has sent under the next of our ids."""
        self._next = max(self._next, request_id)
        asked = self._pending[request_id] = Asked(request_id, method, None)
        return await self._hear(asked)

    async def _hear(self, asked: Asked) -> JsonObject:
        if self._gone is not None:
            raise BackendGone(self._gone.message, self._gone.data)
        try:
            await asked.answered.wait()
        finally:
            self._leave(asked)
        return asked.outcome()

    async def _wait(self, asked: Asked, limit: float) -> None:
        begun = anyio.current_time()
        while True:
            with anyio.move_on_after(self._patience):
                await asked.answered.wait()
            if asked.answered.is_set():
                return
            if self.paused:
                continue
            await self._check()
            waited = anyio.current_time() - begun
            if waited >= limit and not asked.answered.is_set():
                raise NoAnswer(
                    f"Codex gave no answer to `{asked.method}` within {waited:.3g} s, though it is running; "
                    "try again, and restart the agent if that does not help"
                )

    def _leave(self, asked: Asked) -> None:
        if asked.taken is None:
            self._pending.pop(asked.id, None)

    def post(self, method: str, params: JsonObject) -> None:
        """Ask the server and don't wait; an error is only logged. Nothing happens once it is gone."""
        if self._gone is None:
            self.begin(method, params, _ignore)

    def begin(self, method: str, params: JsonObject, taken: Callable[[JsonObject], None] | None = None) -> Asked:
        """The first half of `request`: ask, and don't wait yet.

        Raises:
            BackendGone: It is gone.
        """
        if self._gone is not None:
            raise BackendGone(self._gone.message, self._gone.data)
        self._next += 1
        asked = self._pending[self._next] = Asked(self._next, method, taken)
        self._send({"id": asked.id, "method": method, "params": params})
        return asked

    def notify(self, method: str) -> None:
        """Send a notification."""
        self._send({"method": method})

    def answer(self, request_id: RequestId, result: JsonObject) -> None:
        """Answer a request of the server."""
        self._send({"id": request_id, "result": result})

    def refuse(self, request_id: RequestId, code: int, message: str) -> None:
        """Answer a request of the server with an error."""
        self._send({"id": request_id, "error": {"code": code, "message": message}})

    def _send(self, message: JsonObject) -> None:
        self._send_line(encode(message))

    # -- what we get ----------------------------------------------------------------------------

    def on_line(self, line: bytes) -> None:
        """Take one line of the server. What is no message is skipped with a note (case F03)."""
        self.lines += 1
        try:
            message = as_object(json.loads(line.decode()))
        except (ValueError, RecursionError):
            message = {}
        try:
            self._take(message, line)
        except Exception:
            # A fault of ours in one message must not end the reading of all others.
            logger.exception("codex: could not handle %s", _shown(line))

    def _take(self, message: JsonObject, line: bytes) -> None:
        method = message.get("method")
        if isinstance(method, str):
            params = as_object(message.get("params"))
            request_id = message.get("id")
            if isinstance(request_id, int | str):
                self._asked(request_id, method, params)
            else:
                self._notified(method, params)
        elif "result" in message or "error" in message:
            self._settle(message)
        else:
            logger.warning("codex: skipped a line that is no message: %s", _shown(line))

    def _settle(self, message: JsonObject) -> None:
        request_id = as_int(message.get("id"))
        asked = self._pending.pop(request_id, None) if request_id is not None else None
        if asked is None:
            logger.debug("codex: an answer to no request of ours: %r", message.get("id"))
            return
        if "error" in message:
            error = obj(message, "error")
            asked.error = RemoteError(
                ErrorObject(as_int(error.get("code")) or 0, text(error, "message"), error.get("data"))
            )
            logger.debug("codex: %s: %s", asked.method, asked.error.message)
        else:
            asked.result = obj(message, "result")
        asked.answered.set()
        if asked.error is None and asked.taken is not None:
            asked.taken(asked.result)

    def close(self, reason: BackendGone) -> None:
        """Tell everybody who waits that the server is gone; once."""
        if self._gone is not None:
            return
        self._gone = reason
        waiting, self._pending = self._pending, {}
        for asked in waiting.values():
            asked.error = BackendGone(reason.message, reason.data)
            asked.answered.set()


def encode(message: JsonObject) -> bytes:
    """A message as one line of valid UTF-8.

    A lone surrogate becomes U+FFFD: codex-cli 0.163.0 never answers a request with the escape of
    one, and ends itself on invalid UTF-8. Two that belong together become their character.
    """
    line = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
    if _LONE.search(line):
        line = line.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return line.encode()


def _ignore(result: JsonObject) -> None:
    """Take a result nobody waits for."""


def _shown(line: bytes) -> str:
    return repr(line[:_SHOWN].decode("utf-8", "replace"))
