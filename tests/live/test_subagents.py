"""Sub-agents on the real CLIs: conversations beside the one with the person, live and when a session is loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text
from tests.waiting import until

from .client import Client, leave_open
from .conftest import MakeLab, both_versions
from .lab import Lab, started
from .leftovers import bearing

pytestmark = [pytest.mark.anyio, pytest.mark.live]

LIST = "_acp-manifold/background/list"
INNER = "REASON[hm] TEXT<<first>> RUN[echo in] ;; RUNESC[echo asked] ;; TEXT<<inner words>>"


def spawn(message: str, tools: str = "multi_agent_v1", **fields: object) -> str:
    """A script that has Codex' model set a sub-agent to work."""
    return f"TOOL[{tools}__spawn_agent {json.dumps({'message': message, **fields})}]"


def children(agent: Client, session: str) -> list[str]:
    """The sessions of sub-agents, in the order in which they were first told."""
    return list(dict.fromkeys(text(body, "sessionId") for body in agent.heard(session, "subagent_update")))


def states(agent: Client, session: str, child: str | None = None) -> list[str]:
    """The states that sub-agents were told to be in, of one or of all."""
    told = [body for body in agent.heard(session, "subagent_update") if "state" in body]
    reports = [obj(body, "state") for body in told if child in (None, body["sessionId"])]
    return [text(report, "state") for report in reports]


async def listed(agent: Client, lab: Lab) -> list[str]:
    rows = await agent.request("session/list", {"cwd": lab.cwd})
    return [text(row, "sessionId") for row in as_objects(rows.get("sessions"))]


@both_versions
@pytest.mark.case("M01")
async def test_codex_sub_agents_are_sessions_of_their_own_and_nothing_of_them_is_the_parents(
    lab: MakeLab, version: int
) -> None:
    both = lab("codex")
    async with started(both, "--backend", "codex", "--titles", "off", version=version) as agent:
        await agent.initialize(subagents={})
        session = await agent.new_session(both.cwd)
        agent.on_question = leave_open
        # The agent works on, and asks, when the turn that began it is over.
        assert await agent.ask(session, f"{spawn(INNER)} ;; TEXT<<over>>") == "end_turn"
        (child,) = children(agent, session)
        question = await agent.question(session)
        assert text(question.tool_call, "title") == "echo asked"
        question.choose(question.option("allow_once"))
        await agent.wait_for(lambda: "idle" in states(agent, session), "the end of the sub-agent")
        assert agent.said(child, "agent_thought_chunk") == "hm"
        assert agent.said(child) == "firstinner words"
        calls = [text(body, "title") for body in agent.calls(child)]
        assert calls == ["echo in", "echo asked"]
        # Not one word of it, nor a call, is in the session itself, but for its last words in the call that began it.
        assert agent.said(session) == "over"
        assert [text(body, "name") for body in agent.calls(session)] == ["spawnAgent"]
        assert "inner words" in json.dumps(agent.heard(session, "tool_call_update")[-1])
        if version == 2:
            (given,) = agent.heard(child, "session_message")
            assert (given["senderSessionId"], text(as_objects(given["content"])[0], "text")) == (session, INNER)
            assert [text(body, "state") for body in agent.heard(child, "state_update")][-1] == "idle"
        assert await listed(agent, both) == [session]

        # One that works behind its turn is work in the background, which a cancel of another turn leaves alone.
        await agent.ask(session, f"{spawn('SAY[1] GATE[never]')} ;; TEXT<<over>>")
        await both.model.gate("never").reached()
        tasks = await agent.request(LIST, {"sessionId": session})
        assert [text(task, "title") for task in as_objects(tasks.get("tasks"))] == ["SAY[1] GATE[never]"]
        running = agent.prompt(session, "GATE[other]")
        await both.model.gate("other").reached()
        second = children(agent, session)[1]
        agent.notify("session/cancel", {"sessionId": session})
        assert (await running.answer())["stopReason"] == "cancelled"
        assert states(agent, session)[-1] == "running"
        running = agent.prompt(session, f"{spawn('SAY[1] GATE[never again]')} ;; GATE[another]")
        await both.model.gate("another").reached()
        await both.model.gate("never again").reached()
        if version == 1:
            (task,) = as_objects((await agent.request(LIST, {"sessionId": session})).get("tasks"))
            await agent.request("_acp-manifold/background/stop", {"sessionId": session, "taskId": task["taskId"]})
        else:
            background = agent.heard(session, "state_update")[-1]["background"]
            assert background == [{"type": "subagent", "sessionId": second}]
            assert {"cancel": {}} in [body.get("capabilities") for body in agent.heard(session, "subagent_update")]
            agent.notify("session/cancel", {"sessionId": second})
        await agent.wait_for(lambda: states(agent, session, second)[-1] == "idle", "the end of the second sub-agent")
        third = children(agent, session)[2]
        assert states(agent, session, third)[-1] == "running" and not running.done
        # One that the turn itself has set to work is stopped with it.
        agent.notify("session/cancel", {"sessionId": session})
        assert (await running.answer())["stopReason"] == "cancelled"
        await agent.wait_for(lambda: states(agent, session, third)[-1] == "idle", "the end of the third sub-agent")
        if version == 2:
            await agent.wait_for(lambda: not agent.heard(session, "state_update")[-1]["background"], "nothing behind")
            assert agent.heard(third, "state_update")[-1].get("stopReason") == "cancelled"
    async with started(both, "--backend", "codex", "--titles", "off", version=version) as agent:
        await agent.initialize(subagents={})
        await agent.load(session, both.cwd)
        again = children(agent, session)
        assert again[0] == child and agent.said(child) == "firstinner words"
        assert [text(body, "title") for body in agent.calls(child)] == calls
        assert "inner words" not in agent.said(session) and states(agent, session)[-1] == "idle"
        # A later turn gives it more to do.
        thread = both_threads(both, session)[0]
        more = json.dumps({"target": thread, "message": "TEXT<<more words>>"})
        await agent.ask(
            session,
            f"TOOL[multi_agent_v1__resume_agent {json.dumps({'id': thread})}] ;; "
            f"TOOL[multi_agent_v1__send_input {more}] ;; TEXT<<given>>",
        )
        assert "more words" not in agent.said(session)
        later = children(agent, session)[-1]
        await agent.hears(later, "more words")
        assert await listed(agent, both) == [session]
        await agent.request("session/delete", {"sessionId": session})
        assert not both_threads(both, session)


