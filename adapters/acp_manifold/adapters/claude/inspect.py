"""Claude Code looked at for people: its version, its store, and who has which session. Nothing is changed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from anyio import to_thread

from acp_manifold.adapters.claude.program import OVERRIDE, checked_command, child_environment, config_dir
from acp_manifold.adapters.claude.registry import holders
from acp_manifold.bridge.backend import Held, Inspection, Program
from acp_manifold.bridge.errors import BackendGone
from acp_manifold.bridge.inspecting import version_told


async def inspection(program: Program | None, environ: Mapping[str, str]) -> Inspection:
    """See `Backend.inspect`."""
    config = config_dir(environ)
    store = config / "projects"
    problems: list[str] = []
    version: str | None = None
    try:
        if program is not None:
            version = await version_told(checked_command(program, environ), child_environment(environ))
    except BackendGone as exc:
        named = program is not None and program.source == OVERRIDE
        what = f"Correct or unset {OVERRIDE}" if named else "Install Claude Code anew"
        problems.append(exc.message if OVERRIDE in exc.message else f"{exc.message}. {what}")
    problems += await to_thread.run_sync(_unreadable, store)
    held = await to_thread.run_sync(_held, config)
    return Inspection(version, store, held, tuple(problems))


def _held(config: Path) -> tuple[Held, ...]:
    return tuple(Held(session, holder.pid, holder.where) for session, holder in holders(config))


def _unreadable(store: Path) -> list[str]:
    """What is wrong with the store; a store that is not there yet is not wrong."""
    try:
        with os.scandir(store) as entries:
            folders = [store, *(Path(entry.path) for entry in entries if entry.is_dir())]
    except FileNotFoundError:
        return []
    except OSError as exc:
        return [f"{store} can't be read ({exc.strerror}): make it a directory that you can read and write"]
    shut = [folder for folder in folders if not os.access(folder, os.R_OK | os.W_OK | os.X_OK)]
    if not shut:
        return []
    others = f" and {len(shut) - 1} more" if len(shut) > 1 else ""
    return [f"{shut[0]}{others} can't be read and written: chmod u+rwx brings the sessions and their titles back"]
