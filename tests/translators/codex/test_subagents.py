"""Sub-agents of Codex: which items speak of them, and what their own threads tell."""

from __future__ import annotations

from acp_manifold.translators.codex.subagents import Reached, SubagentStream, reached
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    MessageChunk,
    OfSubagent,
    Subagent,
    Text,
    ToolCallUpdate,
    Update,
)


def collaboration(tool: str, prompt: str | None = None) -> JsonObject:
    return {"type": "collabAgentToolCall", "id": "c", "tool": tool, "receiverThreadIds": ["t"], "prompt": prompt}


def activity(kind: str) -> JsonObject:
    return {"type": "subAgentActivity", "id": "c", "kind": kind, "agentThreadId": "t", "agentPath": "/root/look_around"}


def test_items_name_the_threads_of_sub_agents_and_what_becomes_of_them() -> None:
    assert reached(collaboration("spawnAgent", "Look\nwell")) == (
        Reached("t", "c", begun=True, works=True, ended=False, title="Look", prompt="Look\nwell"),
    )
    for tool, works, ended in (("sendInput", True, False), ("wait", False, False), ("closeAgent", False, True)):
        (found,) = reached(collaboration(tool))
        assert (found.begun, found.works, found.ended) == (False, works, ended)
    (found,) = reached(activity("started"))
    assert (found.begun, found.title) == (True, "look around")
    assert [found.works for kind in ("interacted", "completed") for found in reached(activity(kind))] == [True, False]
    assert reached({"type": "agentMessage", "id": "m"}) == ()
    (long,) = reached(collaboration("spawnAgent", "x" * 200))
    assert long.title == "x" * 79 + "…"


def played(stream: SubagentStream) -> list[Update]:
    line: JsonObject = {"threadId": "t", "turnId": "u"}
    command = {"type": "commandExecution", "id": "r", "command": "ls", "cwd": "/", "status": "inProgress"}
    told = stream.begun()
    lines: tuple[tuple[str, JsonObject], ...] = (
        ("turn/started", {"threadId": "t", "turn": {"id": "u", "rootTurnId": "p"}}),
        ("item/started", {**line, "item": {"type": "userMessage", "id": "p", "content": [_said("Look")]}}),
        ("item/agentMessage/delta", {**line, "itemId": "m", "delta": "two "}),
        ("item/agentMessage/delta", {**line, "itemId": "m", "delta": "bugs"}),
        ("thread/tokenUsage/updated", {**line, "tokenUsage": {}}),
        ("item/started", {**line, "item": command}),
        ("turn/completed", {"threadId": "t", "turn": {"id": "u", "status": "interrupted"}}),
    )
    for method, params in lines:
        told += stream.notified(method, params)
    return told


def _said(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def test_a_sub_agent_tells_its_work_as_its_own_and_its_last_words_as_what_came_of_the_call() -> None:
    told = played(SubagentStream(Reached("t", "c", True, True, False, "Look", "Look")))
    assert told[:2] == [Subagent("c", "running", "Look", prompt="Look"), Subagent("c", "running")]
    assert told[2:4] == [OfSubagent("c", MessageChunk("agent", Text(words), "m")) for words in ("two ", "bugs")]
    assert told[-3:] == [
        OfSubagent("c", ToolCallUpdate("r", status="cancelled")),
        ToolCallUpdate("c", content=(Text("Look"), Text("two bugs"))),
        Subagent("c", "idle", stop_reason="cancelled"),
    ]
    # What began it is in the call; nothing of it is a message of the person's, or counts as the session's tokens.
    assert len(told) == 8


def test_what_a_sub_agent_of_a_sub_agent_does_is_told_within_the_first() -> None:
    told = played(SubagentStream(Reached("t", "c", True, True, False, "Look", ""), parent="b"))
    assert told[0] == OfSubagent("b", Subagent("c", "running", "Look"))
    assert told[-1] == OfSubagent("b", Subagent("c", "idle", stop_reason="cancelled"))
    assert told[2] == OfSubagent("c", MessageChunk("agent", Text("two "), "m"))
