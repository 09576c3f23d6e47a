"""Why a turn failed: `TurnError` of Codex as one of a few kinds and a text for people."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_int, as_object, as_str, obj, text
from acp_manifold.translators.values import NamedTuple

if TYPE_CHECKING:
    from acp_manifold.translators.updates import StopReason

FailureKind: TypeAlias = Literal["login", "too_long", "other"]

_REFUSED = frozenset({"cyberPolicy", "misalignmentPolicyViolation"})
_STOPS: tuple[tuple[str, StopReason], ...] = (
    ("reason: max_output_tokens", "max_tokens"),
    ("reason: content_filter", "refusal"),
)
"""How Codex tells why the model stopped short, and what that is to a client (codex-cli 0.163.0)."""

_LOGIN = frozenset({"unauthorized"})
_TOO_LONG = frozenset({"contextWindowExceeded"})
_UNAUTHORIZED = 401
_KEY = re.compile(r"\b(sk-|Bearer\s+)[\w.~+/=-]{6,}")


class Failure(NamedTuple):
    """How a turn failed."""

    kind: FailureKind
    text: str
    """Codex' own words."""


def failure_of(error: JsonObject) -> Failure:
    """The failure in a `TurnError`; an empty object gives a text that says that Codex gave none."""
    told = _message(text(error, "message"))
    more = as_str(error.get("additionalDetails"))
    if more and more not in told:
        told = f"{told} ({more})"
    return Failure(_kind(error.get("codexErrorInfo")), without_keys(told))


def stop_of(error: JsonObject) -> StopReason | None:
    """The stop reason that a `TurnError` tells: a refusal or a limit is how a turn ends, and no fault."""
    info = error.get("codexErrorInfo")
    if isinstance(info, str) and info in _REFUSED:
        return "refusal"
    message = text(error, "message")
    return next((reason for words, reason in _STOPS if message.endswith(words)), None)


def without_keys(told: str) -> str:
    """A text without the API keys and tokens in it."""
    return _KEY.sub(r"\1...", told)


def _message(message: str) -> str:
    """The message; one that is a JSON body of the model's API is reduced to what it says."""
    if message.lstrip().startswith("{"):
        inner = _api_message(message)
        if inner:
            return inner
    return message or "Codex gave no reason"


def _api_message(body: str) -> str | None:
    try:
        parsed: object = json.loads(body)
    except ValueError:
        return None
    root = as_object(parsed)
    return as_str(obj(root, "error").get("message")) or as_str(root.get("message")) or as_str(root.get("detail"))


def _kind(info: object) -> FailureKind:
    if isinstance(info, str):
        return "login" if info in _LOGIN else "too_long" if info in _TOO_LONG else "other"
    statuses = (as_int(as_object(variant).get("httpStatusCode")) for variant in as_object(info).values())
    return "login" if _UNAUTHORIZED in statuses else "other"
