"""Titles of sessions whose process is ours."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.claude import ClaudeBackend, live_title
from acp_manifold.bridge.backend import BackendSession, SessionSpec
from acp_manifold.bridge.errors import BackendFault, BackendGone
from tests.adapters.claude.scripted import Listener, ScriptedHost, hub, opened, saying
from tests.fakes.fake_claude import FakeClaude, append, die, end, gate, record, say, wait
from tests.waiting import until

pytestmark = pytest.mark.anyio


@pytest.mark.case("T01")
async def test_a_rename_in_mid_turn_is_on_disk_when_it_is_answered(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    fake.plays([wait("user"), say("working"), gate("go"), end()])
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, saying("hello"))
            await listener.until(lambda: listener.said == "working")
            assert await session.rename("Payments rework") == "Payments rework"
            assert fake.titles(session.id) == ["Payments rework"]
            fake.open("go")
    row = await backend.find(session.id)
    assert row is not None and (row.title, row.title_origin) == ("Payments rework", "user")


@pytest.mark.case("W02")
async def test_a_title_before_the_first_prompt_is_kept_and_written_with_it(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    fake.plays([wait("user"), say("hi"), record({"type": "ai-title", "aiTitle": "Gen", "sessionId": "$S"}), end()])
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            assert await session.rename("Early") == "Early"
            assert await session.rename("Earlier") == "Earlier"
            assert await backend.find(session.id) is None
            await session.prompt(saying("x"))
            assert fake.titles(session.id) == ["Earlier"]
            row = await backend.find(session.id)
    assert row is not None and row.title == "Earlier"


@pytest.mark.case("R01")
async def test_the_title_of_the_spec_goes_ahead_of_the_first_message(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    with anyio.fail_after(5):
        async with hub(backend) as host:
            async with backend.session(SessionSpec(str(work), title="Incident 42"), Listener()) as session:
                await session.prompt(saying("x"))
            assert host.heard == [("Incident 42", "user")]
    kinds = [line["request"]["subtype"] if "request" in line else line["type"] for line in fake.received(session.id)]
    assert kinds[:3] == ["initialize", "rename_session", "user"]
    assert fake.users() == ["x"]


async def test_what_the_cli_made_of_a_title_is_given_back(fake: FakeClaude, backend: ClaudeBackend, work: Path) -> None:
    fake.plays([wait("user"), end()], rename_as="As stored")
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            await session.prompt(saying("x"))
            assert await session.rename("As sent") == "As stored"


async def test_a_refused_rename_says_why(fake: FakeClaude, backend: ClaudeBackend, work: Path) -> None:
    fake.plays([wait("user"), end()], rename_error="title must be non-empty")
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            await session.prompt(saying("x"))
            with pytest.raises(BackendFault, match="title must be non-empty"):
                await session.rename("x")


async def test_a_title_that_is_never_stored_is_no_success(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_title, "READ_BACK_LIMIT", 0.2)
    fake.plays([wait("user"), end()], forgets=1)
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            await session.prompt(saying("x"))
            with pytest.raises(BackendFault, match="has not stored it"):
                await session.rename("x")


@asynccontextmanager
async def held_up(fake: FakeClaude, host: ScriptedHost, session: BackendSession) -> AsyncGenerator[None]:
    """A first turn that a hook holds up; it goes on, and ends, with the context."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(session.prompt, saying("x"))
        await host.until_changed(fake.folder / "log", lambda: bool(fake.users(session.id)))
        yield
        fake.open("hook")


def wanted(fake: FakeClaude) -> list[str]:
    """The titles that the CLI was asked to set."""
    return [request["title"] for request in fake.requests("rename_session")]


@pytest.mark.case("W02")
async def test_a_title_set_while_a_hook_holds_up_the_first_turn_is_stored_with_the_cli(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_title, "READ_BACK_LIMIT", 30.0)
    fake.plays([wait("user", hook="hook"), say("hi"), end()])
    with anyio.fail_after(5):
        async with hub(backend) as host, backend.session(SessionSpec(str(work)), Listener()) as session:
            assert await session.rename("Early") == "Early"
            async with held_up(fake, host, session):
                assert await session.rename("Hooked") == "Hooked"
                assert await backend.find(session.id) is None
            assert fake.titles(session.id) == ["Hooked"]
    assert wanted(fake) == ["Early", "Hooked"]


