"""What a client opens a session with reaches the CLI, also when the session is open already (issue 5)."""

from __future__ import annotations

import json
from functools import partial

import anyio
import pytest

from acp_manifold.translators.narrow import JsonObject
from tests.waiting import until

from .client import AcpError, Client, of_sessions
from .conftest import MakeLab, all_and_codex_in_v2, both_versions
from .lab import Lab, started
from .test_mcp import SECRETS, opened, probe, rested, tool_calls

pytestmark = [pytest.mark.anyio, pytest.mark.live]

USUAL = {
    "claude": "You are Claude Code",
    "claude-tui": "You are an agent working with the user",
    "codex": "You are Codex, a coding agent",
}
"""How each CLI's own instructions begin (Claude Code 2.1.332, codex-cli 0.163.0)."""


def system(mode: str, *texts: str) -> JsonObject:
    return {"mode": mode, "content": [{"type": "text", "text": text} for text in texts]}


async def told_to_the_model(agent: Client, lab: Lab, session: str) -> str:
    assert await agent.ask(session, "SAY[1]") == "end_turn"
    return json.dumps(lab.model.requests[-1].body)


async def loaded(agent: Client, lab: Lab, session: str, *servers: JsonObject) -> None:
    """Have a session's history told, with these servers."""
    if agent.version == 1:
        await opened(agent, lab, *servers, method="session/load", sessionId=session)
    else:
        start = {"type": "start"}
        await opened(agent, lab, *servers, method="session/resume", sessionId=session, replayFrom=start)


@all_and_codex_in_v2
async def test_a_system_prompt_of_the_client_comes_behind_the_clis_own_or_in_its_place(
    lab: MakeLab, backend: str, version: int
) -> None:
    private = lab(backend)
    flags = ("--backend", backend, "--titles", "off")
    async with started(private, *flags, "--verbose", "--idle-timeout", "1", version=version) as agent:
        assert of_sessions(await agent.initialize())["systemPrompt"] == {"mode": {"override": {}}}
        added = await opened(agent, private, systemPrompt=system("append", "MARK-ONE", "MARK-TWO"))
        instead = await opened(agent, private, systemPrompt=system("override", "MARK-THREE"))
        for life in range(2):
            told = await told_to_the_model(agent, private, added)
            assert told.index(USUAL[backend]) < told.index("MARK-ONE") < told.index("MARK-TWO")
            told = await told_to_the_model(agent, private, instead)
            assert "MARK-THREE" in told and USUAL[backend] not in told
            # At rest, nothing of it is forgotten.
            await until(partial(rested, private, 2 * (life + 1)), 20)
    async with started(private, *flags, version=version) as agent:
        await agent.initialize()
        await opened(agent, private, method="session/resume", sessionId=added, systemPrompt=system("append", "NEWER"))
        assert "NEWER" in await told_to_the_model(agent, private, added)
        await opened(
            agent, private, method="session/resume", sessionId=instead, systemPrompt=system("override", "NEWEST")
        )
        told = await told_to_the_model(agent, private, instead)
        assert "NEWEST" in told and "MARK-THREE" not in told


@pytest.mark.parametrize(
    "wrong",
    [
        "be nice",
        {"mode": "prepend", "content": [{"type": "text", "text": "x"}]},
        {"content": [{"type": "text", "text": "x"}]},
        {"mode": "append", "content": []},
        {"mode": "append", "content": [{"type": "text", "text": " "}]},
        {"mode": "append", "content": [{"type": "image", "data": "", "mimeType": "image/png"}]},
    ],
)
@both_versions
async def test_a_system_prompt_that_can_not_be_applied_opens_nothing(lab: MakeLab, wrong: object, version: int) -> None:
    private = lab("codex")
    async with started(private, "--backend", "codex", version=version) as agent:
        await agent.initialize()
        with pytest.raises(AcpError) as refused:
            await opened(agent, private, systemPrompt=wrong)
        assert refused.value.code == -32602 and "systemPrompt" in refused.value.message


@all_and_codex_in_v2
async def test_servers_given_to_an_open_session_are_there_at_once_or_after_the_turn(
    lab: MakeLab, backend: str, version: int
) -> None:
    private = lab(backend)
    async with started(private, "--backend", backend, "--titles", "off", version=version) as agent:
        await agent.initialize(session={"notices": {}})
        session = await opened(agent, private)
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        await loaded(agent, private, session, probe(private))
        assert await agent.ask(session, "TOOL[mcp__probe__look {}] ;; SAY[1]") == "end_turn"
        assert f"seen with {SECRETS[0]}" in tool_calls(agent, session)

        gate = private.model.gate("held")
        turn = agent.prompt(session, "GATE[held] ;; SAY[1]")
        await gate.reached()
        await opened(agent, private, probe(private, "late", SECRETS[1]), method="session/resume", sessionId=session)
        assert agent.heard(session, "notice")
        gate.set()
        assert (await turn.answer())["stopReason"] == "end_turn"
        with anyio.fail_after(40):
            # A server that is slow to answer has its tools in the turn after.
            while f"seen with {SECRETS[1]}" not in tool_calls(agent, session):
                assert await agent.ask(session, "TOOL[mcp__late__look {}] ;; SAY[1]") == "end_turn"
        # Who has none to give takes none away.
        await loaded(agent, private, session)
        seen = tool_calls(agent, session).count(f"seen with {SECRETS[1]}")
        assert await agent.ask(session, "TOOL[mcp__late__look {}] ;; SAY[2]") == "end_turn"
        assert tool_calls(agent, session).count(f"seen with {SECRETS[1]}") > seen
