"""The store at rest: rows, titles, deletion, replay, renaming."""

from __future__ import annotations

import json
import os
import shutil
import socket
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.claude.at_rest import write_title
from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.adapters.claude.store import Store
from acp_manifold.bridge.backend import ListQuery
from acp_manifold.bridge.errors import BackendFault, InvalidRequest, SessionNotFound
from acp_manifold.translators.updates import MessageChunk, Text, Update
from tests.adapters.claude.disk import A, B, C, Disk, Record, custom, filler, said

pytestmark = pytest.mark.anyio


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


async def test_a_store_that_is_not_there_is_empty(disk: Disk) -> None:
    assert await disk.rows() == []
    assert await disk.backend.find(A) is None


@pytest.mark.case("L02")
async def test_rows_come_by_the_time_of_their_last_message(disk: Disk) -> None:
    paths = [
        disk.put(A, said("p", 10), {"type": "ai-title", "aiTitle": "x", "sessionId": A}),
        disk.put(B, said("q", 11), said("<command-name>/usage</command-name>", 13)),
        disk.put(C, said("r", 12)),
    ]
    for age, path in enumerate(paths):
        os.utime(path, (2_000_000_000 - age, 2_000_000_000 - age))
    rows = await disk.rows()
    assert [(row.id, row.updated_at) for row in rows] == [
        (C, "2026-01-01T12:00:00.000Z"),
        (B, "2026-01-01T11:00:00.000Z"),
        (A, "2026-01-01T10:00:00.000Z"),
    ]


@pytest.mark.case("L02")
async def test_neither_a_rename_nor_a_touch_moves_a_session(disk: Disk) -> None:
    paths = [disk.put(A, said("p", 10)), disk.put(B, said("q", 11))]
    before = await disk.rows()
    await disk.backend.rename(A, "Renamed")
    paths[1].touch()
    after = await disk.rows()
    assert [(row.id, row.updated_at) for row in after] == [(row.id, row.updated_at) for row in before]
    assert after[1].title == "Renamed"
    with paths[0].open("ab") as file:
        file.write(json.dumps(said("more", 12)).encode() + b"\n")
    assert [row.id for row in await disk.rows()] == [A, B]


@pytest.mark.case("L02")
async def test_times_written_in_other_ways_are_read_too(disk: Disk) -> None:
    stamps = [
        "2026-01-01T11:00:00Z",
        "2026-01-01T12:30:00+02:00",
        "2026-01-01T10:00:00.123456789Z",
        "2026-01-01T09:30:00.5",
    ]
    ids = [f"{n}0000000-0000-4000-8000-000000000000" for n in range(len(stamps))]
    for session_id, stamp in zip(ids, stamps, strict=True):
        disk.put(session_id, said("x", timestamp=stamp))
    rows = await disk.rows()
    assert [(row.id, row.updated_at) for row in rows] == [
        (ids[0], "2026-01-01T11:00:00.000Z"),
        (ids[1], "2026-01-01T10:30:00.000Z"),
        (ids[2], "2026-01-01T10:00:00.123Z"),
        (ids[3], "2026-01-01T09:30:00.500Z"),
    ]


async def test_a_page_goes_on_where_the_last_one_ended(disk: Disk) -> None:
    for hour, session_id in enumerate((A, B, C)):
        disk.put(session_id, said("x", 10 + hour))
    first = await disk.rows(limit=2)
    assert [row.id for row in first] == [C, B]
    rest = await disk.backend.list(ListQuery(2, before=(first[-1].updated_at, first[-1].id)))
    assert [row.id for row in rest] == [A]


@pytest.mark.case("L03")
async def test_a_directory_is_found_by_its_real_path_whatever_the_folder_is_called(disk: Disk, tmp_path: Path) -> None:
    real, link = tmp_path / "a.b c_d" / "проект", tmp_path / "link"
    real.mkdir(parents=True)
    link.symlink_to(real)
    disk.put(A, said("x", cwd=str(real)), project="-whatever")
    disk.put(B, said("x", cwd="/gone"))
    for cwd in (str(real), str(link)):
        assert [row.id for row in await disk.rows(cwd=cwd)] == [A]
    assert len(await disk.rows()) == 2


