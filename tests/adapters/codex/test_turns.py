"""Turns: what streams reaches its session and no other, and each prompt has one end."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.backend import SessionSpec
from acp_manifold.bridge.errors import BackendFault, InvalidParams, LoginNeeded
from acp_manifold.translators.updates import Text, ToolCall, ToolCallUpdate, TurnEnd
from tests.fakes import fake_codex as fx
from tests.fakes.fake_codex import FakeCodex
from tests.noted import noted

from .scripted import ScriptedEvents, logged, one_session, running

pytestmark = pytest.mark.anyio

HELLO = (Text("hello"),)


def tool_statuses(events: ScriptedEvents) -> list[str | None]:
    return [update.status for update in events.updates if isinstance(update, ToolCallUpdate)]


async def test_a_turn_returns_after_its_last_delta(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.delta("one "), fx.delta("two"), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            assert await session.prompt(HELLO) == TurnEnd("end_turn")
            assert events.said == "one two"
    assert fake.prompts() == ["hello"]


async def test_what_was_not_streamed_of_a_message_comes_with_its_end(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.delta("one "), fx.completed(fx.message("one two")), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
            assert events.said == "one two"


@pytest.mark.case("M02")
async def test_interleaved_threads_reach_their_own_sessions(fake: FakeCodex, work: Path) -> None:
    lines: list[fx.Step] = []
    for index in range(100):
        lines += [_delta(0, f"a{index} "), _delta(1, f"b{index} ")]
        if index % 10 == 0:
            lines += [_line("t-unknown", "u", "zz"), _line("$T0", "u-stale", "old")]
    fake.plays([_delta(0, "begun: "), fx.gate("go"), fx.done()], [*lines, fx.done()])
    a, b = ScriptedEvents(), ScriptedEvents()
    with anyio.fail_after(10):
        async with running() as (backend, _):
            spec = SessionSpec(str(work))
            async with backend.session(spec, a) as first, backend.session(spec, b) as second:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(first.prompt, HELLO)
                    await a.until(lambda: a.said)
                    await second.prompt(HELLO)
                    fake.open("go")
    assert a.said == "begun: " + "".join(f"a{index} " for index in range(100))
    assert b.said == "".join(f"b{index} " for index in range(100))


def _delta(turn: int, text: str) -> fx.Step:
    return _line(f"$T{turn}", f"$U{turn}", text)


def _line(thread: str, turn: str, text: str) -> fx.Step:
    return fx.notify("item/agentMessage/delta", threadId=thread, turnId=turn, itemId="m", delta=text)


@pytest.mark.case("C02")
async def test_an_interrupt_before_the_turn_is_known_waits_for_its_id(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.hold("late"), fx.gate("never")])
    ends: list[TurnEnd] = []
    with anyio.fail_after(5):
        async with one_session(work) as (session, _), anyio.create_task_group() as tasks:

            async def prompt() -> None:
                ends.append(await session.prompt(HELLO))

            tasks.start_soon(prompt)
            await logged(fake.prompts)
            tasks.start_soon(session.interrupt)
            await anyio.wait_all_tasks_blocked()
            assert fake.requests("turn/interrupt") == []
            fake.open("late")
    assert ends == [TurnEnd("cancelled")]
    (interrupt,) = fake.requests("turn/interrupt")
    assert interrupt["turnId"].startswith("01900000-")


@pytest.mark.case("C02")
async def test_an_interrupt_waits_for_the_start_of_its_turn(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.unstarted("late"), fx.gate("never")])
    ends: list[TurnEnd] = []
    with anyio.fail_after(5):
        async with one_session(work) as (session, _), anyio.create_task_group() as tasks:

            async def prompt() -> None:
                ends.append(await session.prompt(HELLO))

            tasks.start_soon(prompt)
            tasks.start_soon(session.interrupt)
            await logged(fake.prompts)
            fake.open("late")
    assert ends == [TurnEnd("cancelled")]


@pytest.mark.case("C01")
async def test_an_interrupt_stops_one_session_alone(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.delta("a"), fx.gate("never")], [fx.delta("b"), fx.gate("go"), fx.delta("c"), fx.done()])
    a, b = ScriptedEvents(), ScriptedEvents()
    ends: dict[str, TurnEnd] = {}
    with anyio.fail_after(5):
        async with running() as (backend, _):
            spec = SessionSpec(str(work))
            async with backend.session(spec, a) as first, backend.session(spec, b) as second:

                async def prompt_first() -> None:
                    ends["first"] = await first.prompt(HELLO)

                async def prompt_second() -> None:
                    ends["second"] = await second.prompt(HELLO)

                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(prompt_first)
                    await a.until(lambda: a.said)
                    tasks.start_soon(prompt_second)
                    await b.until(lambda: b.said)
                    await first.interrupt()
                    fake.open("go")
    assert ends == {"first": TurnEnd("cancelled"), "second": TurnEnd("end_turn")}
    assert b.said == "bc"
    assert len(fake.requests("turn/interrupt")) == 1


async def test_an_interrupt_cancels_the_open_tool_call_and_ends_its_command(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.started(fx.command("c1", "sleep 99")), fx.gate("never")])
    listed = {"data": [{"itemId": "c1", "processId": "7"}, {"itemId": "older", "processId": "3"}]}
    fake.replies("thread/backgroundTerminals/list", {"result": listed})
    with anyio.fail_after(5):
        async with one_session(work) as (session, events), anyio.create_task_group() as tasks:
            tasks.start_soon(session.prompt, HELLO)
            await events.until(lambda: events.conversation)
            await session.interrupt()
    assert tool_statuses(events) == ["cancelled"]
    assert [params["processId"] for params in fake.requests("thread/backgroundTerminals/terminate")] == ["7"]


async def test_a_command_that_outlives_its_turn_is_told_to_its_end(fake: FakeCodex, work: Path) -> None:
    fake.plays(
        [fx.started(fx.command("c1", "serve")), fx.done()],
        [
            fx.notify("item/completed", threadId="$T", turnId="$U0", item=fx.command("c1", "serve", "completed")),
            fx.notify("item/completed", threadId="$T", turnId="$U0", item=fx.message("stale")),
            fx.done(),
        ],
    )
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
            assert tool_statuses(events) == []
            await session.prompt(HELLO)
    assert tool_statuses(events) == ["completed"]
    assert events.said == ""


async def test_an_interrupt_without_a_turn_does_nothing(fake: FakeCodex, work: Path) -> None:
    with anyio.fail_after(5):
        async with one_session(work) as (session, _):
            await session.interrupt()
    assert fake.requests("turn/interrupt") == []


@pytest.mark.case("A02")
@pytest.mark.parametrize(
    ("error", "fault"),
    [
        ({"message": "who are you", "codexErrorInfo": "unauthorized"}, LoginNeeded),
        ({"message": "no", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 401}}}, LoginNeeded),
        ({"message": "limit reached, resets 3am", "codexErrorInfo": "usageLimitExceeded"}, BackendFault),
        ({"message": "too long", "codexErrorInfo": "contextWindowExceeded"}, BackendFault),
    ],
)
async def test_a_failed_turn_is_an_error_in_codex_words(
    fake: FakeCodex, work: Path, error: fx.Json, fault: type[BackendFault]
) -> None:
    fake.plays([fx.done("failed", **error)], [fx.delta("fine again"), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            with pytest.raises(BackendFault, match=error["message"]) as raised:
                await session.prompt(HELLO)
            assert type(raised.value) is fault
            assert await session.prompt(HELLO) == TurnEnd("end_turn")
            assert events.said == "fine again"


async def test_a_prompt_over_the_limit_is_refused_before_it_is_sent(fake: FakeCodex, work: Path) -> None:
    with anyio.fail_after(5):
        async with one_session(work) as (session, _):
            with pytest.raises(InvalidParams, match="1,048,577 characters; Codex takes 1,048,576"):
                await session.prompt((Text("x" * 1_048_577),))
            assert await session.prompt((Text("x" * 1_048_576),)) == TurnEnd("end_turn")
    assert [len(prompt) for prompt in fake.prompts()] == [1_048_576]


async def test_lone_surrogates_are_replaced_in_what_is_sent(fake: FakeCodex, work: Path) -> None:
    with anyio.fail_after(5):
        async with one_session(work) as (session, _):
            await session.prompt((Text("a\ud800b \ud83d\ude00"),))
    assert fake.prompts() == ["a\ufffdb \U0001f600"]


@pytest.mark.case("S02")
async def test_output_is_forwarded_in_pieces_that_repeat_nothing(fake: FakeCodex, work: Path) -> None:
    piece = "x" * 1023 + "\n"
    item = fx.command("c1", "yes", "completed", aggregatedOutput=piece * 5000, exitCode=0)
    fake.plays([fx.started(fx.command("c1", "yes")), fx.prints("c1", piece, 5000), fx.completed(item), fx.done()])
    with anyio.fail_after(10):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
    assert events.printed == piece * 5000
    (call,) = [update for update in events.updates if isinstance(update, ToolCall)]
    assert (call.title, call.kind) == ("yes", "execute")


@pytest.mark.case("F01")
@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 8_000_000])
async def test_a_line_of_any_size_arrives_unchanged(fake: FakeCodex, work: Path, size: int) -> None:
    fake.plays([fx.delta("x" * size), fx.done()])
    with anyio.fail_after(10):
        async with one_session(work) as (session, events):
            await session.prompt(HELLO)
    assert events.said == "x" * size


@pytest.mark.case("F02")
async def test_only_a_line_feed_ends_a_line(fake: FakeCodex, work: Path) -> None:
    exotic = "a\u2028b\u2029c\u0085d"
    fake.plays([fx.raw(b"\n\r\n"), fx.delta(exotic), fx.raw(b"\n"), fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            await session.prompt((Text(exotic),))
    assert events.said == exotic
    assert fake.prompts() == [exotic]


@pytest.mark.case("F03")
async def test_noise_between_lines_is_skipped_and_noted(
    fake: FakeCodex, work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    noise = [
        b"Update available!",
        b"[1,2]",
        b'"text"',
        b"\x1b[31mred\x1b[0m",
        b'{"timestamp":"x"}',
        b'{"type":',
        b"\xff",
    ]
    steps = [step for line in noise for step in (fx.raw(line + b"\n"), fx.delta("."))]
    fake.plays([*steps, fx.done()])
    with anyio.fail_after(5):
        async with one_session(work) as (session, events):
            assert await session.prompt(HELLO) == TurnEnd("end_turn")
    assert events.said == "." * len(noise)
    assert sum("is no message" in record.message for record in caplog.records) == len(noise)


async def test_the_end_of_a_session_interrupts_a_turn_whose_prompt_was_given_up(fake: FakeCodex, work: Path) -> None:
    fake.plays([fx.hold("late"), fx.gate("never")])
    with anyio.fail_after(5):
        async with running() as (backend, _):
            async with backend.session(SessionSpec(str(work)), ScriptedEvents()) as session:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(session.prompt, HELLO)
                    await logged(fake.prompts)
                    tasks.cancel_scope.cancel()
                fake.open("late")
    assert len(fake.requests("turn/interrupt")) == 1


async def test_lines_that_reach_nobody_are_noted_with_the_reason(fake: FakeCodex, work: Path) -> None:
    fake.plays(
        [
            fx.notify("turn/brandNew", threadId="$T", turnId="$U"),
            fx.notify("item/agentMessage/delta", threadId="$T", turnId="another", itemId="m", delta="late"),
            fx.notify("item/agentMessage/delta", threadId="stranger", turnId="x", itemId="m", delta="nobody's"),
            fx.done(),
        ]
    )
    with anyio.fail_after(5), noted() as notes:
        async with one_session(work) as (session, _):
            await session.prompt((Text("go"),))
    dropped = notes.dropped()
    assert ("turn/brandNew", "not known here", "codex", session.id) in dropped
    assert ("item/agentMessage/delta", "turn another does not run", "codex", session.id) in dropped
    assert ("item/agentMessage/delta", "thread stranger is not open here", "codex", None) in dropped
