"""One JSON-RPC link, both directions: what they ask of us, and what we ask of them.

Two tables that never mix, since each side counts its own ids: `_calls` holds their requests that
are not answered yet, `_asked` holds ours. An entry leaves its table exactly once, and whoever takes
it out settles it: that is how a request gets one answer and no second. Of the protocol above, the
peer knows one method, `$/cancel_request`. Nothing the other side sends ends the loop but its end.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Final, Protocol, TypeAlias, cast

import anyio
from anyio.abc import TaskGroup

from acp_manifold.translators.narrow import JsonObject

from .errors import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    BridgeError,
    ErrorObject,
    PeerGone,
    RemoteError,
    RequestCancelled,
    find_bridge_error,
    to_error_object,
)
from .framing import LINE_LIMIT, Framed, LineFramer, TooLong
from .messages import Invalid, Message, Notification, Request, RequestId, Response, encode, parse, request_id
from .outbound import Outbound
from .taps import NOWHERE, Place

logger = logging.getLogger(__name__)

CANCEL_METHOD: Final = "$/cancel_request"

Receive: TypeAlias = Callable[[], Awaitable[bytes]]
"""Gives the next bytes of the link; none, or an anyio resource error, at its end."""


class Call:
    """A request of the other side while it is not answered."""

    __slots__ = ("cancelled", "id", "method", "on_answered", "on_cancel", "scope")

    def __init__(self, id: RequestId, method: str) -> None:
        self.id = id
        """The id as it came."""
        self.method = method
        self.cancelled = False
        """Whether the other side took it back."""
        self.on_cancel: Callable[[], None] | None = None
        """What to do then. The handler's awaitable still gives the answer. Without it, the awaitable is cancelled."""
        self.on_answered: Callable[[], None] | None = None
        """Called once the result is queued, so that what it sends comes right after it."""
        self.scope = anyio.CancelScope()
        """Around the handler's awaitable; the peer's."""


class Handler(Protocol):
    """Who serves the other side's messages. Everything is called in the order of arrival."""

    def request(self, method: str, params: JsonObject, call: Call) -> object:
        """Serve a request.

        Returns:
            The result, which is sent at once; or an awaitable of it, which runs as a task.

        Raises:
            BridgeError: It is refused, with what the other side is told; also from the awaitable.
        """
        ...

    def notification(self, method: str, params: JsonObject) -> None:
        """Take note of something; what it raises is logged."""
        ...

    def closed(self) -> None:
        """The other side is gone. Called once, before what still runs for it is cancelled."""
        ...


class _Asked:
    """A request of ours that is not answered yet."""

    __slots__ = ("answer", "done", "method")

    def __init__(self, method: str) -> None:
        self.method = method
        self.done = anyio.Event()
        self.answer: Response | None = None
        """What came; None with `done` set means that the link is gone."""


