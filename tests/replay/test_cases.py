"""Field reports that can be told by a recording: what must hold, whatever a golden says."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.adapters.replay.agent import connected
from acp_manifold.adapters.replay.client import Client
from acp_manifold.adapters.replay.conversation import Conversation, Talk
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .corpus import Case, case

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("backend", ["claude", "codex"])


async def had(found: Case, cwd: Path) -> Client:
    async with connected(found.path) as client:
        await Talk(client, str(cwd)).have(Conversation.of(*found.scenario.steps))
        return client


def titles(client: Client) -> list[str]:
    updates = [obj(obj(message, "params"), "update") for message in client.heard]
    return [text(update, "title") for update in updates if update.get("sessionUpdate") == "session_info_update"]


def answers(client: Client, method: str) -> list[JsonObject]:
    return [obj(message, "result") for message in client.heard if message.get("answer") == method]


@pytest.mark.case("T02")
@both
async def test_no_generated_title_comes_after_the_client_s(backend: str, tmp_path: Path) -> None:
    client = await had(case(backend, "title-mid-turn"), tmp_path)
    assert titles(client)[-1] == "In the middle"
    assert [row["title"] for row in as_objects(answers(client, "session/list")[0]["sessions"])] == ["In the middle"]


@pytest.mark.case("M02")
@both
async def test_streams_at_once_reach_their_own_session(backend: str, tmp_path: Path) -> None:
    client = await had(case(backend, "interleaved"), tmp_path)
    first, second = (text(result, "sessionId") for result in answers(client, "session/new"))
    assert client.said(first).split() == ["word0", "word1", "word2"]
    assert client.said(second).split() == ["word0", "word1", "word2", "word3"]


@pytest.mark.case("C02")
@both
async def test_a_cancel_before_a_word_ends_the_turn(backend: str, tmp_path: Path) -> None:
    client = await had(case(backend, "cancel-at-once"), tmp_path)
    assert [result["stopReason"] for result in answers(client, "session/prompt")] == ["cancelled", "end_turn"]


@pytest.mark.case("P02")
@both
async def test_a_question_ends_with_its_turn(backend: str, tmp_path: Path) -> None:
    client = await had(case(backend, "cancel-at-question"), tmp_path)
    assert client.questions == []
    assert [result["stopReason"] for result in answers(client, "session/prompt")] == ["cancelled", "end_turn"]
    assert "completed" not in [update.get("status") for update in client.updates(only_session(client))]


def only_session(client: Client) -> str:
    return text(answers(client, "session/new")[0], "sessionId")


@pytest.mark.case("L06")
@both
async def test_a_load_tells_what_was_said_once_in_order(backend: str, tmp_path: Path) -> None:
    client = await had(case(backend, "load-after-close"), tmp_path)
    session = only_session(client)
    closed = next(n for n, message in enumerate(client.heard) if message.get("answer") == "session/close")
    loaded = next(n for n, message in enumerate(client.heard) if message.get("answer") == "session/load")
    told = [obj(obj(message, "params"), "update") for message in client.heard[closed:loaded]]
    chunks = [(text(update, "sessionUpdate"), text(obj(update, "content"), "text")) for update in told]
    said = [chunk for chunk in chunks if chunk[0].endswith("_message_chunk")]
    assert said == [("user_message_chunk", "SAY[3]"), ("agent_message_chunk", "word0 word1 word2 ")]
    assert client.said(session).endswith("word0 word1 ")
