"""MCP servers of the client, in the real CLIs: given to their session alone, called by the model, their faults told."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from acp_manifold.translators.narrow import JsonObject, text
from tests.waiting import until

from .client import Client
from .conftest import MakeLab, all_and_codex_in_v2
from .lab import Lab, started
from .leftovers import bearing

pytestmark = [pytest.mark.anyio, pytest.mark.live]

SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    words = {"type": "text", "text": "TEXT<<asked by a prompt>>"}
    results = {
        "initialize": {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}, "prompts": {}},
                       "serverInfo": {"name": "probe", "version": "1"}},
        "tools/list": {"tools": [{"name": "look", "description": "looks", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "seen with " + os.environ["PROBE_TOKEN"]}]},
        "prompts/list": {"prompts": [{"name": "greet", "description": "greets"}]},
        "prompts/get": {"messages": [{"role": "user", "content": words}]},
    }
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}
    print(json.dumps(answer), flush=True)
"""

SECRETS = ("secret-one", "secret-two")


def probe(lab: Lab, name: str = "probe", secret: str = SECRETS[0]) -> JsonObject:
    """A server whose tool tells a secret of its environment."""
    path = Path(lab.cwd) / "probe.py"
    path.write_text(SERVER)
    env = [{"name": "PROBE_TOKEN", "value": secret}]
    return {"type": "stdio", "name": name, "command": sys.executable, "args": [str(path)], "env": env}


DEAD: JsonObject = {"type": "stdio", "name": "dead one", "command": "/no/such/program", "args": [], "env": []}


async def opened(agent: Client, lab: Lab, *servers: JsonObject, method: str = "session/new", **more: object) -> str:
    answer = await agent.request(method, {"cwd": lab.cwd, "mcpServers": list(servers), **more})
    return str(answer.get("sessionId") or more["sessionId"])


def tool_calls(agent: Client, session: str) -> str:
    """All that was told of tool calls."""
    return json.dumps([u for u in agent.heard(session) if text(u, "sessionUpdate").startswith("tool_call")])


def faults(agent: Client, session: str) -> list[JsonObject]:
    return [notice for notice in agent.heard(session, "notice") if text(notice, "title").startswith("MCP server")]


def command_lines(lab: Lab) -> str:
    """The command lines of all processes of the lab."""
    found = [Path(f"/proc/{pid}/cmdline") for pid in bearing(str(lab.folder))]
    return " ".join(path.read_bytes().decode(errors="replace") for path in found if path.exists())


@all_and_codex_in_v2
async def test_the_tools_of_a_server_are_the_models_in_its_session_alone(
    lab: MakeLab, backend: str, version: int
) -> None:
    both = lab(backend)
    flags = ("--backend", backend, "--verbose", "--titles", "off")
    async with started(both, *flags, version=version) as agent:
        capabilities = await agent.initialize(session={"notices": {}})
        assert ('"sse": true' in json.dumps(capabilities)) == (backend != "codex" and version == 1)
        first = await opened(agent, both, probe(both), DEAD)
        second = await opened(agent, both, probe(both, "an other one", SECRETS[1]))
        for session, name, secret in ((first, "probe", SECRETS[0]), (second, "an_other_one", SECRETS[1])):
            assert await agent.ask(session, f"TOOL[mcp__{name}__look {{}}] ;; SAY[1]") == "end_turn"
            assert f"seen with {secret}" in tool_calls(agent, session), f"{session}: the tool was not called"
            assert f"seen with {secret}" in json.dumps(both.model.requests[-1].body), "the model got its result"
        await agent.ask(second, "TOOL[mcp__probe__look {}] ;; SAY[1]")
        assert SECRETS[0] not in tool_calls(agent, second), "the other session's server is not there"
        if backend != "claude-tui":
            # The interactive program shows on its screen alone how its servers are.
            await how_servers_are(agent, first, second)
        assert not any(secret in command_lines(both) + agent.said(first) + agent.said(second) for secret in SECRETS)
        if backend == "claude":
            await prompts_of_a_server(agent, first)
    assert not any(secret in both.log.read_text() for secret in SECRETS)


async def how_servers_are(agent: Client, first: str, second: str) -> None:
    told = await agent.ask(second, "/mcp"), agent.said(second)
    assert "an other one" in told[1] and "`look`" in told[1] and "probe" not in told[1]

    await agent.wait_for(lambda: faults(agent, first), "the fault of the server that is not there")
    (fault,) = faults(agent, first)
    assert (fault["severity"], faults(agent, second)) == ("error", [])
    assert "dead one" in text(fault, "title") and "no such file" in text(fault, "description").lower()
    await agent.ask(first, "/mcp")
    assert "dead one" in agent.said(first) and "failed" in agent.said(first)


def offers_greet(agent: Client, session: str) -> bool:
    """Whether the prompt of the server is among the commands of the session, as told last."""
    return "mcp__probe__greet" in [text(command, "name") for command in agent.commands(session)]


async def prompts_of_a_server(agent: Client, session: str) -> None:
    await agent.wait_for(partial(offers_greet, agent, session), "the prompt of the MCP server as a command")
    await agent.ask(session, "/mcp__probe__greet")
    await agent.hears(session, "asked by a prompt")


