"""All exceptions of the bridge, and the one function that turns an exception into a JSON-RPC error.

Three families. A `PeerFault` is the client's: it asked for something that can't be had, and
the text tells a person what to change. A `BackendFault` is a CLI's. Whatever else is raised
is ours, and the client sees only that something broke, where to look, and nothing of its insides.
"""

from __future__ import annotations

from typing import cast

from acp_manifold.translators.acp.requests import BadParams
from acp_manifold.translators.values import NamedTuple

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_CANCELLED = -32800
AUTH_REQUIRED = -32000
NOT_FOUND = -32002


class ErrorObject(NamedTuple):
    """The `error` member of a JSON-RPC response."""

    code: int
    message: str
    data: object = None

    def to_wire(self) -> dict[str, object]:
        """The error as JSON; `data` is left out when there is none."""
        wire: dict[str, object] = {"code": self.code, "message": self.message}
        if self.data is not None:
            wire["data"] = self.data
        return wire


class BridgeError(Exception):
    """Base of everything the bridge raises on purpose; `code` and `data` are what the client gets."""

    code = INTERNAL_ERROR

    def __init__(self, message: str, data: object = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data


class PeerFault(BridgeError):
    """The client asked for something that can't be had."""

    code = INVALID_REQUEST


class InvalidRequest(PeerFault):
    """Not a request that can be served now: wrong shape, wrong moment, or refused with its reason."""


class RestartNeeded(InvalidRequest):
    """The CLI takes this when it starts; it is let go and started anew, after which the same is asked for again."""


class MethodNotFound(PeerFault):
    """Nobody here serves this method."""

    code = METHOD_NOT_FOUND


class InvalidParams(PeerFault):
    """A parameter is missing or wrong; the message names it."""

    code = INVALID_PARAMS


class SessionNotFound(PeerFault):
    """No backend knows this session id."""

    code = NOT_FOUND

    def __init__(self, session_id: str, message: str | None = None) -> None:
        super().__init__(message or f"Session not found: {session_id[:200]}", {"sessionId": session_id[:200]})


class SessionEnded(SessionNotFound):
    """The session was open when the work on it began, and was closed before its end."""


class TaskNotFound(PeerFault):
    """The session has no such background task, or no longer; what another one has is nobody's business here."""

    code = NOT_FOUND

    def __init__(self, session_id: str, task_id: str) -> None:
        super().__init__(
            f"No background task {task_id[:100]!r} in session {session_id[:200]}",
            {"sessionId": session_id[:200], "taskId": task_id[:100]},
        )


class RequestCancelled(PeerFault):
    """The client took the request back with `$/cancel_request`."""

    code = REQUEST_CANCELLED

    def __init__(self) -> None:
        super().__init__("Request cancelled")


class BackendFault(BridgeError):
    """A CLI could not do what was asked; the message holds its own words, secrets left out."""


class LoginNeeded(BackendFault):
    """The CLI has no login, or its login has expired; the message says how to log in."""

    code = AUTH_REQUIRED

    @classmethod
    def at_start(cls, label: str, how: str) -> LoginNeeded:
        """There is certainly no login, so that no session is begun.

        Args:
            label: The CLI.
            how: What the person does about it.
        """
        return cls(f"{label} has no login. {how}")


class BackendGone(BackendFault):
    """The CLI's process ended, or never came up; the message has the exit status and the last lines of its stderr."""

    untaken = False
    """Whether a prompt was sent to it, and it gave no sign of having taken it: it may be sent again, to another."""


class PeerGone(BridgeError):
    """The other side of a JSON-RPC link is gone, so no answer will come."""


class RemoteError(BridgeError):
    """The other side of a JSON-RPC link answered with an error."""

    def __init__(self, error: ErrorObject) -> None:
        super().__init__(error.message, error.data)
        self.remote_code = error.code
        """The code in the answer, as the other side sent it."""


def to_error_object(exc: BaseException) -> ErrorObject:
    """What the client is told about `exc`.

    A `BridgeError` speaks for itself; anything else is an internal fault of which only the
    type is named, since its text may hold what is not the client's to see.
    """
    known = find_bridge_error(exc)
    if known is not None:
        return ErrorObject(known.code, known.message, known.data)
    return ErrorObject(INTERNAL_ERROR, f"Internal error ({type(exc).__name__}); details are on the agent's stderr")


def find_bridge_error(exc: BaseException) -> BridgeError | None:
    """The first `BridgeError` in `exc`, which may be a group of task groups, or None.

    A translator's `BadParams` counts as the `InvalidParams` it means.
    """
    if isinstance(exc, BridgeError):
        return exc
    if isinstance(exc, BadParams):
        return InvalidParams(str(exc), {"field": exc.field})
    if isinstance(exc, BaseExceptionGroup):
        for inner in cast("BaseExceptionGroup[BaseException]", exc).exceptions:
            if (found := find_bridge_error(inner)) is not None:
                return found
    return None