@pytest.mark.case("W02")
@pytest.mark.parametrize("when", ["before the first prompt", "in the first turn"])
async def test_a_title_that_is_missing_in_the_transcript_that_appears_is_set_again(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setattr(live_title, "READ_BACK_LIMIT", 0.1)
    fake.plays([wait("user", hook="hook"), say("hi"), end()], forgets=1)
    with anyio.fail_after(5):
        async with hub(backend) as host, backend.session(SessionSpec(str(work)), Listener()) as session:
            if when == "before the first prompt":
                assert await session.rename("Mine") == "Mine"
            async with held_up(fake, host, session):
                if when == "in the first turn":
                    assert await session.rename("Mine") == "Mine"
            path = fake.transcript(session.id)
            await host.until_changed(path, lambda: fake.titles(session.id) == ["Mine"])
    assert wanted(fake) == ["Mine", "Mine"]


@pytest.mark.case("W02")
async def test_a_title_that_another_has_replaced_is_not_set_again(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_title, "READ_BACK_LIMIT", 0.0)
    fake.plays([wait("user", hook="hook"), say("hi"), end()])
    with anyio.fail_after(5):
        async with hub(backend) as host, backend.session(SessionSpec(str(work)), Listener()) as session:
            async with held_up(fake, host, session):
                assert await session.rename("One") == "One"
                assert await session.rename("Two") == "Two"
            for _ in range(10):
                # Each goes to the CLI and back, behind whatever was asked of it before.
                await session.generate_title("Please do this")
            assert fake.titles(session.id) == ["Two"]
    assert wanted(fake) == ["One", "Two"]


@pytest.mark.parametrize("waits_for", ["the answer", "the record"])
async def test_a_rename_ends_with_its_session(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, monkeypatch: pytest.MonkeyPatch, waits_for: str
) -> None:
    monkeypatch.setattr(live_title, "READ_BACK_LIMIT", 30.0)
    fake.plays([wait("user"), end()], forgets=1, rename_unanswered=waits_for == "the answer")

    async def refused(session: BackendSession) -> None:
        with pytest.raises(BackendGone, match="the session was closed"):
            await session.rename("Title")

    with anyio.fail_after(5):
        async with hub(backend) as host, anyio.create_task_group() as tasks:
            async with backend.session(SessionSpec(str(work)), Listener()) as session:
                await session.prompt(saying("x"))
                tasks.start_soon(refused, session)
                await host.until_changed(fake.folder / "log", lambda: wanted(fake) == ["Title"])
                if waits_for == "the record":
                    await host.until_heard("Title", "user")


async def test_a_title_that_was_stored_as_the_process_died_is_given_back(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    named = record({"type": "custom-title", "customTitle": "Title", "sessionId": "$S"})
    fake.plays([wait("user"), end(), wait("rename"), named, die()], forgets=1)
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            await session.prompt(saying("x"))
            assert await session.rename("Title") == "Title"


@pytest.mark.case("T06")
async def test_a_title_has_the_form_of_the_cli_before_the_cli_has_it(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    fake.plays([wait("user"), end()], title="👩‍👩‍👧 team")
    spec = SessionSpec(str(work), title="👩‍👩‍👧 family")
    with anyio.fail_after(5):
        async with hub(backend), backend.session(spec, Listener()) as session:
            await session.prompt(saying("x"))
            assert fake.titles(session.id) == ["👩 👩 👧 family"]
            assert await session.rename("👩‍🚀 crew") == "👩 🚀 crew"
            assert await session.generate_title("Please do this") == "👩 👩 👧 team"
        async with hub(backend), backend.session(SessionSpec(str(work)), Listener()) as session:
            assert await session.rename("👩‍🚀 crew") == "👩 🚀 crew"


async def test_a_generated_title_is_given_back_and_a_refusal_is_none(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    fake.plays([wait("user"), end()], title="Short name")
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            await session.prompt(saying("x"))
            assert await session.generate_title("Please do this") == "Short name"
            await session.keep_generated("Short name")
            row = await backend.find(session.id)
    assert row is not None and (row.title, row.title_origin) == ("Short name", "generated")
    (request,) = fake.requests("generate_session_title")
    assert request["persist"] is True and request["description"] == "Please do this"


@pytest.mark.case("T09")
@pytest.mark.case("W01")
async def test_titles_appended_by_others_are_heard_once_they_are_whole(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    line = '{"type":"ai-title","aiTitle":"数を数える","sessionId":"x"}\n'.encode()
    steps = [append(line[:20]), append(line[20:30]), gate("rest"), append(line[30:])]
    named = record({"type": "custom-title", "customTitle": "Two", "sessionId": "$S"})
    fake.plays([wait("user"), end(), *steps, gate("named"), append(b'{"type":"ai-title","aiTi}\n'), named])
    with anyio.fail_after(5):
        async with hub(backend) as host, backend.session(SessionSpec(str(work)), Listener()) as session:
            with backend.follow(session.id, str(work)):
                await session.prompt(saying("x"))
                fake.open("rest")
                await host.until_heard("数を数える", "generated")
                fake.open("named")
                await host.until_heard("Two", "user")
            assert host.heard == [("数を数える", "generated"), ("Two", "user")]


async def test_an_older_title_written_behind_the_new_one_does_not_count(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    """What the CLI had on its way to the transcript when it was renamed (seen in 2 of 500 renames under load)."""
    fake.plays([wait("user"), end()], overtakes=["Old", 1])
    with anyio.fail_after(10):
        async with opened(backend, work) as session:
            await session.prompt(saying("x"))
            assert await session.rename("Old") == "Old"
            assert await session.rename("New") == "New"
            assert fake.titles(session.id) == ["Old", "New", "Old", "New"]


async def test_older_titles_that_keep_coming_are_an_error_and_no_title(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    fake.plays([wait("user"), end()], overtakes=["Old", 9])
    with anyio.fail_after(10):
        async with opened(backend, work) as session:
            await session.prompt(saying("x"))
            await session.rename("Old")
            with pytest.raises(BackendFault, match="set it again"):
                await session.rename("New")


async def test_an_older_title_that_comes_back_later_is_written_over_and_not_told(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    with anyio.fail_after(10):
        async with hub(backend) as host:
            async with backend.session(SessionSpec(str(work)), Listener()) as session:
                with backend.follow(session.id, str(work)):
                    await session.prompt(saying("x"))
                    await session.rename("Old")
                    await session.rename("New")
                    heard = len(host.heard)
                    with fake.transcript(session.id).open("a") as file:
                        file.write(json.dumps({"type": "custom-title", "customTitle": "Old", "sessionId": "x"}) + "\n")
                    await until(lambda: fake.titles(session.id) == ["Old", "New", "Old", "New"])
                    assert ("Old", "user") not in host.heard[heard:]


async def test_older_titles_that_come_back_together_are_written_over_once(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    async with hub(backend) as host, backend.session(SessionSpec(str(work)), Listener()) as session:
        with anyio.fail_after(10), backend.follow(session.id, str(work)):
            await session.prompt(saying("x"))
            for title in ("One", "Two", "New"):
                await session.rename(title)
            late = [{"type": "custom-title", "customTitle": title, "sessionId": "x"} for title in ("One", "Two")]
            with fake.transcript(session.id).open("a") as file:
                file.write("".join(json.dumps(line) + "\n" for line in late))
            await until(lambda: fake.titles(session.id)[3:] == ["One", "Two", "New"])
            # Another rename behind it: were there more than one on the way, they would come before.
            await session.rename("Newer")
            await host.until_heard("Newer", "user")
        assert [request["title"] for request in fake.requests("rename_session", session.id)][2:] == ["New"] * 2 + [
            "Newer"
        ]


async def test_a_person_who_renames_back_elsewhere_is_heeded(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    with anyio.fail_after(10):
        async with hub(backend) as host:
            async with backend.session(SessionSpec(str(work)), Listener()) as session:
                with backend.follow(session.id, str(work)):
                    await session.prompt(saying("x"))
                    await session.rename("Old")
                    await session.rename("New")
                    await host.until_heard("New", "user")
                    heard = len(host.heard)
                    path = fake.transcript(session.id)
                    beside = path.with_suffix("") / "custom-title.json"
                    beside.parent.mkdir(exist_ok=True)
                    beside.write_text('{"customTitle":"Old","by":"user","at":"2026-11-30T12:00:00.000Z"}')
                    with path.open("a") as file:
                        file.write(json.dumps({"type": "custom-title", "customTitle": "Old", "sessionId": "x"}) + "\n")
                    await until(lambda: ("Old", "user") in host.heard[heard:])
                    await until(lambda: fake.requests("rename_session", session.id)[-1]["title"] == "Old")


async def test_renames_of_another_program_in_quick_succession_end_with_the_last(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    with anyio.fail_after(10):
        async with hub(backend) as host:
            async with backend.session(SessionSpec(str(work)), Listener()) as session:
                with backend.follow(session.id, str(work)):
                    await session.prompt(saying("x"))
                    await session.rename("Ours")
                    await host.until_heard("Ours", "user")
                    with fake.transcript(session.id).open("a") as file:
                        for title in ("One", "Two", "Three"):
                            file.write(
                                json.dumps({"type": "custom-title", "customTitle": title, "sessionId": "x"}) + "\n"
                            )
                    await until(lambda: fake.titles(session.id).count("Three") >= 2)
                    renames = [request["title"] for request in fake.requests("rename_session", session.id)]
                    assert renames == ["Ours", "Three"]
            assert [title for title, _ in host.heard if title != "Ours"] == ["One", "Two", "Three"]


async def test_a_title_of_another_program_lasts_though_the_process_writes_its_own_behind_it(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    """A big turn does, before we are heard (seen in 3 of 500 renames under load)."""
    with anyio.fail_after(10):
        async with hub(backend) as host:
            async with backend.session(SessionSpec(str(work)), Listener()) as session:
                with backend.follow(session.id, str(work)):
                    await session.prompt(saying("x"))
                    await session.rename("Ours")
                    await host.until_heard("Ours", "user")
                    with fake.transcript(session.id).open("a") as file:
                        for title in ("One", "Two", "Ours"):
                            file.write(
                                json.dumps({"type": "custom-title", "customTitle": title, "sessionId": "x"}) + "\n"
                            )
                    await until(lambda: fake.titles(session.id)[-1] == "Two")
                    renames = [request["title"] for request in fake.requests("rename_session", session.id)]
                    assert renames == ["Ours", "Two"]
                    assert ("Ours", "user") not in host.heard[host.heard.index(("One", "user")) :]


async def test_a_person_who_takes_another_programs_rename_back_at_once_is_heeded(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    with anyio.fail_after(10):
        async with hub(backend) as host:
            async with backend.session(SessionSpec(str(work)), Listener()) as session:
                with backend.follow(session.id, str(work)):
                    await session.prompt(saying("x"))
                    await session.rename("Ours")
                    await host.until_heard("Ours", "user")
                    heard = len(host.heard)
                    path = fake.transcript(session.id)
                    beside = path.with_suffix("") / "custom-title.json"
                    beside.parent.mkdir(exist_ok=True)
                    beside.write_text('{"customTitle":"Ours","by":"user","at":"2126-11-30T12:00:00.000Z"}')
                    with path.open("a") as file:
                        for title in ("One", "Ours"):
                            file.write(
                                json.dumps({"type": "custom-title", "customTitle": title, "sessionId": "x"}) + "\n"
                            )
                    await until(lambda: ("Ours", "user") in host.heard[heard:])
                    assert fake.titles(session.id)[-1] == "Ours"
            assert [request["title"] for request in fake.requests("rename_session", session.id)] == ["Ours"]


async def test_a_prompt_waits_until_the_process_has_the_title_of_another_program(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    """Else the turn could write the title of before over it (torture under load, 1 of 500)."""
    fake.plays([wait("user"), end(), wait("user"), end()])
    with anyio.fail_after(10):
        async with hub(backend) as host:
            async with backend.session(SessionSpec(str(work)), Listener()) as session:
                with backend.follow(session.id, str(work)):
                    await session.prompt(saying("x"))
                    with fake.transcript(session.id).open("a") as file:
                        file.write(json.dumps({"type": "custom-title", "customTitle": "One", "sessionId": "x"}) + "\n")
                    await host.until_heard("One", "user")
                    await session.prompt(saying("y"))
    kinds = [line["request"]["subtype"] if "request" in line else line["type"] for line in fake.received(session.id)]
    assert kinds[-2:] == ["rename_session", "user"]
