"""The shortest useful conversations with both real CLIs: if these fail, look at them first."""

from __future__ import annotations

import pytest

from acp_manifold.translators.narrow import obj, text

from .client import Client, of_sessions
from .conftest import all_and_v2, both_versions
from .lab import Lab

pytestmark = [pytest.mark.anyio, pytest.mark.live]


@all_and_v2
async def test_a_prompt_streams_its_words_and_ends_its_turn(agent: Client, both: Lab, backend: str) -> None:
    session = await agent.new_session(both.cwd, backend)
    assert await agent.ask(session, "SAY[5]") == "end_turn"
    assert agent.said(session).split() == ["word0", "word1", "word2", "word3", "word4"]


@both_versions
async def test_two_backends_stream_at_once_on_one_connection(agent: Client, both: Lab) -> None:
    """Each turn is held in its middle until the other has come as far, so neither can have waited for the other."""
    claude = await agent.new_session(both.cwd, "claude")
    codex = await agent.new_session(both.cwd, "codex")
    turns = [agent.prompt(claude, "SAY[2] GATE[c] SAY[2]"), agent.prompt(codex, "SAY[2] GATE[x] SAY[2]")]
    await agent.hears(claude, "word1")
    await agent.hears(codex, "word1")
    both.model.gate("c").set()
    both.model.gate("x").set()
    assert [text(await turn.answer(), "stopReason") for turn in turns] == ["end_turn", "end_turn"]
    assert agent.said(claude).split() == agent.said(codex).split() == ["word0", "word1", "word2", "word3"]


@all_and_v2
async def test_a_title_set_in_mid_turn_is_listed_and_kept(agent: Client, both: Lab, backend: str) -> None:
    both.model.titles.answer("A model's idea", gate="title")
    session = await agent.new_session(both.cwd, backend)
    turn = agent.prompt(session, "Please talk for a while LINES SAY[5] GATE[mid] SAY[3]")
    await agent.hears(session, "word4")
    stored = await agent.request("session/set_title", {"sessionId": session, "title": "  Mine\n own "})
    both.model.gate("title").set()
    both.model.gate("mid").set()
    assert stored["title"] == "Mine own"
    assert text(await turn.answer(), "stopReason") == "end_turn"
    rows = {text(row, "sessionId"): row.get("title") for row in await agent.list_sessions()}
    assert rows[session] == "Mine own"


@both_versions
async def test_the_agent_names_itself_and_how_titles_are_set(lab_agent: Client, version: int) -> None:
    lab_agent.version = version
    answer = await lab_agent.initialize()
    capabilities = of_sessions(answer)
    assert text(obj(answer, "agentInfo" if version == 1 else "info"), "name") == "acp-manifold"
    assert capabilities["setTitle"] == capabilities["title"] == {}
