"""Forms on the bridge: each goes to one client, and ends with an answer that fits, or with none."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import pytest

from acp_manifold.translators.forms import NOBODY, WITHDRAWN, Choice, Field, Form, FormAnswer
from acp_manifold.translators.narrow import JsonObject, obj, text
from acp_manifold.translators.updates import ToolCallUpdate

from .editor import Editor, editors
from .scripted import ScriptedBackend, ScriptedSession

pytestmark = pytest.mark.anyio

COLOR = Field("color", kind="one", choices=(Choice("red", "Red"), Choice("blue", "Blue")))
SECRET = Field("key", title="Key", required=True, secret=True)
FORM = Form("f1", "Which color?", (COLOR, Field("color_other", beside="color")))
PAGE = Form("probe:1", "Log in", url="https://example.org/login")
CAN: JsonObject = {"elicitation": {"form": {}, "url": {}}}


class Asking:
    """Forms that a CLI has put, and what came of them."""

    def __init__(self) -> None:
        self.answers: list[FormAnswer] = []
        self.answered = anyio.Event()

    async def put(self, cli: ScriptedSession, form: Form = FORM) -> None:
        self.answers.append(await cli.events.ask_form(form))
        self.answered.set()


async def prompted(editor: Editor, backend: ScriptedBackend, cwd: Path) -> tuple[str, ScriptedSession, int]:
    """A session in the middle of a turn."""
    session = await editor.new(cwd)
    cli = await backend.opened()
    prompt = editor.prompt(session, "go")
    await cli.prompted()
    return session, cli, prompt


async def test_an_answer_that_fits_reaches_the_session_that_asked(tmp_path: Path) -> None:
    backend, first, second = ScriptedBackend(), Asking(), Asking()
    async with editors(backend, can=CAN) as (editor,), anyio.create_task_group() as tg:
        a, cli_a, _ = await prompted(editor, backend, tmp_path)
        b, cli_b, _ = await prompted(editor, backend, tmp_path)
        tg.start_soon(first.put, cli_a)
        tg.start_soon(second.put, cli_b)
        form_a, form_b = await editor.form(a), await editor.form(b)
        assert form_a.id != form_b.id
        form_b.reply({"action": "accept", "content": {"color": "blue"}})
        await second.answered.wait()
        assert first.answers == []
        form_a.reply({"action": "decline"})
        await first.answered.wait()
    assert (first.answers, second.answers) == ([FormAnswer("decline")], [FormAnswer("accept", {"color": "blue"})])


@pytest.mark.case("P03")
@pytest.mark.parametrize("reply", [{"action": "accept", "content": {"color": "green"}}, {"action": "?"}, None, "error"])
async def test_an_answer_that_does_not_fit_is_none_is_logged_and_the_turn_goes_on(
    tmp_path: Path, reply: object, caplog: pytest.LogCaptureFixture
) -> None:
    backend, asking = ScriptedBackend(), Asking()
    async with editors(backend, can=CAN) as (editor,), anyio.create_task_group() as tg:
        session, cli, prompt = await prompted(editor, backend, tmp_path)
        tg.start_soon(asking.put, cli)
        asked = await editor.form(session)
        if reply == "error":
            editor.send({"jsonrpc": "2.0", "id": asked.id, "error": {"code": -32601, "message": "unknown"}})
        else:
            asked.reply(reply)
        await asking.answered.wait()
        cli.finish()
        assert (await editor.answer(prompt))["stopReason"] == "end_turn"
        logged = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert reply is None or any(session in line for line in logged)
        assert not any("green" in line for line in logged)
    assert [answer.action for answer in asking.answers] == ["cancel"]


@pytest.mark.case("P02")
@pytest.mark.parametrize("how", ["cancel", "close", "hang up", "crash"])
async def test_what_ends_the_turn_takes_its_form_back(tmp_path: Path, how: str) -> None:
    backend, asking = ScriptedBackend(), Asking()
    async with editors(backend, can=CAN) as (editor,), anyio.create_task_group() as tg:
        session, cli, _ = await prompted(editor, backend, tmp_path)
        tg.start_soon(asking.put, cli)
        asked = await editor.form(session)
        if how == "cancel":
            editor.tell("session/cancel", sessionId=session)
        elif how == "close":
            await editor.request("session/close", sessionId=session)
        elif how == "crash":
            cli.die("gone")
        else:
            editor.hang_up()
        with anyio.fail_after(5):
            await asking.answered.wait()
        if how != "hang up":
            taken_back = await editor.wait_for(lambda line: line.get("method") == "$/cancel_request")
            assert obj(taken_back, "params") == {"requestId": asked.id}
            asked.reply({"action": "accept", "content": {"color": "red"}})
            await editor.round_trip()
    assert [answer.action for answer in asking.answers] == ["cancel"]


async def test_the_cli_takes_a_form_back(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with editors(backend, can=CAN) as (editor,):
        session, cli, _ = await prompted(editor, backend, tmp_path)
        async with anyio.create_task_group() as tg:
            tg.start_soon(cli.events.ask_form, FORM)
            await editor.form(session)
            tg.cancel_scope.cancel()
        taken_back = await editor.wait_for(lambda line: line.get("method") == "$/cancel_request")
        asked_id = (await editor.form(session)).id
        assert obj(taken_back, "params") == {"requestId": asked_id}


async def test_a_turn_of_the_clis_own_asks_who_prompted_last_and_nobody_is_refused(tmp_path: Path) -> None:
    backend, asking = ScriptedBackend(), Asking()
    async with editors(backend, count=2, can=CAN) as (one, two), anyio.create_task_group() as tg:
        session = await one.new(tmp_path)
        cli = await backend.opened()
        assert await cli.events.ask_form(FORM) == NOBODY
        await two.request("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        prompt = two.prompt(session, "go")
        await cli.prompted()
        cli.finish()
        await two.answer(prompt)
        tg.start_soon(asking.put, cli)
        (await two.form(session)).reply({"action": "accept", "content": {}})
        await asking.answered.wait()
        two.hang_up()
        while (answer := await cli.events.ask_form(FORM)).action == "cancel":  # two is not known to be gone yet
            await one.round_trip()
        assert answer == NOBODY
    assert not any(line.get("method") == "elicitation/create" for line in one.lines)


@pytest.mark.parametrize("call", [None, ToolCallUpdate("t1", title="Ask")])
async def test_a_client_without_forms_is_asked_to_choose(tmp_path: Path, call: ToolCallUpdate | None) -> None:
    backend, asking = ScriptedBackend(), Asking()
    async with editors(backend) as (editor,), anyio.create_task_group() as tg:
        session, cli, _ = await prompted(editor, backend, tmp_path)
        tg.start_soon(asking.put, cli, FORM._replace(call=call))
        question = await editor.question()
        assert text(obj(question.params, "toolCall"), "toolCallId") == (call.id if call else "f1")
        question.answer("answer:1")
        await asking.answered.wait()
        await editor.round_trip()
        told = [update["sessionUpdate"] for update in editor.updates(session)]
        assert told == ([] if call else ["tool_call", "tool_call_update"])
    assert asking.answers == [FormAnswer("accept", {"color": "blue"})]


async def test_a_cancel_between_two_choices_ends_them(tmp_path: Path) -> None:
    backend, asking = ScriptedBackend(), Asking()
    async with editors(backend) as (editor,), anyio.create_task_group() as tg:
        session, cli, _ = await prompted(editor, backend, tmp_path)
        tg.start_soon(asking.put, cli, FORM._replace(fields=(COLOR, COLOR._replace(name="again"))))
        (await editor.question()).answer("answer:1")
        await editor.wait_for(lambda line: line.get("method") == "session/request_permission" and line["id"] != 1)
        editor.tell("session/cancel", sessionId=session)
        await asking.answered.wait()
        assert text(editor.updates(session, "tool_call_update")[-1], "status") == "failed"
    assert asking.answers == [WITHDRAWN]


async def test_what_can_not_be_shown_is_declined_and_the_person_is_told(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with editors(backend) as (editor,):
        session, cli, _ = await prompted(editor, backend, tmp_path)
        answer = await cli.events.ask_form(Form("f1", "Your key?", (SECRET,)))
        await editor.round_trip()
        assert answer.action == "decline" and answer.reason is not None and "can't show" in answer.reason
        assert "Your key?" in editor.said(session)


async def test_a_secret_is_in_no_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    backend, asking = ScriptedBackend(), Asking()
    async with editors(backend, can=CAN) as (editor,), anyio.create_task_group() as tg:
        session, cli, _ = await prompted(editor, backend, tmp_path)
        tg.start_soon(asking.put, cli, Form("f1", "Your key?", (SECRET._replace(most=3),)))
        (await editor.form(session)).reply({"action": "accept", "content": {"key": "hunter2"}})
        await asking.answered.wait()
    assert asking.answers[0].action == "cancel"
    assert caplog.records and "hunter2" not in caplog.text


async def test_a_page_is_told_to_be_done_to_who_opened_it_and_once(tmp_path: Path) -> None:
    backend, asking = ScriptedBackend(), Asking()
    async with editors(backend, can=CAN) as (editor,), anyio.create_task_group() as tg:
        session, cli, _ = await prompted(editor, backend, tmp_path)
        cli.events.form_done(PAGE.id)
        tg.start_soon(asking.put, cli, PAGE)
        asked = await editor.form(session)
        assert asked.params["elicitationId"] == f"{session}:probe:1" and asked.params["mode"] == "url"
        asked.reply({"action": "accept"})
        await asking.answered.wait()
        for _ in range(2):
            cli.events.form_done(PAGE.id)
        await editor.round_trip()
        done = [obj(line, "params") for line in editor.lines if line.get("method") == "elicitation/complete"]
        assert done == [{"elicitationId": f"{session}:probe:1"}]
