"""What is read of processes: this one, and a child of it."""

from __future__ import annotations

import os
import sys

import anyio
import pytest

from bench.processes import descendants, descriptors, naming, pss_mb, rss_mb

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]


async def test_a_child_is_found_by_the_program_on_its_command_line_until_it_ends() -> None:
    with anyio.fail_after(5):
        async with await anyio.open_process(["cat", "-"]) as child:
            assert child.pid in descendants(os.getpid())
            assert naming([child.pid], "cat") == 1
            assert naming([child.pid], "ca") == 0
    assert naming([child.pid], "cat") == 0


async def test_an_open_file_counts() -> None:
    before = descriptors(os.getpid())
    ends = os.pipe()
    try:
        assert descriptors(os.getpid()) == before + 2
    finally:
        for end in ends:
            os.close(end)


async def test_shared_memory_counts_whole_in_the_resident_set_only() -> None:
    assert 0 < pss_mb(os.getpid()) <= rss_mb(os.getpid())
