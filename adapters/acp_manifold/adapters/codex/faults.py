"""Errors of the app-server as faults of ours.

Nearly every error of codex-cli 0.163.0 has the code -32600, so they are told apart by their text.
"""

from __future__ import annotations

from acp_manifold.bridge.errors import (
    BackendFault,
    BackendGone,
    BridgeError,
    InvalidParams,
    InvalidRequest,
    RemoteError,
    SessionNotFound,
)
from acp_manifold.translators.narrow import as_object, text

PROVIDER = "acp-manifold"
"""The name of the model provider that a client's endpoint is, in threads that were begun with one."""

NO_ROLLOUT = "no rollout found"
_CROWDED = "failed to initialize sqlite state runtime"
_UNKNOWN = (NO_ROLLOUT, "thread not loaded", "thread not found", "invalid thread id", "invalid session id")
_ARCHIVED = "is archived"
_HELD = "already has an active writer"
_EPHEMERAL = "ephemeral"
_TOO_LARGE = "input_too_large"
_ACCOUNT_CHANGED = "network permission was revoked"
_NEEDED = "forked history still references it"
_NO_PROVIDER = (f"Model provider `{PROVIDER}` not found", f"“{PROVIDER}”, which is no longer configured")
_KEEPS_PROVIDER = "Cannot change this thread's model provider"
_TURN_OVER = ("no active turn", "expected active turn id")


def is_crowded(gone: BackendGone) -> bool:
    """Whether an app-server ended because another was making the same home anew at that moment (codex-cli 0.163.0)."""
    return _CROWDED in gone.message


def met_a_login(error: RemoteError) -> bool:
    """Whether a thread was not opened because the login changed at that moment; it can be asked for again.

    What codex-cli 0.163.0 was doing with the old account then fails while it loads its configuration.
    """
    return _ACCOUNT_CHANGED in error.message


def is_unknown(error: RemoteError) -> bool:
    """Whether the error says that there is no such thread (or that it is archived: the texts are the same)."""
    return error.message.startswith(_UNKNOWN)


def is_needed_by_copies(error: RemoteError) -> bool:
    """Whether the error says that a thread can't be deleted, since the history of a copy of it begins with its own."""
    return _NEEDED in error.message


def is_turn_over(error: RemoteError) -> bool:
    """Whether the error says that the turn that was spoken of does not run any more."""
    return error.message.startswith(_TURN_OVER)


def is_unsupported(error: RemoteError) -> bool:
    """Whether the server knows no such method."""
    return "unknown variant" in error.message or error.remote_code == -32601


def at_lost_endpoint(error: RemoteError) -> bool:
    """Whether a thread can't be opened because it was begun at a client's endpoint, and no client has set one now.

    codex-cli 0.163.0 does not find the provider then; for 0.171.0 it is no longer configured.
    """
    return any(words in error.message for words in _NO_PROVIDER)


def archived(thread_id: str) -> InvalidRequest:
    """The refusal to touch an archived thread."""
    return InvalidRequest(
        f"Session {thread_id} is archived: take it out of the archive first (session/unarchive, or "
        f"`codex unarchive {thread_id}`)",
        {"reason": "archived", "sessionId": thread_id},
    )


def held(thread_id: str) -> InvalidRequest:
    """The refusal to touch what another process has."""
    return InvalidRequest(
        f"Session {thread_id} is open in another Codex process; close it there first",
        {"reason": "thread_active_writer", "sessionId": thread_id},
    )


def fault_of(error: RemoteError, thread_id: str, doing: str) -> BridgeError:
    """What to raise for an error about one thread.

    Args:
        error: What the server answered.
        thread_id: The thread the request was about.
        doing: What was tried, for the message: `resume the session`.
    """
    message = error.message
    if is_unknown(error):
        return SessionNotFound(thread_id)
    if _ARCHIVED in message:
        return archived(thread_id)
    if _HELD in message:
        return held(thread_id)
    if message.startswith(_EPHEMERAL):
        return InvalidRequest(f"Session {thread_id} is ephemeral", {"reason": "ephemeral", "sessionId": thread_id})
    if _KEEPS_PROVIDER in message:
        return InvalidRequest(
            f"Codex keeps session {thread_id} at the model provider it was begun with, and can't take it to "
            "the endpoint that is set now: take that back (providers/disable), or go on with a copy (session/fork)",
            {"reason": "model_provider", "sessionId": thread_id},
        )
    if text(as_object(error.data), "input_error_code") == _TOO_LARGE:
        return InvalidParams(message)
    return BackendFault(f"Codex could not {doing}: {message}")
