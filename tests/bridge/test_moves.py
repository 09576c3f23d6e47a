"""A conversation that begins anew under another id of its CLI's: our id and the title follow it (issue 4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.bridge.ledger import Ledger
from acp_manifold.translators.updates import MessageChunk, Text

from .editor import Editor, Refused, editor_on
from .scripted import ScriptedBackend, ScriptedSession

pytestmark = pytest.mark.anyio

NEW = "alpha-anew"


async def turn(editor: Editor, cli: ScriptedSession, session: str, words: str = "go", *, to: str | None = None) -> None:
    asked = editor.prompt(session, words)
    await cli.prompted()
    if to is not None:
        cli.move(to)
    cli.finish()
    await editor.answer(asked)


async def cleared(editor: Editor, backend: ScriptedBackend, cwd: Path, title: str | None = "Kept") -> str:
    """A session with a turn, a title, and a conversation that has begun anew."""
    session = await editor.new(cwd)
    await turn(editor, backend.sessions[-1], session)
    if title is not None:
        await editor.request("session/set_title", sessionId=session, title=title)
    await turn(editor, backend.sessions[-1], session, "/clear", to=NEW)
    return session


async def test_the_id_and_the_title_follow_the_conversation(tmp_path: Path) -> None:
    alpha, ledger = ScriptedBackend(), tmp_path / "ledger"
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        session = await cleared(editor, alpha, tmp_path)
        await turn(editor, alpha.sessions[0], session, "anew")
        rows = {str(row["sessionId"]): row for row in await editor.listed()}
        assert len(rows) == 2 and rows[session]["title"] == "Kept"
        (other,) = set(rows) - {session}
        assert rows[other]["title"] == "Kept", "what was keeps its title, under an id of ours"
        assert other not in ("alpha-1", NEW)
        await editor.request("session/set_title", sessionId=session, title="Mine now")
        assert (alpha.stored[NEW].title, alpha.stored["alpha-1"].title) == ("Mine now", "Kept")
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        alpha.history = {"alpha-1": [said("old")], NEW: [said("new")]}
        for one, words in ((session, "new"), (other, "old")):
            await editor.request("session/load", sessionId=one, cwd=str(tmp_path), mcpServers=[])
            assert editor.said(one) == words


def said(words: str) -> MessageChunk:
    return MessageChunk("agent", Text(words), "m")


async def test_a_session_that_was_cleared_is_resumed_as_what_it_is_now(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=0.05) as editor:
        session = await cleared(editor, alpha, tmp_path)
        alpha.sessions[0].name_it(None)
        await turn(editor, alpha.sessions[0], session, "anew")
        alpha.sessions[0].name_it(None)
        await alpha.sessions[0].let_go()
        asked = editor.prompt(session, "and on")
        while len(alpha.sessions) < 2:
            await alpha.opened()
        await alpha.sessions[1].prompted()
        assert (alpha.sessions[1].id, alpha.sessions[1].resumed) == (NEW, True)
        alpha.sessions[1].finish()
        await editor.answer(asked)


async def test_a_generated_title_does_not_follow(tmp_path: Path) -> None:
    alpha, ledger = ScriptedBackend(), tmp_path / "ledger"
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        session = await editor.new(tmp_path)
        alpha.sessions[0].name_it("Generated")
        await turn(editor, alpha.sessions[0], session)
        await editor.wait_for(lambda line: "Generated" in str(line))
        await turn(editor, alpha.sessions[0], session, "/clear", to=NEW)
        alpha.sessions[0].name_it("Another")
        await turn(editor, alpha.sessions[0], session, "anew")
        await editor.wait_for(lambda line: "Another" in str(line))
        rows = {str(row["sessionId"]): row.get("title") for row in await editor.listed()}
        assert rows.pop(session) == "Another"
        assert list(rows.values()) == ["Generated"]


async def test_cleared_with_nothing_said_since_it_is_what_it_was(tmp_path: Path) -> None:
    alpha, ledger = ScriptedBackend(), tmp_path / "ledger"
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        session = await cleared(editor, alpha, tmp_path)
        # It is open here, and has said nothing: what is in the store is what it was.
        (row,) = await editor.listed()
        assert row["sessionId"] == session
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        alpha.history = {"alpha-1": [said("old")]}
        await editor.request("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert editor.said(session) == "old"
        (row,) = await editor.listed()
        assert (row["sessionId"], row["title"]) == (session, "Kept")
        with pytest.raises(Refused):
            await editor.request("session/set_title", sessionId="never", title="x")


async def test_a_cleared_session_that_was_deleted_is_nobodys_and_what_it_left_stays(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, ledger=Ledger(tmp_path / "ledger")) as editor:
        session = await cleared(editor, alpha, tmp_path)
        await turn(editor, alpha.sessions[0], session, "anew")
        for _ in range(2):
            assert await editor.request("session/delete", sessionId=session) == {}
        for method in ("session/load", "session/set_title"):
            with pytest.raises(Refused) as refused:
                await editor.request(method, sessionId=session, cwd=str(tmp_path), mcpServers=[], title="x")
            assert refused.value.code == -32002
        (row,) = await editor.listed()
        assert row["title"] == "Kept" and list(alpha.stored) == ["alpha-1"]


async def test_a_look_by_another_agent_between_clear_and_the_next_prompt_changes_nothing(tmp_path: Path) -> None:
    alpha, ledger = ScriptedBackend(), tmp_path / "ledger"
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        session = await cleared(editor, alpha, tmp_path)
        async with editor_on(alpha, ledger=Ledger(ledger)) as other:
            assert [row["sessionId"] for row in await other.listed()] == [session]
            await other.request("session/set_title", sessionId=session, title="By another")
        await turn(editor, alpha.sessions[0], session, "anew")
        await editor.request("session/set_title", sessionId=session, title="Mine")
        rows = {str(row["sessionId"]): row["title"] for row in await editor.listed()}
        assert rows.pop(session) == "Mine"
        assert list(rows.values()) == ["By another"]


async def test_a_title_set_before_anything_is_said_outlives_the_agent(tmp_path: Path) -> None:
    alpha, ledger = ScriptedBackend(), tmp_path / "ledger"
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        session = await cleared(editor, alpha, tmp_path)
        await editor.request("session/set_title", sessionId=session, title="Meant to stay")
        (row,) = await editor.listed()
        assert (row["sessionId"], row["title"]) == (session, "Meant to stay")
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        (row,) = await editor.listed()
        assert (row["sessionId"], row["title"]) == (session, "Meant to stay")


async def test_once_something_is_said_what_was_left_has_its_own_title_again(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, ledger=Ledger(tmp_path / "ledger")) as editor:
        session = await cleared(editor, alpha, tmp_path)
        for title in ("First thought", "Second thought"):
            await editor.request("session/set_title", sessionId=session, title=title)
        await turn(editor, alpha.sessions[0], session, "anew")
        rows = {str(row["sessionId"]): row["title"] for row in await editor.listed()}
        assert rows.pop(session) == "Second thought"
        assert list(rows.values()) == ["Kept"]


async def test_what_was_left_behind_keeps_what_another_agent_has_called_it_since(tmp_path: Path) -> None:
    alpha, ledger = ScriptedBackend(), tmp_path / "ledger"
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        session = await cleared(editor, alpha, tmp_path)
        await editor.request("session/set_title", sessionId=session, title="Mine")
        async with editor_on(alpha, ledger=Ledger(ledger)) as other:
            await other.request("session/set_title", sessionId=session, title="By another")
        await turn(editor, alpha.sessions[0], session, "anew")
        rows = {str(row["sessionId"]): row["title"] for row in await editor.listed()}
        assert rows.pop(session) == "Mine"
        assert list(rows.values()) == ["By another"]


async def test_what_was_left_unnamed_is_shown_as_before(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, ledger=Ledger(tmp_path / "ledger")) as editor:
        session = await cleared(editor, alpha, tmp_path, title=None)
        alpha.sessions[0].name_it(None)
        alpha.stored["alpha-1"] = alpha.stored["alpha-1"]._replace(title="what was typed")
        await editor.request("session/set_title", sessionId=session, title="Mine")
        await turn(editor, alpha.sessions[0], session, "anew")
        rows = {str(row["sessionId"]): row.get("title") for row in await editor.listed()}
        assert rows.pop(session) == "Mine"
        assert list(rows.values()) == ["what was typed"]


async def test_a_title_is_set_though_what_was_left_behind_is_gone(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, ledger=Ledger(tmp_path / "ledger")) as editor:
        session = await cleared(editor, alpha, tmp_path)
        del alpha.stored["alpha-1"]
        assert await editor.request("session/set_title", sessionId=session, title="Mine") == {"title": "Mine"}


async def test_a_list_in_the_first_turn_of_what_began_has_each_conversation_once(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, ledger=Ledger(tmp_path / "ledger")) as editor:
        session = await cleared(editor, alpha, tmp_path)
        await editor.request("session/set_title", sessionId=session, title="Mine")
        asked = editor.prompt(session, "anew")
        await alpha.sessions[0].prompted()
        rows = {str(row["sessionId"]): row["title"] for row in await editor.listed()}
        assert rows.pop(session) == "Mine"
        (left,) = rows
        assert left not in ("alpha-1", NEW)
        alpha.sessions[0].finish()
        await editor.answer(asked)
        assert {str(row["sessionId"]): row["title"] for row in await editor.listed()} == {session: "Mine", left: "Kept"}
