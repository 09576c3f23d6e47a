"""Waiting for what other processes do to files, and for their beginnings and ends: no event tells of those."""

from __future__ import annotations

from collections.abc import Callable

import anyio

PAUSE = 0.01
"""Seconds between two looks: to look all the time would take a core from the process that is waited for."""


async def until(look: Callable[[], object], limit: float = 20.0) -> None:
    """Wait until `look` gives something true.

    Raises:
        TimeoutError: It did not within `limit` seconds.
    """
    with anyio.fail_after(limit):
        while not look():  # noqa: ASYNC110
            await anyio.sleep(PAUSE)