@pytest.mark.case("L03")
async def test_a_project_folder_may_be_a_link(disk: Disk, tmp_path: Path) -> None:
    disk.put(A, said("x"), project="-real")
    (disk.config / "projects" / "-real").rename(tmp_path / "elsewhere")
    (disk.config / "projects" / "-link").symlink_to(tmp_path / "elsewhere")
    assert [row.id for row in await disk.rows()] == [A]


@pytest.mark.case("L03")
@pytest.mark.parametrize("bad", ["/w/\0x", "/w/\ud83d", "relative", "", "~/x", 7, None])
async def test_a_directory_that_can_be_none_is_passed_over(disk: Disk, bad: object) -> None:
    disk.put(A, said("x", cwd="/w"))
    disk.put(B, {**said("x"), "cwd": bad})
    disk.put(C, {**said("x"), "cwd": bad}, said("y", 11, cwd="/w"))
    assert [(row.id, row.cwd) for row in await disk.rows()] == [(C, "/w"), (A, "/w")]
    assert [row.id for row in await disk.rows(cwd="/w")] == [C, A]
    assert await disk.backend.find(B) is None


@pytest.mark.case("L03")
@pytest.mark.parametrize("cwd", ["/w/\0x", "/w/\ud83d", "", "x" * 100_000, "/x" * 50_000])
async def test_a_search_for_a_directory_that_can_be_none_finds_nothing(disk: Disk, cwd: str) -> None:
    disk.put(A, said("x"))
    assert await disk.rows(cwd=cwd) == []
    assert disk.heard(B, cwd) == []


@pytest.mark.case("T04")
async def test_a_title_in_the_middle_of_a_big_transcript_is_found(disk: Disk) -> None:
    generated: Record = {"type": "ai-title", "aiTitle": "Other", "sessionId": A}
    disk.put(A, said("hi"), *filler(300_000), custom("Feature branch"), *filler(300_000), said("bye", 11), generated)
    assert await disk.title() == ("Feature branch", "user")


@pytest.mark.case("T04")
@pytest.mark.parametrize("size", [0, 300_000])
async def test_words_that_look_like_a_title_are_none(disk: Disk, size: int) -> None:
    spoof = json.dumps(custom("Spoofed"))
    blocks = [{"type": "tool_result", "tool_use_id": "t", "content": f"{spoof}\n{spoof}"}]
    result = said("", 11, message={"role": "user", "content": blocks}, customTitle="Spoofed")
    disk.put(A, said("hi"), custom("Real"), *filler(size), result, *filler(size), said(spoof, 12))
    assert await disk.title() == ("Real", "user")


async def test_the_last_of_several_titles_counts(disk: Disk) -> None:
    disk.put(A, said("hi"), custom("One"), *filler(300_000), custom("Two"), *filler(300_000), said("bye", 11))
    assert await disk.title() == ("Two", "user")


async def test_the_last_message_is_found_behind_long_records(disk: Disk) -> None:
    disk.put(A, said("hi"), *filler(200_000), said("bye", 11), *filler(400_000))
    (row,) = await disk.rows()
    assert row.updated_at == "2026-01-01T11:00:00.000Z"


