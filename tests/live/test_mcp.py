"""MCP servers of the client, in the real Claude Code: their tools are the model's, also after a rest."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import JsonObject
from tests.reports.conftest import until

from .conftest import MakeLab
from .lab import Lab, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]

SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    results = {
        "initialize": {"protocolVersion": "2025-03-26", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "probe", "version": "1"}},
        "tools/list": {"tools": [{"name": "look", "description": "looks", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "seen with " + os.environ["PROBE_TOKEN"]}]},
    }
    answer = {"jsonrpc": "2.0", "id": asked["id"], "result": results.get(asked["method"], {})}
    print(json.dumps(answer), flush=True)
"""


def probe(lab: Lab) -> JsonObject:
    """A server whose tool tells a secret of its environment."""
    path = Path(lab.cwd) / "probe.py"
    path.write_text(SERVER)
    env = [{"name": "PROBE_TOKEN", "value": "secret-17"}]
    return {"name": "probe", "command": sys.executable, "args": [str(path)], "env": env}


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
        leftover = [path for path in both.folder.rglob("mcp.json") if "secret-17" in path.read_text()]
        assert leftover == []
