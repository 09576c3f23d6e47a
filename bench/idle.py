"""What many sessions cost that nobody uses: Claude Code's processes let go, the bridge left alone with their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import anyio

from acp_manifold.adapters.demo.editor import Editor, start
from acp_manifold.translators.narrow import JsonObject

from .contestants import Contestant
from .processes import descendants, naming, pss_mb

TIMEOUT = 2
"""Seconds after which the bridge may let a session's CLI go."""

AT_ONCE = 4
"""Sessions that are opened at the same time: each Claude Code takes 130 MB while it lives."""

_LIMIT = 600.0
_UNLOAD_LIMIT = 30.0
_LOOK_EVERY = 0.2


@dataclass(frozen=True, slots=True)
class Idle:
    """What was there once the CLIs had been let go."""

    sessions: int
    memory: float
    """PSS in MB of the bridge alone."""
    clis: int
    """Processes of the CLI that are still there."""


async def measure(
    contestant: Contestant, program: str, env: Mapping[str, str], cwd: Path, log: Path, sessions: int
) -> Idle:
    """Open sessions, run a small turn in each, wait until all CLIs were let go.

    Args:
        contestant: Us, on a CLI that is a process for each session.
        program: The CLI's program, as its processes name it.
        env: The whole environment.
        cwd: Where the sessions work.
        log: Takes the stderr.
        sessions: How many.

    Raises:
        BridgeError: It answered with an error or went away.
        TimeoutError: It took too long.
    """
    flags = ("--backend", contestant.cli, "--idle-timeout", str(TIMEOUT))
    with anyio.fail_after(_LIMIT):
        async with start((*contestant.command, *flags), env, log, _ignore) as editor:
            await editor.initialize()
            room = anyio.CapacityLimiter(AT_ONCE)
            async with anyio.create_task_group() as tasks:
                for _ in range(sessions):
                    tasks.start_soon(_use, editor, str(cwd), room)
            clis = await _clis_left(editor.pid, program)
            return Idle(sessions, pss_mb(editor.pid), clis)


async def _use(editor: Editor, cwd: str, room: anyio.CapacityLimiter) -> None:
    async with room:
        await editor.prompt(await editor.new_session(cwd), "Say a few words SAY[5]")


async def _clis_left(pid: int, program: str) -> int:
    """How many processes of the program are left when there are none any more, or when the patience is over."""
    with anyio.move_on_after(_UNLOAD_LIMIT):
        while naming(descendants(pid), program):  # noqa: ASYNC110 - children of another process send no event
            await anyio.sleep(_LOOK_EVERY)
    return naming(descendants(pid), program)


def _ignore(_session: str, _update: JsonObject) -> None:
    pass
