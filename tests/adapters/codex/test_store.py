"""The list over Codex' store, its history, and what is removed from it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.backend import ListQuery, SessionSpec
from acp_manifold.bridge.errors import BackendFault, InvalidRequest, SessionNotFound
from acp_manifold.translators.updates import MessageChunk, Text, ToolCall, ToolCallUpdate, ToolOutput, Update
from tests.fakes import fake_codex as fx
from tests.fakes.fake_codex import FakeCodex

from .scripted import ScriptedEvents, running

pytestmark = pytest.mark.anyio


def thread_id(number: int) -> str:
    return f"01900000-3333-7000-8000-{number:012x}"


async def listed(query: ListQuery) -> list[str]:
    with anyio.fail_after(5):
        async with running() as (backend, _):
            return [row.id for row in await backend.list(query)]


@pytest.mark.case("T05")
async def test_titles_are_names_or_what_a_person_typed(fake: FakeCodex) -> None:
    injected = "# AGENTS.md instructions for /w\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>\n<environment_context>..."
    fake.stores(
        {"id": thread_id(3), "name": "Release checklist", "preview": "hi"},
        {"id": thread_id(2), "preview": injected},
        {"id": thread_id(1), "preview": "Plan the move"},
    )
    with anyio.fail_after(5):
        async with running() as (backend, _):
            rows = await backend.list(ListQuery(10))
    assert [(row.title, row.title_origin) for row in rows] == [
        ("Release checklist", "user"),
        (None, None),
        ("Plan the move", None),
    ]


@pytest.mark.case("L05")
async def test_threads_nobody_would_resume_are_left_out(fake: FakeCodex) -> None:
    fake.stores(
        {"id": thread_id(1), "parentThreadId": thread_id(4)},
        {"id": thread_id(2), "ephemeral": True},
        {"id": thread_id(3), "threadSource": "thread_title"},
        {"id": thread_id(4)},
    )
    assert await listed(ListQuery(10)) == [thread_id(4)]


async def test_rows_of_one_second_are_ordered_by_id_over_page_borders(fake: FakeCodex) -> None:
    fake.stores(*({"id": thread_id(n), "recencyAt": 1_700_000_000 + n // 4} for n in range(10)))
    newest_first = [thread_id(n) for n in range(9, -1, -1)]
    assert await listed(ListQuery(3)) == newest_first[:3]
    with anyio.fail_after(5):
        async with running() as (backend, _):
            seen: list[str] = []
            before: tuple[str, str] | None = None
            while rows := await backend.list(ListQuery(3, before=before)):
                seen += [row.id for row in rows]
                before = rows[-1].updated_at, rows[-1].id
    assert seen == newest_first
    assert rows == []


async def test_the_time_is_that_of_the_last_prompt(fake: FakeCodex) -> None:
    fake.stores({"id": thread_id(1), "recencyAt": 1_700_000_000, "updatedAt": 1_700_009_999})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            (row,) = await backend.list(ListQuery(10))
    assert row.updated_at == "2023-11-14T22:13:20.000Z"


@pytest.mark.case("S01")
async def test_the_directory_and_a_limit_are_codex_to_heed(fake: FakeCodex, tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    fake.stores({"id": thread_id(1), "cwd": str(real)}, {"id": thread_id(2), "cwd": "/elsewhere"})
    assert await listed(ListQuery(5, cwd=str(link))) == [thread_id(1)]
    asked = fake.requests("thread/list")
    assert all(params["useStateDbOnly"] is True and params["limit"] <= 100 for params in asked)
    # Those of `codex exec` are in no list but one of their own.
    assert [params.get("sourceKinds") for params in asked] == [None, ["exec", "appServer"]]


async def test_a_list_codex_refuses_is_an_error(fake: FakeCodex) -> None:
    fake.replies("thread/list", {"error": {"code": -32600, "message": "database is locked"}})
    with pytest.raises(BackendFault, match="database is locked"):
        await listed(ListQuery(1))


async def test_a_row_is_found_by_its_id_alone(fake: FakeCodex) -> None:
    fake.stores({"id": thread_id(1), "cwd": "/w", "preview": "hi"})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            row = await backend.find(thread_id(1))
            assert row is not None and (row.cwd, row.title) == ("/w", "hi")
            assert await backend.find(thread_id(2)) is None
            assert await backend.find("../../etc/passwd") is None
    assert len(fake.requests("thread/read")) == 2


async def test_the_history_is_told_once_and_in_order(fake: FakeCodex) -> None:
    said = {"type": "userMessage", "id": "u1", "content": [{"type": "text", "text": "one"}]}
    ran = fx.command("c1", "make", "completed", aggregatedOutput="built\n", exitCode=0)
    odd = {"type": "somethingNew", "id": "x"}
    fake.stores({"id": thread_id(1), "items": [said, ran, odd, fx.message("two"), fx.message("two")]})
    told: list[Update] = []
    with anyio.fail_after(5):
        async with running() as (backend, _):
            await backend.replay(thread_id(1), told.append)
    assert [type(update) for update in told] == [MessageChunk, ToolCall, ToolOutput, ToolCallUpdate, MessageChunk]
    assert told[0] == MessageChunk("user", Text("one"), "u1")
    assert told[-1] == MessageChunk("agent", Text("two"), "msg_1")


async def test_the_history_of_a_codex_without_item_lists_comes_with_its_turns(fake: FakeCodex) -> None:
    fake.replies("thread/items/list", {"error": {"code": -32600, "message": "Invalid request: unknown variant `t`"}})
    fake.stores({"id": thread_id(1), "turns": [{"items": [fx.message("two")]}]})
    told: list[Update] = []
    with anyio.fail_after(5):
        async with running() as (backend, _):
            await backend.replay(thread_id(1), told.append)
    assert told == [MessageChunk("agent", Text("two"), "msg_1")]


@pytest.mark.case("L01")
async def test_unknown_threads_are_not_found_and_nothing_is_made(fake: FakeCodex, work: Path) -> None:
    told: list[Update] = []
    with anyio.fail_after(5):
        async with running() as (backend, _):
            for unknown in (thread_id(1), "no-such", "/tmp/victim", "x" * 10_000):
                with pytest.raises(SessionNotFound):
                    await backend.replay(unknown, told.append)
                with pytest.raises(SessionNotFound):
                    async with backend.session(SessionSpec(str(work)), ScriptedEvents(), resume=unknown):
                        pass
    assert told == []
    assert fake.threads() == []
    assert fake.requests("thread/start") == []


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (f"thread {thread_id(1)} already has an active writer", "thread_active_writer"),
        (f"session {thread_id(1)} is archived. Run `codex unarchive`", "archived"),
    ],
)
async def test_a_thread_that_can_not_be_opened_says_why(fake: FakeCodex, work: Path, message: str, reason: str) -> None:
    fake.replies("thread/resume", {"error": {"code": -32600, "message": message}})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            with pytest.raises(InvalidRequest) as raised:
                async with backend.session(SessionSpec(str(work)), ScriptedEvents(), resume=thread_id(1)):
                    pass
    assert raised.value.data == {"reason": reason, "sessionId": thread_id(1)}


@pytest.mark.case("L10")
async def test_a_deleted_thread_is_gone_and_deleting_again_is_no_error(fake: FakeCodex) -> None:
    fake.stores({"id": thread_id(1)}, {"id": thread_id(2)})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            for victim in (thread_id(1), thread_id(1), "no-such", "../../victim", ""):
                await backend.delete(victim)
            assert [row.id for row in await backend.list(ListQuery(10))] == [thread_id(2)]


NEEDED = {"error": {"code": -32600, "message": "cannot delete thread T: forked history still references it"}}


async def test_a_thread_that_copies_are_built_on_goes_into_the_archive_until_it_can_be_deleted(fake: FakeCodex) -> None:
    fake.stores({"id": thread_id(1)})
    fake.replies("thread/delete", NEEDED, NEEDED, {"usual": True})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            for gone in (False, False, True):
                assert await backend.delete(thread_id(1)) is gone
                assert [thread["archived"] for thread in fake.threads()] == ([] if gone else [True])


async def test_a_refusal_to_delete_for_another_reason_is_told_and_the_thread_stays(fake: FakeCodex) -> None:
    fake.stores({"id": thread_id(1)})
    fake.replies("thread/delete", {"error": {"code": -32600, "message": "the disk says no"}})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            with pytest.raises(BackendFault, match="could not delete the session: the disk says no"):
                await backend.delete(thread_id(1))
    assert [thread["archived"] for thread in fake.threads()] == [False]


@pytest.mark.case("L10")
async def test_an_id_in_capitals_is_nobodys(fake: FakeCodex, work: Path) -> None:
    known = "0190abcd-3333-7000-8000-000000000001"
    fake.stores({"id": known, "preview": "hi"})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            assert await backend.find(known.upper()) is None
            assert await backend.delete(known.upper())
            for asked in (backend.rename(known.upper(), "x"), backend.archive(known.upper(), True)):
                with pytest.raises(SessionNotFound):
                    await asked
            with pytest.raises(SessionNotFound):
                async with backend.session(SessionSpec(str(work)), ScriptedEvents(), resume=known.upper()):
                    pass
            assert await backend.find(known) is not None
