"""Sessions side by side on the bridge: turns, cancel, questions, crashes, the end."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.errors import BackendFault, BackendGone, InvalidRequest, LoginNeeded
from acp_manifold.bridge.turn import QUEUE_LIMIT
from acp_manifold.translators.narrow import JsonObject, obj
from acp_manifold.translators.updates import MessageChunk, Text

from .editor import Editor, Refused, editor_on, editors
from .scripted import QUESTION, ScriptedBackend, ScriptedSession

pytestmark = pytest.mark.anyio

CANCELLED = {"stopReason": "cancelled"}
END_TURN = {"stopReason": "end_turn"}


async def started(
    editor: Editor, backend: ScriptedBackend, cwd: Path, words: str = "go"
) -> tuple[str, ScriptedSession, int]:
    """A session in mid-turn: its id, its CLI, the prompt's id."""
    session = await editor.new(cwd, backend.name)
    cli = backend.sessions[-1]
    asked = editor.prompt(session, words)
    await cli.prompted()
    return session, cli, asked


async def put_question(cli: ScriptedSession, answers: list[str | None]) -> None:
    answers.append(await cli.events.ask(QUESTION))


@pytest.mark.case("M02")
async def test_interleaved_streams_go_to_their_own_sessions(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    async with editor_on(alpha, beta) as editor:
        turns = [await started(editor, backend, tmp_path) for backend in (alpha, beta, alpha, beta)]
        for index in range(100):
            for number, (_, cli, _) in enumerate(turns):
                cli.say(f"{number}.{index} ", message_id=f"m{number}")
        for number, (session, cli, asked) in reversed(list(enumerate(turns))):
            cli.finish()
            assert await editor.answer(asked) == END_TURN
            assert editor.said(session) == "".join(f"{number}.{index} " for index in range(100))


@pytest.mark.case("C01")
async def test_cancelling_one_session_leaves_the_others_running(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    async with editor_on(alpha, beta) as editor:
        a, cli_a, asked_a = await started(editor, alpha, tmp_path)
        b, cli_b, asked_b = await started(editor, alpha, tmp_path)
        d, cli_d, asked_d = await started(editor, beta, tmp_path)
        editor.tell("session/cancel", sessionId=a)
        assert await editor.answer(asked_a) == CANCELLED
        assert (cli_a.interrupts, cli_b.interrupts, cli_d.interrupts) == (1, 0, 0)
        for session, cli, asked in ((b, cli_b, asked_b), (d, cli_d, asked_d)):
            cli.say("still here")
            cli.finish()
            assert await editor.answer(asked) == END_TURN
            assert editor.said(session) == "still here"


@pytest.mark.case("C02")
async def test_a_cancel_in_the_same_write_as_its_prompt_cancels_it(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path)
        prompt: JsonObject = {"sessionId": session, "prompt": [{"type": "text", "text": "x"}]}
        editor.send(
            {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": prompt},
            {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}},
        )
        assert await editor.answer("p") == CANCELLED
        asked = editor.prompt(session, "y")
        await alpha.sessions[0].prompted()
        alpha.sessions[0].finish()
        assert await editor.answer(asked) == END_TURN


async def test_a_turn_being_cancelled_ends_cancelled_whatever_the_backend_says(tmp_path: Path) -> None:
    for end in ("end_turn", "error"):
        alpha = ScriptedBackend()
        async with editor_on(alpha) as editor:
            session, cli, asked = await started(editor, alpha, tmp_path)
            cli.heeds = False
            editor.tell("session/cancel", sessionId=session)
            await cli.interrupted()
            if end == "error":
                cli.fail(BackendFault("aborted"))
            else:
                cli.finish()
            assert await editor.answer(asked) == CANCELLED


async def test_prompts_wait_in_order_and_cancel_settles_all_of_them(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, first = await started(editor, alpha, tmp_path, "one")
        second, third = editor.prompt(session, "two"), editor.prompt(session, "three")
        cli.finish()
        assert await editor.answer(first) == END_TURN
        await cli.prompted()
        editor.tell("session/cancel", sessionId=session)
        assert await editor.answer(second) == CANCELLED
        assert await editor.answer(third) == CANCELLED
        assert len(cli.prompts) == 2
        fourth = editor.prompt(session, "four")
        await cli.prompted()
        cli.finish()
        assert await editor.answer(fourth) == END_TURN


async def test_cancel_request_ends_just_the_prompt_it_names(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, running = await started(editor, alpha, tmp_path)
        waiting, last = editor.prompt(session, "waits"), editor.prompt(session, "last")
        editor.tell("$/cancel_request", requestId=waiting)
        with pytest.raises(Refused) as caught:
            await editor.answer(waiting)
        assert caught.value.code == -32800
        assert cli.interrupts == 0
        editor.tell("$/cancel_request", requestId=running)
        assert await editor.answer(running) == CANCELLED
        await cli.prompted()
        cli.finish()
        assert await editor.answer(last) == END_TURN
        assert len(cli.prompts) == 2


async def test_the_queue_is_bounded_and_says_so(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, _, _ = await started(editor, alpha, tmp_path)
        for _ in range(QUEUE_LIMIT):
            editor.prompt(session, "waits")
        with pytest.raises(Refused, match="wait already"):
            await editor.answer(editor.prompt(session, "too many"))


async def test_a_backend_that_ignores_the_interrupt_is_ended_and_resumed(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, grace=0.05) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        cli.heeds = False
        editor.tell("session/cancel", sessionId=session)
        assert await editor.answer(asked) == CANCELLED
        again = editor.prompt(session, "again")
        with anyio.fail_after(5):
            while len(alpha.sessions) < 2:
                await alpha.opened()
            fresh = alpha.sessions[1]
            await fresh.prompted()
        assert not cli.open and fresh.resumed and fresh.id == session
        fresh.finish()
        assert await editor.answer(again) == END_TURN


async def test_a_cancel_withdraws_the_question_and_a_late_yes_does_nothing(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor, anyio.create_task_group() as tg:
        session, cli, asked = await started(editor, alpha, tmp_path)
        answers: list[str | None] = []
        tg.start_soon(put_question, cli, answers)
        question = await editor.question()
        editor.tell("session/cancel", sessionId=session)
        assert await editor.answer(asked) == CANCELLED
        taken_back = await editor.wait_for(lambda line: line.get("method") == "$/cancel_request")
        assert obj(taken_back, "params") == {"requestId": question.id}
        question.answer("yes")
        await editor.round_trip()
        assert answers == [None]


async def test_a_question_withdrawn_by_the_backend_is_withdrawn_at_the_client(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        _, cli, asked = await started(editor, alpha, tmp_path)
        answers: list[str | None] = []
        async with anyio.create_task_group() as tg:
            tg.start_soon(put_question, cli, answers)
            await editor.question()
            tg.cancel_scope.cancel()
        assert answers == []
        taken_back = await editor.wait_for(lambda line: line.get("method") == "$/cancel_request")
        asked_id = (await editor.question()).id
        assert obj(taken_back, "params") == {"requestId": asked_id}
        cli.finish()
        assert await editor.answer(asked) == END_TURN


async def test_closing_a_session_settles_it_and_leaves_the_others_alone(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor, anyio.create_task_group() as tg:
        a, cli_a, asked_a = await started(editor, alpha, tmp_path)
        b, cli_b, asked_b = await started(editor, alpha, tmp_path)
        answers: list[str | None] = []
        tg.start_soon(put_question, cli_b, answers)
        question = await editor.question()
        closing = editor.ask("session/close", sessionId=a)
        assert await editor.answer(asked_a) == CANCELLED
        assert await editor.answer(closing) == {}
        assert not cli_a.open and cli_b.open and alpha.followed == [b]
        question.answer("yes")
        cli_b.finish()
        assert await editor.answer(asked_b) == END_TURN
        assert answers == ["yes"]
        with pytest.raises(Refused) as caught:
            await editor.answer(editor.prompt(a, "more"))
        assert caught.value.code == -32002


async def test_a_dead_cli_fails_its_prompt_and_the_next_prompt_resumes(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        _, other, other_asked = await started(editor, alpha, tmp_path)
        cli.die("Alpha was killed by SIGKILL")
        with pytest.raises(Refused, match="SIGKILL"):
            await editor.answer(asked)
        again = editor.prompt(session, "again")
        with anyio.fail_after(5):
            while len(alpha.sessions) < 3:
                await alpha.opened()
            await alpha.sessions[2].prompted()
        assert alpha.sessions[2].resumed
        alpha.sessions[2].finish()
        assert await editor.answer(again) == END_TURN
        other.finish()
        assert await editor.answer(other_asked) == END_TURN


@pytest.mark.case("A02")
async def test_a_turn_that_fails_says_why_in_the_right_code(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        cli.fail(LoginNeeded("Alpha wants a login"))
        with pytest.raises(Refused) as caught:
            await editor.answer(asked)
        assert caught.value.code == -32000
        asked = editor.prompt(session, "again")
        await cli.prompted()
        cli.fail(BackendFault("Usage limit reached, resets 3am"))
        with pytest.raises(Refused, match="resets 3am"):
            await editor.answer(asked)


@pytest.mark.case("A04")
async def test_a_cli_that_does_not_start_fails_the_request_alone(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    alpha.refuses = BackendGone("Alpha exited with status 1: SyntaxError: marker")
    async with editor_on(alpha, beta) as editor:
        with pytest.raises(Refused, match="status 1: SyntaxError: marker"):
            await editor.new(tmp_path, "alpha")
        session, cli, asked = await started(editor, beta, tmp_path)
        cli.finish()
        assert await editor.answer(asked) == END_TURN
        assert session


async def test_the_end_of_the_client_ends_its_sessions(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (one, two):
        _, cli_one, _ = await started(one, alpha, tmp_path)
        _, cli_two, asked = await started(two, alpha, tmp_path)
        one.hang_up()
        with anyio.fail_after(5):
            while cli_one.open:
                await anyio.lowlevel.checkpoint()
        assert cli_two.open
        cli_two.finish()
        assert await two.answer(asked) == END_TURN


async def test_load_replays_before_it_answers_and_resume_replays_nothing(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (one, two):
        session, cli, asked = await started(one, alpha, tmp_path)
        cli.finish()
        await one.answer(asked)
        await one.request("session/close", sessionId=session)
        alpha.history[session] = [MessageChunk("user", Text("go"), "u"), MessageChunk("agent", Text("done"), "a")]
        await one.request("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        tags = [u["sessionUpdate"] for u in one.updates(session)]
        assert tags == ["config_option_update", "user_message_chunk", "agent_message_chunk"] or tags == [
            "user_message_chunk",
            "agent_message_chunk",
        ]
        assert "result" in one.lines[-1]
        await two.request("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert two.updates(session) == []
        assert len(alpha.sessions) == 2


async def test_delete_is_final(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        deleting = editor.ask("session/delete", sessionId=session)
        assert await editor.answer(asked) == CANCELLED
        assert await editor.answer(deleting) == {}
        assert not cli.open and await editor.listed() == []
        assert await editor.request("session/delete", sessionId=session) == {}
        with pytest.raises(Refused) as caught:
            await editor.request("session/set_title", sessionId=session, title="x")
        assert caught.value.code == -32002


async def test_a_client_that_does_not_read_gets_everything_later_in_order(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (slow, quick):
        session, cli, asked = await started(slow, alpha, tmp_path)
        slow.stop_reading()
        cli.say("0 ")
        await quick.round_trip()
        for index in range(1, 5000):
            cli.say(f"{index} ")
        other, cli_other, asked_other = await started(quick, alpha, tmp_path)
        cli_other.say("hello")
        cli_other.finish()
        assert await quick.answer(asked_other) == END_TURN
        cli.finish()
        slow.read_on()
        assert await slow.answer(asked) == END_TURN
        assert slow.said(session) == "".join(f"{index} " for index in range(5000))
        assert len(slow.updates(session)) < 1000
        assert quick.said(other) == "hello"


async def test_a_load_during_the_close_of_the_session_opens_it_afresh(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        cli.finish()
        await editor.answer(asked)
        closing = editor.ask("session/close", sessionId=session)
        loading = editor.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert await editor.answer(closing) == {}
        await editor.answer(loading)
        again = editor.prompt(session, "again")
        await alpha.sessions[-1].prompted()
        alpha.sessions[-1].finish()
        assert await editor.answer(again) == END_TURN
        assert not cli.open and alpha.sessions[-1] is not cli


async def test_a_load_that_is_taken_back_does_not_spoil_the_next_one(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (one, two):
        session, cli, asked = await started(one, alpha, tmp_path)
        cli.finish()
        await one.answer(asked)
        await one.request("session/close", sessionId=session)
        first = one.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        second = two.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        one.tell("$/cancel_request", requestId=first)
        await two.answer(second)
        again = two.prompt(session, "again")
        await alpha.sessions[-1].prompted()
        alpha.sessions[-1].finish()
        assert await two.answer(again) == END_TURN


async def test_load_and_delete_in_one_write_leave_nothing_open(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        cli.finish()
        await editor.answer(asked)
        await editor.request("session/close", sessionId=session)
        loading = editor.ask("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        deleting = editor.ask("session/delete", sessionId=session)
        await editor.answer(loading)
        assert await editor.answer(deleting) == {}
        assert all(not opened.open for opened in alpha.sessions)
        with pytest.raises(Refused) as caught:
            await editor.answer(editor.prompt(session, "x"))
        assert caught.value.code == -32002


async def test_a_switch_and_a_prompt_in_one_write_run_on_the_new_backend(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    async with editor_on(alpha, beta) as editor:
        session = await editor.new(tmp_path)
        switching = [
            editor.ask("session/set_config_option", sessionId=session, configId="backend", value=value)
            for value in ("beta", "alpha", "beta")
        ]
        asked = editor.prompt(session, "go")
        for request in switching:
            await editor.answer(request)
        with anyio.fail_after(5):
            await beta.sessions[-1].prompted()
        beta.sessions[-1].finish()
        assert await editor.answer(asked) == END_TURN
        assert all(not cli.open and not cli.prompts for cli in alpha.sessions)


async def test_a_switch_to_a_backend_that_can_not_start_changes_nothing(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    beta.refuses = BackendGone("Beta did not come up")
    async with editor_on(alpha, beta) as editor:
        session = await editor.new(tmp_path)
        with pytest.raises(Refused, match="did not come up"):
            await editor.request("session/set_config_option", sessionId=session, configId="backend", value="beta")
        asked = editor.prompt(session, "go")
        with anyio.fail_after(5):
            while len(alpha.sessions) < 2:
                await alpha.opened()
            await alpha.sessions[1].prompted()
        alpha.sessions[1].finish()
        assert await editor.answer(asked) == END_TURN


async def test_the_backends_own_id_of_an_open_session_opens_no_second_one(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    async with editor_on(alpha, beta) as editor:
        session = await editor.new(tmp_path)
        await editor.request("session/set_config_option", sessionId=session, configId="backend", value="beta")
        asked = editor.prompt(session, "go")
        cli = beta.sessions[-1]
        await cli.prompted()
        assert cli.id != session
        with pytest.raises(Refused) as caught:
            await editor.request("session/resume", sessionId=cli.id, cwd=str(tmp_path), mcpServers=[])
        assert caught.value.data["sessionId"] == session
        assert await editor.request("session/set_title", sessionId=cli.id, title="Mine") == {"title": "Mine"}
        assert editor.titles(session) == ["Mine"]
        cli.finish()
        assert await editor.answer(asked) == END_TURN
        assert len(beta.sessions) == 1


async def test_a_prompt_right_after_an_idle_cli_died_resumes_without_an_error(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        cli.finish()
        await editor.answer(asked)
        cli.die("killed")
        again = editor.prompt(session, "again")
        with anyio.fail_after(5):
            while len(alpha.sessions) < 2:
                await alpha.opened()
            await alpha.sessions[1].prompted()
        assert alpha.sessions[1].resumed and len(cli.prompts) == 1
        alpha.sessions[1].finish()
        assert await editor.answer(again) == END_TURN


async def test_a_resume_that_fails_leaves_the_client_detached(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editors(alpha, count=2) as (one, two):
        session, cli, asked = await started(one, alpha, tmp_path)
        cli.finish()
        await one.answer(asked)
        cli.die("killed")
        alpha.refuses = BackendFault("held by another process")
        with pytest.raises(Refused, match="held by another"):
            await two.request("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        with pytest.raises(Refused) as caught:
            await two.answer(two.prompt(session, "x"))
        assert caught.value.code == -32002


@pytest.mark.case("C05")
@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_the_end_of_a_session_cancels_what_runs_and_what_waits(tmp_path: Path, method: str) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session, cli, running = await started(editor, alpha, tmp_path)
        waiting = editor.prompt(session, "next")
        assert await editor.request(method, sessionId=session) == {}
        assert await editor.answer(running) == CANCELLED
        assert await editor.answer(waiting) == CANCELLED
        assert len(cli.prompts) == 1


@pytest.mark.case("C07")
async def test_nothing_is_told_of_a_turn_whose_backend_was_ended_for_ignoring_the_interrupt(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, grace=0.05) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        cli.heeds = False
        cli.call("call-1")
        editor.tell("session/cancel", sessionId=session)
        assert await editor.answer(asked) == CANCELLED
        cli.say("late")
        await cli.let_go()
        cli.say("later")
        again = editor.prompt(session, "again")
        while len(alpha.sessions) < 2:
            await alpha.opened()
        await alpha.sessions[1].prompted()
        alpha.sessions[1].say("anew")
        alpha.sessions[1].finish()
        assert await editor.answer(again) == END_TURN
        assert editor.said(session) == "anew"
        assert [update["status"] for update in editor.updates(session, "tool_call_update")] == ["failed"]


async def test_requests_while_a_session_is_being_opened_open_it_once(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=0.05) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        cli.name_it(None)
        cli.finish()
        await editor.answer(asked)
        await cli.let_go()
        params: dict[str, object] = {"sessionId": session, "cwd": str(tmp_path), "mcpServers": []}
        resumed, prompted = editor.ask("session/resume", **params), editor.prompt(session, "go")
        while len(alpha.sessions) < 2:
            await alpha.opened()
        await alpha.sessions[1].prompted()
        alpha.sessions[1].name_it(None)
        alpha.sessions[1].finish()
        await editor.answer(resumed)
        await editor.answer(prompted)
        await alpha.sessions[1].let_go()
        with anyio.move_on_after(0.2):
            await editor.wait_for(lambda line: False)
        assert len(alpha.sessions) == 2


async def test_a_session_that_the_store_lost_while_it_lay_idle_is_not_begun_anew(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=0.05) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        cli.name_it(None)
        cli.finish()
        await editor.answer(asked)
        await cli.let_go()
        del alpha.stored[session]
        with pytest.raises(Refused) as refused:
            await editor.answer(editor.prompt(session, "again"))
        assert refused.value.code == -32002
        assert len(alpha.sessions) == 1


async def test_a_delete_that_is_refused_changes_nothing(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=0.05) as editor:
        session, cli, asked = await started(editor, alpha, tmp_path)
        cli.name_it(None)
        cli.finish()
        await editor.answer(asked)
        await cli.let_go()
        alpha.refuses_delete = InvalidRequest("held", {"reason": "thread_active_writer"})
        with pytest.raises(Refused) as refused:
            await editor.request("session/delete", sessionId=session)
        assert refused.value.data == {"reason": "thread_active_writer"}
        again = editor.prompt(session, "again")
        while len(alpha.sessions) < 2:
            await alpha.opened()
        await alpha.sessions[1].prompted()
        alpha.sessions[1].finish()
        assert await editor.answer(again) == END_TURN
