"""The hub's one file watcher."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.watch import Watcher

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def running() -> AsyncGenerator[Watcher]:
    watcher = Watcher()
    async with anyio.create_task_group() as tg:
        tg.start_soon(watcher.run)
        yield watcher
        tg.cancel_scope.cancel()


def noticing(path: Path, text: str) -> tuple[Callable[[], None], Callable[[], Awaitable[None]]]:
    """A callback, and a wait until the callback has seen `text` in the file."""
    seen = anyio.Event()

    def changed() -> None:
        if path.exists() and text in path.read_text():
            seen.set()

    return changed, seen.wait


async def test_growth_appearance_and_new_directories_are_heard(tmp_path: Path) -> None:
    there, later, deep = tmp_path / "there", tmp_path / "later", tmp_path / "a" / "b" / "deep"
    there.write_text("old\n")
    async with running() as watcher:
        for path in (there, later, deep):
            changed, heard = noticing(path, "news")
            stop = watcher.watch(path, changed)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a") as file:
                file.write("news\n")
            with anyio.fail_after(5):
                await heard()
            stop()


async def test_who_has_ended_hears_no_more_and_the_others_do(tmp_path: Path) -> None:
    path, calls = tmp_path / "file", list[str]()
    async with running() as watcher:
        stop = watcher.watch(path, lambda: calls.append("ended"))
        changed, heard = noticing(path, "x")
        watcher.watch(path, changed)
        stop()
        stop()
        path.write_text("x")
        with anyio.fail_after(5):
            await heard()
    assert calls == []


async def test_a_path_through_a_link_is_heard(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    path = tmp_path / "link" / "file"
    async with running() as watcher:
        changed, heard = noticing(path, "x")
        watcher.watch(path, changed)
        (tmp_path / "real" / "file").write_text("x")
        with anyio.fail_after(5):
            await heard()
