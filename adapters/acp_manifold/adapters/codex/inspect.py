"""Codex looked at for people: its version, its home, and who has which thread. Nothing is changed."""

from __future__ import annotations

import os

from anyio import to_thread

from acp_manifold.bridge.backend import Inspection, Program
from acp_manifold.bridge.errors import BackendGone
from acp_manifold.bridge.inspecting import version_told

from . import program as programs
from .locks import held_threads


async def inspection(program: Program | None) -> Inspection:
    """See `Backend.inspect`. Whether the store can be read is Codex' to say, when it is asked for its threads."""
    home = programs.codex_home()
    problems: list[str] = []
    if os.environ.get(programs.HOME_VARIABLE) and not home.is_dir():
        # Only its default home is made by Codex itself (codex-cli 0.163.0).
        problems.append(f"{programs.HOME_VARIABLE} names {home}, which is no directory: make it, or unset the variable")
    version: str | None = None
    if program is not None:
        try:
            version = await version_told(program.command, programs.environment())
        except BackendGone as exc:
            named = program.source == programs.PATH_VARIABLE
            what = f"correct or unset {programs.PATH_VARIABLE}" if named else "install Codex anew"
            problems.append(f"{exc.message}: {what}")
    return Inspection(version, home, await to_thread.run_sync(held_threads, home), tuple(problems))
