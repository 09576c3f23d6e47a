"""Makes a recording small and free of its machine: what is long and does not count is cut, places are named."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from acp_manifold.bridge.recording.format import Entry
from acp_manifold.translators.narrow import JsonObject, as_object, is_list, is_object, obj

LONGEST = 600
"""Characters of a text in a file of the store, and of a description anywhere."""

_LISTS = {"commands": 4, "skills": 3, "slash_commands": 8, "availableCommands": 4, "agents": 3, "tools": 8, "models": 3}
"""Members that tell what is installed, and how much of it is kept."""

_UNREAD = ("api-request-shape", "api-request-blob", "api-request")
"""Records of the store that nobody reads."""

_PORT = re.compile(r"127\.0\.0\.1:\d+")


def thin(entries: tuple[Entry, ...], folder: Path) -> list[Entry]:
    """The entries that count, with `/lab` in the place of the folder they were made in."""
    kept = [entry for entry in sorted(entries, key=lambda entry: entry.t) if not _is_unread(entry)]
    return [_thinned(entry, str(folder)) for entry in kept]


def _is_unread(entry: Entry) -> bool:
    return entry.leg == "store" and (entry.line or {}).get("type") in _UNREAD


def _thinned(entry: Entry, folder: str) -> Entry:
    dashed = re.sub(r"[^A-Za-z0-9]", "-", folder)
    file = entry.file.replace(dashed, "-lab") if entry.file else None
    if entry.line is None:
        return entry._replace(file=file)
    line = _without_instructions(entry.line) if entry.leg == "store" else entry.line
    cut = _cut(line, LONGEST if entry.leg == "store" else None)
    words = json.dumps(cut, ensure_ascii=False).replace(folder, "/lab").replace(dashed, "-lab")
    words = words.replace(sys.prefix, "/lab/venv").replace("/tmp/", "/lab-tmp/")
    return entry._replace(file=file, line=as_object(json.loads(_PORT.sub("127.0.0.1:1", words))))


def _without_instructions(record: JsonObject) -> JsonObject:
    """A record without what the model is told beside the conversation, if that is long."""
    attachment = obj(record, "attachment")
    if len(json.dumps(attachment)) <= LONGEST:
        return record
    return {**record, "attachment": {"type": attachment.get("type")}}


def _cut(value: object, longest: int | None, key: str = "") -> object:
    if is_object(value):
        return {name: _cut(member, longest, name) for name, member in value.items()}
    if is_list(value):
        return [_cut(item, longest, key) for item in value[: _LISTS.get(key)]]
    if isinstance(value, str):
        most = 60 if key in ("description", "shortDescription") else longest
        return value if most is None or len(value) <= most else f"{value[:most]}…"
    return value