AGENT = {
    "description": "look around",
    "prompt": "TEXT<<begun>> RUN[echo in; sleep 987] ;; TEXT<<not said>>",
    "subagent_type": "general-purpose",
    "run_in_background": True,
}


@pytest.mark.parametrize("how", ["session/cancel", "tool_call/cancel"])
@pytest.mark.parametrize("version", [2])
async def test_a_sub_agent_of_claude_code_behind_its_turn_outlives_other_turns_and_is_stopped_by_itself(
    lab: MakeLab, version: int, how: str
) -> None:
    both = lab("claude")
    async with started(both, "--backend", "claude", "--titles", "off", version=version) as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd)
        assert await agent.ask(session, f"TOOL[Agent {json.dumps(AGENT)}] ;; TEXT<<over>>") == "end_turn"
        (child,) = children(agent, session)
        (begun,) = agent.calls(session)
        await agent.wait_for(lambda: agent.calls(child), "what the sub-agent does")
        await until(lambda: len(shells(both)) == 1)
        listed = [{"type": "subagent", "sessionId": child}]
        assert agent.heard(session, "state_update")[-1]["background"] == listed
        assert controls(agent, session) == {"subagent_update": {"cancel": {}}, "tool_call_update": {"cancel": {}}}

        turn = agent.prompt(session, "TEXT<<held\n>> GATE[never]")
        await agent.hears(session, "held")
        agent.notify("session/cancel", {"sessionId": session})
        ended = await turn.answer()
        assert (ended["stopReason"], ended["background"]) == ("cancelled", listed)
        assert len(shells(both)) == 1

        if how == "session/cancel":
            agent.notify(how, {"sessionId": child})
        else:
            assert await agent.request(how, {"sessionId": session, "toolCallId": begun["toolCallId"]}) == {}
        await agent.wait_for(lambda: not agent.heard(session, "state_update")[-1]["background"], "its end")
        await agent.wait_for(lambda: status(agent, session) == ["cancelled"] or None, "the end of its call")
        assert status(agent, child) == ["cancelled"]
        assert controls(agent, session) == {"subagent_update": None, "tool_call_update": None}
        idle: JsonObject = {"state": "idle", "stopReason": "cancelled", "background": []}
        assert [body["state"] for body in agent.heard(session, "subagent_update") if "state" in body][-1] == idle
        assert agent.heard(child, "state_update")[-1] == {"sessionUpdate": "state_update", **idle}
        error = await agent.fails("tool_call/cancel", {"sessionId": session, "toolCallId": begun["toolCallId"]})
        assert error.code == -32602
        await until(lambda: not shells(both))
        assert await agent.ask(session, "TEXT<<goes on>>") == "end_turn"
        assert "not said" not in agent.said(child) + agent.said(session)


