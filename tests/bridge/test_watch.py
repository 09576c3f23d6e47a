"""The hub's one file watcher."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import watchfiles

from acp_manifold.bridge import watch
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


async def test_a_folder_tells_which_of_its_files_changed_once_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    heard: list[Path | None] = []
    news = anyio.Event()

    def changed(path: Path | None) -> None:
        heard.append(path)
        news.set()

    def write(path: Path) -> None:
        path.write_text("more")

    async def until(path: Path) -> None:
        nonlocal news
        with anyio.fail_after(5):
            while path not in heard:
                news = anyio.Event()
                # Written again, since a folder that was just made may not be watched yet.
                write(path)
                with anyio.move_on_after(0.5):
                    await news.wait()

    async with running() as watcher:
        stop = watcher.watch_folder(folder, changed)
        folder.mkdir()
        await until(folder / "one")
        await until(folder / "two")
        assert None in heard
        stop()


async def test_a_subscriber_that_fails_costs_the_others_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "file"

    def fails(*_: object) -> None:
        raise ValueError("not for me")

    async with running() as watcher:
        watcher.watch(path, fails)
        watcher.watch_folder(tmp_path, fails)
        for text in ("once", "twice"):
            changed, heard = noticing(path, text)
            watcher.watch(path, changed)
            path.write_text(text)
            with anyio.fail_after(5):
                await heard()
    assert f"A change of {path} could not be taken in" in caplog.text


async def test_a_watch_that_cannot_be_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As when the system's watches are used up for a while."""
    awatch: Callable[..., AsyncGenerator[set[Any]]] = getattr(watchfiles, "awatch")  # noqa: B009
    tries = list[tuple[object, ...]]()

    def scarce(*paths: Path, **options: Any) -> AsyncGenerator[set[Any]]:
        tries.append(paths)
        if len(tries) < 3:
            raise OSError(28, "OS file watch limit reached")
        return awatch(*paths, **options)

    monkeypatch.setattr(watchfiles, "awatch", scarce)
    monkeypatch.setattr(watch, "RETRY", 0.05)
    path = tmp_path / "file"
    async with running() as watcher:
        changed, heard = noticing(path, "news")
        watcher.watch(path, changed)
        path.write_text("news")
        with anyio.fail_after(5):
            await heard()
            while len(tries) < 3:
                await anyio.lowlevel.checkpoint()
    assert tries == [(tmp_path,)] * 3
    assert "is heard late: [Errno 28] OS file watch limit reached" in caplog.text
