"""A session that is let go here can be gone on with elsewhere at once, as in the terminal."""

from __future__ import annotations

import subprocess

import anyio
import pytest

from acp_manifold.adapters.codex.locks import holder_of
from acp_manifold.adapters.codex.program import codex_home
from acp_manifold.translators.narrow import JsonObject, text
from tests.waiting import until

from .client import Client
from .conftest import MakeLab, both_and_codex_in_v2, both_versions
from .lab import Lab, backends, started
from .test_background import at_rest

pytestmark = [pytest.mark.anyio, pytest.mark.live]


def opening(session: str, cwd: str) -> JsonObject:
    return {"sessionId": session, "cwd": cwd, "mcpServers": []}


async def in_the_terminal(lab: Lab, backend: str, session: str, words: str) -> None:
    """Go on with a session by the CLI itself."""
    (cli,) = (one.program() for one in backends([backend]))
    assert cli is not None
    how = {
        "claude": ["-p", "--resume", session, "--"],
        "codex": ["exec", "resume", "--skip-git-repo-check", session],
    }
    command = [*cli.command, *how[backend], f"TEXT<<{words}>>"]
    with anyio.fail_after(20):
        done = await anyio.run_process(command, env=lab.env, cwd=lab.cwd, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr.decode()[-600:]
    assert words in done.stdout.decode()


async def whole(agent: Client, session: str, cwd: str) -> str:
    """All that is told when a session is loaded."""
    since = len(agent.updates)
    await agent.load(session, cwd)
    return str([update.body for update in agent.updates[since:]])


@both_and_codex_in_v2
async def test_what_was_closed_goes_on_in_the_terminal_at_once(lab: MakeLab, backend: str, version: int) -> None:
    both = lab(backend)
    async with started(both, "--backend", backend, "--titles", "off", version=version) as agent:
        await agent.initialize()
        stays, session = [await agent.new_session(both.cwd) for _ in range(2)]
        for one in (stays, session):
            await agent.ask(one, "TEXT<<here>>")
        assert (await agent.fails("session/close", {"sessionId": session.upper()})).code == -32002, "an id is one name"
        before = await agent.list_sessions()
        await agent.request("session/close", {"sessionId": session})
        assert await agent.list_sessions() == before, "letting it go changes nothing of it"
        await in_the_terminal(both, backend, session, "from the terminal")
        assert "from the terminal" in await whole(agent, session, both.cwd)
        assert await agent.ask(session, "TEXT<<and back>>") == "end_turn"
        assert "from the terminal" in str(both.model.requests[-1].body)
        assert await agent.ask(stays, "TEXT<<all the while>>") == "end_turn"


@both_versions
async def test_what_was_cleared_or_forked_goes_on_in_the_terminal_at_once(lab: MakeLab, version: int) -> None:
    codex = lab("codex")
    async with started(codex, "--backend", "codex", "--titles", "off", version=version) as agent:
        await agent.initialize()
        session = await agent.new_session(codex.cwd)
        await agent.ask(session, "TEXT<<here>>")
        fork = text(await agent.request("session/fork", opening(session, codex.cwd)), "sessionId")
        await agent.ask(fork, "TEXT<<in the copy>>")
        await agent.request("session/close", {"sessionId": fork})
        await in_the_terminal(codex, "codex", fork, "copy in the terminal")
        await agent.ask(session, "/clear")
        await agent.ask(session, "TEXT<<begun anew>>")
        # What was left behind is the thread that Codex knows by our id, which goes with the conversation.
        await in_the_terminal(codex, "codex", session, "what was left behind")


@both_and_codex_in_v2
async def test_what_is_idle_goes_on_in_the_terminal_and_comes_back(lab: MakeLab, backend: str, version: int) -> None:
    both = lab(backend)
    flags = ("--backend", backend, "--titles", "off", "--idle-timeout", "0.5", "--verbose")
    async with started(both, *flags, version=version) as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd)
        await agent.ask(session, "TEXT<<here>>")
        await at_rest(both, backend)
        if backend == "codex":
            await until(lambda: holder_of(codex_home(both.env), session) is None)
        await in_the_terminal(both, backend, session, "from the terminal")
        assert await agent.ask(session, "TEXT<<and back>>") == "end_turn"
        assert "from the terminal" in str(both.model.requests[-1].body)
