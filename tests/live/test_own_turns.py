"""Turns that a CLI begins itself: Claude Code when a background command ends, Codex while it has a goal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import obj, text

from .client import Client
from .conftest import all_and_v2
from .lab import Lab

pytestmark = [pytest.mark.anyio, pytest.mark.live]

all_backends = pytest.mark.parametrize("backend", ["claude", "claude-tui", "codex"])

in_v2 = pytest.mark.parametrize("version", [2])

OWN = "LINES SAY[5] GATE[own] SAY[5]"
"""What the model says in such a turn."""


async def begun(agent: Client, lab: Lab, backend: str) -> str:
    """A session whose prompt is answered, and that now works of its own accord: it waits at the gate."""
    session = await agent.new_session(lab.cwd, backend)
    if backend != "codex":
        flag = Path(lab.cwd) / "go"
        words = f"while [ ! -e {flag} ]; do sleep 0.05; done"
        call = {"command": words, "description": OWN, "run_in_background": True}
        await agent.ask(session, f"TOOL[Bash {json.dumps(call)}] ;; TEXT<<begun>>")
        flag.touch()
    else:
        done = json.dumps({"status": "complete"})
        goal = {"objective": f"{OWN} TOOL[update_goal {done}]"}
        await agent.ask(session, f"TOOL[create_goal {json.dumps(goal)}] ;; TEXT<<begun>>")
    await agent.hears(session, "word4")
    return session


def states(agent: Client, session: str) -> list[tuple[object, object]]:
    """The states that were told, each once, with how what was done ended."""
    told = [(body["state"], body.get("stopReason")) for body in agent.heard(session, "state_update")]
    return [state for n, state in enumerate(told) if state != told[n - 1] or not n]


async def told(agent: Client, session: str, state: str, ended: str | None = None) -> None:
    await agent.wait_for(lambda: states(agent, session)[-1:] == [(state, ended)] or None, f"{state} ({ended})")


@all_and_v2
async def test_what_a_cli_does_of_its_own_accord_is_cancelled_like_a_turn(
    agent: Client, both: Lab, backend: str, version: int
) -> None:
    session = await begun(agent, both, backend)
    if version == 2:
        await told(agent, session, "running")
    agent.notify("session/cancel", {"sessionId": session})
    if version == 2:
        await told(agent, session, "idle", "cancelled")
    assert await agent.ask(session, "TEXT<<and on>>") == "end_turn"
    assert "and on" in agent.said(session) and "word5" not in agent.said(session)


@in_v2
@all_backends
async def test_a_prompt_is_taken_in_when_the_cli_does_so_whatever_it_does_meanwhile(
    agent: Client, both: Lab, backend: str
) -> None:
    session = await begun(agent, both, backend)
    await told(agent, session, "running")
    turn = agent.prompt(session, "TEXT<<the answer>>")
    if backend != "codex":
        # Codex adds it to what it does: there it is taken in at once.
        assert obj(await agent.request("session/status", {"sessionId": session}), "state")["state"] == "running"
        assert not turn.done
    both.model.gate("own").set()
    assert (await turn.answer())["stopReason"] == "end_turn"
    assert "the answer" in agent.said(session)
    _, echo = agent.heard(session, "user_message")
    bodies = agent.heard(session)
    if backend != "codex":
        words = [n for n, body in enumerate(bodies) if "word9" in text(obj(body, "content"), "text")]
        assert words and words[-1] < bodies.index(echo)
        assert states(agent, session)[-4:] == [("running", None), ("idle", "end_turn")] * 2


@in_v2
@pytest.mark.parametrize("backend", ["claude", "claude-tui"])
async def test_a_cancel_reaches_a_prompt_that_waits_behind_what_claude_code_does_itself(
    agent: Client, both: Lab, backend: str
) -> None:
    session = await begun(agent, both, backend)
    await told(agent, session, "running")
    turn = agent.prompt(session, "TEXT<<never said>>")
    await agent.request("session/status", {"sessionId": session})
    agent.notify("session/cancel", {"sessionId": session})
    assert (await turn.error()).code == -32800
    await told(agent, session, "idle", "cancelled")
    assert await agent.ask(session, "TEXT<<and on>>") == "end_turn"
    assert "never said" not in agent.said(session)