@pytest.mark.case("T05")
@pytest.mark.parametrize("size", [70_000, 1_000_000, 4_000_000])
async def test_a_first_prompt_longer_than_the_head_is_the_title_cut_short(disk: Disk, size: int) -> None:
    first = said("Audit the parser. " + "long " * (size // 5))
    disk.put(A, {"type": "mode"}, first, *filler(100_000), said("a later one", 11))
    title, origin = await disk.title()
    assert title is not None and title.startswith("Audit the parser. long") and len(title) <= 1000
    assert origin is None


@pytest.mark.case("T05")
async def test_a_first_prompt_behind_long_records_is_the_title(disk: Disk) -> None:
    disk.put(A, *filler(100_000), said("first"), *filler(200_000), said("a later one", 11))
    assert await disk.title() == ("first", None)


async def test_a_title_that_shows_nothing_is_none(disk: Disk) -> None:
    disk.put(A, custom("Real"), said("x"), custom(" \u200b\n"), custom(""))
    assert await disk.title() == ("Real", "user")
    disk.put(A, said("\u200b"), said("x"), custom("\x1b[31m"))
    assert await disk.title() == ("x", None)


async def test_a_changed_file_is_read_anew(disk: Disk) -> None:
    path = disk.put(A, said("hi"))
    assert await disk.title() == ("hi", None)
    with path.open("ab") as file:
        file.write(json.dumps(custom("New")).encode() + b"\n")
    assert await disk.title() == ("New", "user")


async def test_of_two_copies_the_newest_is_the_session(disk: Disk) -> None:
    old = disk.put(A, said("old"), project="-old")
    os.utime(old, (1, 1))
    disk.put(A, said("new"), project="-new")
    assert await disk.title() == ("new", None)


@pytest.mark.case("L05")
async def test_only_conversations_of_a_person_are_listed(disk: Disk) -> None:
    disk.put(A, said("real"))
    disk.put(B, {"type": "mode"}, said("worker", isSidechain=True))
    disk.put(C, custom("only a title"))
    folder = disk.put("agent-0001", said("x")).parent
    (folder / "notes.txt").write_text("x")
    (folder / "dddddddd-0000-4000-8000-000000000000.jsonl").touch()
    disk.put("eeeeeeee-0000-4000-8000-000000000000", said("teammate", teamName="t"))
    disk.put(f"{A}/subagents/ffffffff-0000-4000-8000-000000000000", said("x"))
    assert [row.id for row in await disk.rows()] == [A]


@pytest.mark.case("L09")
async def test_damage_costs_no_more_than_itself(disk: Disk, tmp_path: Path) -> None:
    ids = [f"{n}0000000-0000-4000-8000-000000000000" for n in range(5)]
    whole = json.dumps(said("whole")).encode()
    disk.put(ids[0], said("whole"))
    disk.put(ids[1], b'{"type":"us\n', said("whole"))
    disk.put(ids[2], said("whole"), b"\0" * 4096 + b"\n", custom("T"))
    disk.put(ids[3], whole + json.dumps(custom("T")).encode() + b"\n")
    path = disk.put(ids[4], said("whole"), whole[:40])
    (path.parent / f"{A}.jsonl").symlink_to(tmp_path / "nowhere")
    rows = {row.id: row for row in await disk.rows()}
    assert [rows[session_id].title for session_id in ids] == ["whole", "whole", "T", "T", "whole"]
    for session_id in ids:
        told: list[Update] = []
        await disk.backend.replay(session_id, told.append)
        assert told[0] == MessageChunk("user", Text("whole"), "whole-10")


@pytest.mark.case("L09")
@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "device"])
async def test_what_is_no_file_is_no_transcript(disk: Disk, tmp_path: Path, kind: str) -> None:
    disk.put(A, said("x"))
    odd = disk.config / "projects" / "-w" / f"{B}.jsonl"
    _make(kind, odd)
    with anyio.fail_after(5):
        assert [row.id for row in await disk.rows()] == [A]
        assert await disk.backend.find(B) is None
        for asked in (disk.backend.rename(B, "x"), disk.backend.replay(B, lambda update: None)):
            with pytest.raises(SessionNotFound):
                await asked
        assert disk.heard(B) == []
        await disk.backend.delete(B)
    assert odd.exists()


@pytest.mark.parametrize("kind", ["fifo", "socket", "folder", "device"])
def test_what_is_no_file_is_not_opened(tmp_path: Path, kind: str) -> None:
    odd = tmp_path / "x.jsonl"
    _make(kind, odd)
    with pytest.raises(OSError, match="Not a regular file"):
        open_to_read(odd)
    with pytest.raises(InvalidRequest, match="Not a regular file"):
        write_title(odd, A, "x")


