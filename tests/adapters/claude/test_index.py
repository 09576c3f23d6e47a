"""What was read of the store: no more than it must, kept over restarts, trusted only while the files are the same."""

from __future__ import annotations

import json
import logging
import sqlite3
import sys
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.claude import catalogue
from acp_manifold.adapters.claude.catalogue import Catalogue
from acp_manifold.adapters.claude.index import Index
from acp_manifold.adapters.claude.store import Store
from acp_manifold.bridge.backend import ListQuery
from tests.adapters.claude.disk import A, B, C, Disk, Record, custom, filler, said

pytestmark = pytest.mark.anyio

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="bytes are counted by Linux")


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


class Reads:
    """Bytes that this process has read since the context was entered."""

    def __enter__(self) -> Reads:
        self._before = self._all()
        return self

    def __exit__(self, *_: object) -> None:
        self.count = self._all() - self._before

    @staticmethod
    def _all() -> int:
        return int(Path("/proc/self/io").read_text().split()[1])


def append(path: Path, *records: Record) -> None:
    with path.open("ab") as file:
        file.write(b"".join(json.dumps(record).encode() + b"\n" for record in records))


def numbered(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


@linux_only
@pytest.mark.case("S01")
async def test_a_long_history_is_listed_by_a_few_bytes_of_each_transcript(disk: Disk) -> None:
    count = 200
    for number in range(count):
        disk.put(numbered(number), said("hi", 10), *filler(50_000), said(f"bye {number}", 11))
    with Reads() as first:
        rows = await disk.rows(limit=10)
    assert [row.id for row in rows] == [numbered(count - 1 - number) for number in range(10)]
    # 40 MB for 2,000 transcripts of 50 KB is the measure of the report.
    assert first.count < count * 20_000
    with Reads() as again:
        assert await disk.rows(limit=10) == rows
    assert again.count < 1000
    disk.restart()
    with Reads() as restarted:
        assert await disk.rows(limit=10) == rows
    assert restarted.count < count * 2000


@linux_only
@pytest.mark.case("S01")
async def test_the_newest_title_of_a_huge_transcript_is_found_at_its_end(disk: Disk) -> None:
    image = said("", 10, message={"role": "user", "content": [{"type": "image", "source": "A" * 2_000_000}]})
    lines = [said("hi"), *filler(3000), custom("Old"), *[image] * 20, custom("New"), *filler(20_000), said("bye", 11)]
    disk.put(A, *lines)
    with Reads() as reads:
        assert await disk.title() == ("New", "user")
    assert reads.count < 1_000_000


@pytest.mark.case("S01")
async def test_others_run_while_a_long_history_is_read(disk: Disk) -> None:
    for number in range(300):
        disk.put(numbered(number), said("hi"), *filler(5000))
    turns, counts = 0, list[int]()
    async with anyio.create_task_group() as tasks:

        async def others() -> None:
            nonlocal turns
            while True:
                await anyio.lowlevel.checkpoint()
                turns += 1

        tasks.start_soon(others)
        counts.append(len(await disk.rows(limit=300)))
        tasks.cancel_scope.cancel()
    assert counts == [300] and turns > 10


async def test_titles_further_away_than_one_list_may_read_are_in_a_later_one(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "SEARCH_BUDGET", 200_000)
    monkeypatch.setattr(catalogue, "_AT_EASE", 100_000)
    for session_id in (A, B):
        disk.put(session_id, said("hi"), custom("Far"), *filler(3_000_000), said("bye", 11))
    store = Store(disk.config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.tend)
        with anyio.fail_after(30):
            assert {row.title for row in await store.page(ListQuery(10))} == {"hi"}
            monkeypatch.setattr(catalogue, "SEARCH_BUDGET", 0)
            while {row.title for row in await store.page(ListQuery(10))} != {"Far"}:
                pass
        tasks.cancel_scope.cancel()


@linux_only
async def test_a_transcript_that_grew_is_read_on_from_where_it_was(disk: Disk) -> None:
    path = disk.put(A, said("hi"), custom("Middle"), *filler(3_000_000), said("bye", 11))
    assert await disk.title() == ("Middle", "user")
    disk.restart()
    append(path, said("more", 12))
    with Reads() as reads:
        (row,) = await disk.rows()
    assert (row.title, row.updated_at) == ("Middle", "2026-01-01T12:00:00.000Z")
    assert reads.count < 100_000
    append(path, custom("Newer"), *filler(2_000_000), said("even more", 13))
    assert await disk.title() == ("Newer", "user")


async def test_a_line_that_was_half_written_is_read_when_it_is_whole(disk: Disk) -> None:
    line = json.dumps(custom("Whole")).encode() + b"\n"
    path = disk.put(A, said("hi"), line[:30])
    assert await disk.title() == ("hi", None)
    with path.open("ab") as file:
        file.write(line[30:])
    assert await disk.title() == ("Whole", "user")


@pytest.mark.parametrize("more", [0, 1000, 3_000_000])
async def test_a_transcript_that_was_written_anew_is_read_anew(disk: Disk, more: int) -> None:
    path = disk.put(A, said("old"), custom("Old"), *filler(1000), said("bye", 12))
    inode = path.stat().st_ino
    assert await disk.title() == ("Old", "user")
    disk.restart()
    disk.put(A, said("new"), *filler(more), said("bye", 11))
    assert path.stat().st_ino == inode
    (row,) = await disk.rows()
    assert (row.title, row.updated_at) == ("new", "2026-01-01T11:00:00.000Z")


async def test_what_is_gone_is_forgotten(disk: Disk) -> None:
    path, other = disk.put(A, said("x")), disk.put(B, said("x"))
    assert len(await disk.rows()) == 2
    path.unlink()
    assert [row.id for row in await disk.rows()] == [B]
    await disk.backend.delete(B)
    assert await disk.rows() == []
    with sqlite3.connect(disk.index) as db:
        assert db.execute("SELECT count(*) FROM transcripts").fetchone() == (0,)
    db.close()
    assert not other.exists()


async def test_a_page_that_goes_on_shows_what_its_sessions_are_now(disk: Disk) -> None:
    path = disk.put(A, said("a", 10))
    gone = disk.put(B, said("b", 11))
    disk.put(C, said("c", 12))
    (first,) = await disk.rows(limit=1)
    append(path, custom("Renamed"))
    gone.unlink()
    rest = await disk.backend.list(ListQuery(5, before=(first.updated_at, first.id)))
    assert [(row.id, row.title) for row in rest] == [(A, "Renamed")]


@pytest.mark.case("L02")
async def test_a_session_that_is_in_use_moves_up_at_once_from_wherever_it_was(disk: Disk) -> None:
    path = disk.put(A, said("a", 10))
    disk.put(B, said("b", 11))
    assert [row.id for row in await disk.rows(limit=1)] == [B]
    assert await disk.backend.find(A) is not None
    append(path, said("more", 12))
    assert [row.id for row in await disk.rows(limit=1)] == [A]


@pytest.mark.case("L02")
async def test_a_session_that_another_program_goes_on_with_moves_up(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalogue, "CLOSE_LOOK_SECONDS", 0.0)
    path = disk.put(A, said("a", 10))
    disk.put(B, said("b", 11))
    assert [row.id for row in await disk.rows(limit=1)] == [B]
    append(path, said("more", 12))
    assert [row.id for row in await disk.rows(limit=1)] == [A]


async def test_what_a_cancelled_list_did_not_read_is_read_by_the_next(disk: Disk) -> None:
    disk.put(A, said("a"))
    listing = Catalogue(disk.config / "projects", Index(None))
    assert len(listing.refresh()) == 1
    again = listing.refresh()
    listing.read(again)
    rows = listing.page(ListQuery(5))
    assert rows is not None and [row.id for row in rows] == [A]


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b""])
async def test_a_damaged_index_is_built_anew(disk: Disk, damage: bytes, caplog: pytest.LogCaptureFixture) -> None:
    disk.put(A, said("x"), custom("T"))
    before = await disk.rows()
    disk.index.write_bytes(damage)
    disk.restart()
    assert await disk.rows() == before
    assert ("is damaged" in caplog.text) == bool(damage)
    disk.restart()
    caplog.clear()
    assert await disk.rows() == before
    assert caplog.text == ""