class Peer:
    """Both sides of a link.

    Args:
        handler: Serves what comes in.
        outbound: Takes what goes out; whoever made it also runs it. When it breaks, the peer ends.
        limit: Bytes of the longest line taken.
    """

    def __init__(self, handler: Handler, outbound: Outbound, *, limit: int = LINE_LIMIT) -> None:
        self.handler = handler
        """Who serves what comes; another one may take over at any time."""
        self.place: Place = NOWHERE
        """Where the lines that come cross; may be set at any time."""
        self._outbound = outbound
        self._limit = limit
        self._tasks: TaskGroup
        self._closed = False
        self._calls: dict[RequestId, Call] = {}
        self._asked: dict[int, _Asked] = {}
        self._next_id = 0

    async def run(self, receive: Receive) -> None:
        """Serve the link until the other side ends it, or no longer reads. Run it once.

        At the end all that still waits for the other side gets `PeerGone`, the handler is told,
        and what it still runs is cancelled.
        """
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                async with anyio.create_task_group() as reading:
                    reading.start_soon(self._end_when_broken, reading.cancel_scope)
                    await self._read(receive)
                    reading.cancel_scope.cancel()
                self._close()
                tasks.cancel_scope.cancel()
        finally:
            self._close()

    async def request(self, method: str, params: JsonObject) -> object:
        """Ask the other side and give its result. Cancelling the call takes the request back.

        Raises:
            RemoteError: It answered with an error.
            PeerGone: It is gone, so that no answer will come.
        """
        if self._closed or self._outbound.broken:
            raise PeerGone(f"Nobody is there to answer {method}")
        number = self._next_id
        self._next_id += 1
        asked = self._asked[number] = _Asked(method)
        self._outbound.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        try:
            await asked.done.wait()
        finally:
            # Still in the table: the wait was cancelled. A late answer finds nobody.
            if self._asked.pop(number, None) is not None:
                self.notify(CANCEL_METHOD, {"requestId": number})
        answer = asked.answer
        if answer is None:
            raise PeerGone(f"The other side went away before it answered {method}")
        if answer.error is not None:
            raise RemoteError(answer.error)
        return answer.result

    def notify(self, method: str, params: JsonObject) -> None:
        """Tell the other side something."""
        self._outbound.send({"jsonrpc": "2.0", "method": method, "params": params})

    def answer(self, call: Call, result: object) -> None:
        """Answer a request now, before its awaitable comes to its end, which then answers nothing any more."""
        self._succeed(call, result)

    async def _read(self, receive: Receive) -> None:
        framer = LineFramer(self._limit)
        try:
            while data := await receive():
                self._take(framer.feed(data))
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError) as exc:
            logger.debug("the link ended: %r", exc)
        self._take(framer.finish())

    async def _end_when_broken(self, scope: anyio.CancelScope) -> None:
        await self._outbound.wait_broken()
        scope.cancel()

    def _close(self) -> None:
        """Settle all that waits; whatever comes later finds nobody."""
        if self._closed:
            return
        self._closed = True
        asked, self._asked = self._asked, {}
        for entry in asked.values():
            entry.done.set()
        try:
            self.handler.closed()
        except Exception:
            logger.exception("the handler failed at the end of the link")
        self._calls.clear()

    def _take(self, framed: list[Framed]) -> None:
        for line in framed:
            if isinstance(line, TooLong):
                reason = f"Invalid request: a message may have at most {self._limit} bytes"
                self._answer_error(None, ErrorObject(INVALID_REQUEST, reason))
            else:
                if self.place.tap is not None:
                    self.place.tap("in", line)
                self._dispatch(parse(line))

    def _dispatch(self, message: Message) -> None:
        match message:
            case Request():
                self._serve(message)
            case Notification(method, params):
                if method == CANCEL_METHOD:
                    self._take_back(params)
                else:
                    self._note(method, params)
            case Response():
                self._settle_asked(message)
            case Invalid(known, error, answerable):
                logger.warning("refused a message: %s", error.message)
                if answerable:
                    self._answer_error(known, error)

    def _note(self, method: str, params: JsonObject) -> None:
        try:
            self.handler.notification(method, params)
        except Exception:
            logger.exception("notification %s failed", method[:200])

    def _serve(self, request: Request) -> None:
        if request.id in self._calls:
            reason = "Invalid request: this id belongs to a request that is not answered yet"
            self._answer_error(request.id, ErrorObject(INVALID_REQUEST, reason))
            return
        call = Call(request.id, request.method)
        # In the table before the handler runs, so that all ends of it go the same way.
        self._calls[call.id] = call
        try:
            result = self.handler.request(request.method, request.params, call)
        except Exception as exc:
            self._fail(call, exc)
            return
        if isinstance(result, Awaitable):
            awaitable = cast("Awaitable[object]", result)
            self._tasks.start_soon(self._run, call, awaitable, name=request.method[:60])
        else:
            self._succeed(call, result)

    async def _run(self, call: Call, awaitable: Awaitable[object]) -> None:
        try:
            with call.scope:
                self._succeed(call, await awaitable)
        except Exception as exc:
            self._fail(call, exc)
        finally:
            if self._settle(call):
                logger.info("%s was ended without an answer", call.method[:200])
                self._answer_error(
                    call.id, ErrorObject(INTERNAL_ERROR, "Internal error: the request was ended without an answer")
                )

    def _take_back(self, params: JsonObject) -> None:
        """`$/cancel_request`: one that names no request in flight is of no interest."""
        if "requestId" not in params:
            return
        named = request_id(params["requestId"])
        call = self._calls.get(named)
        if call is None or call.cancelled or (named is None and params["requestId"] is not None):
            return
        call.cancelled = True
        if call.on_cancel is None:
            self._fail(call, RequestCancelled())
            call.scope.cancel()
            return
        try:
            call.on_cancel()
        except Exception as exc:
            self._fail(call, exc)
            call.scope.cancel()

    def _settle(self, call: Call) -> bool:
        """Take a call out of the table; False if it is out already, and so has its answer."""
        if self._calls.get(call.id) is not call:
            return False
        del self._calls[call.id]
        return True

    def _succeed(self, call: Call, result: object) -> None:
        if not self._settle(call):
            return
        try:
            line = encode({"jsonrpc": "2.0", "id": call.id, "result": result})
        except (TypeError, RecursionError) as exc:
            logger.exception("the result of %s can't be encoded", call.method[:200])
            self._answer_error(call.id, to_error_object(exc))
        else:
            self._outbound.send_line(line)
            if call.on_answered is not None:
                call.on_answered()

    def _fail(self, call: Call, exc: Exception) -> None:
        exc = find_bridge_error(exc) or exc
        if not isinstance(exc, BridgeError):
            logger.error("%s failed", call.method[:200], exc_info=exc)
        if self._settle(call):
            self._answer_error(call.id, to_error_object(exc))

    def _answer_error(self, known: RequestId, error: ErrorObject) -> None:
        self._outbound.send({"jsonrpc": "2.0", "id": known, "error": error.to_wire()})

    def _settle_asked(self, response: Response) -> None:
        asked = self._asked.pop(response.id, None) if isinstance(response.id, int) else None
        if asked is None:
            logger.debug("an answer to nothing that waits for one")
            return
        asked.answer = response
        asked.done.set()
