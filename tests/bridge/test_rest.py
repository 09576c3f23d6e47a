"""Sessions that lie idle: their backend is let go, and comes back unseen with the next prompt (case R05)."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.ledger import Ledger
from acp_manifold.translators.updates import Command, Commands

from .editor import Editor, editor_on
from .scripted import QUESTION, ScriptedBackend, ScriptedSession

pytestmark = pytest.mark.anyio

IDLE = 0.05
END_TURN = {"stopReason": "end_turn"}


async def soon(what: Awaitable[object]) -> None:
    with anyio.fail_after(5):
        await what


async def one_turn(editor: Editor, cli: ScriptedSession, session: str, *, names_it: bool = True) -> None:
    asked = editor.prompt(session, "go")
    await cli.prompted()
    if names_it:
        cli.name_it(None)
    cli.say("done")
    cli.finish()
    assert await editor.answer(asked) == END_TURN


async def rested(editor: Editor, backend: ScriptedBackend, cwd: Path) -> str:
    """A session with one turn, whose backend was let go."""
    session = await editor.new(cwd)
    cli = backend.sessions[-1]
    await one_turn(editor, cli, session)
    await soon(cli.let_go())
    return session


async def back(backend: ScriptedBackend, count: int = 2) -> ScriptedSession:
    """The last of so many CLIs, with the prompt it was started for."""
    with anyio.fail_after(5):
        while len(backend.sessions) < count:
            await backend.opened()
        cli = backend.sessions[-1]
        await cli.prompted()
    return cli


async def passed(editor: Editor, times: int = 4) -> None:
    """Let the idle time pass a few times over. What is waited for is that nothing happens."""
    with anyio.move_on_after(times * IDLE):
        await editor.wait_for(lambda line: False)


@pytest.mark.case("R05")
async def test_an_idle_session_is_let_go_and_comes_back_with_the_next_prompt(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=IDLE) as editor:
        session = await rested(editor, alpha, tmp_path)
        told = len(editor.lines)
        assert [row["sessionId"] for row in await editor.listed()] == [session]
        assert await editor.request("session/set_title", sessionId=session, title="Kept") == {"title": "Kept"}
        assert len(alpha.sessions) == 1
        asked = editor.prompt(session, "again")
        cli = await back(alpha)
        assert (cli.id, cli.resumed, cli.spec.cwd) == (session, True, str(tmp_path))
        cli.say("back")
        cli.finish()
        assert await editor.answer(asked) == END_TURN
        # No more than the list, the title (answered and told), the words and the answer.
        assert len(editor.lines) == told + 5
        assert alpha.stored[session].title == "Kept"


@pytest.mark.case("R05")
async def test_two_idle_sessions_come_back_at_the_same_moment(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=IDLE) as editor:
        sessions = [await rested(editor, alpha, tmp_path) for _ in range(2)]
        asked = [editor.prompt(session, "again") for session in sessions]
        (await back(alpha, 4)).finish()
        await soon(alpha.sessions[2].prompted())
        alpha.sessions[2].finish()
        for request in asked:
            assert await editor.answer(request) == END_TURN
        assert {cli.id for cli in alpha.sessions[2:]} == set(sessions)


async def test_a_session_without_a_turn_comes_back_under_the_id_it_had(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=IDLE) as editor:
        session = await editor.new(tmp_path, title="Named at birth")
        await soon(alpha.sessions[0].let_go())
        asked = editor.prompt(session, "first")
        cli = await back(alpha)
        assert (cli.id, cli.resumed, cli.spec.title) == (session, False, "Named at birth")
        cli.finish()
        assert await editor.answer(asked) == END_TURN


@pytest.mark.case("R05")
async def test_a_session_with_a_running_turn_is_not_let_go(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=IDLE) as editor:
        session = await editor.new(tmp_path)
        asked = editor.prompt(session, "long")
        await alpha.sessions[0].prompted()
        alpha.sessions[0].name_it(None)
        await passed(editor)
        assert alpha.sessions[0].open
        alpha.sessions[0].finish()
        assert await editor.answer(asked) == END_TURN
        await soon(alpha.sessions[0].let_go())


@pytest.mark.case("R05")
async def test_a_session_with_an_open_question_is_not_let_go(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=IDLE) as editor, anyio.create_task_group() as tg:
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        await one_turn(editor, cli, session)
        tg.start_soon(cli.events.ask, QUESTION)  # of a turn that the CLI began itself
        question = await editor.question()
        await passed(editor)
        assert cli.open
        question.answer("no")
        await soon(cli.let_go())


@pytest.mark.case("R05")
async def test_a_session_with_background_work_is_not_let_go(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=IDLE) as editor:
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        cli.go_on_behind("b1", "call")
        await one_turn(editor, cli, session)
        await passed(editor)
        assert cli.open
        cli.end_behind("b1")
        await soon(cli.let_go())


async def test_a_session_that_says_it_can_not_rest_is_not_let_go(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    alpha.lets_rest = False
    async with editor_on(alpha, idle=IDLE) as editor:
        session = await editor.new(tmp_path)
        await passed(editor)
        assert alpha.sessions[0].open
        await one_turn(editor, alpha.sessions[0], session)


async def test_a_session_whose_title_is_being_made_is_not_let_go(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=IDLE) as editor:
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        await one_turn(editor, cli, session, names_it=False)
        await soon(cli.title_asked.wait())
        await passed(editor)
        assert cli.open
        cli.name_it("A title")
        await soon(cli.let_go())
        assert editor.titles(session) == ["A title"]


async def test_without_an_idle_time_nothing_is_let_go(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=0) as editor:
        session = await editor.new(tmp_path)
        await one_turn(editor, alpha.sessions[-1], session)
        await passed(editor)
        assert alpha.sessions[-1].open


async def test_slash_commands_are_told_again_only_when_they_changed(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    first, second = Commands((Command("a", "A"),)), Commands((Command("b", "B"),))
    async with editor_on(alpha, idle=IDLE) as editor:
        session = await editor.new(tmp_path)
        alpha.sessions[0].events.update(first)
        await one_turn(editor, alpha.sessions[0], session)
        await soon(alpha.sessions[0].let_go())
        asked = editor.prompt(session, "again")
        cli = await back(alpha)
        cli.events.update(first)
        cli.events.update(second)
        cli.finish()
        await editor.answer(asked)
        assert len(editor.updates(session, "available_commands_update")) == 2


async def test_a_title_set_while_the_backend_is_let_go_is_stored(tmp_path: Path) -> None:
    alpha, ledger = ScriptedBackend(), Ledger(None)
    async with editor_on(alpha, ledger=ledger, idle=IDLE) as editor:
        session = await rested(editor, alpha, tmp_path)
        await editor.request("session/set_title", sessionId=session, title="At rest")
        assert (alpha.stored[session].title, alpha.stored[session].title_origin) == ("At rest", "user")
        assert editor.titles(session)[-1] == "At rest"
