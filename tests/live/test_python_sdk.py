"""The official Python SDK as the client: what a program built on it sees."""

from __future__ import annotations

import sys
from typing import Any, cast

import anyio
import pytest
from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from acp.interfaces import Agent, Client
from acp.schema import AgentMessageChunk, AllowedOutcome, RequestPermissionResponse, TextContentBlock

from .lab import Lab
from .leftovers import none_left

pytestmark = [pytest.mark.anyio, pytest.mark.live]


class SdkClient:
    """Collects text and says yes. Of the SDK's `Client` it has what this agent calls, and the hook the SDK calls."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}
        self.asked: list[str] = []
        self.heard = anyio.Event()

    async def hears(self, session: str, words: str) -> None:
        """Wait until the agent has said this in a session."""
        while words not in self.said.get(session, ""):
            self.heard = anyio.Event()
            await self.heard.wait()

    def on_connect(self, conn: object) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        if isinstance(update, AgentMessageChunk) and isinstance(update.content, TextContentBlock):
            self.said[session_id] = self.said.get(session_id, "") + update.content.text
            self.heard.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **kwargs: Any
    ) -> RequestPermissionResponse:
        self.asked.append(session_id)
        allow = next(option for option in options if option.kind == "allow_once")
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=allow.option_id))


async def cancelled(client: SdkClient, agent: Agent, session: str) -> None:
    """Begin a turn, cancel it, and see it end as cancelled."""
    reasons: list[str] = []

    async def run() -> None:
        words = "TEXT<<stop me>> GATE[never] TEXT<<not said>>"
        reasons.append((await agent.prompt(session_id=session, prompt=[text_block(words)])).stop_reason)

    async with anyio.create_task_group() as turn:
        turn.start_soon(run)
        await client.hears(session, "stop me")
        await agent.cancel(session_id=session)
    assert reasons == ["cancelled"]


async def test_the_python_sdk_drives_two_backends_on_one_connection(both: Lab) -> None:
    client = SdkClient()
    command = [sys.executable, "-m", "acp_manifold.bridge"]
    async with spawn_agent_process(cast(Client, client), *command, env=both.env, cwd=both.cwd) as (agent, process):
        with anyio.fail_after(60):
            opened = await agent.initialize(protocol_version=PROTOCOL_VERSION)
            assert opened.protocol_version == 1
            sessions: dict[str, str] = {}
            for backend in ("claude", "codex"):
                meta: dict[str, Any] = {"acp-manifold": {"backend": backend}}
                new = await agent.new_session(cwd=both.cwd, mcp_servers=[], **meta)
                sessions[backend] = new.session_id
            for backend, command_word in (("claude", "RUN"), ("codex", "RUNESC")):
                session = sessions[backend]
                asked = await agent.prompt(
                    session_id=session,
                    prompt=[text_block(f"{command_word}[touch {backend}.txt] ;; TEXT<<from {backend}>>")],
                )
                assert asked.stop_reason == "end_turn"
            assert {s: t.strip() for s, t in client.said.items()} == {sessions[b]: f"from {b}" for b in sessions}
            assert client.asked == list(sessions.values())
            listed = await agent.list_sessions(cwd=both.cwd)
            assert {row.session_id for row in listed.sessions} == set(sessions.values())
            renamed = await agent.ext_method(
                "session/rename", {"sessionId": sessions["claude"], "title": " From the SDK "}
            )
            assert renamed == {}
            listed = await agent.list_sessions(cwd=both.cwd)
            assert "From the SDK" in {row.title for row in listed.sessions}
            for session in sessions.values():
                await cancelled(client, agent, session)
                await agent.close_session(session_id=session)
                with pytest.raises(RequestError):
                    await agent.prompt(session_id=session, prompt=[text_block("SAY[1]")])
                client.said[session] = ""
                await agent.load_session(cwd=both.cwd, session_id=session, mcp_servers=[])
                assert "from " in client.said[session]
                again = await agent.prompt(session_id=session, prompt=[text_block("TEXT<<again>>")])
                assert again.stop_reason == "end_turn" and client.said[session].endswith("again")
    assert process.returncode == 0
    assert await none_left(str(both.folder), 5) == {}