async def test_an_index_with_rows_that_make_no_sense_is_built_anew(disk: Disk) -> None:
    disk.put(A, said("x"), custom("T"))
    before = await disk.rows()
    with sqlite3.connect(disk.index) as db:
        db.execute("UPDATE transcripts SET path = 7")
    db.close()
    disk.restart()
    assert await disk.rows() == before


async def test_the_index_of_a_later_version_is_left_alone(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    disk.put(A, said("x"))
    disk.index.parent.mkdir(parents=True)
    with sqlite3.connect(disk.index) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    assert len(await disk.rows()) == 1
    assert "schema 99" in caplog.text
    with sqlite3.connect(disk.index) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (99,)
    db.close()


async def test_a_state_directory_that_cannot_be_written_costs_a_note(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    disk.put(A, said("x"))
    disk.index.parent.parent.mkdir(parents=True)
    disk.index.parent.write_text("in the way")
    assert len(await disk.rows()) == 1
    assert "can't be used" in caplog.text


async def test_the_index_is_for_its_owner_alone(disk: Disk) -> None:
    disk.put(A, said("x"))
    await disk.rows()
    assert disk.index.stat().st_mode & 0o777 == 0o600


async def test_text_that_is_no_text_is_shown_and_costs_nothing_else(
    disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    disk.put(A, said("half \ud83d"))
    disk.put(B, said("x"))
    before = await disk.rows()
    disk.restart()
    assert await disk.rows() == before
    assert caplog.text == ""


async def test_several_bridges_may_list_at_once(disk: Disk, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(50):
        disk.put(numbered(number), said("x"))
    stores = [Store(disk.config, disk.index) for _ in range(4)]
    counts: list[int] = []

    async def count(store: Store) -> None:
        counts.append(len(await store.page(ListQuery(100))))

    async with anyio.create_task_group() as tasks:
        for store in stores:
            tasks.start_soon(count, store)
    assert counts == [50] * 4
    assert caplog.text == ""
