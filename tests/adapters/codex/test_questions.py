"""Questions: each is answered once, by the person, by Codex taking it back, or by the turn's end."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.translators.forms import Action, FormAnswer
from acp_manifold.translators.updates import Notice, Text, ToolCallUpdate, TurnEnd
from tests.fakes import fake_codex as fx
from tests.fakes.fake_codex import FakeCodex

from .scripted import one_session

pytestmark = pytest.mark.anyio

HELLO = (Text("hello"),)
DECLINED = fx.completed(fx.command("c1", "make", "declined"))


def asks(*more: fx.Step, decisions: list[str] | None = None) -> list[fx.Step]:
    return [fx.started(fx.command("c1", "make")), fx.ask_command("c1", "make", decisions), *more]


@pytest.mark.case("P03")
@pytest.mark.parametrize("decisions", [["accept", "acceptForSession", "decline", "cancel"], ["accept", "cancel"]])
async def test_the_first_refusal_refuses_the_call_and_lets_the_turn_go_on(
    fake: FakeCodex, work: Path, decisions: list[str]
) -> None:
    fake.plays(asks(fx.wait("answer"), DECLINED, fx.delta("other way"), fx.done(), decisions=decisions))
    with anyio.fail_after(5):
        async with one_session(work, "decline") as (session, events):
            assert await session.prompt(HELLO) == TurnEnd("end_turn")
    (question,) = events.questions
    rejections = [option for option in question.options if option.kind == "reject_once"]
    assert rejections[0].id == "decline"
    assert all("stop" in option.name for option in rejections[1:])
    assert [answer["result"] for answer in fake.answers()] == [{"decision": "decline"}]
    assert events.said == "other way"
    assert [u.status for u in events.updates if isinstance(u, ToolCallUpdate)] == ["failed"]


@pytest.mark.parametrize("answer", [None, "never offered"])
async def test_no_answer_or_an_unknown_one_declines(fake: FakeCodex, work: Path, answer: str | None) -> None:
    fake.plays(asks(fx.wait("answer"), DECLINED, fx.done()))
    with anyio.fail_after(5):
        async with one_session(work, answer) as (session, _):
            await session.prompt(HELLO)
    assert [answer["result"] for answer in fake.answers()] == [{"decision": "decline"}]


async def test_a_yes_is_passed_on(fake: FakeCodex, work: Path) -> None:
    fake.plays(asks(fx.wait("answer"), fx.completed(fx.command("c1", "make", "completed")), fx.done()))
    with anyio.fail_after(5):
        async with one_session(work, "acceptForSession") as (session, _):
            await session.prompt(HELLO)
    assert [answer["result"] for answer in fake.answers()] == [{"decision": "acceptForSession"}]


async def test_an_interrupt_takes_the_question_back_and_stops_the_turn(fake: FakeCodex, work: Path) -> None:
    fake.plays(asks(fx.wait("answer"), fx.gate("never")))
    with anyio.fail_after(5):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, HELLO)
            await events.until(lambda: events.questions)
            await session.interrupt()
    assert events.withdrawn == 1
    assert [answer["result"] for answer in fake.answers()] == [{"decision": "cancel"}]


async def test_a_question_that_codex_takes_back_gets_no_answer(fake: FakeCodex, work: Path) -> None:
    fake.plays(asks(fx.gate("asked"), fx.resolved(), fx.delta("x"), fx.done()))
    with anyio.fail_after(5):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, HELLO)
            await events.until(lambda: events.questions)
            fake.open("asked")
    assert events.withdrawn == 1
    assert fake.answers() == []


async def test_what_can_not_be_put_to_a_person_is_declined(fake: FakeCodex, work: Path) -> None:
    ask = fx.request("item/tool/requestUserInput", threadId="$T", turnId="$U", itemId="q", questions=[])
    odd = fx.request("attestation/generate", threadId="$T")
    stray = fx.request("item/commandExecution/requestApproval", threadId="unknown", turnId="x", itemId="y")
    fake.plays([ask, fx.wait("answer"), odd, fx.wait("answer"), stray, fx.wait("answer"), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
    user_input, unknown, elsewhere = fake.answers()
    assert user_input["result"] == {"answers": {}}
    assert unknown["error"]["code"] == elsewhere["error"]["code"] == -32601
    assert events.questions == [] and events.forms == []
    assert "A question was not asked" in events.said


USER_INPUT = fx.request(
    "item/tool/requestUserInput",
    threadId="$T",
    turnId="$U",
    itemId="q",
    questions=[{"id": "a", "question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}],
)
PAGE = fx.request(
    "mcpServer/elicitation/request",
    threadId="$T",
    turnId="$U",
    serverName="el",
    mode="url",
    url="https://example.org",
    elicitationId="e",
)


@pytest.mark.case("P03")
@pytest.mark.parametrize(
    ("answer", "said"),
    [(FormAnswer("accept", {"a": "B"}), ["B"]), (FormAnswer("decline"), []), (FormAnswer("cancel"), [])],
)
async def test_a_form_is_answered_and_a_no_lets_the_turn_go_on(
    fake: FakeCodex, work: Path, answer: FormAnswer, said: list[str]
) -> None:
    fake.plays([USER_INPUT, fx.wait("answer"), fx.delta("x"), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            events.form_answer = answer
            assert await session.prompt(HELLO) == TurnEnd("end_turn")
    assert [answer["result"] for answer in fake.answers()] == [{"answers": {"a": {"answers": said}}}]


@pytest.mark.parametrize("ask", [USER_INPUT, PAGE])
async def test_an_interrupt_takes_a_form_back(fake: FakeCodex, work: Path, ask: fx.Step) -> None:
    fake.plays([ask, fx.wait("answer"), fx.gate("never")])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, HELLO)
            await events.until(lambda: events.forms)
            await session.interrupt()
    assert events.withdrawn == 1
    assert [answer["result"].get("action", "cancel") for answer in fake.answers()] == ["cancel"]


async def test_a_form_that_codex_takes_back_gets_no_answer(fake: FakeCodex, work: Path) -> None:
    fake.plays([USER_INPUT, fx.gate("asked"), fx.resolved(), fx.delta("x"), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, HELLO)
            await events.until(lambda: events.forms)
            fake.open("asked")
    assert events.withdrawn == 1 and fake.answers() == []


@pytest.mark.parametrize(("action", "done"), [("accept", ["el:e"]), ("decline", [])])
async def test_a_page_that_was_opened_is_done_with_its_turn(
    fake: FakeCodex, work: Path, action: Action, done: list[str]
) -> None:
    fake.plays([PAGE, fx.wait("answer"), fx.delta("x"), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            events.form_answer = FormAnswer(action)
            await session.prompt(HELLO)
    assert events.pages_done == done
    assert [answer["result"]["action"] for answer in fake.answers()] == [action]


async def test_what_can_not_be_had_here_is_declined_and_told_and_the_time_is_given(fake: FakeCodex, work: Path) -> None:
    tool = fx.request("item/tool/call", threadId="$T", turnId="$U", callId="c", tool="x", arguments={})
    clock = fx.request("currentTime/read", threadId="$T")
    strange = fx.request("item/other/thing", threadId="$T", turnId="$U")
    answered = fx.wait("answer")
    fake.plays([tool, answered, clock, answered, strange, answered, fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
    first, second, third = fake.answers()
    assert first["result"]["success"] is False and second["result"]["currentTimeAt"] > 1_700_000_000
    assert third["error"]["code"] == -32601
    titles = [update.title for update in events.updates if isinstance(update, Notice)]
    assert ["item/tool/call" in titles[0], "item/other/thing" in titles[1]] == [True, True]


ASKS_ON = fx.completed(
    {
        "type": "agentMessage",
        "id": "q1",
        "text": "Why?",
        "delivery": "async",
        "questions": [{"title": "Why?", "options": ["a", "b"]}],
    }
)


@pytest.mark.parametrize("cancelled", [False, True])
async def test_a_question_that_is_not_waited_for_is_taken_back_with_its_turn(
    fake: FakeCodex, work: Path, cancelled: bool
) -> None:
    ends = [fx.wait("interrupt"), fx.done("interrupted")] if cancelled else [fx.gate("on"), fx.done()]
    fake.plays([ASKS_ON, ASKS_ON, *ends])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, HELLO)
            await events.until(lambda: events.forms)
            if cancelled:
                await session.interrupt()
            fake.open("on")
            await events.until(lambda: events.withdrawn == 1)
    assert len(events.forms) == 1, "it is asked once"
    assert fake.answers() == [], "Codex waits for none"


async def test_an_answer_that_no_turn_takes_is_told(fake: FakeCodex, work: Path) -> None:
    """The fake has no `turn/steer`: it is refused, as when the turn has just ended."""
    fake.plays([ASKS_ON, fx.gate("on"), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:
            events.form_answer = FormAnswer("accept", {"question_0": "a"})
            tasks.start_soon(session.prompt, HELLO)
            await events.until(lambda: [update for update in events.updates if isinstance(update, Notice)])
            fake.open("on")
    (steered,) = fake.requests("turn/steer")
    assert steered["input"][0]["text"] == "> Why?\n\na"
    (notice,) = [update for update in events.updates if isinstance(update, Notice)]
    assert notice.title == "Your answer came too late"


async def test_a_message_whose_questions_are_none_asks_nothing(fake: FakeCodex, work: Path) -> None:
    odd = {"type": "agentMessage", "id": "q1", "text": "Why?", "delivery": "async", "questions": ["Why?", 5]}
    fake.plays([fx.completed(odd), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            assert await session.prompt(HELLO) == TurnEnd("end_turn")
    assert events.forms == [] and events.said == "Why?"
