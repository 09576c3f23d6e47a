"""Makes backends of recordings."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from acp_manifold.adapters.replay.argument import files, parse
from acp_manifold.adapters.replay.sessions import Recorded, sessions_of
from acp_manifold.adapters.replay.stage import Stage
from acp_manifold.bridge.backend import Backend
from acp_manifold.bridge.backends import NoBackend
from acp_manifold.bridge.recording.reader import BadRecording, Recording, read

logger = logging.getLogger(__name__)

PLAYED: Final = ("claude", "codex")
"""The backends whose recordings can be replayed. Of any other what a CLI shows on its screen would be missing."""


def opened(argument: str) -> Sequence[Backend]:
    """See `replay`."""
    path, speed = parse(argument)
    recordings = _read_all(files(path))
    recorded = _names(recordings)
    others = ", ".join(name for name in recorded if name not in PLAYED)
    if not any(name in PLAYED for name in recorded):
        held = f"sessions of {others} alone" if others else "no session"
        raise NoBackend(f"{path} holds {held}; what can be replayed are those of {' and '.join(PLAYED)}")
    if others:
        logger.warning("%s: sessions of %s are left out: they can't be replayed", path, others)
    stage = Stage()
    backends: list[Backend] = []
    for name in (name for name in recorded if name in PLAYED):
        sessions = _sessions(recordings, name)
        version = next((told for r in recordings if (told := r.header.clis.get(name))), None)
        if name == "codex":
            from acp_manifold.adapters.replay.codex import ReplayedCodex

            backends.append(ReplayedCodex(stage, sessions, speed, version))
        else:
            from acp_manifold.adapters.replay.claude import ReplayedClaude

            backends.append(ReplayedClaude(stage, sessions, speed, version))
    return backends


def _read_all(paths: Sequence[Path]) -> list[Recording]:
    try:
        return [read(path.absolute()) for path in paths]
    except BadRecording as exc:
        raise NoBackend(exc.message) from exc


def _names(recordings: Sequence[Recording]) -> list[str]:
    """The backends that were recorded, in the order in which they come."""
    found: dict[str, None] = {}
    for recording in recordings:
        for entry in recording.entries:
            backend = entry.backend or recording.header.backend
            if entry.leg == "backend" and backend is not None:
                found[backend] = None
    return list(found)


def _sessions(recordings: Sequence[Recording], name: str) -> list[Recorded]:
    """All sessions of a backend; of one that is in several recordings the first counts."""
    found: dict[str, Recorded] = {}
    extra: list[Recorded] = []
    for recording in recordings:
        for session in sessions_of(recording, name):
            if session.id and session.id in found:
                continue
            if session.id:
                found[session.id] = session
            else:
                extra.append(session)
    return [*found.values(), *extra]


def stage_of(backend: Backend) -> Stage:
    """The private world that a replayed backend lives in."""
    stage: object = getattr(backend, "stage", None)
    assert isinstance(stage, Stage), f"{backend.name} is not replayed"
    return stage
