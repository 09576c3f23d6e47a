"""Lines without what differs each time: ids, hashes, times, places, paths and counts become the names of their kinds.

So two recordings of one scenario can be laid side by side.
"""

from __future__ import annotations

import re

from acp_manifold.translators.narrow import JsonObject, is_list, is_object

_UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_PREFIX = "toolu|msg|call|req|resp|rs|fc|item|task|agent|bash|chatcmpl"
_MADE = re.compile(
    rf"(?P<id>\b{_UUID}\b|\b(?:{_PREFIX})[_-]\w*\d\w*)"
    r"|(?P<hash>\b[0-9a-f]{32,128}\b)"
    r"|(?P<time>\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|(?P<path>(?<![\w.<])/(?:private/tmp|tmp|var/folders|home|root|Users|project|<home>)(?:/[\w.@+<>-]+)*)"
    r"|(?P<place>\b(?:127\.0\.0\.1|localhost|\[::1\]):\d+)",
    re.IGNORECASE,
)
_MOMENT = 10**12
"""From 2001 on a moment has more milliseconds than that; counts stay below it."""

_MADE_IDS = (
    *("session", "thread", "turn", "item", "call", "message", "request", "response", "tool_?use", "task", "agent"),
    *("prompt", "process", "terminal", "command", "leaf", "parent", "subscription", "elicitation", "event"),
)
_KEYS = (
    ("id", re.compile(rf"(?:^|_|[a-z])(?:{'|'.join(_MADE_IDS)})_?ids?$|uuids?$", re.IGNORECASE)),
    ("time", re.compile(r"^t$|[tT]ime(?:stamp)?$|At$|Ms$|_ms$|_at$|[dD]uration|elapsed|ttft|resets")),
    ("count", re.compile(r"[tT]okens|_usd$|[cC]ost|^(?:pid|totalBytes)$")),
)
"""Members whose values differ each time. Ids of options, modes, models, methods are names, and stay."""


def normal(line: JsonObject) -> JsonObject:
    """A line with names in place of what differs each time."""
    return {_text(key): _value(key, value) for key, value in line.items()}


def _value(key: str, value: object) -> object:
    if is_object(value):
        return normal(value)
    if is_list(value):
        return [_value(key, item) for item in value]
    if isinstance(value, bool) or value is None:
        return value
    named = next((f"<{kind}>" for kind, pattern in _KEYS if pattern.search(key)), None)
    if isinstance(value, str):
        return named if named == "<id>" and value else _text(value)
    if named is None and key == "id":
        return "<id>"
    return named or ("<time>" if isinstance(value, int) and value > _MOMENT else value)


def _text(text: str) -> str:
    return _MADE.sub(lambda found: f"<{found.lastgroup}>", text)
