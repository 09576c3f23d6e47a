"""The adapter with the real CLI and a scripted model: what no fake can vouch for."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.claude import ClaudeBackend
from acp_manifold.adapters.model import Model, run_model
from acp_manifold.adapters.model.lab import private_environment
from acp_manifold.bridge.backend import BackendSession, SessionSpec
from acp_manifold.bridge.errors import BackendGone, LoginNeeded
from acp_manifold.translators.updates import Diff, ToolCallUpdate, TurnEnd
from tests.adapters.claude.scripted import Listener, hub, opened, saying
from tests.live.leftovers import bearing
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.live]

LIMIT = 30
"""Seconds for a test; a start of the CLI takes up to one."""


@pytest.fixture
async def model() -> AsyncGenerator[Model]:
    async with run_model() as running:
        yield running


@pytest.fixture
def backend(tmp_path: Path, model: Model) -> ClaudeBackend:
    lab = tmp_path / "lab"
    lab.mkdir()
    return ClaudeBackend(private_environment(lab, model.url, [ClaudeBackend()]))


@pytest.mark.case("T01")
async def test_a_rename_in_mid_turn_is_in_the_transcript_and_stays(
    backend: ClaudeBackend, model: Model, work: Path, listener: Listener
) -> None:
    with anyio.fail_after(LIMIT):
        async with opened(backend, work, listener) as session, anyio.create_task_group() as tasks:
            assert await session.rename("Early") == "Early"
            tasks.start_soon(session.prompt, saying("SAY[2] GATE[named] SAY[1]"))
            await listener.until(lambda: bool(listener.said))
            assert await session.rename("Payments rework") == "Payments rework"
            # Messages come into the transcript up to a tenth of a second after they were said.
            await until(lambda: written(work.parent, "SAY[2] GATE[named] SAY[1]"))
            row = await backend.find(session.id)
            assert row is not None and (row.title, row.title_origin) == ("Payments rework", "user")
            assert await session.generate_title("Please name this otherwise") == "Payments rework"
            model.gate("named").set()
        row = await backend.find(session.id)
        assert row is not None and row.title == "Payments rework"
        assert await backend.rename(session.id, "At rest") == "At rest"
        again = Listener()
        async with hub(backend) as host, backend.session(SessionSpec(str(work)), again, resume=session.id) as resumed:
            await resumed.prompt(saying("SAY[1]"))
            assert ("At rest", "user") in host.heard
    assert model.titles.asked == 0


async def test_a_generated_title_is_stored_by_the_cli(backend: ClaudeBackend, model: Model, work: Path) -> None:
    model.titles.answer("Short name")
    with anyio.fail_after(LIMIT):
        async with hub(backend) as host, backend.session(SessionSpec(str(work)), Listener()) as session:
            with backend.follow(session.id, str(work)):
                await session.prompt(saying("SAY[1]"))
                assert await session.generate_title("Please fix the parser of dates") == "Short name"
                await host.until_heard("Short name", "generated")
            row = await backend.find(session.id)
            assert row is not None and (row.title, row.title_origin) == ("Short name", "generated")
    assert host.heard == [("Short name", "generated")] and model.titles.asked == 1


def written(folder: Path, words: str) -> bool:
    """Whether words are in a transcript below a folder."""
    return any(words.encode() in path.read_bytes() for path in folder.rglob("*.jsonl"))


async def interrupted(session: BackendSession, listener: Listener, words: str) -> TurnEnd:
    """A turn that is interrupted as soon as the agent speaks or asks."""
    ends: list[TurnEnd] = []

    async def prompt() -> None:
        ends.append(await session.prompt(saying(words)))

    before = len(listener.conversation)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(prompt)
        await listener.until(lambda: len(listener.conversation) > before + 1 or bool(listener.questions))
        await session.interrupt()
    return ends[0]


async def test_interrupts_end_turns_and_questions_and_the_session_goes_on(
    backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    listener.choice = None
    with anyio.fail_after(LIMIT):
        async with opened(backend, work, listener) as session:
            assert (await interrupted(session, listener, "SAY[300] DELAY[20]")).stop_reason == "cancelled"
            assert (await session.prompt(saying("TEXT<<still here>>"))).stop_reason == "end_turn"
            assert listener.said.endswith("still here")
            assert (await interrupted(session, listener, "RUN[touch made.txt]")).stop_reason == "cancelled"
            assert (await session.prompt(saying("SAY[1]"))).stop_reason == "end_turn"
    assert listener.withdrawn == len(listener.questions)
    assert list(work.iterdir()) == []  # noqa: ASYNC240


async def test_an_edit_is_asked_about_and_shown_as_the_file_before_and_after(
    backend: ClaudeBackend, work: Path, listener: Listener
) -> None:
    path = work / "new.py"
    script = f'TOOL[Write {{"file_path": "{path}", "content": "x = 1\\n"}}];;TEXT<<ok>>'
    with anyio.fail_after(LIMIT):
        async with opened(backend, work, listener) as session:
            await session.prompt(saying(script))
    (question,) = listener.questions
    assert question.tool_call.content == (Diff(str(path), None, "x = 1\n"),)
    last = [update for update in listener.updates if isinstance(update, ToolCallUpdate)][-1]
    assert (last.status, last.content) == ("completed", (Diff(str(path), None, "x = 1\n"),))
    assert path.read_text() == "x = 1\n"


@pytest.mark.case("A02")
async def test_a_refused_login_asks_for_one(backend: ClaudeBackend, work: Path) -> None:
    with anyio.fail_after(LIMIT):
        async with opened(backend, work) as session:
            with pytest.raises(LoginNeeded, match="claude auth login"):
                await session.prompt(saying("FAIL[401]"))
            assert (await session.prompt(saying("SAY[1]"))).stop_reason == "end_turn"


@pytest.mark.case("K01")
async def test_a_prompt_that_the_cli_has_taken_is_not_to_be_sent_again(
    backend: ClaudeBackend, model: Model, work: Path, listener: Listener
) -> None:
    """It tells that it has taken a prompt before it asks the model, and before the transcript is written."""
    ends: list[BackendGone] = []
    with anyio.fail_after(LIMIT):
        async with opened(backend, work, listener) as session, anyio.create_task_group() as tasks:

            async def prompt() -> None:
                with pytest.raises(BackendGone) as gone:
                    await session.prompt(saying("GATE[held] SAY[1]"))
                ends.append(gone.value)

            tasks.start_soon(prompt)
            await model.gate("held").reached()
            (pid,) = [pid for pid, command in bearing(str(work.parent)).items() if "--output-format" in command]
            os.kill(pid, signal.SIGKILL)
            await session.gone()
    assert [end.untaken for end in ends] == [False]
