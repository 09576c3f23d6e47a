"""What clients of claude-agent-acp ask of a session in `_meta`, on the real CLIs."""

from __future__ import annotations

import json

import pytest

from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .client import Client, leave_open
from .conftest import MakeLab, both_versions, of_claude_and_v2
from .lab import Lab, started
from .test_mcp import probe
from .test_options import knows

pytestmark = [pytest.mark.anyio, pytest.mark.live]


async def opened(agent: Client, lab: Lab, options: JsonObject, backend: str = "claude") -> str:
    meta: JsonObject = {"claudeCode": {"options": options}, "acp-manifold": {"backend": backend}}
    answer = await agent.request("session/new", {"cwd": lab.cwd, "mcpServers": [], "_meta": meta})
    return text(answer, "sessionId")


async def asked(agent: Client, lab: Lab, session: str) -> JsonObject:
    """The request to the model of a turn."""
    assert await agent.ask(session, "TEXT<<ok>>") == "end_turn"
    return [request.body for request in lab.model.requests if not request.asked.title][-1]


def tools(body: JsonObject) -> set[str]:
    return {text(tool, "name") for tool in as_objects(body["tools"])}


@of_claude_and_v2
async def test_a_session_begins_with_what_the_vendors_options_ask_for(lab: MakeLab, backend: str, version: int) -> None:
    both = lab(backend)
    other = both.directory("other")
    server = probe(both)
    env = {text(entry, "name"): text(entry, "value") for entry in as_objects(server["env"])}
    options: JsonObject = {
        "model": "claude-haiku-5-5",
        "effort": "low",
        "tools": ["Bash", "Read", "Write"],
        "disallowedTools": ["Write"],
        "systemPrompt": {"type": "preset", "preset": "claude_code", "append": "Say MARK-17."},
        "additionalDirectories": [other, "/no/such/folder"],
        "mcpServers": {"probe": {"command": server["command"], "args": server["args"], "env": env}},
        "title": "Vendor's",
    }
    async with started(both, "--backend", backend, version=version) as agent:
        await agent.initialize()
        session = await opened(agent, both, options, backend)
        body = await asked(agent, both, session)
        assert (body["model"], body["output_config"]) == ("claude-haiku-5-5", {"effort": "low"})
        assert tools(body) & {"Bash", "Read", "Write", "Edit"} == {"Bash", "Read"}
        assert "MARK-17" in json.dumps(body) and other in json.dumps(body)
        await knows(agent, session, model="haiku", effort="low")
        assert await agent.ask(session, "TOOL[mcp__probe__look {}] ;; SAY[1]") == "end_turn"
        assert "seen with" in json.dumps(both.model.requests[-1].body)
        (row,) = await agent.list_sessions()
        assert row["title"] == "Vendor's"

        # What is chosen since counts more; who loads the session has to ask anew for what a CLI is started with.
        await agent.set_option(session, "model", "opus")
        assert (await asked(agent, both, session))["model"] == "claude-opus-5-5"
        await agent.request("session/close", {"sessionId": session})
        await agent.load(session, both.cwd)
        body = await asked(agent, both, session)
        assert body["model"] == "claude-opus-5-5" and {"Write", "Edit"} <= tools(body)
        assert "MARK-17" not in json.dumps(body)
        # So are instructions, also for a session that has run without.
        later: JsonObject = {"claudeCode": {"options": {"systemPrompt": {"append": "Say MARK-18."}}}}
        await agent.request("session/close", {"sessionId": session})
        await agent.load(session, both.cwd, _meta=later)
        assert "MARK-18" in json.dumps(await asked(agent, both, session))


@both_versions
async def test_custom_instructions_reach_the_model_of_both_clis(lab: MakeLab, version: int) -> None:
    both = lab()
    asks: JsonObject = {"jetbrains": {"air": {"version": 1, "capabilities": ["customInstructions", "unknown"]}}}
    async with started(both, "--titles", "off", version=version) as agent:
        greeting = await agent.initialize(_meta=asks)
        air = obj(obj(obj(greeting, "_meta"), "jetbrains"), "air")
        assert air == {"version": 1, "capabilities": ["customInstructions"]}
        for backend in ("claude", "codex"):
            air = {"version": 1, "customInstructions": f"Say MARK-{backend}."}
            meta: JsonObject = {"acp-manifold": {"backend": backend}, "jetbrains": {"air": air}}
            answer = await agent.request("session/new", {"cwd": both.cwd, "mcpServers": [], "_meta": meta})
            body = await asked(agent, both, text(answer, "sessionId"))
            assert f"Say MARK-{backend}." in json.dumps(body)


@both_versions
async def test_vendors_options_give_nothing_away(lab: MakeLab, version: int) -> None:
    both = lab()
    options: JsonObject = {
        "permissionMode": "bypassPermissions",
        "allowDangerouslySkipPermissions": True,
        "allowedTools": ["Bash"],
        "settings": {"permissions": {"allow": ["Bash"], "defaultMode": "bypassPermissions"}},
        "extraArgs": {"dangerously-skip-permissions": None},
        "env": {"IS_SANDBOX": "1"},
        "effort": "no such effort",
        "agent": "no such agent",
        "model": 5,
    }
    async with started(both, "--titles", "off", version=version) as agent:
        await agent.initialize()
        agent.on_question = leave_open
        session = await opened(agent, both, options)
        turn = agent.prompt(session, "RUN[touch made.txt] ;; SAY[1]")
        (await agent.question(session)).choose("reject")
        assert (await turn.answer())["stopReason"] == "end_turn"
        # They are another CLI's: Codex begins as it is configured.
        codex = await opened(agent, both, {"model": "opus", "tools": [], "disallowedTools": ["Bash"]}, "codex")
        assert (await asked(agent, both, codex))["model"] != "opus"
