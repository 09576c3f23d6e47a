"""Clients that stop reading, CLIs that flood, results of many megabytes: bounded memory, nothing lost (issue 3)."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.translators.narrow import as_objects, obj, text
from tests.fakes import fake_claude as fc
from tests.live.leftovers import bearing
from tests.waiting import until

from .conftest import Fakes, Start

pytestmark = pytest.mark.anyio

CALLS, SIZE = 1500, 50_000
"""75 MB of tool calls, which can't be merged as text can."""

MEGABYTE = 1024 * 1024


def bridge_memory(fakes: Fakes) -> int:
    """Bytes of the bridge alone (PSS)."""
    (pid,) = [pid for pid, command in bearing(str(fakes.folder)).items() if "acp_manifold.bridge" in command]
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return next(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Pss:"))


async def test_a_flood_for_a_client_that_does_not_read_waits_in_the_clis_pipe(fakes: Fakes, bridge: Start) -> None:
    flood, calm = fakes.directory("flood"), fakes.directory("calm")
    fakes.claude.plays([fc.wait("user"), fc.flood(CALLS, SIZE), fc.end()], cwd=flood)
    fakes.claude.plays([fc.wait("user"), fc.say("here"), fc.wait("interrupt"), fc.end()], cwd=calm)
    async with bridge("--backend", "claude") as agent:
        a, b = await agent.new_session(str(flood)), await agent.new_session(str(calm))
        beside = agent.prompt(b, "wait")
        await agent.hears(b, "here")
        before = bridge_memory(fakes)
        agent.stop_reading()
        flooding = agent.prompt(a, "go")
        await until(lambda: fakes.claude.flooded() > 10)
        # What the client says is heard all the while, and reaches the other CLI.
        agent.notify("session/cancel", {"sessionId": b})
        await until(lambda: fakes.claude.requests("interrupt"))
        assert fakes.claude.flooded() < CALLS
        assert bridge_memory(fakes) - before < 30 * MEGABYTE
        agent.read_on()
        assert (await beside.answer())["stopReason"] == "cancelled"
        assert (await flooding.answer(60))["stopReason"] == "end_turn"
        calls = [text(update, "toolCallId") for update in agent.heard(a, "tool_call")]
        assert calls == [f"flood-{number}" for number in range(CALLS)]
        assert bridge_memory(fakes) - before < 30 * MEGABYTE


async def test_a_result_of_twenty_megabytes_arrives_and_the_others_go_on(fakes: Fakes, bridge: Start) -> None:
    big, calm = fakes.directory("big"), fakes.directory("calm")
    body = "0123456789abcdef" * (20 * MEGABYTE // 16)
    fakes.claude.plays(
        [
            fc.wait("user"),
            fc.call("toolu_1", "mcp__x__dump", {}),
            fc.gate("now"),
            fc.returns("toolu_1", body),
            fc.say("after"),
            fc.end(),
        ],
        cwd=big,
    )
    fakes.claude.plays([fc.wait("user"), *[fc.say(f"{n} ", streamed=True) for n in range(50)], fc.end()], cwd=calm)
    async with bridge("--backend", "claude") as agent:
        a, b = await agent.new_session(str(big)), await agent.new_session(str(calm))
        asked = agent.prompt(a, "go")
        await agent.wait_for(lambda: agent.heard(a, "tool_call"), "the call")
        fakes.claude.open("now")
        assert await agent.ask(b, "go") == "end_turn"
        assert agent.said(b) == "".join(f"{n} " for n in range(50))
        with anyio.fail_after(30):
            assert (await asked.answer(30))["stopReason"] == "end_turn"
        (ended,) = [u for u in agent.heard(a, "tool_call_update") if u.get("status") == "completed"]
        (item,) = as_objects(ended["content"])
        assert text(obj(item, "content"), "text") == body
        assert agent.said(a) == "after"
