"""A deleted session is gone on the real CLIs, also one that copies are built on."""

from __future__ import annotations

import anyio
import pytest

from acp_manifold.translators.narrow import JsonObject, text

from .client import Client
from .conftest import MakeLab, all_and_codex_in_v2
from .lab import Lab, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]


def opening(session: str, cwd: str) -> JsonObject:
    return {"sessionId": session, "cwd": cwd, "mcpServers": []}


async def ids(agent: Client, archived: str = "include") -> set[str]:
    return {text(row, "sessionId") for row in await agent.list_sessions(archived=archived)}


async def is_gone(agent: Client, lab: Lab, session: str) -> None:
    assert session not in await ids(agent)
    opens = "session/load" if agent.version == 1 else "session/resume"
    for method in (opens, "session/fork", "session/status", "session/unarchive"):
        assert (await agent.fails(method, opening(session, lab.cwd))).code == -32002, method
    error = await agent.fails("session/set_title", {"sessionId": session, "title": "No"})
    assert error.code == -32002
    assert await agent.request("session/delete", {"sessionId": session}) == {}


@all_and_codex_in_v2
async def test_what_was_forked_is_deleted_while_it_runs_and_when_closed_and_its_copies_go_on(
    lab: MakeLab, backend: str, version: int
) -> None:
    both = lab(backend)
    flags = ("--backend", backend, "--titles", "off")
    forks: dict[str, str] = {}
    async with started(both, *flags, version=version) as agent:
        await agent.initialize()
        for how in ("running", "closed"):
            session = await agent.new_session(both.cwd)
            await agent.ask(session, f"TEXT<<said in {how}>>")
            fork = forks[session] = text(await agent.request("session/fork", opening(session, both.cwd)), "sessionId")
            if how == "closed":
                await agent.request("session/close", {"sessionId": session})
                await agent.request("session/delete", {"sessionId": session})
            else:
                turn = agent.prompt(session, "TEXT<<part\n>> GATE[never]")
                await agent.hears(session, "part")
                await agent.request("session/delete", {"sessionId": session})
                assert (await turn.answer())["stopReason"] == "cancelled"
            await is_gone(agent, both, session)
            assert await agent.ask(fork, "TEXT<<the copy goes on>>") == "end_turn"
            assert f"said in {how}" in str(both.model.requests[-1].body)
    async with started(both, *flags, version=version) as agent:
        await agent.initialize()
        assert await ids(agent) == set(forks.values())
        for session, fork in forks.items():
            await is_gone(agent, both, session)
            await agent.load(fork, both.cwd)
            assert await agent.ask(fork, "TEXT<<and on>>") == "end_turn"
            await agent.request("session/delete", {"sessionId": fork})
            await is_gone(agent, both, fork)
    left = [path async for path in anyio.Path(both.folder).rglob("*.jsonl") if any(one in path.name for one in forks)]
    assert left == [], "with the last copy what was kept for it goes"
