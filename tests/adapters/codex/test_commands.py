"""Slash commands of a Codex session, on a stand-in for the app-server."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.backend import SessionSpec, StdioServer
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import Commands, Notice, Text, TurnEnd
from tests.fakes import fake_codex as fx
from tests.fakes.fake_codex import FakeCodex

from .scripted import ScriptedEvents, logged, one_session, running

pytestmark = pytest.mark.anyio


def skills(*names: str) -> fx.Json:
    found = [
        {"name": name, "description": f"does {name}", "path": f"/skills/{name}", "enabled": True} for name in names
    ]
    return {"result": {"data": [{"cwd": "/", "skills": found}]}}


def offered(events: ScriptedEvents) -> list[list[str]]:
    """The names of each list of commands, without those that are always there."""
    lists = [update.commands for update in events.updates if isinstance(update, Commands)]
    return [[command.name for command in commands if command.description.startswith("does ")] for commands in lists]


async def test_commands_are_told_again_when_the_skills_have_changed(fake: FakeCodex, work: Path) -> None:
    fake.replies("skills/list", skills("one"), skills("one", "two"))
    fake.plays([fx.notify("skills/changed"), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            await events.until(lambda: offered(events))
            await session.prompt((Text("go"),))
            await events.until(lambda: len(offered(events)) == 2)
            assert offered(events) == [["one"], ["one", "two"]]
            await session.prompt((Text("/two with care"), Text(" please")))
    blocks = fake.requests("turn/start")[-1]["input"]
    assert blocks[0] == {"type": "skill", "name": "two", "path": "/skills/two"}
    assert [block["text"] for block in blocks[1:]] == ["with care", " please"]


async def test_without_skills_the_other_commands_are_offered_and_what_is_none_goes_to_the_model(
    fake: FakeCodex, work: Path
) -> None:
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            await events.until(lambda: offered(events))
            for words in ("/nosuch word", "/usr/bin is a path", "see /compact"):
                assert await session.prompt((Text(words),)) == TurnEnd("end_turn")
    assert fake.prompts() == ["/nosuch word", "/usr/bin is a path", "see /compact"]
    assert fake.requests("thread/compact/start") == []


async def test_a_compaction_is_a_turn_that_names_itself_when_it_begins(fake: FakeCodex, work: Path) -> None:
    item = {"type": "contextCompaction", "id": "c1"}
    fake.plays([fx.started(item), fx.completed(item), fx.done()], [fx.started(item), fx.wait("interrupt")])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            assert await session.prompt((Text("/compact"),)) == TurnEnd("end_turn")
            assert "c1" in str(events.updates)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(session.prompt, (Text("/compact"),))
                await logged(lambda: len(fake.requests("thread/compact/start")) == 2)
                await session.interrupt()
                await logged(lambda: fake.requests("turn/interrupt"))
                tasks.cancel_scope.cancel()


async def test_looking_something_up_can_be_cancelled(fake: FakeCodex, work: Path) -> None:
    fake.replies("mcpServerStatus/list", {})
    ends: list[TurnEnd] = []
    with anyio.fail_after(5):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:

            async def look() -> None:
                ends.append(await session.prompt((Text("/mcp"),)))

            tasks.start_soon(look)
            await logged(lambda: fake.requests("mcpServerStatus/list"))
            await session.interrupt()
    assert ends == [TurnEnd("cancelled")] and events.said == ""


async def test_cleared_it_goes_on_in_a_new_thread_that_gets_the_title_with_its_first_turn(
    fake: FakeCodex, work: Path
) -> None:
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            first = session.id
            await session.prompt((Text("/clear"),))
            assert session.id == first and "Nothing was said" in events.said, "there is nothing to leave"
            await session.prompt((Text("hello"),))
            await session.rename("Kept")
            assert await session.prompt((Text("/clear"),)) == TurnEnd("end_turn")
            assert events.names == [session.id] and session.id != first
            assert fake.requests("thread/name/set") == [{"threadId": first, "name": "Kept"}]
            await session.prompt((Text("anew"),))
    assert [params["threadId"] for params in fake.requests("turn/start")] == [first, events.names[0]]
    assert fake.requests("thread/name/set")[-1] == {"threadId": events.names[0], "name": "Kept"}
    assert {"threadId": first} in fake.requests("thread/unsubscribe"), "what is left is at rest"


async def test_no_title_is_made_of_a_command_that_says_nothing(fake: FakeCodex, work: Path) -> None:
    with anyio.fail_after(5):
        async with one_session(work) as (session, _):
            assert await session.generate_title("/status") is None
            assert await session.generate_title("/review the parser") == "Generated title"


def status(name: str, state: str, error: str | None = None) -> fx.Step:
    return fx.notify("mcpServer/startupStatus/updated", threadId="$T", name=name, status=state, error=error)


async def test_a_server_that_fails_before_the_thread_is_there_is_told(fake: FakeCodex, work: Path) -> None:
    """As on a busy machine (codex-cli 0.163.0, one run of 200)."""
    fake.tells_early("mcpServer/startupStatus/updated", name="mine", status="failed", error="no such file")
    events = ScriptedEvents()
    spec = SessionSpec(str(work), (StdioServer("mine", "prog"),))
    with anyio.fail_after(5):
        async with running() as (backend, _), backend.session(spec, events):
            told = Notice("error", "MCP server mine can't be used", "no such file")
            assert [update for update in events.updates if isinstance(update, Notice)] == [told]


async def test_a_server_that_does_not_start_is_told_once_by_the_name_it_was_given(fake: FakeCodex, work: Path) -> None:
    whole = "MCP client for `my_server` failed to start: MCP startup failed: no\n such file"
    fake.replies("config/read", {"result": {"config": {"mcp_servers": {"probe": {}}}}})
    fake.plays(
        [status("my_server", "failed", whole), status("my_server", "failed", whole), status("theirs", "failed", "x")],
        [status("my_server", "ready"), status("my_server", "failed", whole)],
    )
    events = ScriptedEvents()
    servers = (StdioServer("my server", "prog"), StdioServer("probe", "prog"))
    with anyio.fail_after(5):
        async with running() as (backend, _), backend.session(SessionSpec(str(work), servers), events) as session:
            await session.prompt((Text("go"),))
            told = Notice("error", "MCP server my server can't be used", "no such file")
            theirs = Notice("warning", "MCP server theirs can't be used", "x")
            assert [update for update in events.updates if isinstance(update, Notice)] == [told, theirs]
            await session.prompt((Text("again"),))
            assert [update for update in events.updates if isinstance(update, Notice)] == [told, theirs, told]
    config: JsonObject = fake.requests("thread/start")[0]["config"]["mcp_servers"]
    assert set(config) == {"my_server", "probe", "probe_2"}
    assert config["probe"] == {"enabled": False}, "the person's own gives way in this session"
