"""Who has a session open: the registry in which each Claude Code process writes itself down.

`<config>/sessions/<pid>.json`, there a third of a second after the start, taken away at a clean end,
left behind by SIGKILL (Claude Code 2.1.332). So a record counts only if its process lives and is
the one that wrote it: pids are given out again. `--resume` of a session that another process has is
not refused by the CLI, and then both write.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.bridge.errors import InvalidRequest
from acp_manifold.translators.narrow import JsonObject, as_int, as_object, as_str, text
from acp_manifold.translators.values import NamedTuple

logger = logging.getLogger(__name__)

_START_TIME = 19
"""Place of `starttime`, field 22 of `/proc/<pid>/stat`, among the fields behind the program's name."""


class Holder(NamedTuple):
    """A live process that has a session open."""

    pid: int
    entrypoint: str
    """How it was started: `cli` is a terminal, `sdk-py`, `sdk-cli` and their like are programs."""
    cwd: str

    @property
    def where(self) -> str:
        """Where it runs, for people."""
        return "a terminal" if self.entrypoint == "cli" else f"another program ({self.entrypoint})"


def holders(config: Path) -> list[tuple[str, Holder]]:
    """Every session that a live process has open, as far as the registry tells, with the process."""
    found: list[tuple[str, Holder]] = []
    for record in _records(config / "sessions"):
        session_id, pid = as_str(record.get("sessionId")), as_int(record.get("pid"))
        if session_id is not None and pid is not None and _lives(pid, record):
            found.append((session_id, Holder(pid, text(record, "entrypoint", "unknown"), text(record, "cwd"))))
    return found


def holder_of(config: Path, session_id: str, ours: Collection[int]) -> Holder | None:
    """The process, none of `ours`, that has a session open, as far as the registry tells."""
    for record in _records(config / "sessions"):
        pid = as_int(record.get("pid"))
        if record.get("sessionId") == session_id and pid is not None and pid not in ours and _lives(pid, record):
            return Holder(pid, text(record, "entrypoint", "unknown"), text(record, "cwd"))
    return None


def is_name_taken(config: Path, name: str, ours: int) -> bool:
    """Whether a live process other than `ours` calls its session so."""
    for record in _records(config / "sessions"):
        pid = as_int(record.get("pid"))
        if record.get("name") == name and pid is not None and pid != ours and _lives(pid, record):
            return True
    return False


def record_of(path: Path) -> JsonObject | None:
    """What one process has written down, empty if it has not, or no longer; None if it can't be read."""
    record = _record(path)
    # Seen once in a million reads: caught while it was written.
    return record if record is not None else _record(path)


def refuse_if_held(config: Path, session_id: str, ours: Collection[int]) -> None:
    """Let nobody open, or delete, what another process writes to.

    Raises:
        InvalidRequest: The session is held.
    """
    holder = holder_of(config, session_id, ours)
    if holder is None:
        return
    raise InvalidRequest(
        f"Session {session_id} is open in another Claude Code process, pid {holder.pid}, from {holder.where}, "
        f"in {holder.cwd}. Close it there first",
        {"reason": "thread_active_writer", "sessionId": session_id, "pid": holder.pid},
    )


def _records(folder: Path) -> Iterator[JsonObject]:
    try:
        paths = sorted(folder.glob("*.json"))
    except OSError:
        return
    for path in paths:
        record = record_of(path)
        if record is not None:
            yield record


def _record(path: Path) -> JsonObject | None:
    try:
        with open_to_read(path) as file:
            return as_object(json.loads(file.read()))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as exc:
        logger.debug("%s can't be read: %s", path, exc)
        return None


def _lives(pid: int, record: JsonObject) -> bool:
    """Whether the process that wrote the record is alive; of another machine or container nothing is known."""
    if sys.platform != "linux":
        return _exists(pid)
    domain = as_str(record.get("pidDomain"))
    if domain is not None and not domain.endswith(_pid_namespace()):
        return False
    return _start_time(pid) == text(record, "procStart")


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _start_time(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[_START_TIME]
