"""How a turn ended: the `result` frame as a stop reason or as a failure with its reason.

Claude Code 2.1.332 reports most failures as `subtype: "success"` with `is_error: true` and the
text for the person in `result` (case A02); an interrupt as `error_during_execution` with a
`terminal_reason` that begins with `aborted`.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_int, as_list, obj, text
from acp_manifold.translators.updates import StopReason, TurnEnd
from acp_manifold.translators.values import NamedTuple

from .frames import Result

FailureKind: TypeAlias = Literal["login", "not_found", "failed"]


class Failure(NamedTuple):
    """The turn failed."""

    kind: FailureKind
    """`login`: a login would help; `not_found`: the CLI knows no such conversation."""
    text: str
    """In the CLI's words."""


Outcome: TypeAlias = TurnEnd | Failure

_LOGIN = re.compile(
    r"please run /login|invalid api key|not logged in|failed to authenticate|oauth token (?:has expired|revoked)"
    r"|oauth token has been revoked|authentication_(?:failed|error)",
    re.IGNORECASE,
)
_NOT_FOUND = re.compile(r"no conversation found", re.IGNORECASE)
_SHORT = 400
"""Characters up to which a plain result may be one of the CLI's own messages."""

_STOP_REASONS: dict[str, StopReason] = {"max_tokens": "max_tokens", "refusal": "refusal"}
_STOPPING_ERRORS: dict[str, StopReason] = {"max_output_tokens": "max_tokens"}
"""Errors of a message that are stop reasons to a client: the words of the CLI are told as a message then."""
_SUBTYPES: dict[str, StopReason] = {"error_max_turns": "max_turn_requests"}
_WORDS = {
    "error_max_budget_usd": "The spending limit of this session is reached",
    "error_max_structured_output_retries": "The model gave no output of the wanted form",
}


def ending(frame: Result, *, interrupted: bool, spoke: bool, error: str | None = None) -> Outcome:
    """The outcome that a result frame tells.

    Args:
        frame: The result of the prompt.
        interrupted: Whether an interrupt was sent for it.
        spoke: Whether any text of the model was told in the turn.
        error: The kind of error that the turn's last message told, if it told one.
    """
    subtype = text(frame.raw, "subtype")
    if interrupted or text(frame.raw, "terminal_reason").startswith("aborted"):
        return _end("cancelled", frame.raw)
    if subtype in _SUBTYPES:
        return _end(_SUBTYPES[subtype], frame.raw)
    stopped = _STOPPING_ERRORS.get(error or "")
    if stopped is None and frame.is_error and text(frame.raw, "stop_reason") == "refusal":
        stopped = "refusal"
    if stopped is not None:
        return _end(stopped, frame.raw)
    words = _words(frame, subtype)
    if frame.is_error or subtype not in ("success", ""):
        return Failure(failure_kind(words, as_int(frame.raw.get("api_error_status"))), words)
    if not spoke and len(words) < _SHORT and _LOGIN.search(words):
        return Failure("login", words)
    return _end(_STOP_REASONS.get(text(frame.raw, "stop_reason"), "end_turn"), frame.raw)


def failure_kind(words: str, status: int | None = None) -> FailureKind:
    """What kind of failure the CLI's words tell, on stderr or in a result; `status` is the API's HTTP status."""
    if status == 401 or _LOGIN.search(words):
        return "login"
    return "not_found" if _NOT_FOUND.search(words) else "failed"


def _words(frame: Result, subtype: str) -> str:
    if frame.text:
        return frame.text
    errors = [error for error in as_list(frame.raw.get("errors")) if isinstance(error, str)]
    return "; ".join(errors) or _WORDS.get(subtype) or f"The turn ended with {subtype or 'an error'}"


def _end(reason: StopReason, raw: JsonObject) -> TurnEnd:
    usage = obj(raw, "usage")
    if not usage:
        return TurnEnd(reason)
    written, read = (as_int(usage.get(f"cache_{kind}_input_tokens")) for kind in ("creation", "read"))
    return TurnEnd(
        reason,
        (as_int(usage.get("input_tokens")) or 0) + (written or 0) + (read or 0),
        as_int(usage.get("output_tokens")),
        read,
        written,
        as_int(obj(usage, "output_tokens_details").get("thinking_tokens")),
    )
