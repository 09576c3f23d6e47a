"""A session with a CLI that does as it is told: turns, questions, interrupts, noise."""

from __future__ import annotations

import hashlib
import json
import logging
from pathlib import Path

import anyio
import pytest
from anyio import lowlevel

from acp_manifold.adapters.claude import ClaudeBackend
from acp_manifold.bridge.backend import BackendSession, SessionSpec
from acp_manifold.bridge.errors import BackendFault, BackendGone, LoginNeeded
from acp_manifold.translators.choices import unaskable
from acp_manifold.translators.forms import FormAnswer
from acp_manifold.translators.updates import (
    Commands,
    MessageChunk,
    Notice,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
    TurnEnd,
    Update,
)
from tests.adapters.claude.scripted import Listener, hub, opened, saying
from tests.fakes.fake_claude import FakeClaude, ask, call, emit, end, gate, raw, returns, say, wait
from tests.noted import noted

pytestmark = pytest.mark.anyio


async def test_a_turn_is_told_and_ends_with_its_result(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    fake.plays([wait("user"), say("Hello", streamed=True), end("Hello", usage={"input_tokens": 3, "output_tokens": 5})])
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            assert await session.prompt(saying("hi")) == TurnEnd("end_turn", 3, 5)
    assert listener.said == "Hello"
    assert [
        command.name for update in listener.updates if isinstance(update, Commands) for command in update.commands
    ] == ["compact", "status", "mcp", "skills"]
    assert fake.users(session.id) == ["hi"]


async def test_commands_that_change_right_behind_the_handshake_are_those_offered(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    """So Claude Code 2.1.332 tells the prompts of an MCP server that comes up; a busy machine reads both at once."""
    fake.plays([], late_commands=[{"name": "probe:greet (MCP)", "description": "greets"}])
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            await session.prompt(saying("hi"))
    told = [update for update in listener.updates if isinstance(update, Commands)]
    assert "mcp__probe__greet" in [command.name for command in told[-1].commands]


async def test_opening_a_session_does_not_wait_for_the_cli(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    fake.plays([], mute=True)
    with anyio.fail_after(2):
        async with opened(backend, work) as session:
            assert len(session.id) == 36


async def test_an_allowed_call_runs_with_its_own_input(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    fake.plays(
        [
            wait("user"),
            call("t1", "Bash", {"command": "ls"}),
            ask("r1", "t1", "ls"),
            wait("answer"),
            returns("t1", "a.py"),
            end("done"),
        ]
    )
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            await session.prompt(saying("hi"))
    (answer,) = fake.answers(session.id)
    assert answer["request_id"] == "r1"
    assert answer["response"] == {"behavior": "allow", "updatedInput": {"command": "ls"}}
    assert [type(update) for update in listener.conversation[:4]] == [
        ToolCall,
        ToolCallUpdate,
        ToolOutput,
        ToolCallUpdate,
    ]


@pytest.mark.case("P03")
async def test_a_refused_call_is_denied_and_the_turn_goes_on(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    fake.plays([wait("user"), ask("r1", "t1", "rm x"), wait("answer"), say("other way"), end()])
    listener.choice = "reject"
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            assert (await session.prompt(saying("hi"))).stop_reason == "end_turn"
    (answer,) = fake.answers(session.id)
    assert answer["response"]["behavior"] == "deny" and "interrupt" not in answer["response"]
    assert listener.said == "other way"


async def test_a_question_that_the_cli_takes_back_is_withdrawn_and_not_answered(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    taken_back = emit({"type": "control_cancel_request", "request_id": "r1"})
    fake.plays([wait("user"), ask("r1", "t1", "rm x"), gate("asked"), taken_back, end("done")])
    listener.choice = None
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, saying("hi"))
            await listener.until(lambda: bool(listener.questions))
            fake.open("asked")
            await listener.until(lambda: listener.withdrawn == 1)
    assert fake.answers(session.id) == []


def elicits(**fields: object) -> dict[str, object]:
    """A request of an MCP server to the person."""
    request = {"subtype": "elicitation", "mcp_server_name": "el", "message": "Who?", **fields}
    return {"type": "control_request", "request_id": "r1", "request": request}


NAME = {"type": "object", "properties": {"name": {"type": "string"}}}
PAGE = elicits(mode="url", url="https://example.org", elicitation_id="e")


@pytest.mark.case("P03")
@pytest.mark.parametrize(
    ("answer", "response"),
    [
        (FormAnswer("accept", {"name": "Ann"}), {"action": "accept", "content": {"name": "Ann"}}),
        (FormAnswer("decline"), {"action": "decline"}),
        (FormAnswer("cancel"), {"action": "cancel"}),
    ],
)
async def test_an_mcp_server_is_answered_and_a_no_lets_the_turn_go_on(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener, answer: FormAnswer, response: object
) -> None:
    asks = emit(elicits(mode="form", requested_schema=NAME))
    fake.plays([wait("user"), call("t1", "mcp__el__look", {}), asks, wait("answer"), returns("t1", "seen"), end("x")])
    listener.form_answer = answer
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            assert (await session.prompt(saying("hi"))).stop_reason == "end_turn"
    assert [answer["response"] for answer in fake.answers(session.id)] == [response]
    (form,) = listener.forms
    assert form.call is not None and form.call.id == "t1"


async def test_a_form_that_can_not_be_shown_is_declined_and_the_person_is_told(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    nested = {"type": "object", "properties": {"deep": {"type": "object"}}}
    fake.plays([wait("user"), emit(elicits(mode="form", requested_schema=nested)), wait("answer"), end("x")])
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            await session.prompt(saying("hi"))
    assert [answer["response"] for answer in fake.answers(session.id)] == [{"action": "decline"}]
    assert listener.forms == [] and "'deep'" in listener.said


async def test_a_form_that_the_cli_takes_back_is_withdrawn_and_a_page_is_told_to_be_done(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    done = {"type": "system", "subtype": "elicitation_complete", "mcp_server_name": "el", "elicitation_id": "e"}
    taken_back = emit(done, {"type": "control_cancel_request", "request_id": "r1"})
    fake.plays([wait("user"), emit(PAGE), gate("asked"), taken_back, end("x")])
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session, anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, saying("hi"))
            await listener.until(lambda: bool(listener.forms))
            fake.open("asked")
            await listener.until(lambda: listener.withdrawn == 1)
    assert fake.answers(session.id) == [] and listener.pages_done == [listener.forms[0].id]


async def test_a_dialog_that_nobody_can_show_is_dismissed_and_told(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    request = {"subtype": "request_user_dialog", "dialog_kind": "permission_wizard"}
    asks = emit({"type": "control_request", "request_id": "r9", "request": request})
    fake.plays([wait("user"), asks, wait("answer"), end("done")])
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            assert (await session.prompt(saying("hi"))).stop_reason == "end_turn"
    (answer,) = fake.answers(session.id)
    assert answer["response"] == {"behavior": "cancelled"}
    (notice,) = [update for update in listener.updates if isinstance(update, Notice)]
    assert "permission_wizard" in notice.title


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        (FormAnswer("accept", {"choice": "retry_fallback"}), {"behavior": "completed", "result": "retry_fallback"}),
        (FormAnswer("accept", {"choice": "cancelled"}), {"behavior": "completed", "result": "cancelled"}),
        (FormAnswer("accept"), {"behavior": "completed", "result": "cancelled"}),
        (FormAnswer("decline"), {"behavior": "completed", "result": "cancelled"}),
    ],
)
async def test_another_model_is_asked_after_a_refusal_only_if_the_person_says_so(
    fake: FakeClaude,
    backend: ClaudeBackend,
    work: Path,
    listener: Listener,
    answer: FormAnswer,
    response: dict[str, str],
) -> None:
    """The CLI asks so where its maker's service names another model, which no scripted model does."""
    payload = {
        "originalModel": "Fable",
        "fallbackModel": "Opus",
        "apiRefusalCategory": "bio",
        "guidanceText": "Or wait",
    }
    request = {"subtype": "request_user_dialog", "dialog_kind": "refusal_fallback_prompt", "payload": payload}
    asks = emit({"type": "control_request", "request_id": "r9", "request": request})
    fake.plays([wait("user"), asks, wait("answer"), end("done")])
    listener.form_answer = answer
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            await session.prompt(saying("hi"))
    assert [answer["response"] for answer in fake.answers(session.id)] == [response]
    (form,) = listener.forms
    assert form.message == "Fable declined this request (bio). Retry with Opus?"
    assert [choice.value for choice in form.fields[0].choices] == ["retry_fallback", "cancelled"]
    assert unaskable(form) is None and form.fields[0].description == "Or wait"
    (greeting,) = [entry["line"] for entry in fake.log() if "initialize" in str(entry.get("line"))]
    assert greeting["request"]["supportedDialogKinds"] == ["refusal_fallback_prompt"]


async def test_a_refusal_dialog_of_another_shape_is_dismissed(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    request = {"subtype": "request_user_dialog", "dialog_kind": "refusal_fallback_prompt", "payload": {"models": 2}}
    asks = emit({"type": "control_request", "request_id": "r9", "request": request})
    fake.plays([wait("user"), asks, wait("answer"), end("done")])
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            await session.prompt(saying("hi"))
    assert [answer["response"] for answer in fake.answers(session.id)] == [{"behavior": "cancelled"}]
    assert listener.forms == []


async def test_a_request_that_nobody_serves_is_refused_not_ignored(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    request = {"type": "control_request", "request_id": "r9", "request": {"subtype": "hook_callback"}}
    fake.plays([wait("user"), emit(request), wait("answer"), end("done")])
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            await session.prompt(saying("hi"))
    (answer,) = fake.answers(session.id)
    assert (answer["subtype"], answer["request_id"]) == ("error", "r9")


async def test_an_interrupt_ends_the_prompt_at_its_result(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    ended = end(is_error=True, subtype="error_during_execution", terminal_reason="aborted_streaming")
    fake.plays([wait("user"), say("working"), wait("interrupt"), ended])
    ends: list[TurnEnd] = []
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session, anyio.create_task_group() as tasks:

            async def prompt() -> None:
                ends.append(await session.prompt(saying("hi")))

            tasks.start_soon(prompt)
            await listener.until(lambda: listener.said == "working")
            await session.interrupt()
    assert [turn.stop_reason for turn in ends] == ["cancelled"]


async def cancelled_at_once(session: BackendSession, words: str) -> TurnEnd:
    """A prompt and an interrupt with nothing in between."""
    ends: list[TurnEnd] = []

    async def prompt() -> None:
        ends.append(await session.prompt(saying(words)))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prompt)
        await lowlevel.checkpoint()
        await session.interrupt()
    return ends[0]


@pytest.mark.case("C02")
async def test_an_interrupt_right_behind_the_prompt_ends_it_and_the_next_works(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    bare = {"type": "result", "subtype": "error_during_execution", "is_error": True, "session_id": "$S"}
    fake.plays([wait("user"), end("ready"), wait("user"), wait("interrupt"), emit(bare)])
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            await session.prompt(saying("warm up"))
            assert (await cancelled_at_once(session, "x")).stop_reason == "cancelled"
            assert (await session.prompt(saying("y"))).stop_reason == "end_turn"
    assert fake.users(session.id) == ["warm up", "x", "y"]


@pytest.mark.case("C02")
async def test_an_interrupt_before_the_handshake_ends_the_prompt_unsent(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    fake.plays([], handshake_delay=0.2)
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            assert (await cancelled_at_once(session, "x")).stop_reason == "cancelled"
            assert (await session.prompt(saying("y"))).stop_reason == "end_turn"
    assert fake.users(session.id) == ["y"]
    assert fake.requests("interrupt", session.id) == []


@pytest.mark.case("C03")
async def test_an_interrupted_turn_without_a_result_ends_with_the_idle_state(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    idle = {"type": "system", "subtype": "session_state_changed", "state": "idle", "session_id": "$S"}
    fake.plays([wait("user"), end("ready"), wait("user"), wait("interrupt"), emit(idle)])
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            await session.prompt(saying("warm up"))
            assert (await cancelled_at_once(session, "x")).stop_reason == "cancelled"


async def test_a_prompt_ends_with_its_session(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    fake.plays([wait("user"), call("t1", "Bash", {"command": "ls"}), gate("never")])

    async def refused(session: BackendSession) -> None:
        with pytest.raises(BackendGone, match="the session was closed"):
            await session.prompt(saying("x"))

    with anyio.fail_after(5):
        async with hub(backend), anyio.create_task_group() as tasks:
            async with backend.session(SessionSpec(str(work)), listener) as session:
                tasks.start_soon(refused, session)
                await listener.until(lambda: bool(listener.conversation))
                assert not session.lost
            assert session.lost
    assert listener.conversation[-1] == ToolCallUpdate("t1", status="failed")


async def test_an_interrupt_without_a_turn_does_nothing(fake: FakeClaude, backend: ClaudeBackend, work: Path) -> None:
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            await session.interrupt()
            await session.prompt(saying("x"))
            await session.interrupt()
    assert fake.requests("interrupt") == []


@pytest.mark.case("A02")
async def test_a_limit_is_an_error_in_its_words_and_the_session_goes_on(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    limit = "Usage limit reached, resets 3am"
    fake.plays([wait("user"), end(limit, is_error=True), wait("user"), end("Please run /login", is_error=True)])
    with anyio.fail_after(5):
        async with opened(backend, work) as session:
            with pytest.raises(BackendFault, match=limit):
                await session.prompt(saying("x"))
            with pytest.raises(LoginNeeded, match="claude auth login"):
                await session.prompt(saying("y"))
            assert (await session.prompt(saying("z"))).stop_reason == "end_turn"


@pytest.mark.case("F01")
async def test_ten_megabytes_go_to_the_cli_unchanged(fake: FakeClaude, backend: ClaudeBackend, work: Path) -> None:
    words = "0123456789 ünïcödé \u2028" * (10 * 1024 * 1024 // 20)
    with anyio.fail_after(30):
        async with opened(backend, work) as session:
            await session.prompt(saying(words))
    (received,) = fake.users(session.id)
    assert hashlib.sha256(received.encode()).digest() == hashlib.sha256(words.encode()).digest()


@pytest.mark.case("F01")
@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 8 * 1024 * 1024])
async def test_a_long_line_of_the_cli_arrives_unchanged(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener, size: int
) -> None:
    words = ("abcdefghij" * (size // 10 + 1))[:size]
    fake.plays([wait("user"), say(words), end()])
    with anyio.fail_after(20):
        async with opened(backend, work, listener) as session:
            await session.prompt(saying("x"))
    assert listener.said == words


@pytest.mark.case("F02")
async def test_only_a_line_feed_ends_a_line(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    words = "a\u2028b\u2029c\x85d e"
    line = json.dumps(
        {"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": words}]}}, ensure_ascii=False
    )
    fake.plays([wait("user"), raw(b"\n\r\n" + line.encode() + b"\r\n\n"), end()])
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            await session.prompt(saying(words))
    assert listener.said == words
    assert fake.users(session.id) == [words]


@pytest.mark.case("F03")
async def test_noise_between_lines_is_skipped_and_noted_once(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, listener: Listener, caplog: pytest.LogCaptureFixture
) -> None:
    noise = [b"Update available!", b"[1,2]", b'"text"', b"\x1b[31mred\x1b[0m", b'{"type":', b"\xff\xfe"]
    fake.plays([wait("user"), raw(b"\n".join(noise) + b"\n"), say("fine"), end()])
    caplog.set_level(logging.WARNING)
    with anyio.fail_after(5):
        async with opened(backend, work, listener) as session:
            assert (await session.prompt(saying("x"))).stop_reason == "end_turn"
    assert listener.said == "fine"
    skipped = [entry for entry in caplog.records if "no JSON object" in entry.message]
    assert len(skipped) == len(noise)


async def test_a_session_that_cannot_take_an_update_does_not_stop_the_reader(
    fake: FakeClaude, backend: ClaudeBackend, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Listener):
        def update(self, update: Update) -> None:
            if isinstance(update, MessageChunk):
                raise ValueError("no")

    fake.plays([wait("user"), say("x"), end()])
    with anyio.fail_after(5):
        async with opened(backend, work, Broken()) as session:
            assert (await session.prompt(saying("x"))).stop_reason == "end_turn"
    assert "could not be handled" in caplog.text


async def test_a_line_that_nobody_knows_is_noted_and_the_turn_goes_on(
    fake: FakeClaude, backend: ClaudeBackend, work: Path
) -> None:
    fake.plays([wait("user"), emit({"type": "system", "subtype": "brand_new"}), end("done")])
    with anyio.fail_after(5), noted() as notes:
        async with opened(backend, work) as session:
            assert await session.prompt(saying("hi")) == TurnEnd("end_turn")
    assert notes.dropped() == [("system brand_new", "not known here", "claude", session.id)]
