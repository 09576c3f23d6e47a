"""Background work and idle sessions on the real CLIs (issue 3)."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.claude.program import config_dir
from acp_manifold.translators.narrow import JsonObject, as_objects, text
from tests.waiting import until

from .client import STOPPED, Client
from .conftest import MakeLab, both_versions
from .lab import Lab, started
from .leftovers import bearing

pytestmark = [pytest.mark.anyio, pytest.mark.live]

both_backends = pytest.mark.parametrize("backend", ["claude", "claude-tui", "codex"])

LIST, OUTPUT, STOP = (f"_acp-manifold/background/{name}" for name in ("list", "output", "stop"))
SHELLS = "sleep 987"
"""What marks the shells of these tests, in their command line."""


async def with_a_task(agent: Client, lab: Lab, backend: str) -> tuple[str, str]:
    """A session whose turn is over and whose command goes on; its id and the task's."""
    session = await agent.new_session(lab.cwd, backend)
    # Codex streams nothing of what is printed in a command's first moments (codex-cli 0.163.0).
    words = f"while [ ! -e {go_on(lab, session)} ]; do sleep 0.05; done; echo first-line; {SHELLS}"
    turn = agent.prompt(session, f"RUNBG[{words}] ;; SAY[1]")
    assert (await turn.answer())["stopReason"] == "end_turn"
    (task,) = await tasks(agent, session)
    assert SHELLS in text(task, "title")
    return session, text(task, "taskId")


def go_on(lab: Lab, session: str) -> Path:
    """The file whose appearance lets the command of a session speak, and then sleep."""
    return Path(lab.cwd) / f"go-{session}"


async def tasks(agent: Client, session: str) -> list[JsonObject]:
    return as_objects((await agent.request(LIST, {"sessionId": session}))["tasks"])


def shells(lab: Lab) -> list[int]:
    return [pid for pid, command in bearing(str(lab.folder)).items() if command.startswith(SHELLS)]


async def left(lab: Lab, count: int) -> None:
    """Wait until so many shells are left: a killed one takes a moment to go."""
    await until(lambda: len(shells(lab)) <= count)
    assert len(shells(lab)) == count


def states(agent: Client, session: str, call: str) -> list[object]:
    """Every status a tool call was told to be in."""
    updates = [*agent.heard(session, "tool_call"), *agent.heard(session, "tool_call_update")]
    return [update["status"] for update in updates if update["toolCallId"] == call and "status" in update]


async def reaches(agent: Client, session: str, call: str, status: str) -> None:
    await agent.wait_for(lambda: states(agent, session, call)[-1] == status or None, f"{call} to be {status}")


@both_versions
@both_backends
async def test_a_background_command_is_its_own_sessions_alone(
    agent: Client, both: Lab, backend: str, version: int
) -> None:
    session, task = await with_a_task(agent, both, backend)
    other, others = await with_a_task(agent, both, backend)
    (row,) = await tasks(agent, session)
    call = text(row, "toolCallId")
    assert states(agent, session, call)[-1] == "in_progress"
    for one in (session, other):
        go_on(both, one).touch()

    with anyio.fail_after(20):
        while "first-line" not in text(await agent.request(OUTPUT, {"sessionId": session, "taskId": task}), "output"):
            pass
    for method in (OUTPUT, STOP):
        error = await agent.fails(method, {"sessionId": other, "taskId": task})
        assert (error.code, error.data) == (-32002, {"sessionId": other, "taskId": task})
    await until(lambda: len(shells(both)) == 2)
    if version == 1:
        assert await agent.request(STOP, {"sessionId": session, "taskId": task}) == {}
    else:
        background = agent.heard(session, "state_update")[-1]["background"]
        assert background == [{"type": "terminal", "terminalId": call}]
        error = await agent.fails("terminal/cancel", {"sessionId": other, "terminalId": call})
        assert error.code == -32602
        assert await agent.request("terminal/cancel", {"sessionId": session, "terminalId": call}) == {}
    await reaches(agent, session, call, STOPPED[version])
    if version == 2:
        await agent.wait_for(lambda: not agent.heard(session, "state_update")[-1]["background"], "its end")
        ended = [body for body in agent.heard(session, "terminal_update") if "exitStatus" in body]
        assert [body["terminalId"] for body in ended] == [call]
    assert await tasks(agent, session) == []
    assert [row["taskId"] for row in await tasks(agent, other)] == [others]
    await left(both, 1)


