"""The background commands of one program: what they print, read from the file they print into, and their end.

The program can end one only from a dialog of its own. So its processes are ended, which are those of the group
whose standard output is that file (Claude Code 2.1.332 starts each command as a process session); the program then
tells the model that the command has failed.
"""

from __future__ import annotations

import os
import signal
from functools import partial
from pathlib import Path
from typing import Final

from anyio import to_thread

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.adapters.claude_tui.pty import Terminal
from acp_manifold.adapters.claude_tui.readiness import Standing
from acp_manifold.bridge.errors import BackendFault, InvalidRequest, TaskNotFound
from acp_manifold.bridge.survivors import signal_to, survivors
from acp_manifold.translators.claude.terminal import TerminalConversation
from acp_manifold.translators.updates import TaskOutput

KEPT: Final = 256 * 1024
"""Bytes of what a command has printed that are told: the last ones."""


STOP_LIMIT: Final = 3.0
"""Seconds for a background command to end as it is asked to, and to be ended."""


class Shells:
    """Those of one program."""

    def __init__(self, talk: TerminalConversation, standing: Standing, terminal: Terminal) -> None:
        self._talk = talk
        self._standing = standing
        self._terminal = terminal

    async def output(self, session_id: str, task_id: str) -> TaskOutput:
        """What a command has printed.

        Raises:
            TaskNotFound: No such task goes on.
            InvalidRequest: It is no command.
            BackendFault: It can't be read.
        """
        path = self._output_of(session_id, task_id)
        try:
            return await to_thread.run_sync(printed, path)
        except OSError as exc:
            raise BackendFault(f"What the background command printed can't be read: {exc.strerror}") from exc

    async def stop(self, session_id: str, task_id: str) -> None:
        """End a command.

        Raises:
            TaskNotFound: No such task goes on.
            InvalidRequest: It is no command.
            BackendFault: It can't be ended from here.
            BackendGone: The program ended.
        """
        path = self._output_of(session_id, task_id)
        for at_once in (False, True):
            find = partial(groups_printing_into, path, self._terminal.pid, self._terminal.mark)
            end(await to_thread.run_sync(find), at_once=at_once)
            if await self._standing.until(lambda: not self._runs(task_id) or None, STOP_LIMIT):
                return
        raise BackendFault("The background command can't be ended from here; close the session, which ends it")

    def _runs(self, task_id: str) -> bool:
        return any(task.id == task_id for task in self._talk.tasks.all())

    def _output_of(self, session_id: str, task_id: str) -> Path:
        if not self._runs(task_id):
            raise TaskNotFound(session_id, task_id)
        if task_id not in self._talk.outputs:
            raise InvalidRequest(
                "It is a sub-agent: what it says is told as it comes, and it ends by itself or with the session"
            )
        return Path(self._talk.outputs[task_id])


def printed(path: Path) -> TaskOutput:
    """What a command has printed into its file.

    Raises:
        OSError: It can't be read.
    """
    with open_to_read(path) as file:
        total = file.seek(0, 2)
        file.seek(max(total - KEPT, 0))
        return TaskOutput(file.read().decode("utf-8", "replace"), total)


def groups_printing_into(path: Path, program: int, mark: str) -> set[int]:
    """The process groups that print into a file, among what a program has started. None where there is no `/proc`.

    Args:
        path: The file.
        program: The program, whose own group is never one of them.
        mark: What its descendants bear in the environment.
    """
    found: set[int] = set()
    for pid in survivors(set(), {mark}):
        try:
            if os.readlink(f"/proc/{pid}/fd/1") == str(path):
                found.add(os.getpgid(pid))
        except OSError:
            continue  # It has ended meanwhile.
    return found - {program, os.getpgrp()}


def end(groups: set[int], *, at_once: bool) -> None:
    """Ask process groups to end, or end them."""
    signal_to([-group for group in groups], signal.SIGKILL if at_once else signal.SIGTERM)