def _make(kind: str, path: Path) -> None:
    """Something that is no file; a socket by a short name, since a longer one can't be bound."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        before = os.getcwd()
        os.chdir(path.parent)
        try:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(path.name)
        finally:
            os.chdir(before)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")


async def test_a_folder_that_leads_to_itself_hides_no_other(disk: Disk) -> None:
    disk.put(A, said("x"))
    (disk.config / "projects" / "-loop").symlink_to("-loop")
    assert [row.id for row in await disk.rows()] == [A]


async def test_a_replay_lets_others_run(disk: Disk) -> None:
    disk.put(A, *[said(f"{'x' * 1000}{n}") for n in range(3000)])
    gaps = 0
    told: list[Update] = []
    async with anyio.create_task_group() as tasks:

        async def others() -> None:
            nonlocal gaps
            while True:
                await anyio.lowlevel.checkpoint()
                gaps += 1

        tasks.start_soon(others)
        await disk.backend.replay(A, told.append)
        tasks.cancel_scope.cancel()
    assert len(told) == 3000 and gaps > 10


@pytest.mark.case("L10")
async def test_delete_removes_one_session_and_only_that(disk: Disk, tmp_path: Path) -> None:
    path, other = disk.put(A, said("x")), disk.put(B, said("x"))
    copy = disk.put(A, said("x"), project="-copy")
    sidecar = path.with_suffix("")
    sidecar.mkdir()
    (sidecar / "custom-title.json").touch()
    before = other.read_bytes()
    await disk.backend.delete(A)
    await disk.backend.delete(A)
    assert remaining(path, sidecar, copy) == []
    assert [row.id for row in await disk.rows()] == [B]
    assert remaining(other) == [other] and other.read_bytes() == before


async def test_a_transcript_that_can_not_be_deleted_is_named(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    path = disk.put(A, said("x"))

    def refuse(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(BackendFault, match=f"{path} can't be deleted: Permission denied"):
        await disk.backend.delete(A)
    assert [row.id for row in await disk.rows()] == [A]


def remaining(*paths: Path) -> list[Path]:
    return [path for path in paths if path.exists()]


@pytest.mark.case("L10")
@pytest.mark.parametrize("evil", ["../../victim", "{victim}", "a/../../victim", "..%2fvictim", "", "x" * 10_000, "*"])
async def test_an_id_is_never_a_path(disk: Disk, tmp_path: Path, evil: str) -> None:
    disk.put(A, said("x"))
    victim = tmp_path / "victim.jsonl"
    victim.write_text(json.dumps(said("secret")) + "\n")
    evil = evil.format(victim=victim.with_suffix(""))
    assert await disk.backend.find(evil) is None
    await disk.backend.delete(evil)
    for asked in (disk.backend.rename(evil, "x"), disk.backend.replay(evil, lambda update: None)):
        with pytest.raises(SessionNotFound):
            await asked
    assert json.loads(victim.read_text())["uuid"] == "secret-10" and len(await disk.rows()) == 1


async def test_renaming_at_rest_is_read_back(disk: Disk) -> None:
    disk.put(A, said("x"), custom("Old"))
    assert await disk.backend.rename(A, "  New name ") == "New name"
    assert await disk.title() == ("New name", "user")
    with pytest.raises(SessionNotFound):
        await disk.backend.rename(B, "x")


async def test_renaming_writes_what_the_sdk_writes(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sdk = pytest.importorskip("claude_agent_sdk")
    ours = disk.put(A, said("x"))
    theirs = tmp_path / "theirs" / "projects" / "-w" / f"{A}.jsonl"
    theirs.parent.mkdir(parents=True)
    shutil.copy(ours, theirs)
    for title in ("Plain", 'Quotes " and \\', "数を数える 👩 👩 👧", "x" * 200):
        await disk.backend.rename(A, title)
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "theirs"))
        sdk.rename_session(A, title)
    assert ours.read_bytes() == theirs.read_bytes()


@pytest.mark.case("T06")
async def test_renaming_stores_the_form_that_the_cli_would_make_of_it(disk: Disk) -> None:
    path = disk.put(A, said("x"))
    assert await disk.backend.rename(A, "👩‍👩‍👧 fam\u200bily") == "👩 👩 👧 fam ily"
    assert json.loads(path.read_bytes().splitlines()[-1])["customTitle"] == "👩 👩 👧 fam ily"


async def test_a_rename_behind_a_cut_off_line_stands_on_its_own(disk: Disk) -> None:
    path = disk.put(A, said("x"), b'{"type":"assis')
    await disk.backend.rename(A, "Mine")
    assert path.read_bytes().split(b"\n")[-2].startswith(b'{"type":"custom-title"')
    assert await disk.title() == ("Mine", "user")


def test_project_folders_are_named_as_the_cli_names_them(tmp_path: Path) -> None:
    sessions = pytest.importorskip("claude_agent_sdk._internal.sessions")
    for cwd in ("/w/a.b c_d/проект", "/x" * 150, "/" + "длинный" * 40, "/"):
        expected = tmp_path / "projects" / sessions._sanitize_path(cwd) / f"{A}.jsonl"
        assert Store(tmp_path).expected_path(A, cwd) == expected
