"""A message into the running turn, on the real CLIs."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .client import Client, Pending
from .conftest import all_and_v2
from .lab import Lab

pytestmark = [pytest.mark.anyio, pytest.mark.live]
all_backends = pytest.mark.parametrize("backend", ["claude", "claude-tui", "codex"])

INJECTED: JsonObject = {"outcome": "injected"}


def steer(agent: Client, session: str, words: str, *, when_idle: str | None = None) -> Pending:
    meta = {"_meta": {"steering": {"idleBehavior": when_idle}}} if when_idle is not None else {}
    prompt = [{"type": "text", "text": words}]
    return agent.start("_session/steering", {"sessionId": session, "prompt": prompt, **meta})


@all_and_v2
async def test_a_message_joins_the_running_turn_and_no_command_is_broken_off(
    agent: Client, both: Lab, backend: str
) -> None:
    session = await agent.new_session(both.cwd, backend)
    wait = "RUN[until [ -e go ]; do sleep 0.05; done; echo went] ;; TEXT<<not this>>"
    turn = agent.prompt(session, f"TEXT<<look >> {wait}")
    await agent.wait_for(lambda: agent.calls(session), "the command")
    assert await steer(agent, session, "TEXT<<steered >>").answer() == INJECTED
    (Path(both.cwd) / "go").touch()
    assert (await turn.answer())["stopReason"] == "end_turn"
    assert agent.said(session).split() == ["look", "steered"]
    assert [u["status"] for u in agent.heard(session, "tool_call_update") if "status" in u][-1] == "completed"

    # An answer that streams is cut short for it; the turn ends when the message is answered.
    turn = agent.prompt(session, "TEXT<<first\n>> GATE[never] TEXT<<not to the end >>")
    await agent.hears(session, "first")
    assert await steer(agent, session, "GATE[b] TEXT<<then the second>>").answer() == INJECTED
    await both.model.gate("b").reached()
    assert not turn.done
    both.model.gate("b").set()
    assert (await turn.answer())["stopReason"] == "end_turn"
    assert agent.said(session).split()[2:] == "first then the second".split()

    # A cancel ends the turn with all that was added to it, though the CLI has not looked at it yet.
    calls = len(agent.calls(session))
    turn = agent.prompt(session, "RUN[until [ -e never ]; do sleep 0.05; done]")
    await agent.wait_for(lambda: len(agent.calls(session)) > calls, "the second command")
    assert await steer(agent, session, "TEXT<<never said>>").answer() == INJECTED
    agent.notify("session/cancel", {"sessionId": session})
    assert (await turn.answer())["stopReason"] == "cancelled"
    assert await agent.ask(session, "TEXT<<the next>>") == "end_turn"
    assert agent.said(session).endswith("then the secondthe next")

    # A load tells it as it was: what was added is the person's, where it was said.
    await agent.request("session/close", {"sessionId": session})
    heard = len(agent.updates)
    await agent.load(session, both.cwd)
    typed = [u for u in agent.updates[heard:] if u.session == session and u.kind == "user_message_chunk"]
    said = [text(obj(update.body, "content"), "text") for update in typed]
    assert [words for words in said if "steered" in words] == ["TEXT<<steered >>"]
    assert [words for words in said if "then the second" in words] == ["GATE[b] TEXT<<then the second>>"]


@pytest.mark.parametrize("version", [2])
@all_backends
async def test_a_message_added_before_the_cli_is_up_is_told_where_it_is_in_the_conversation(
    agent: Client, both: Lab, backend: str
) -> None:
    session = await agent.new_session(both.cwd, backend)
    turn = agent.prompt(session, "GATE[early] TEXT<<said>>")
    assert await steer(agent, session, "and this SAY[1]").answer() == INJECTED
    both.model.gate("early").set()
    assert (await turn.answer())["stopReason"] == "end_turn"
    told = typed(agent, session)
    assert [words for words, _ in told] == ["GATE[early] TEXT<<said>>", "and this SAY[1]"]
    await agent.request("session/close", {"sessionId": session})
    agent.updates.clear()
    await agent.load(session, both.cwd)
    assert typed(agent, session) == told


def typed(agent: Client, session: str) -> list[tuple[str, str]]:
    """What the person typed, by the rules of v2: words, and the id of the message they are in."""
    messages: dict[str, list[str]] = {}
    for body in agent.heard(session):
        if body["sessionUpdate"] == "user_message":
            messages[text(body, "messageId")] = [text(block, "text") for block in as_objects(body["content"])]
        elif body["sessionUpdate"] == "user_message_chunk":
            messages.setdefault(text(body, "messageId"), []).append(text(obj(body, "content"), "text"))
    return [(words, message_id) for message_id, blocks in messages.items() for words in blocks]


@all_and_v2
async def test_without_a_running_turn_the_client_prompts_or_a_turn_begins(
    agent: Client, both: Lab, backend: str
) -> None:
    session = await agent.new_session(both.cwd, backend)
    handed_back = await steer(agent, session, "TEXT<<not said>>", when_idle="promptRequired").answer()
    assert handed_back == {"outcome": "promptRequired", "reason": "noRunningTurn"}
    assert await steer(agent, session, "TEXT<<begun>>").answer() == {"outcome": "startedNewTurn"}
    await agent.hears(session, "begun")
    assert await steer(agent, session, "FAIL[400]").answer() in ({"outcome": "startedNewTurn"}, INJECTED)
    await agent.hears(session, "scripted failure")
    assert await agent.ask(session, "TEXT<<on>>") == "end_turn"
    wrongs: list[JsonObject] = [{"prompt": []}, {"_meta": {"steering": {"idleBehavior": "guess"}}}]
    for wrong in wrongs:
        params: JsonObject = {"sessionId": session, "prompt": [{"type": "text", "text": "x"}], **wrong}
        assert (await agent.fails("_session/steering", params)).code == -32602
    unknown = {"sessionId": "no-such", "prompt": [{"type": "text", "text": "x"}]}
    assert (await agent.fails("_session/steering", unknown)).code == -32002