@both_versions
@both_backends
async def test_the_close_of_a_session_ends_its_background_work_alone(
    agent: Client, both: Lab, backend: str, version: int
) -> None:
    session, _ = await with_a_task(agent, both, backend)
    other, _ = await with_a_task(agent, both, backend)
    for one in (session, other):
        go_on(both, one).touch()
    await until(lambda: len(shells(both)) == 2)
    (row,) = await tasks(agent, session)
    assert await agent.request("session/close", {"sessionId": session}) == {}
    assert states(agent, session, text(row, "toolCallId"))[-1] == STOPPED[version]
    await left(both, 1)
    assert len(await tasks(agent, other)) == 1


@pytest.mark.case("M05")
async def test_the_notice_of_a_task_and_its_turn_end_no_other_prompt(agent: Client, both: Lab) -> None:
    session = await agent.new_session(both.cwd, "claude")
    flag = Path(both.cwd) / "go"
    await agent.ask(session, f"RUNBG[while [ ! -e {flag} ]; do sleep 0.05; done] ;; SAY[1]")
    (row,) = await tasks(agent, session)
    turn = agent.prompt(session, "SAY[2] GATE[own] TEXT<<the answer>>")
    await agent.hears(session, "word1")
    flag.touch()
    await reaches(agent, session, text(row, "toolCallId"), "completed")
    assert not turn.done
    both.model.gate("own").set()
    assert (await turn.answer())["stopReason"] == "end_turn"
    assert "the answer" in agent.said(session)
    assert await agent.ask(session, "TEXT<<and the next>>") == "end_turn"
    assert agent.said(session).count("and the next") == 1


@both_backends
@pytest.mark.case("R05")
async def test_an_idle_session_costs_no_process_and_comes_back(lab: MakeLab, backend: str) -> None:
    both = lab(backend)
    async with started(both, "--verbose", "--backend", backend, "--idle-timeout", "0.5") as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd)
        await agent.ask(session, "SAY[1]")
        assert await agent.request("session/set_title", {"sessionId": session, "title": "Kept"}) == {"title": "Kept"}
        await at_rest(both, backend)
        told = len(agent.heard(session))
        assert [row["title"] for row in await agent.list_sessions()] == ["Kept"]
        assert await agent.request("session/set_title", {"sessionId": session, "title": "Later"}) == {"title": "Later"}
        assert serving(both) == 0 or backend == "codex"
        assert await agent.ask(session, "TEXT<<back again>>") == "end_turn"
        assert "back again" in agent.said(session)
        assert [row["title"] for row in await agent.list_sessions()] == ["Later"]
        # The title told to the client that set it, the words, the usage: nothing of a new beginning.
        kinds = {text(update, "sessionUpdate") for update in agent.heard(session)[told:]}
        assert kinds <= {"session_info_update", "agent_message_chunk", "usage_update"}
        assert "back again" not in both.model.prompts()[0]


@both_backends
@pytest.mark.case("R05")
async def test_a_session_with_background_work_is_not_let_go(lab: MakeLab, backend: str) -> None:
    both = lab(backend)
    async with started(both, "--verbose", "--backend", backend, "--idle-timeout", "0.3") as agent:
        await agent.initialize()
        session, task = await with_a_task(agent, both, backend)
        go_on(both, session).touch()
        await until(lambda: len(shells(both)) == 1)
        with anyio.move_on_after(1.5):
            await agent.wait_for(lambda: None if shells(both) else True, "the shell to be gone")
        assert len(shells(both)) == 1
        await agent.request(STOP, {"sessionId": session, "taskId": task})
        await at_rest(both, backend)


