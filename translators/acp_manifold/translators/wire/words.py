"""A few words of a line, for a row: what it says if it says something, else what it is about."""

from __future__ import annotations

import re
from collections import deque

from acp_manifold.translators.narrow import JsonObject, is_list, is_object

LENGTH = 200
"""Code points of the words, at most."""

_LOOKED_AT = 400
"""Members of a line that are looked at, at most: one may hold a whole history."""

_TELLING = (
    "text",
    "delta",
    "thinking",
    "partial_json",
    "title",
    "newName",
    "threadName",
    "name",
    "tool_name",
    "message",
    "error",
    "command",
    "optionId",
    "behavior",
    "decision",
    "action",
    "outcome",
    "stopReason",
    "stop_reason",
    "status",
    "state",
    "prompt",
    "description",
    "summary",
    "content",
    "result",
    "lastPrompt",
    "file_path",
    "path",
    "note",
    "how",
    "reason",
    "operation",
    "configId",
    "modeId",
    "value",
)
_PLAIN = ("model", "cwd")
"""Told where nothing else is."""
_SPACE = re.compile(r"\s+")
_RANK = {key: rank for rank, key in enumerate(_TELLING)}
_PLAIN_RANK = {key: rank for rank, key in enumerate(_PLAIN)}
SAYS_ALL = {"text", "delta", "thinking", "partial_json", "optionId", "behavior", "decision", "action"}
"""Beside what is said, or answered, nothing else is worth telling."""


def words(line: JsonObject) -> str:
    """A few words on one line, perhaps none: the two most telling strings that stand highest in it."""
    found = _highest(line, _RANK)
    if found and found[0][1] in SAYS_ALL:
        return shortened(" ".join(value for _, key, value in found if key == found[0][1]))
    return shortened(" · ".join(dict.fromkeys(value for _, _, value in (found or _highest(line, _PLAIN_RANK))[:2])))


def shortened(text: str, length: int = LENGTH) -> str:
    """A text on one line, cut with an ellipsis. A space at its ends stays: it may be a piece of a longer one."""
    line = _SPACE.sub(" ", text[: 4 * length])
    return line if len(line) <= length else line[: length - 1] + "…"


def _highest(line: JsonObject, rank: dict[str, int]) -> list[tuple[int, str, str]]:
    """Rank, key and value of the strings on the highest level that has any under these keys, in the order of rank."""
    waiting: deque[object] = deque([line])
    looked_at = 0
    while waiting:
        found: list[tuple[int, str, str]] = []
        for _ in range(len(waiting)):
            looked_at += 1
            if looked_at > _LOOKED_AT:
                return sorted(found)
            value = waiting.popleft()
            if is_object(value):
                found += [(rank[k], k, v) for k, v in value.items() if k in rank and isinstance(v, str) and v.strip()]
                waiting += [v for k, v in value.items() if k != "_meta" and isinstance(v, dict | list)]
            elif is_list(value):
                waiting += value[:_LOOKED_AT]
        if found:
            return sorted(found)
    return []
