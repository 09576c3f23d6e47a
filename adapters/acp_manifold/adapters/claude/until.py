"""Waiting for a change of a file that a process of somebody else may make, or for the end of that process."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from typing import Final

import anyio

from acp_manifold.bridge.descriptors import readable

_LOOK_AGAIN: Final = 5.0
"""Seconds between two looks where the end of a process can't be awaited (macOS)."""


async def changed_or_ended(changed: Callable[[], Awaitable[object]], pid: int) -> None:
    """Wait for a change, or for the end of a process, whatever comes first."""
    async with anyio.create_task_group() as race:

        async def over(wait: Callable[[], Awaitable[object]]) -> None:
            await wait()
            race.cancel_scope.cancel()

        race.start_soon(over, changed)
        race.start_soon(over, lambda: _end_of(pid))


async def _end_of(pid: int) -> None:
    if sys.platform != "linux":
        await anyio.sleep(_LOOK_AGAIN)
        return
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await readable(descriptor)
    finally:
        os.close(descriptor)
