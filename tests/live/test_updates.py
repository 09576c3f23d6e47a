"""What a turn holds beside words, on the real CLIs: attachments, commands, searches, notices, compactions, endings."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from zlib import compress, crc32

import pytest

from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .client import Client
from .conftest import MakeLab, both_versions
from .lab import Lab, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]


def _png() -> str:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + kind + data + crc32(kind + data).to_bytes(4, "big")

    head = chunk(b"IHDR", bytes((0, 0, 0, 8, 0, 0, 0, 8, 8, 2, 0, 0, 0)))
    rows = chunk(b"IDAT", compress(b"\0" * 8 * 25))
    return b64encode(b"\x89PNG\r\n\x1a\n" + head + rows + chunk(b"IEND", b"")).decode()


PICTURE: JsonObject = {"type": "image", "data": _png(), "mimeType": "image/png"}
CODE: JsonObject = {"type": "resource", "resource": {"uri": "file:///w/a.py", "text": "print(17)"}}
EVERYTHING: JsonObject = {
    "session": {"notices": {}, "compaction": {}},
    "plan": {},
    "subagents": {},
    "_meta": {"terminal_output": True, "unknown": {"x": 1}},
}
DEAD: JsonObject = {"type": "stdio", "name": "dead", "command": "/no/such/server", "args": [], "env": []}


def said(words: str) -> JsonObject:
    return {"type": "text", "text": words}


async def opened(agent: Client, lab: Lab) -> str:
    meta = {"_meta": {"anything": [1]}}
    result = await agent.request("session/new", {"cwd": lab.cwd, "mcpServers": [DEAD], **meta})
    return text(result, "sessionId")


async def turn(agent: Client, session: str, *blocks: JsonObject) -> JsonObject:
    """Run a turn and give its answer."""
    return await agent.say(session, blocks, _meta={"anything": True}).answer()


def asked(lab: Lab) -> str:
    """The last request of a turn as the model got it."""
    return json.dumps([request.body for request in lab.model.requests if not request.asked.title][-1])


def metas(agent: Client, session: str, key: str) -> list[JsonObject]:
    """What is under this key of `_meta` in the updates of tool calls."""
    bodies = agent.heard(session, "tool_call") + agent.heard(session, "tool_call_update")
    return [found for body in bodies if (found := obj(obj(body, "_meta"), key))]


def shown(agent: Client, session: str) -> list[object]:
    """The prompts as they were replayed, without the ids of messages."""
    return [body["content"] for body in agent.heard(session, "user_message_chunk")]


def compactions(agent: Client, session: str) -> list[object]:
    return [body["status"] for body in agent.heard(session, "compaction_update")]


async def look_at_a_turn(agent: Client, lab: Lab, session: str) -> None:
    """A thought, a picture, a resource, a command, a dead MCP server: all in one turn."""
    answer = await turn(agent, session, said("REASON[hm] RUN[echo hi] ;; SAY[1]"), PICTURE, CODE)
    assert answer["stopReason"] == "end_turn"
    assert "cachedReadTokens" in obj(answer, "usage")
    assert "print(17)" in asked(lab) and "base64" in asked(lab)
    assert agent.said(session, "agent_thought_chunk") == "hm"
    look_at_the_command(agent, session)

    def of_the_dead() -> list[str]:
        titles = [text(body, "title") for body in agent.heard(session, "notice")]
        return [title for title in titles if "dead" in title]

    # Claude Code is asked why first, which the turn does not wait for.
    assert await agent.wait_for(of_the_dead, "a notice") == ["MCP server dead can't be used"]


def look_at_the_command(agent: Client, session: str) -> None:
    """It printed, into a terminal, and ended."""
    if agent.version == 2:
        ends = [body for body in agent.heard(session, "terminal_update") if body.get("exitStatus")]
        assert [body["exitStatus"] for body in ends] == [{"exitCode": 0}] and agent.shown(session).count("hi") == 1
        (chunk,) = {body["terminalId"] for body in agent.heard(session, "terminal_output_chunk")}
        assert ends[0]["terminalId"] == chunk
        return
    (info,), output = metas(agent, session, "terminal_info"), metas(agent, session, "terminal_output")
    assert "".join(text(piece, "data") for piece in output).strip() == "hi"
    (ended,) = metas(agent, session, "terminal_exit")
    assert (ended["terminal_id"], ended["exit_code"]) == (info["terminal_id"], 0)


async def look_at_a_replay(lab: Lab, backend: str, session: str) -> None:
    """A client that takes nothing special is told the same, in the plainer form."""
    async with started(lab, "--backend", backend, "--titles", "off") as agent:
        await agent.initialize()
        await agent.request("session/load", {"sessionId": session, "cwd": lab.cwd, "mcpServers": []})
        first = shown(agent, session)[:3]
        assert [text(obj({"c": content}, "c"), "type") for content in first] == ["text", "image", "resource"]
        assert first[2] == CODE
        calls = [text(body, "title") for body in agent.heard(session, "tool_call")]
        assert "echo hi" in calls and "Compact the conversation" in calls
        if backend == "claude":
            # What its sub-agent did, and the command that was typed, are in the store too.
            assert "echo in" in calls and "inner" not in agent.said(session)
            assert "/compact" in [text(obj({"c": block}, "c"), "text") for block in shown(agent, session)]
        assert not agent.heard(session, "compaction_update") and not agent.heard(session, "notice")


@both_versions
async def test_claude_code_tells_what_a_turn_holds(lab: MakeLab, version: int) -> None:
    both = lab("claude")
    search: JsonObject = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
    page = {"type": "web_search_result", "title": "ACP", "url": "https://acp.test", "encrypted_content": "x"}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [page]}
    async with started(both, "--backend", "claude", "--titles", "off", version=version) as agent:
        await agent.initialize(**EVERYTHING)
        session = await opened(agent, both)
        await look_at_a_turn(agent, both, session)
        assert obj(agent.heard(session, "usage_update")[-1], "cost")["currency"] == "USD"

        await agent.ask(session, f"PIECE[{json.dumps(search)}] PIECE[{json.dumps(found)}] SAY[1]")
        ends = [body for body in agent.heard(session, "tool_call_update") if body["toolCallId"] == "srvtoolu_1"]
        assert ends[-1]["status"] == "completed" and "https://acp.test" in json.dumps(ends[-1])

        task = {"description": "look", "prompt": "REASON[hm] TEXT<<inner>> RUN[echo in]", "subagent_type": "claude"}
        assert await agent.ask(session, f"TOOL[Task {json.dumps(task)}] ;; SAY[1]") == "end_turn"
        child = text(agent.heard(session, "subagent_update")[0], "sessionId")
        await agent.hears(child, "inner")
        assert "inner" not in agent.said(session)

        def over() -> bool:
            bodies = agent.heard(session, "tool_call_update")
            return any(body.get("status") == "completed" and "Done." in json.dumps(body) for body in bodies)

        await agent.wait_for(over, "the end of the sub-agent's call")

        assert await agent.ask(session, "SAY[1] STOP[refusal]") == "refusal"
        assert "safeguards" in agent.said(session)
        assert await agent.ask(session, "/compact") == "end_turn"
        assert compactions(agent, session) == ["in_progress", "completed"]
    if version == 1:
        await look_at_a_replay(both, "claude", session)


@both_versions
async def test_codex_tells_what_a_turn_holds(lab: MakeLab, version: int) -> None:
    both = lab("codex")
    config = Path(both.env["CODEX_HOME"]) / "config.toml"
    config.write_text(config.read_text() + "\n[tools.update_plan]\nenabled = true\n")
    action = {"type": "search", "query": "acp", "queries": ["acp"]}
    search: JsonObject = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action}
    async with started(both, "--backend", "codex", "--titles", "off", version=version) as agent:
        await agent.initialize(**EVERYTHING)
        session = await opened(agent, both)
        await look_at_a_turn(agent, both, session)

        await agent.ask(session, f"PIECE[{json.dumps(search)}] SAY[1]")
        assert "Search the web: acp" in [text(body, "title") for body in agent.calls(session)]
        await agent.ask(session, 'TOOL[update_plan {"plan": [{"step": "a", "status": "in_progress"}]}] ;; SAY[1]')
        plans = [body.get("plan", body) for body in agent.heard(session, "plan" if version == 1 else "plan_update")]
        entries = [as_objects(obj({"p": plan}, "p")["entries"]) for plan in plans]
        assert [(entry["content"], entry["status"]) for entry in entries[-1]] == [("a", "in_progress")]

        assert await agent.ask(session, "SAY[1] STOP[max_output_tokens]") == "max_tokens"
        assert "max_output_tokens" in agent.said(session)
        error = await agent.prompt(session, "FAIL[400]").error()
        assert "scripted failure" in error.message

        assert await agent.ask(session, "SAY[1] USAGE[257000]") == "end_turn"
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        assert compactions(agent, session) == ["in_progress", "completed"]
    if version == 1:
        await look_at_a_replay(both, "codex", session)


@pytest.mark.parametrize("backend", ["claude", "claude-tui", "codex"])
async def test_a_prompt_that_can_not_be_taken_loses_nothing(lab: MakeLab, backend: str) -> None:
    both = lab(backend)
    async with started(both, "--backend", backend, "--titles", "off") as agent:
        result = await agent.initialize()
        takes = obj(obj(result, "agentCapabilities"), "promptCapabilities")
        assert takes == {"image": True, "audio": False, "embeddedContext": True}
        session = await agent.new_session(both.cwd)
        for wrong in (
            {**PICTURE, "data": "no base64"},
            {**PICTURE, "mimeType": "image/tiff"},
            {"type": "audio", "data": PICTURE["data"], "mimeType": "audio/wav"},
        ):
            error = await agent.fails("session/prompt", {"sessionId": session, "prompt": [said("SAY[1]"), wrong]})
            assert error.code == -32602 and error.message.startswith("prompt[1].")
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        assert both.model.prompts() == ["SAY[1]"]