def status(agent: Client, session: str) -> list[object]:
    """The statuses of the tool calls of a session, as they are now."""
    told = [body for body in agent.heard(session, "tool_call_update") if "status" in body]
    return list({body["toolCallId"]: body["status"] for body in told}.values())


def controls(agent: Client, session: str) -> dict[str, object]:
    """What can be done to sub-agents and calls, by the kind of update that tells it, as it is now."""
    told = [body for body in agent.heard(session) if "capabilities" in body]
    return {text(body, "sessionUpdate"): body["capabilities"] for body in told}


def shells(lab: Lab) -> list[int]:
    """What the sub-agent's command runs in."""
    return [pid for pid, command in bearing(str(lab.folder)).items() if command.startswith("sleep 987")]


@pytest.mark.parametrize("backend", ["claude", "claude-tui"])
@pytest.mark.case("M01")
async def test_claude_codes_sub_agents_are_conversations_of_their_own_and_prompts_go_on_beside_them(
    lab: MakeLab, backend: str
) -> None:
    private = lab(backend)
    inner = "REASON[hm] TEXT<<first>> RUN[echo in] ;; RUN[touch asked] ;; GATE[on] TEXT<<last words>>"
    task = {"description": "look", "prompt": inner, "subagent_type": "claude"}
    async with started(private, "--backend", backend, "--titles", "off") as agent:
        await agent.initialize(subagents={})
        session = await agent.new_session(private.cwd)
        agent.on_question = leave_open
        assert await agent.ask(session, f"TOOL[Task {json.dumps(task)}] ;; TEXT<<over>>") == "end_turn"
        question = await agent.question(session)
        assert text(question.tool_call, "title") == "touch asked"
        question.choose(question.option("allow_once"))
        await private.model.gate("on").reached()
        (child,) = children(agent, session)
        tasks = await agent.request("_acp-manifold/background/list", {"sessionId": session})
        assert [text(task, "title") for task in as_objects(tasks.get("tasks"))] == ["look"]
        assert await agent.ask(session, "TEXT<<beside>>") == "end_turn"
        assert states(agent, session) == ["running"] and "beside" in agent.said(session)
        if backend == "claude-tui":
            # Stopped before its first word, a turn leaves no record; Escape lets the agent go on, as no interrupt does.
            turn = agent.prompt(session, "GATE[never]")
            await private.model.gate("never").reached()
            agent.notify("session/cancel", {"sessionId": session})
            assert (await turn.answer())["stopReason"] == "cancelled"

        private.model.gate("on").set()
        await agent.wait_for(lambda: "idle" in states(agent, session), "the end of the sub-agent")
        assert agent.said(child, "agent_thought_chunk") == "hm"
        assert agent.said(child) == "firstlast words"
        assert [text(body, "title") for body in agent.calls(child)] == ["echo in", "touch asked"]
        # Not one word of it, nor a call, is in the session itself, but for its last words in the call that began it.
        assert "first" not in agent.said(session) and "last words" not in agent.said(session)
        (call,) = agent.calls(session)
        told = [body for body in agent.heard(session, "tool_call_update") if body["toolCallId"] != call["toolCallId"]]
        assert (call["name"], told) == ("Task", [])
        await agent.wait_for(lambda: "last words" in json.dumps(agent.heard(session, "tool_call_update")), "its end")
        assert agent.heard(session, "tool_call_update")[-1]["status"] == "completed"
    async with started(private, "--backend", backend, "--titles", "off") as agent:
        await agent.initialize(subagents={})
        await agent.load(session, private.cwd)
        assert children(agent, session) == [child] and agent.said(child) == "firstlast words"


def both_threads(lab: Lab, session: str) -> list[str]:
    """The threads of sub-agents in the store, the oldest first."""
    files = sorted(Path(lab.env["CODEX_HOME"], "sessions").rglob("rollout-*.jsonl"))
    return [file.stem[-36:] for file in files if not file.stem.endswith(session)]
