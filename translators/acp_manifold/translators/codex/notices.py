"""What Codex tells beside the conversation: the part of it that a person should see, as notices.

One function per notification. Fields: `ServerNotification` of codex-cli 0.163.0.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_int, as_objects, as_str, obj, text
from acp_manifold.translators.updates import Notice

from .failures import without_keys

Severity: TypeAlias = Literal["info", "warning", "error"]

CLOSE = 90
"""Percent of a rate limit from which on it is worth a word."""

_HOOK_TROUBLE = frozenset({"failed", "blocked", "stopped"})
_HOOK_WORDS = frozenset({"warning", "stop", "feedback", "error"})


def of(method: str, params: JsonObject) -> Notice | None:
    """The notice in a notification; None if it holds none."""
    read = _READERS.get(method)
    return read(params) if read is not None else None


def _warning(params: JsonObject) -> Notice | None:
    return _of_words(text(params, "message"), None)


def _set_up(params: JsonObject) -> Notice | None:
    return _of_words(text(params, "summary"), as_str(params.get("details")))


def _rerouted(params: JsonObject) -> Notice | None:
    return Notice("warning", f"{text(params, 'fromModel')} gave way to {text(params, 'toModel')}", None)


def _retry(params: JsonObject) -> Notice | None:
    if params.get("willRetry") is not True:
        return None
    error = obj(params, "error")
    return Notice(
        "warning", without_keys(text(error, "message")) or "Trying again", as_str(error.get("additionalDetails"))
    )


def _hook(params: JsonObject) -> Notice | None:
    run = obj(params, "run")
    entries = as_objects(run.get("entries"))
    said = [text(entry, "text") for entry in entries if text(entry, "kind") in _HOOK_WORDS]
    if not said and text(run, "status") not in _HOOK_TROUBLE:
        return None
    words = "\n".join(said) or text(run, "statusMessage")
    return Notice("warning", f"A hook on {text(run, 'eventName')} has something to say", words or None)


def _limits(params: JsonObject) -> Notice | None:
    limits = obj(params, "rateLimits")
    windows = [obj(limits, name) for name in ("primary", "secondary")]
    window = max(windows, key=lambda window: as_int(window.get("usedPercent")) or 0)
    used, reset = as_int(window.get("usedPercent")) or 0, as_int(window.get("resetsAt"))
    reached = as_str(limits.get("rateLimitReachedType")) is not None
    if used < CLOSE and not reached:
        return None
    span = _span(as_int(window.get("windowDurationMins")))
    state = "is reached" if reached or used >= 100 else "is close"
    return Notice("warning", f"The {span} {state}", f"It resets at {_time(reset)}" if reset is not None else None)


def _span(minutes: int | None) -> str:
    if minutes is None:
        return "usage limit"
    hours = minutes // 60
    return f"limit of {hours // 24} days" if hours >= 48 else f"limit of {hours} hours" if hours else "usage limit"


def _time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def _of_words(words: str, more: str | None) -> Notice | None:
    title, _, rest = without_keys(words).strip().partition("\n")
    return Notice("warning", title, "\n".join(filter(None, (rest.strip(), more))) or None) if title else None


_READERS: dict[str, Callable[[JsonObject], Notice | None]] = {
    "warning": _warning,
    "guardianWarning": _warning,
    "configWarning": _set_up,
    "deprecationNotice": _set_up,
    "model/rerouted": _rerouted,
    "error": _retry,
    "hook/completed": _hook,
    "account/rateLimits/updated": _limits,
}
