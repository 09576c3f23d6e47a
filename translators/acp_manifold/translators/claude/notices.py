"""What Claude Code tells its host beside the conversation: the part of it that a person should see, as notices.

One function per kind of line. Shapes of Claude Code 2.1.332; kinds that never came in a run of it are
written after the types of its SDK (0.3.318).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_int, flag, obj, text
from acp_manifold.translators.updates import Notice

Severity: TypeAlias = Literal["info", "warning", "error"]

_LEVELS: dict[str, Severity] = {"warning": "warning"}
_PRIORITIES = frozenset({"high", "immediate"})
_WINDOWS = {
    "five_hour": "five-hour limit",
    "seven_day": "weekly limit",
    "seven_day_opus": "weekly limit for Opus",
    "seven_day_sonnet": "weekly limit for Sonnet",
    "overage": "limit for extra usage",
}


def of_line(kind: str, raw: JsonObject) -> Notice | None:
    """The notice in a line of this kind (its `subtype`, or its `type` where it has none); None if it holds none."""
    read = _READERS.get(kind)
    return read(raw) if read is not None else None


def _informational(raw: JsonObject) -> Notice | None:
    # What ends the turn is said by its result.
    if flag(raw, "prevent_continuation"):
        return None
    return _of_words(text(raw, "content"), _LEVELS.get(text(raw, "level"), "info"))


def _notification(raw: JsonObject) -> Notice | None:
    return _of_words(text(raw, "text"), "warning") if text(raw, "priority") in _PRIORITIES else None


def _retry(raw: JsonObject) -> Notice | None:
    seconds = (as_int(raw.get("retry_delay_ms")) or 0) / 1000
    status = as_int(raw.get("error_status"))
    why = f"answered with {status}" if status is not None else "gave no answer"
    tries = f"try {as_int(raw.get('attempt')) or 1} of {as_int(raw.get('max_retries')) or 1}"
    return Notice("warning", f"The model's API {why}", f"Trying again in {seconds:.1f} s ({tries})")


def _rate_limit(raw: JsonObject) -> Notice | None:
    info = obj(raw, "rate_limit_info")
    window = _WINDOWS.get(text(info, "rateLimitType"), "usage limit")
    status, used = text(info, "status"), info.get("utilization")
    reset = as_int(info.get("resetsAt"))
    when = f"It resets at {_time(reset)}" if reset is not None else None
    if status == "rejected":
        return Notice("warning", f"The {window} is reached", when)
    if status != "allowed_warning":
        return None
    share = f" ({used:.0%} used)" if isinstance(used, int | float) and 0 <= used <= 1 else ""
    return Notice("warning", f"The {window} is close{share}", when)


def _time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def _fallback(raw: JsonObject) -> Notice | None:
    to = text(raw, "fallback_model")
    return _of_words(text(raw, "content") or (f"The model refused; {to} goes on" if to else ""), "warning")


def _lost(raw: JsonObject) -> Notice | None:
    return Notice("error", "Claude Code could not store a part of this session", text(raw, "error") or None)


def _plugin(raw: JsonObject) -> Notice | None:
    if text(raw, "status") != "failed":
        return None
    return Notice("warning", f"Plugin {text(raw, 'name')} could not be installed", text(raw, "error") or None)


def _hook(raw: JsonObject) -> Notice | None:
    if text(raw, "outcome") != "error":
        return None
    said = text(raw, "stderr").strip() or text(raw, "output").strip()
    return Notice("warning", f"Hook {text(raw, 'hook_name') or text(raw, 'hook_event')} failed", said or None)


def _of_words(words: str, severity: Severity) -> Notice | None:
    """A notice whose title is the first line of what was said."""
    title, _, more = words.strip().partition("\n")
    return Notice(severity, title, more.strip() or None) if title else None


_READERS: dict[str, Callable[[JsonObject], Notice | None]] = {
    "informational": _informational,
    "notification": _notification,
    "api_retry": _retry,
    "rate_limit_event": _rate_limit,
    "model_refusal_fallback": _fallback,
    "mirror_error": _lost,
    "session_writes_lost": _lost,
    "plugin_install": _plugin,
    "hook_response": _hook,
}

KINDS = frozenset(_READERS)
"""The kinds of lines that may hold a notice."""
