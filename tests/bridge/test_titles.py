"""Titles on the bridge: set, heard, generated, refused, and after a restart."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.errors import InvalidRequest
from acp_manifold.bridge.ledger import Ledger
from acp_manifold.translators.acp.requests import TITLE_METHODS
from acp_manifold.translators.narrow import as_list, obj

from .editor import Editor, Refused, editor_on, editors
from .scripted import ScriptedBackend, ScriptedSession
from .test_session import END_TURN, started

pytestmark = pytest.mark.anyio


async def title_of(editor: Editor, session: str) -> object:
    return next(row.get("title") for row in await editor.listed() if row["sessionId"] == session)


async def finished(editor: Editor, cli: ScriptedSession, asked: int) -> None:
    cli.finish()
    assert await editor.answer(asked) == END_TURN


@pytest.mark.case("T01")
async def test_a_title_set_in_mid_turn_is_stored_answered_and_still_there_after_a_restart(tmp_path: Path) -> None:
    alpha, ledger = ScriptedBackend(), tmp_path / "state" / "ledger.sqlite3"
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        result = await editor.request("session/set_title", sessionId=session, title="Payments rework")
        assert result == {"title": "Payments rework"}
        assert alpha.stored[session].title == "Payments rework"
        assert not editor.settled(asked)
        await finished(editor, cli, asked)
        assert await title_of(editor, session) == "Payments rework"
        assert editor.titles(session) == ["Payments rework"]
    assert ledger.stat().st_mode & 0o777 == 0o600
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        assert await title_of(editor, session) == "Payments rework"


@pytest.mark.case("T06")
async def test_titles_are_normalised_once_and_the_answer_says_what_is_stored(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        for sent, stored in (("  Fix\tthe\r\n build  ", "Fix the build"), ("a" * 5000, "a" * 200)):
            result = await editor.request("session/set_title", sessionId=session, title=sent, _meta={"x": 1})
            assert result == {"title": stored}
            assert await title_of(editor, session) == stored == alpha.stored[session].title
        for bad in ("", "  \n", "\x1b[31m\u200b", None, 7, ["x"]):
            with pytest.raises(Refused) as caught:
                await editor.request("session/set_title", sessionId=session, title=bad)
            assert (caught.value.code, caught.value.data["field"]) == (-32602, "title")
        await finished(editor, cli, asked)


@pytest.mark.parametrize(("method", "key"), TITLE_METHODS.items())
async def test_every_spelling_sets_the_title(tmp_path: Path, method: str, key: str) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        result = await editor.request(method, sessionId=session, **{key: " By any  name "})
        assert result.get("title", "By any name") == "By any name"
        assert alpha.stored[session].title == "By any name"
        await finished(editor, cli, asked)
        with pytest.raises(Refused, match=key):
            await editor.request(method, sessionId=session)


async def test_rename_as_a_prompt_asks_no_model(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        assert await editor.answer(editor.prompt(session, "/rename  Two words ")) == END_TURN
        assert not editor.settled(asked) and len(cli.prompts) == 1
        assert alpha.stored[session].title == "Two words"
        await finished(editor, cli, asked)


@pytest.mark.case("T09")
async def test_a_generated_title_reaches_the_client_once_when_nobody_named_the_session(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path, "fix the parser please")
        with anyio.fail_after(5):
            await cli.title_asked.wait()
        await finished(editor, cli, asked)
        cli.name_it("Short name")
        await editor.update(session, "session_info_update")
        alpha.hear(session, "Short name", "generated")
        alpha.hear(session, "Newer", "generated")
        await editor.round_trip()
        assert editor.titles(session) == ["Short name", "Newer"]
        assert await title_of(editor, session) == "Newer"


async def test_a_generated_title_never_replaces_the_one_a_client_set(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path, "fix the parser please")
        with anyio.fail_after(5):
            await cli.title_asked.wait()
        await editor.request("session/set_title", sessionId=session, title="Mine")
        cli.name_it("Generated late")
        alpha.hear(session, "From elsewhere", "generated")
        await finished(editor, cli, asked)
        with anyio.fail_after(5):
            while alpha.stored[session].title != "Mine":
                await anyio.lowlevel.checkpoint()
        assert editor.titles(session) == ["Mine"]
        assert await title_of(editor, session) == "Mine"
        again = editor.prompt(session, "a second prompt asks for no title")
        await cli.prompted()
        await finished(editor, cli, again)
        assert len(alpha.sessions) == 1


async def test_a_named_session_costs_no_title_request(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path, title="Incident 42")
        cli = alpha.sessions[0]
        asked = editor.prompt(session, "hello there")
        await cli.prompted()
        await finished(editor, cli, asked)
        assert not cli.title_asked.is_set()


async def test_a_rename_elsewhere_reaches_every_client_and_our_own_echo_none(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (one, two):
        session, cli, asked = await started(one, alpha, tmp_path)
        await finished(one, cli, asked)
        await two.request("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        await one.request("session/set_title", sessionId=session, title="First")
        await one.request("session/set_title", sessionId=session, title="Second")
        for echo in ("First", "Second"):
            alpha.hear(session, echo, "user")
        alpha.hear(session, "From a terminal", "user")
        await one.round_trip()
        await two.round_trip()
        assert one.titles(session) == two.titles(session) == ["First", "Second", "From a terminal"]


async def test_a_title_that_can_not_be_stored_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        await editor.request("session/set_title", sessionId=session, title="Before")
        alpha.refuses_titles = InvalidRequest("Session is archived", {"reason": "archived"})
        with pytest.raises(Refused) as caught:
            await editor.request("session/set_title", sessionId=session, title="After")
        assert (caught.value.code, caught.value.data) == (-32600, {"reason": "archived"})
        await finished(editor, cli, asked)
        assert await title_of(editor, session) == "Before"


@pytest.mark.case("R01")
@pytest.mark.parametrize("meta", ["ours", "claudeCode"])
async def test_a_session_can_be_named_when_it_is_made(tmp_path: Path, meta: str) -> None:
    alpha = ScriptedBackend()
    spelled = {
        "ours": {"acp-manifold": {"title": "Incident 42"}},
        "claudeCode": {"claudeCode": {"options": {"title": "Incident 42"}}},
    }
    async with editor_on(alpha) as editor:
        result = await editor.request("session/new", cwd=str(tmp_path), mcpServers=[], _meta=spelled[meta])
        session = str(result["sessionId"])
        await editor.update(session, "session_info_update")
        tags = [line.get("id") or obj(line, "params").get("sessionId") for line in editor.lines[-2:]]
        assert tags[-1] == session and editor.titles(session) == ["Incident 42"], "told, right behind the answer"
        cli = alpha.sessions[0]
        asked = editor.prompt(session, "hello")
        assert "Incident" not in repr(await cli.prompted())
        alpha.hear(session, "Generated", "generated")
        await finished(editor, cli, asked)
        assert await title_of(editor, session) == "Incident 42"


@pytest.mark.case("R01")
@pytest.mark.parametrize("title", ["", "  ", 7, None, ["x"]])
async def test_a_useless_title_at_creation_is_ignored(tmp_path: Path, title: object) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        assert await editor.new(tmp_path, title=title)


@pytest.mark.case("R01")
async def test_a_title_that_the_backend_refuses_never_fails_the_new_session(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    alpha.refuses_titles = InvalidRequest("no")
    async with editor_on(alpha) as editor:
        assert await editor.new(tmp_path, title="Incident 42")


async def test_a_session_at_rest_is_retitled_without_opening_it(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        await finished(editor, cli, asked)
        await editor.request("session/close", sessionId=session)
        assert await editor.request("session/set_title", sessionId=session, title="At rest") == {"title": "At rest"}
        assert await title_of(editor, session) == "At rest"
        assert len(alpha.sessions) == 1


async def test_a_damaged_ledger_is_set_aside_and_store_titles_stay(tmp_path: Path) -> None:
    alpha, path = ScriptedBackend(), tmp_path / "ledger.sqlite3"
    path.write_bytes(b"not a database, but long enough to be taken for one" * 40)
    async with editor_on(alpha, ledger=Ledger(path)) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        await editor.request("session/set_title", sessionId=session, title="Kept")
        await finished(editor, cli, asked)
    path.unlink()
    async with editor_on(alpha, ledger=Ledger(path)) as editor:
        assert await title_of(editor, session) == "Kept"
    assert (tmp_path / "ledger.sqlite3.damaged").exists()


async def test_a_title_set_while_the_session_closes_is_stored(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        await finished(editor, cli, asked)
        for first, second in (("session/set_title", "session/close"), ("session/close", "session/set_title")):
            params = {"sessionId": session, "title": f"Behind {first}"}
            requests = [editor.ask(method, **params) for method in (first, second)]
            for request in requests:
                await editor.answer(request)
            assert await title_of(editor, session) == f"Behind {first}"
            await editor.request("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])


async def test_a_title_set_while_the_session_loads_is_the_one_that_stays(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        await editor.request("session/set_title", sessionId=session, title="Old")
        await finished(editor, cli, asked)
        await editor.request("session/close", sessionId=session)
        loading = editor.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        setting = editor.ask("session/set_title", sessionId=session, title="New")
        await editor.answer(loading)
        assert await editor.answer(setting) == {"title": "New"}
        assert editor.titles(session)[-1] == "New"
        assert await title_of(editor, session) == "New" == alpha.stored[session].title


async def test_a_rename_elsewhere_back_to_our_last_but_one_title_is_heard(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        for title in ("One", "Two"):
            await editor.request("session/set_title", sessionId=session, title=title)
            for _ in range(2):
                alpha.hear(session, title, "user")
        alpha.hear(session, "One", "user")
        await finished(editor, cli, asked)
        assert editor.titles(session) == ["One", "Two", "One"]


async def test_a_session_whose_cli_died_before_it_stored_anything_keeps_its_title(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        alpha.stored.clear()
        cli.die("killed")
        with pytest.raises(Refused, match="killed"):
            await editor.answer(asked)
        assert await editor.request("session/set_title", sessionId=session, title="Kept") == {"title": "Kept"}
        again = editor.prompt(session, "again")
        with anyio.fail_after(5):
            while len(alpha.sessions) < 2:
                await alpha.opened()
            await alpha.sessions[1].prompted()
        await finished(editor, alpha.sessions[1], again)
        assert not alpha.sessions[1].resumed
        assert await title_of(editor, session) == "Kept"


@pytest.mark.parametrize("title", ["\u2800", "\ufe0f", "\u0301", "\u2800 \u0301"])
async def test_a_title_that_shows_nothing_is_refused(tmp_path: Path, title: str) -> None:
    async with editor_on(ScriptedBackend()) as editor:
        session = await editor.new(tmp_path)
        with pytest.raises(Refused) as caught:
            await editor.request("session/set_title", sessionId=session, title=title)
        assert caught.value.code == -32602


@pytest.mark.parametrize(("typed", "stored"), [("/rename a\nb", "a b"), ("/rename\tX", "X"), (" /rename  Y ", "Y")])
async def test_rename_may_be_followed_by_any_space(tmp_path: Path, typed: str, stored: str) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path)
        assert await editor.answer(editor.prompt(session, typed)) == END_TURN
        assert stored in editor.said(session)
        assert await editor.answer(editor.prompt(session, "/rename ")) == END_TURN
        assert "/rename TITLE" in editor.said(session)
        assert alpha.sessions[0].prompts == []


@pytest.mark.parametrize(
    ("air", "wanted"),
    [
        (None, False),
        ({"version": 1, "capabilities": ["sessionRename"]}, True),
        ({"version": 2, "capabilities": ["other", "sessionIndex"]}, True),
        ({"version": 1, "capabilities": ["sessionArchive"]}, False),
        ({"version": 0, "capabilities": ["sessionRename"]}, False),
        ({"version": "1", "capabilities": ["sessionRename"]}, False),
        ({"version": 1, "capabilities": "sessionRename"}, False),
        ("sessionRename", False),
    ],
)
async def test_the_vendors_rename_is_advertised_to_clients_that_ask(air: object, wanted: bool) -> None:
    async with editors(ScriptedBackend(), initialize=False) as (editor,):
        meta = {"jetbrains": {"air": air}} if air is not None else {}
        answer = await editor.request("initialize", protocolVersion=1, clientCapabilities={"_meta": meta})
        told = as_list(obj(obj(obj(answer, "_meta"), "jetbrains"), "air").get("capabilities"))
        assert ("sessionRename" in told) is wanted
        capabilities = obj(obj(answer, "agentCapabilities"), "sessionCapabilities")
        assert capabilities["title"] == capabilities["setTitle"] == {}


async def test_with_generated_titles_off_no_session_is_asked_and_a_set_one_counts(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, name_them=False) as (editor,):
        session, cli, asked = await started(editor, alpha, tmp_path)
        await finished(editor, cli, asked)
        assert not cli.title_asked.is_set()
        await editor.request("session/set_title", sessionId=session, title="Mine")
        assert await title_of(editor, session) == "Mine"


async def test_of_two_who_rename_at_once_the_client_ends_with_what_is_stored_last(tmp_path: Path) -> None:
    """The store tells both, ours behind the other's: no echo then, since the other counted meanwhile (issue 4)."""
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path)
        for ours in ("First", "Ours"):
            await editor.request("session/set_title", sessionId=session, title=ours)
        for title in ("Theirs", "First", "Ours", "Ours"):
            alpha.hear(session, title, "user")
        await editor.round_trip()
        assert editor.titles(session) == ["First", "Ours", "Theirs", "Ours"]
