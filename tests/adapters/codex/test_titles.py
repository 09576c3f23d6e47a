"""Titles: stored in Codex, read back from what it then tells, and heard from other programs."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.backend import ListQuery, SessionSpec
from acp_manifold.bridge.errors import BackendFault, InvalidRequest, SessionNotFound
from acp_manifold.translators.updates import Text
from tests.fakes import fake_codex as fx
from tests.fakes.fake_codex import FakeCodex

from .scripted import ScriptedEvents, one_session, running

pytestmark = pytest.mark.anyio

HELLO = (Text("hello"),)
OLD = "01900000-2222-7000-8000-000000000001"


@pytest.mark.case("T01")
async def test_a_rename_while_a_turn_runs_is_stored_before_it_is_answered(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.delta("a"), fx.gate("go"), fx.done()])
    events = ScriptedEvents()
    with anyio.fail_after(5):
        async with running() as (backend, host):
            async with backend.session(SessionSpec(str(work)), events) as session, anyio.create_task_group() as tasks:
                tasks.start_soon(session.prompt, HELLO)
                await events.until(lambda: events.said)
                assert await session.rename("Payments rework") == "Payments rework"
                assert [thread["name"] for thread in fake.threads()] == ["Payments rework"]
                fake.open("go")
            (row,) = await backend.list(ListQuery(10))
            assert (row.title, row.title_origin) == ("Payments rework", "user")
            assert host.titles == [("codex", session.id, "Payments rework", "user")]


@pytest.mark.case("T06")
async def test_the_answer_is_what_codex_stored(fake: FakeCodex, work: Path) -> None:
    with anyio.fail_after(5):
        async with one_session(work) as (session, _):
            assert await session.rename("  padded  ") == "padded"


async def test_a_title_given_with_the_session_is_stored_at_once(fake: FakeCodex, work: Path) -> None:
    with anyio.fail_after(5):
        async with running() as (backend, _):
            async with backend.session(SessionSpec(str(work), title="Incident 42"), ScriptedEvents()):
                assert [thread["name"] for thread in fake.threads()] == ["Incident 42"]


@pytest.mark.case("W02")
@pytest.mark.parametrize("titled", ["with the session", "later", "never"])
async def test_a_thread_without_a_turn_goes_with_its_session_titled_or_not(
    fake: FakeCodex, work: Path, titled: str
) -> None:
    spec = SessionSpec(str(work), title="Early" if titled == "with the session" else None)
    with anyio.fail_after(5):
        async with running() as (backend, _):
            async with backend.session(spec, ScriptedEvents()) as session:
                if titled == "later":
                    assert await session.rename("Early") == "Early"
            assert fake.threads() == []
            assert await backend.find(session.id) is None
    assert [params["threadId"] for params in fake.requests("thread/delete")] == [session.id]


async def test_a_thread_with_a_turn_or_of_the_store_stays_when_its_session_is_closed(
    fake: FakeCodex, work: Path
) -> None:
    fake.stores({"id": OLD, "cwd": "/w"})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            async with backend.session(SessionSpec(str(work), title="Early"), ScriptedEvents()) as session:
                await session.prompt(HELLO)
            async with backend.session(SessionSpec(str(work)), ScriptedEvents(), resume=OLD) as old:
                await old.rename("Old")
            assert {thread["name"] for thread in fake.threads()} == {"Early", "Old"}
    assert fake.requests("thread/delete") == []


async def test_a_title_codex_refuses_to_store_never_fails_the_session(
    fake: FakeCodex, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    fake.replies("thread/name/set", {"error": {"code": -32600, "message": "no rollout found for x"}}, {"usual": True})
    with anyio.fail_after(5), caplog.at_level(logging.WARNING):
        async with running() as (backend, _):
            async with backend.session(SessionSpec(str(work), title="Early"), ScriptedEvents()) as session:
                assert "could not be stored yet" in caplog.text
                await session.prompt(HELLO)
    assert [thread["name"] for thread in fake.threads()] == ["Early"]


async def test_a_rename_codex_can_not_store_yet_is_written_with_the_first_turn(fake: FakeCodex, work: Path) -> None:
    fake.replies("thread/name/set", {"error": {"code": -32600, "message": "no rollout found for x"}}, {"usual": True})
    with anyio.fail_after(5):
        async with one_session(work) as (session, _):
            assert await session.rename("Early") == "Early"
            await session.prompt(HELLO)
    assert [thread["name"] for thread in fake.threads()] == ["Early"]


async def test_a_refused_rename_is_an_error_with_codex_words(fake: FakeCodex, work: Path) -> None:
    fake.replies("thread/name/set", {"error": {"code": -32600, "message": "disk full"}})
    with anyio.fail_after(5):
        async with one_session(work) as (session, _):
            with pytest.raises(BackendFault, match="disk full"):
                await session.rename("x")


async def test_a_title_at_rest_needs_no_open_session(fake: FakeCodex) -> None:
    fake.stores({"id": OLD, "cwd": "/w"})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            assert await backend.rename(OLD, "At rest") == "At rest"
    assert fake.requests("thread/resume") == []


async def test_a_title_for_an_unknown_thread_is_not_found(fake: FakeCodex) -> None:
    with anyio.fail_after(5):
        async with running() as (backend, _):
            for unknown in (OLD, "../../victim", ""):
                with pytest.raises(SessionNotFound):
                    await backend.rename(unknown, "x")
    assert [params["threadId"] for params in fake.requests("thread/name/set")] == [OLD]


async def test_an_archived_thread_keeps_its_title(fake: FakeCodex) -> None:
    fake.stores({"id": OLD, "cwd": "/w", "archived": True})
    with anyio.fail_after(5):
        async with running() as (backend, _):
            with pytest.raises(InvalidRequest) as raised:
                await backend.rename(OLD, "x")
    assert raised.value.data == {"reason": "archived", "sessionId": OLD}


@pytest.mark.case("T10")
async def test_a_rename_on_the_wire_is_a_persons(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.notify("thread/name/updated", threadId="$T", threadName="Two"), fx.done()])
    with anyio.fail_after(5):
        async with running() as (backend, host):
            async with backend.session(SessionSpec(str(work)), ScriptedEvents()) as session:
                await session.prompt(HELLO)
                assert host.titles == [("codex", session.id, "Two", "user")]


async def test_a_generated_title_comes_from_a_thread_nobody_sees(fake: FakeCodex, work: Path) -> None:
    fake.titles("Fix the parser")
    events = ScriptedEvents()
    with anyio.fail_after(5):
        async with running() as (backend, host):
            async with backend.session(SessionSpec(str(work)), events) as session:
                await session.prompt(HELLO)
                said = len(events.conversation)
                assert await session.generate_title("please fix the parser") == "Fix the parser"
                await session.keep_generated("Fix the parser")
                assert len(events.conversation) == said
                assert host.titles == [("codex", session.id, "Fix the parser", "generated")]
            (row,) = await backend.list(ListQuery(10))
            assert (row.id, row.title, row.title_origin) == (session.id, "Fix the parser", "generated")
    (started,) = [params for params in fake.requests("thread/start") if params.get("ephemeral")]
    assert (started["threadSource"], started["environments"], started["model"]) == ("thread_title", [], "gpt-5.5")


async def test_a_model_that_gives_no_title_leaves_the_session_unnamed(fake: FakeCodex, work: Path) -> None:
    fake.titles(None)
    with anyio.fail_after(5):
        async with one_session(work) as (session, _):
            assert await session.generate_title("x") is None


@pytest.mark.case("W01")
async def test_whole_lines_of_the_index_are_heard_once(fake: FakeCodex) -> None:
    index = fake.home / "session_index.jsonl"
    index.write_text(json.dumps({"id": OLD, "thread_name": "before"}) + "\n")
    with anyio.fail_after(5):
        async with running() as (backend, host):
            with backend.follow(OLD, "/w"), backend.follow(OLD, "/w"):
                (changed,) = host.watches.values()
                line = json.dumps({"id": OLD, "thread_name": "数を数える"}, ensure_ascii=False).encode()
                other = json.dumps({"id": OLD.replace("1", "3"), "thread_name": "not followed"}).encode()
                for part in (other + b"\n" + line[:40], line[40:60], line[60:], b"\n{broken\n"):
                    with index.open("ab") as file:
                        file.write(part)
                    changed()
                assert host.titles == [("codex", OLD, "数を数える", "user")]
            assert host.watches == {}


def line(title: str, thread: str = OLD) -> bytes:
    return json.dumps({"id": thread, "thread_name": title}, ensure_ascii=False).encode() + b"\n"


@pytest.mark.case("W01")
async def test_a_delete_that_writes_the_index_anew_tells_no_old_title_again(fake: FakeCodex, work: Path) -> None:
    spec = SessionSpec(str(work))
    with anyio.fail_after(5):
        async with running() as (backend, host), backend.session(spec, ScriptedEvents()) as session:
            async with backend.session(spec, ScriptedEvents()) as other:
                await other.prompt(HELLO)
                await other.rename("to be deleted")
            with backend.follow(session.id, str(work)):
                (changed,) = host.watches.values()
                await session.rename("First")
                await session.rename("Second")
                changed()
                heard = list(host.titles)
                number = (fake.home / "session_index.jsonl").stat().st_ino
                await backend.delete(other.id)
                assert (fake.home / "session_index.jsonl").stat().st_ino != number
                changed()
                assert host.titles == heard
    assert [title for _, thread, title, _ in heard if thread == session.id] == ["First", "Second"]


@pytest.mark.case("W01")
@pytest.mark.parametrize("number_is_used_again", [False, True])
async def test_of_an_index_written_anew_only_the_newest_line_is_news(
    fake: FakeCodex, number_is_used_again: bool
) -> None:
    index, fresh = fake.home / "session_index.jsonl", fake.home / "fresh"
    index.write_bytes(line("doomed", OLD.replace("1", "3")) + line("One") + line("Two"))
    with anyio.fail_after(5):
        async with running() as (backend, host):
            with backend.follow(OLD, "/w"):
                (changed,) = host.watches.values()
                longer = line("One") + line("Two") + line("Three " + "x" * 200) + line("Four \u6570")
                if number_is_used_again:
                    index.write_bytes(longer[:-3])
                else:
                    fresh.write_bytes(longer[:-3])
                    fresh.replace(index)
                changed()
                assert host.titles == [("codex", OLD, "Three " + "x" * 200, "user")]
                with index.open("ab") as file:
                    file.write(longer[-3:])
                changed()
                assert host.titles[1:] == [("codex", OLD, "Four \u6570", "user")]


async def test_a_title_given_back_to_a_thread_nobody_followed_meanwhile_is_news(fake: FakeCodex) -> None:
    index = fake.home / "session_index.jsonl"
    index.write_bytes(line("One"))
    with anyio.fail_after(5):
        async with running() as (backend, host):
            with backend.follow(OLD, "/w"):
                pass
            index.write_bytes(line("One") + line("Two"))
            with backend.follow(OLD, "/w"):
                (changed,) = host.watches.values()
                index.unlink()
                changed()
                index.write_bytes(line("One") + line("Two") + line("One"))
                changed()
    assert host.titles == [("codex", OLD, "One", "user")]
