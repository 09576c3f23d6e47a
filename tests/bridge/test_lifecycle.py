"""Copies, the archive and the status of sessions, and a load in the middle of a turn (issue 5)."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.backend import ListQuery, SessionRow
from acp_manifold.bridge.errors import InvalidRequest
from acp_manifold.bridge.ledger import Key, Ledger
from acp_manifold.translators.narrow import JsonObject, obj, text
from acp_manifold.translators.updates import MessageChunk, Role, Text, ToolCall, ToolCallUpdate

from .editor import Editor, Refused, editor_on, editors
from .scripted import QUESTION, ScriptedBackend, ScriptedSession

pytestmark = pytest.mark.anyio


def said(words: str, message_id: str, role: Role = "agent") -> MessageChunk:
    return MessageChunk(role, Text(words), message_id)


def stored(backend: ScriptedBackend, session_id: str, cwd: Path) -> str:
    backend.stored[session_id] = SessionRow(session_id, str(cwd), backend.tick())
    backend.history[session_id] = [said(f"hello {session_id}", "u0", "user"), said("old", "a0")]
    return session_id


async def turn(editor: Editor, cli: ScriptedSession, session: str) -> None:
    asked = editor.prompt(session, "go")
    await cli.prompted()
    cli.finish()
    await editor.answer(asked)


def words(editor: Editor, session: str, since: int = 0) -> list[str]:
    """All text of a session, chunk by chunk, with who said it."""
    found: list[str] = []
    for line in editor.lines[since:]:
        params = obj(line, "params")
        update = obj(params, "update")
        if params.get("sessionId") == session and "chunk" in text(update, "sessionUpdate"):
            found.append(f"{text(update, 'sessionUpdate')[:4]}: {text(obj(update, 'content'), 'text')}")
    return found


def ids(rows: list[JsonObject]) -> list[object]:
    return [row["sessionId"] for row in rows]


# -- fork ---------------------------------------------------------------------------------------


async def test_a_fork_is_a_session_of_its_own_with_the_title_and_its_maker(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        stored(alpha, "one", tmp_path)
        await editor.request("session/set_title", sessionId="one", title="Mine")
        answer = await editor.request("session/fork", sessionId="one", cwd=str(tmp_path), mcpServers=[])
        fork = text(answer, "sessionId")
        assert fork != "one" and answer["configOptions"]
        await editor.wait_for(lambda line: obj(obj(line, "params"), "update").get("title") == "Mine")
        assert [s.id for s in alpha.sessions] == [fork], "the source is not opened"
        alpha.hear(fork, "Generated", "generated")
        assert {row["sessionId"]: row["title"] for row in await editor.listed()} == {"one": "Mine", fork: "Mine"}
        await turn(editor, alpha.sessions[0], fork)


async def test_the_source_of_a_fork_goes_on_with_its_turn(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path)
        asked = editor.prompt(session, "go")
        await alpha.sessions[0].prompted()
        await editor.request("session/fork", sessionId=session, cwd=str(tmp_path))
        alpha.sessions[0].say("on")
        alpha.sessions[0].finish()
        assert (await editor.answer(asked))["stopReason"] == "end_turn"
        assert editor.said(session) == "on" and alpha.sessions[0].interrupts == 0


async def test_a_fork_of_a_session_in_which_nothing_was_said_is_a_new_one(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend(), ScriptedBackend("beta")
    async with editor_on(alpha, beta) as editor:
        session = await editor.new(tmp_path, "beta", title="Early")
        answer = await editor.request("session/fork", sessionId=session, cwd=str(tmp_path))
        assert [s.resumed for s in beta.sessions] == [False, False] and not alpha.sessions
        assert editor.titles(text(answer, "sessionId")) == ["Early"]


async def test_a_copy_that_the_store_does_not_list_is_listed_all_the_same(tmp_path: Path) -> None:
    alpha, ledger = Shy(), tmp_path / "ledger"
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        stored(alpha, "one", tmp_path)
        answer = await editor.request("session/fork", sessionId="one", cwd=str(tmp_path))
        fork = text(answer, "sessionId")
        assert ids(await editor.listed()) == [fork, "one"]
        await editor.request("session/close", sessionId=fork)
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        assert ids(await editor.listed()) == [fork, "one"]
        assert ids(await editor.listed(cwd="/elsewhere")) == [] and ids(await editor.listed(archived="only")) == []
        alpha.hides = False
        assert ids(await editor.listed()) == [fork, "one"]
    assert Ledger(ledger).marked("alpha", "fork") == frozenset()


class Shy(ScriptedBackend):
    """Lists no copies, as Codex does before their first turn."""

    hides = True

    async def list(self, query: ListQuery) -> list[SessionRow]:
        return [row for row in await super().list(query) if not (self.hides and "-fork-" in row.id)]


async def test_a_copy_that_cannot_be_opened_is_taken_back(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        stored(alpha, "one", tmp_path)
        alpha.refuses = InvalidRequest("not today")
        with pytest.raises(Refused, match="not today"):
            await editor.request("session/fork", sessionId="one", cwd=str(tmp_path))
        assert list(alpha.stored) == ["one"] and ids(await editor.listed()) == ["one"]


async def test_who_is_refused_what_another_process_has_hears_of_the_fork(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        stored(alpha, "one", tmp_path)
        alpha.refuses = InvalidRequest("It is open elsewhere", {"reason": "thread_active_writer", "sessionId": "one"})
        for method in ("session/load", "session/resume"):
            with pytest.raises(Refused) as refused:
                await editor.request(method, sessionId="one", cwd=str(tmp_path), mcpServers=[])
            assert "session/fork" in refused.value.message
            assert refused.value.data == {"reason": "thread_active_writer", "sessionId": "one", "try": "session/fork"}


# -- archive ------------------------------------------------------------------------------------


@pytest.mark.parametrize("own", [True, False])
async def test_archived_sessions_are_listed_when_asked_for(tmp_path: Path, own: bool) -> None:
    alpha, ledger = ScriptedBackend(), tmp_path / "ledger"
    alpha.has_archive = own
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        for name in ("one", "two"):
            stored(alpha, name, tmp_path)
        for _ in range(2):
            assert await editor.request("session/archive", sessionId="one") == {}
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        assert [(row["sessionId"], row["archived"]) for row in await editor.listed()] == [("two", False)]
        assert ids(await editor.listed(archived="exclude")) == ["two"]
        assert [(r["sessionId"], r["archived"]) for r in await editor.listed(archived="only")] == [("one", True)]
        assert ids(await editor.listed(archived="include")) == ["two", "one"]
        for _ in range(2):
            assert await editor.request("session/unarchive", sessionId="one") == {}
        assert ids(await editor.listed(archived="only")) == []
        assert ids(await editor.listed()) == ["two", "one"]


async def test_an_active_session_is_closed_before_it_is_archived(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (editor, other):
        session = await editor.new(tmp_path)
        asked = editor.prompt(session, "go")
        cli = alpha.sessions[0]
        asked_at: object = None
        await cli.prompted()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(cli.events.ask, QUESTION)
            asked_at = (await editor.question()).id
            assert await other.request("session/archive", sessionId=session) == {}
        assert (await editor.answer(asked))["stopReason"] == "cancelled"
        await editor.wait_for(lambda line: line.get("params") == {"requestId": asked_at})
        assert not cli.open and ids(await editor.listed(archived="only")) == [session]
        with pytest.raises(Refused):
            await editor.answer(editor.prompt(session, "on"))
        await editor.request("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert ids(await editor.listed()) == [], "to open it is not to take it out"


async def test_what_another_process_has_open_is_not_archived_in_ours_either(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        stored(alpha, "one", tmp_path)
        alpha.refuses = InvalidRequest("This session is open in another Alpha process", {"reason": "held"})
        with pytest.raises(Refused) as refused:
            await editor.request("session/archive", sessionId="one")
        assert "another Alpha process" in str(refused.value)
        alpha.refuses = None
        assert ids(await editor.listed()) == ["one"]


async def test_an_archived_session_is_renamed_and_stays_archived(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        stored(alpha, "one", tmp_path)
        await editor.request("session/archive", sessionId="one")
        await editor.request("session/set_title", sessionId="one", title="New")
        (row,) = await editor.listed(archived="only")
        assert row["title"] == "New"
        await editor.request("session/delete", sessionId="one")
        stored(alpha, "one", tmp_path)
        assert ids(await editor.listed()) == ["one"], "what comes by that name later is not archived"


async def test_a_filter_that_is_none_and_the_cursor_of_another_one_are_refused(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        for number in range(150):
            stored(alpha, f"s{number:03}", tmp_path)
        cursor = (await editor.request("session/list"))["nextCursor"]
        assert len(await editor.listed(cursor=cursor, archived="exclude")) == 50
        assert len(await editor.listed(cursor=cursor, archived=None)) == 50
        for wrong in ({"archived": "all"}, {"archived": ""}, {"archived": True}, {"archived": "_x"}):
            with pytest.raises(Refused) as refused:
                await editor.listed(**wrong)
            assert refused.value.code == -32602 and refused.value.data["field"] == "archived"
        for other in ({"archived": "include"}, {"archived": "only"}, {"cwd": str(tmp_path)}):
            with pytest.raises(Refused) as refused:
                await editor.listed(cursor=cursor, **other)
            assert refused.value.code == -32602 and refused.value.data["field"] == "cursor"


def test_a_ledger_of_the_version_before_keeps_its_titles_and_takes_marks(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    with sqlite3.connect(path) as old:
        old.executescript(
            "CREATE TABLE titles (backend TEXT NOT NULL, id TEXT NOT NULL, title TEXT NOT NULL, origin TEXT NOT NULL,"
            " PRIMARY KEY (backend, id)) WITHOUT ROWID;"
            "CREATE TABLE aliases (session TEXT NOT NULL PRIMARY KEY, backend TEXT NOT NULL, id TEXT NOT NULL)"
            " WITHOUT ROWID; CREATE INDEX aliases_by_id ON aliases (backend, id);"
            "INSERT INTO titles VALUES ('alpha', 'one', 'Kept', 'client'); PRAGMA user_version = 1;"
        )
    old.close()
    key = Key("alpha", "one")
    ledger = Ledger(path)
    ledger.put_mark(key, "archived", True)
    ledger.close()
    ledger = Ledger(path)
    assert ledger.title(key) == ("Kept", "client")
    assert ledger.marked("alpha", "archived") == {"one"} and not ledger.marked("alpha", "fork")
    ledger.forget(key)
    assert not ledger.marked("alpha", "archived")
    ledger.close()


# -- status -------------------------------------------------------------------------------------


async def test_the_status_tells_what_is_open_and_changes_nothing(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (editor, other):
        stored(alpha, "one", tmp_path)
        assert await editor.request("session/status", sessionId="one") == {"status": "saved"}
        await editor.request("session/resume", sessionId="one", cwd=str(tmp_path))
        assert await other.request("session/status", sessionId="one") == {"status": "open"}
        with pytest.raises(Refused):
            await other.answer(other.prompt("one", "not attached by that"))
        await editor.request("session/close", sessionId="one")
        assert await other.request("session/status", sessionId="one") == {"status": "saved"}
        assert len(alpha.sessions) == 1


@pytest.mark.case("L01")
@pytest.mark.parametrize("unknown", ["never-used", "../../etc/passwd", "", "x" * 10_000, "\ud800"])
async def test_every_method_says_of_an_unknown_session_that_there_is_none(tmp_path: Path, unknown: str) -> None:
    alpha = ScriptedBackend()
    params: JsonObject = {
        "sessionId": unknown,
        "cwd": str(tmp_path),
        "mcpServers": [],
        "title": "x",
        "prompt": [{"type": "text", "text": "x"}],
        "configId": "backend",
        "value": "x",
    }
    methods = ("load", "resume", "fork", "close", "archive", "unarchive", "status", "prompt", "set_title")
    async with editor_on(alpha) as editor:
        for method in (*(f"session/{name}" for name in methods), "session/set_config_option"):
            with pytest.raises(Refused) as refused:
                await editor.request(method, **params)
            assert refused.value.code == -32002, method
            assert refused.value.data["sessionId"] in (unknown[:200], "\ufffd")
        assert await editor.request("session/delete", sessionId=unknown) == {}
        assert not alpha.sessions and not alpha.stored


# -- load of a session that is live ---------------------------------------------------------------


async def running(editor: Editor, alpha: ScriptedBackend, cwd: Path) -> tuple[str, ScriptedSession, int]:
    """A session of the store in whose turn something was said: its id, its CLI, and the prompt."""
    session = stored(alpha, "one", cwd)
    await editor.request("session/resume", sessionId=session, cwd=str(cwd))
    asked = editor.prompt(session, "go")
    cli = alpha.sessions[0]
    await cli.prompted()
    cli.events.update(said("go", "u1", "user"))
    cli.say("first ", "a1")
    cli.say("words ", "a1")
    cli.events.update(ToolCall("t1", "ls", "execute", "in_progress"))
    await editor.update(session, "tool_call")
    # The store has got that far: the prompt, and a message that was complete.
    alpha.history[session] += [said("go", "u1", "user"), said("first words ", "a1")]
    return session, cli, asked


LOADED = ["user: hello one", "agen: old", "user: go", "agen: first words "]


@pytest.mark.parametrize("who", ["the same", "another"])
async def test_a_load_in_the_middle_of_a_turn_tells_each_item_once_and_the_turn_goes_on(
    tmp_path: Path, who: str
) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (editor, other):
        session, cli, asked = await running(editor, alpha, tmp_path)
        loader = editor if who == "the same" else other
        alpha.replaying, since = anyio.Event(), len(loader.lines)
        load = loader.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        await loader.wait_for(lambda line: "old" in str(line), since)
        # While the history is told the turn goes on: the store may have it before, or behind, the client.
        cli.say("and more", "a1")
        cli.say("next", "a2")
        alpha.history[session] += [said("next", "a2")]
        cli.events.update(ToolCallUpdate("t1", status="completed"))
        await editor.round_trip()
        alpha.replaying.set()
        await loader.answer(load)
        place = next(n for n, line in enumerate(loader.lines) if line.get("id") == load and "method" not in line)
        await loader.wait_for(lambda line: "next" in str(line), place)
        told = loader.lines[since:place]
        assert words(loader, session, since) == [*LOADED, "agen: and more", "agen: next"]
        states = [text(obj(obj(line, "params"), "update"), "status") for line in told if "tool_call" in str(line)]
        assert states == ["in_progress"], "as it was when the history began"
        assert "and more" not in str(told) and "completed" not in str(told)
        cli.say("!", "a2")
        cli.finish()
        assert (await editor.answer(asked))["stopReason"] == "end_turn"
        assert words(loader, session, since)[-1] == "agen: !"
        assert len(alpha.sessions) == 1 and cli.interrupts == 0


async def test_the_answer_to_a_prompt_comes_behind_the_history_that_is_told_and_the_last_words(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await running(editor, alpha, tmp_path)
        alpha.replaying, since = anyio.Event(), len(editor.lines)
        load = editor.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        await editor.wait_for(lambda line: "old" in str(line), since)
        cli.say("the end", "a2")
        cli.finish()
        await editor.round_trip()
        assert not editor.settled(asked)
        alpha.replaying.set()
        await editor.answer(asked)
        order = [line.get("id") for line in editor.lines if line.get("id") in (load, asked) and "method" not in line]
        assert order == [load, asked]
        assert words(editor, session, since) == [*LOADED, "agen: the end"]


async def test_a_question_that_is_open_stays_its_owners_and_answerable_over_a_load(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (editor, other):
        session, cli, asked = await running(editor, alpha, tmp_path)
        answers: list[str | None] = []

        async def ask() -> None:
            answers.append(await cli.events.ask(QUESTION))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            question = await editor.question()
            for loader in (editor, other):
                await loader.request("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
            question.answer("yes")
        assert answers == ["yes"]
        assert all(line.get("method") != "session/request_permission" for line in other.lines)
        cli.finish()
        await editor.answer(asked)


async def test_a_load_that_fails_leaves_the_client_where_it_was(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await running(editor, alpha, tmp_path)
        alpha.replaying, since = anyio.Event(), len(editor.lines)
        load = editor.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        await editor.wait_for(lambda line: "old" in str(line), since)
        cli.say("held back", "a2")
        editor.tell("$/cancel_request", requestId=load)
        with pytest.raises(Refused):
            await editor.answer(load)
        await editor.wait_for(lambda line: "held back" in str(line))
        cli.finish()
        assert (await editor.answer(asked))["stopReason"] == "end_turn"


async def test_what_one_client_types_the_others_see_and_it_does_not(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (editor, other):
        session = stored(alpha, "one", tmp_path)
        for one in (editor, other):
            await one.request("session/resume", sessionId=session, cwd=str(tmp_path))
        asked = editor.prompt(session, "go")
        await alpha.sessions[0].prompted()
        alpha.sessions[0].events.update(said("go", "u1", "user"))
        alpha.sessions[0].finish()
        await editor.answer(asked)
        await other.round_trip()
        assert words(other, session) == ["user: go"] and words(editor, session) == []
        since = len(editor.lines)
        await editor.request("session/resume", sessionId=session, cwd=str(tmp_path))
        assert words(editor, session, since) == [], "a resume tells nothing again"


@pytest.mark.case("S01")
async def test_a_client_that_does_not_read_holds_up_its_own_load_alone(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (editor, other):
        session = stored(alpha, "big", tmp_path)
        alpha.history[session] = [said("x" * 100_000, f"m{number}") for number in range(200)]
        editor.stop_reading()
        load = editor.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        await alpha.opened()
        mine = await other.new(tmp_path)
        await turn(other, alpha.sessions[-1], mine)
        assert alpha.replayed < 30, "what is not read is not made"
        editor.read_on()
        await editor.answer(load)
        assert len(editor.updates(session, "agent_message_chunk")) == 200
