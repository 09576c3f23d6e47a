"""The delay figure: every update that is sent is found again, and was on its way for a time that can be."""

from __future__ import annotations

import anyio
import pytest

from bench import delay

pytestmark = pytest.mark.anyio

PATIENCE = 30.0


async def test_each_update_of_the_watched_session_is_timed_while_the_others_stream() -> None:
    with anyio.fail_after(PATIENCE):
        found = await delay.measure(1.0)
    assert 0 < found.median <= found.p99 < PATIENCE
