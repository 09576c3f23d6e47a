"""Canonical diffs as ACP v2 has them: what happens to which file, and the change as a Git patch.

One hunk for each diff, found by what both sides begin and end with: linear in the size of the text. The
CLIs tell a change passage by passage, so that there is little between the first and the last changed line;
the passages of one file are the hunks of one patch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import Diff

CONTEXT: Final = 3
"""Lines shown around a change."""

_ROWS = re.compile(r"[^\n]*\n|[^\n]+")
"""Rows end at a line feed alone: source text may hold any other separator."""

_NO_END = "\\ No newline at end of file\n"


def diff_contents(diffs: Sequence[Diff]) -> list[JsonObject]:
    """The content items that show changes: one for all passages of a file that are known to follow each other."""
    items: list[list[Diff]] = []
    for diff in diffs:
        if items and _follows(items[-1][-1], diff):
            items[-1].append(diff)
        else:
            items.append([diff])
    return [_content(passages) for passages in items]


def _follows(before: Diff, diff: Diff) -> bool:
    return _file(before) == _file(diff) and diff.line > before.line + (before.old or "").count("\n")


def _file(diff: Diff) -> JsonObject:
    if diff.moved_from is not None:
        return {"operation": "move", "oldPath": diff.moved_from, "path": diff.path}
    return {"operation": "add" if diff.old is None else "delete" if diff.deleted else "modify", "path": diff.path}


def _content(passages: list[Diff]) -> JsonObject:
    body: JsonObject = {"type": "diff", "changes": [_file(passages[0])]}
    patch = git_patch(passages)
    if patch:
        body["patch"] = {"format": "git_patch", "text": patch}
    return body


def git_patch(passages: Sequence[Diff]) -> str:
    """The changes of one file as a Git patch, its hunks counted from where each is known to be; empty for none.

    Args:
        passages: At least one; in the order of the file, where more than one have a place in it.
    """
    diff = passages[0]
    if all(passage.old == passage.new and not passage.deleted for passage in passages):
        return ""
    name, old_name = diff.path.lstrip("/"), (diff.moved_from or diff.path).lstrip("/")
    before, after = _quoted(f"a/{old_name}"), _quoted(f"b/{name}")
    head = f"diff --git {before} {after}\n"
    if diff.moved_from is not None:
        head += f"rename from {_quoted(old_name)}\nrename to {_quoted(name)}\n"
    if diff.old is None:
        head += "new file mode 100644\n"
        before = "/dev/null"
    elif diff.deleted:
        head += "deleted file mode 100644\n"
        after = "/dev/null"
    hunks, longer = "", 0
    for passage in passages:
        old, new = _ROWS.findall(passage.old or ""), _ROWS.findall(passage.new)
        hunks += _hunk(old, new, passage.line - 1, longer)
        longer += len(new) - len(old)
    return f"{head}--- {before}\n+++ {after}\n{hunks}" if hunks else head


_QUOTED = re.compile(r'[\x00-\x1f"\\\x7f]')


def _quoted(name: str) -> str:
    """A path as Git writes it: in quotes if it has characters that need them."""
    if not _QUOTED.search(name):
        return name
    return '"' + _QUOTED.sub(lambda found: f"\\{ord(found.group()):03o}", name) + '"'


def _hunk(old: list[str], new: list[str], above: int, longer: int) -> str:
    """The hunk of one passage, with `above` lines of the old file before it; the new one has `longer` more there."""
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
    was = _span(above + first, above + old_end + kept)
    now = _span(above + longer + first, above + longer + new_end + kept)
    return f"@@ -{was} +{now} @@\n{''.join(rows)}"


def _span(first: int, end: int) -> str:
    return f"{first + 1 if end > first else first},{end - first}"


def _marked(sign: str, rows: list[str]) -> list[str]:
    return [f"{sign}{row}" if row.endswith("\n") else f"{sign}{row}\n{_NO_END}" for row in rows]
