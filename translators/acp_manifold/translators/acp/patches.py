"""A canonical diff as ACP v2 has it: what happens to which file, and the change as a Git patch.

One hunk for each diff, found by what both sides begin and end with: linear in the size of the text. The
CLIs tell a change passage by passage, so that there is little between the first and the last changed line.
"""

from __future__ import annotations

import re
from typing import Final

from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import Diff

CONTEXT: Final = 3
"""Lines shown around a change."""

_ROWS = re.compile(r"[^\n]*\n|[^\n]+")
"""Rows end at a line feed alone: source text may hold any other separator."""

_NO_END = "\\ No newline at end of file\n"


def diff_content(diff: Diff) -> JsonObject:
    """The content item that shows a change."""
    operation = "add" if diff.old is None else "delete" if diff.deleted else "modify"
    body: JsonObject = {"type": "diff", "changes": [{"operation": operation, "path": diff.path}]}
    patch = git_patch(diff)
    if patch:
        body["patch"] = {"format": "git_patch", "text": patch}
    return body


def git_patch(diff: Diff) -> str:
    """The change as a Git patch, its hunk counted from the first line of what is known of the file; empty for none."""
    if diff.old == diff.new and not diff.deleted:
        return ""
    name = diff.path.lstrip("/")
    quoted = [f'"{side}/{_quoted(name)}"' if _QUOTED.search(name) else f"{side}/{name}" for side in ("a", "b")]
    before, after = quoted
    head = f"diff --git {before} {after}\n"
    if diff.old is None:
        head += "new file mode 100644\n"
        before = "/dev/null"
    elif diff.deleted:
        head += "deleted file mode 100644\n"
        after = "/dev/null"
    hunk = _hunk(_ROWS.findall(diff.old or ""), _ROWS.findall(diff.new))
    return f"{head}--- {before}\n+++ {after}\n{hunk}" if hunk else head


_QUOTED = re.compile(r'[\x00-\x1f"\\\x7f]')


def _quoted(name: str) -> str:
    return _QUOTED.sub(lambda found: f"\\{ord(found.group()):03o}", name)


def _hunk(old: list[str], new: list[str]) -> str:
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if head == len(old) == len(new):
        return ""
    first = max(0, head - CONTEXT)
    kept = min(tail, CONTEXT)
    old_end, new_end = len(old) - tail, len(new) - tail
    rows = [
        *_marked(" ", old[first:head]),
        *_marked("-", old[head:old_end]),
        *_marked("+", new[head:new_end]),
        *_marked(" ", old[old_end : old_end + kept]),
    ]
    was, now = _span(first, old_end + kept), _span(first, new_end + kept)
    return f"@@ -{was} +{now} @@\n{''.join(rows)}"


def _span(first: int, end: int) -> str:
    return f"{first + 1 if end > first else first},{end - first}"


def _marked(sign: str, rows: list[str]) -> list[str]:
    return [f"{sign}{row}" if row.endswith("\n") else f"{sign}{row}\n{_NO_END}" for row in rows]