async def test_the_prompts_of_a_server_that_comes_up_late_are_offered_then(lab: MakeLab) -> None:
    both = lab("claude")
    up = Path(both.cwd) / "up"
    os.mkfifo(up)
    async with started(both, "--backend", "claude", "--titles", "off") as agent:
        await agent.initialize(session={"notices": {}})
        server = probe(both)
        (Path(both.cwd) / "probe.py").write_text(f"open({str(up)!r}).read()\n{SERVER}")
        session = await opened(agent, both, server)
        await agent.wait_for(lambda: agent.heard(session, "available_commands_update"), "the commands of the CLI")
        assert not offers_greet(agent, session)
        turn = agent.prompt(session, "TEXT<<begun>>")
        await agent.wait_for(lambda: agent.heard(session, "notice"), "what the first prompt waits for")
        assert text(agent.heard(session, "notice")[0], "title") == "Claude Code waits for MCP servers: probe"
        assert agent.said(session) == ""
        await to_thread.run_sync(up.write_text, "now")
        assert (await turn.answer())["stopReason"] == "end_turn"
        await prompts_of_a_server(agent, session)


async def test_codex_finds_a_tool_by_search_and_one_of_the_persons_servers_gives_way(lab: MakeLab) -> None:
    """Tools of MCP servers are in no model request of codex-cli 0.163.0: the model has `tool_search` for them."""
    both = lab("codex")
    config = Path(both.env["CODEX_HOME"]) / "config.toml"
    config.write_text(
        config.read_text() + '\n[mcp_servers.probe]\nurl = "http://127.0.0.1:1/mcp"\nhttp_headers = { X = "theirs" }\n'
    )
    async with started(both, "--backend", "codex", "--titles", "off") as agent:
        await agent.initialize()
        session = await opened(agent, both, probe(both))
        await agent.ask(session, 'TOOL[tool_search {"query": "look"}] ;; TOOL[mcp__probe_2__look {}] ;; SAY[1]')
        found = [request for request in both.model.requests if "tool_search_output" in json.dumps(request.body)]
        assert '"mcp__probe_2"' in json.dumps(found[0].body)
        assert f"seen with {SECRETS[0]}" in tool_calls(agent, session)
        await agent.ask(session, "/mcp")
        assert "**probe:** connected" in agent.said(session)


async def test_a_server_that_can_not_be_used_is_said_to_a_client_without_notices(lab: MakeLab) -> None:
    both = lab()
    async with started(both, "--titles", "off") as agent:
        await agent.initialize()
        for backend in ("claude", "codex"):
            session = await opened(agent, both, DEAD, _meta={"acp-manifold": {"backend": backend}})
            assert await agent.ask(session, "TEXT<<goes on>>") == "end_turn"
            await agent.hears(session, "MCP server dead one")
            assert "goes on" in agent.said(session)


SSE: JsonObject = {"type": "sse", "name": "old", "url": "http://127.0.0.1:1/sse", "headers": []}


async def test_servers_that_can_not_be_taken_are_refused(agent: Client, both: Lab) -> None:
    codex: JsonObject = {"_meta": {"acp-manifold": {"backend": "codex"}}}
    for servers, more, words in (
        ([SSE], codex, "SSE"),
        ([DEAD, DEAD], {}, "mcpServers[1].name"),
        ([{**DEAD, "name": " "}], {}, "mcpServers[0].name"),
        ([{"type": "acp", "name": "a", "serverId": "x"}], {}, "mcpServers[0].type"),
    ):
        error = await agent.fails("session/new", {"cwd": both.cwd, "mcpServers": servers, **more})
        assert error.code == -32602 and words in error.message
    session = await opened(agent, both, SSE)
    switch = {"sessionId": session, "configId": "backend", "value": "codex"}
    assert (await agent.fails("session/set_config_option", switch)).code == -32602
    assert await agent.ask(session, "TEXT<<still here>>") == "end_turn"
    await agent.hears(session, "still here")


def rested(lab: Lab, times: int) -> bool:
    return lab.log.read_text().count("is let go") >= times


def offered(lab: Lab) -> bool:
    """Whether the model was offered the tool with the last turn."""
    return "probe__look" in json.dumps(lab.model.requests[-1].body)


async def test_a_server_of_the_client_serves_its_session_also_after_a_rest(lab: MakeLab) -> None:
    """The file that names it is gone by then: Claude Code 2.1.332 has read it by its handshake."""
    both = lab("claude")
    async with started(both, "--backend", "claude", "--verbose", "--titles", "off", "--idle-timeout", "0.5") as agent:
        await agent.initialize()
        params: JsonObject = {"cwd": both.cwd, "mcpServers": [probe(both)]}
        session = str((await agent.request("session/new", params))["sessionId"])
        for life in range(2):
            await agent.ask(session, "SAY[1]")
            await agent.ask(session, "SAY[1]")
            assert offered(both)
            await until(partial(rested, both, life + 1), 10)
        leftover = [path for path in both.folder.rglob("mcp.json") if SECRETS[0] in path.read_text()]
        assert leftover == []