def serving(lab: Lab) -> int:
    """How many CLI processes serve one session each."""
    return sum("--output-format" in command or "--settings" in command for command in bearing(str(lab.folder)).values())


async def at_rest(lab: Lab, backend: str) -> None:
    """Wait until no CLI serves a session any more: no process of Claude Code, no turn to be resumed in Codex."""
    await until(lambda: "is let go" in lab.log.read_text() if backend == "codex" else serving(lab) == 0)


async def test_what_a_killed_claude_left_in_the_registry_holds_nothing(lab: MakeLab) -> None:
    both = lab("claude")
    async with started(both, "--backend", "claude") as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd)
        await agent.ask(session, "SAY[1]")
        (pid,) = [pid for pid, command in bearing(str(both.folder)).items() if "--output-format" in command]
        os.kill(pid, signal.SIGKILL)
        records = list((config_dir(both.env) / "sessions").glob(f"{pid}.json"))
        assert [json.loads(path.read_text())["sessionId"] for path in records] == [session]
        await until(lambda: pid not in bearing(str(both.folder)))
        assert await agent.ask(session, "SAY[1]") == "end_turn"


@both_backends
async def test_a_cancelled_turn_leaves_the_background_work_of_earlier_ones(
    agent: Client, both: Lab, backend: str
) -> None:
    session, task = await with_a_task(agent, both, backend)
    go_on(both, session).touch()
    await until(lambda: len(shells(both)) == 1)
    turn = agent.prompt(session, "TEXT<<second\n>> GATE[held]")
    await agent.hears(session, "second")
    agent.notify("session/cancel", {"sessionId": session})
    assert (await turn.answer())["stopReason"] == "cancelled"
    assert [row["taskId"] for row in await tasks(agent, session)] == [task]
    assert states(agent, session, text((await tasks(agent, session))[0], "toolCallId"))[-1] == "in_progress"
    assert len(shells(both)) == 1


@both_versions
@both_backends
async def test_a_command_that_a_turn_waits_for_is_no_background_work_and_is_stopped_with_the_turn_or_the_session(
    agent: Client, both: Lab, backend: str, version: int
) -> None:
    session = await agent.new_session(both.cwd, backend)
    turn = agent.prompt(session, f"RUN[echo first; {SHELLS}] ;; SAY[1]")
    await agent.wait_for(lambda: len(agent.calls(session)) == 1, "the first call")
    await until(lambda: len(shells(both)) == 1, 20)
    assert await tasks(agent, session) == []
    agent.notify("session/cancel", {"sessionId": session})
    assert (await turn.answer())["stopReason"] == "cancelled"
    await left(both, 0)
    assert ends(agent, session) == [STOPPED[version]]

    turn = agent.prompt(session, f"RUN[echo second; {SHELLS}] ;; SAY[1]")
    await agent.wait_for(lambda: len(agent.calls(session)) == 2, "the second call")
    await until(lambda: len(shells(both)) == 1, 20)
    await agent.request("session/close", {"sessionId": session})
    assert (await turn.answer())["stopReason"] == "cancelled"
    await left(both, 0)
    assert ends(agent, session) == [STOPPED[version]] * 2
    if backend != "codex":
        # Codex keeps no stopped command (0.163.0); the interactive program has no time to, at its end (2.1.332).
        agent.updates.clear()
        await agent.load(session, both.cwd)
        last = STOPPED[version] if backend == "claude" else "failed"
        assert ends(agent, session) == [STOPPED[version], last]


def ends(agent: Client, session: str) -> list[object]:
    """The statuses that the tool calls of a session have now, in the order of their beginnings."""
    return [states(agent, session, text(body, "toolCallId"))[-1] for body in agent.calls(session)]
