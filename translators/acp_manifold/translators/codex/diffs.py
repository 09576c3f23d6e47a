"""File changes of Codex to canonical diffs: its patch text to the old and the new side.

Codex sends the whole text of a file that is added or deleted, and bare hunks (no file header)
for one that is updated (codex-cli 0.163.0). The rest of an updated file is not on the wire, so
each hunk becomes a diff of its own: what stood there, and what stands there now.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from acp_manifold.translators.narrow import JsonObject, as_objects, as_str, obj, text
from acp_manifold.translators.updates import Diff, Location, ToolKind
from acp_manifold.translators.values import NamedTuple

_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@.*$", re.MULTILINE)
_ROWS = re.compile(r"[^\n]*\n|[^\n]+")
"""Rows end at a line feed alone: source text may hold any other separator."""
_MOVED = "\n\nMoved to: "
"""How Codex says in a patch text where the file went."""


class Hunk(NamedTuple):
    """One changed passage of a file."""

    was: int
    """Where it began in the old file, counted from 1."""
    line: int
    """Where it begins in the new file, counted from 1."""
    old: str
    new: str


class Change(NamedTuple):
    """What happens to one file."""

    path: str
    """Absolute; the old place of a file that moves."""
    kind: str
    """`add`, `delete` or `update`."""
    moved_to: str | None
    diff: str

    @property
    def place(self) -> str:
        """Where the file is afterwards."""
        return self.moved_to or self.path


def changes_of(item: JsonObject) -> list[Change]:
    """The changes of a `fileChange` item."""
    return [_change(raw) for raw in as_objects(item.get("changes"))]


def _change(raw: JsonObject) -> Change:
    kind = obj(raw, "kind")
    return Change(text(raw, "path"), text(kind, "type", "update"), as_str(kind.get("move_path")), text(raw, "diff"))


def hunks_of(patch: str) -> Iterator[Hunk]:
    """The hunks of a patch without file header; text in front of the first one is left out."""
    marks = list(_HUNK.finditer(patch))
    for index, mark in enumerate(marks):
        end = marks[index + 1].start() if index + 1 < len(marks) else len(patch)
        yield _hunk(int(mark.group(1)), int(mark.group(2)), patch[mark.end() + 1 : end])


def _hunk(was: int, line: int, body: str) -> Hunk:
    old: list[str] = []
    new: list[str] = []
    for row in _ROWS.findall(body):
        sign, content = row[:1], row[1:]
        if sign == "\\":  # "\ No newline at end of file" speaks of the row before
            _chop(old, new)
        else:
            if sign != "+":
                old.append(content)
            if sign != "-":
                new.append(content)
    return Hunk(was if old else was + 1, line, "".join(old), "".join(new))


def _chop(*sides: list[str]) -> None:
    for side in sides:
        if side:
            side[-1] = side[-1].removesuffix("\n")


def diffs_of(change: Change) -> tuple[Diff, ...]:
    """The canonical diffs of one change; none for a file that only moves."""
    if change.kind == "add":
        return (Diff(change.place, None, change.diff),)
    if change.kind == "delete":
        return (Diff(change.path, change.diff, "", deleted=True),)
    patch = change.diff.split(_MOVED)[0]
    before = change.path if change.moved_to is not None else None
    return tuple(Diff(change.place, hunk.old, hunk.new, line=hunk.was, moved_from=before) for hunk in hunks_of(patch))


def locations_of(change: Change) -> tuple[Location, ...]:
    """The places a change touches: the first hunk's line where there is one."""
    first = next(hunks_of(change.diff), None) if change.kind == "update" else None
    return (Location(change.place, first.line if first else None),)


_VERBS: dict[str, tuple[str, ToolKind]] = {
    "add": ("Create", "edit"),
    "delete": ("Delete", "delete"),
    "update": ("Edit", "edit"),
}


def headline(changes: list[Change]) -> tuple[str, ToolKind]:
    """What to call the changes together, and their kind."""
    if len(changes) != 1:
        kinds = {change.kind for change in changes}
        return f"Edit {len(changes)} files", "delete" if kinds == {"delete"} else "edit"
    (change,) = changes
    if change.moved_to is not None:
        return f"Move {_name(change.path)} to {_name(change.moved_to)}", "move"
    verb, kind = _VERBS.get(change.kind, ("Edit", "edit"))
    return f"{verb} {_name(change.path)}", kind


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path
