"""Shell commands of Codex as a person knows them: title, kind and the files they touch.

Codex wraps each command in a login shell (`/bin/bash -lc '...'`) and says beside it, as far as it
can parse it, what the command does (`commandActions`).
"""

from __future__ import annotations

import shlex

from acp_manifold.translators.narrow import JsonObject, as_objects, as_str, text
from acp_manifold.translators.updates import Location, ToolKind

_SHELLS = frozenset({"bash", "zsh", "sh", "dash", "fish", "ksh"})
_SCRIPT_FLAGS = frozenset({"-c", "-lc", "-ic", "-lic"})
_KINDS: dict[str, ToolKind] = {"read": "read", "listFiles": "search", "search": "search"}


def unwrap(command: str) -> str:
    """The command inside `SHELL -lc '...'`, or the text as it is when there is no such shell around it."""
    head, _, rest = command.partition(" ")
    if head.rpartition("/")[2] not in _SHELLS:
        return command
    flag, _, script = rest.lstrip().partition(" ")
    if flag not in _SCRIPT_FLAGS or not script:
        return command
    try:
        words = shlex.split(script)
    except ValueError:
        return command
    return words[0] if len(words) == 1 else command


def kind_of(actions: object) -> ToolKind:
    """Read or search if the command does nothing else; anything not known for sure executes."""
    kinds = {_KINDS.get(text(action, "type"), "execute") for action in as_objects(actions)}
    if kinds == {"read"}:
        return "read"
    return "search" if kinds and kinds <= {"read", "search"} else "execute"


def locations_of(actions: object, cwd: str) -> tuple[Location, ...]:
    """The files the command reads or searches, each once."""
    paths: dict[str, None] = {}
    for action in as_objects(actions):
        path = as_str(action.get("path"))
        if path:
            paths[absolute(path, cwd)] = None
    return tuple(Location(path) for path in paths)


def absolute(path: str, cwd: str) -> str:
    """`path` seen from `cwd`, which is absolute; no links are followed and nothing is looked up."""
    if path.startswith("/"):
        return path
    base = cwd.rstrip("/")
    return base or "/" if path == "." else f"{base}/{path.removeprefix('./')}"


def raw_input(item: JsonObject) -> JsonObject:
    """What a client may show as the input of a command."""
    return {"command": unwrap(text(item, "command")), "cwd": text(item, "cwd")}
