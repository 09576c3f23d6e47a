"""The test client itself: that nothing wrong gets past it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.abc import ObjectSendStream

from acp_manifold.translators.narrow import JsonObject
from tests.schema import SchemaViolation

from .client import AcpError, Client, Gone, connected, leave_open
from .leftovers import bearing, none_left

pytestmark = pytest.mark.anyio

CHUNK: JsonObject = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}}
CALL: JsonObject = {"toolCallId": "t"}
OPTIONS = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]


def line(**members: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode() + b"\n"


def update(body: JsonObject) -> bytes:
    return line(method="session/update", params={"sessionId": "s", "update": body})


@asynccontextmanager
async def conversation(*said: bytes) -> AsyncGenerator[tuple[Client, ObjectSendStream[bytes]]]:
    """A client of an agent that has said this and says more through the stream; it ends when told to."""
    to_client, output = anyio.create_memory_object_stream[bytes](100)
    input, from_client = anyio.create_memory_object_stream[bytes](100)
    for piece in said:
        to_client.send_nowait(piece)
    async with to_client, from_client, connected(output, input) as client:
        yield client, to_client
        await to_client.aclose()


async def test_updates_are_heard_whatever_way_the_bytes_are_cut() -> None:
    bytes_said = update(CHUNK) + update({**CHUNK, "messageId": "m"})
    async with conversation(*(bytes_said[i : i + 7] for i in range(0, len(bytes_said), 7))) as (client, _):
        await client.hears("s", "hihi")
        assert [u.kind for u in client.updates] == ["agent_message_chunk"] * 2


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (b"hello\n", "Not JSON"),
        (b"[]\n", "No jsonrpc"),
        (update({"sessionUpdate": "surprise"}), "Unknown session update 'surprise'"),
        (update({"sessionUpdate": "agent_message_chunk"}), "'content' is a required property"),
        (update({**CHUNK, "messageId": 3}), "messageId"),
        (line(method="session/nonsense", params={}), "sends no notification 'session/nonsense'"),
        (line(id=7, result={}), "nobody waits for"),
        (line(id=1, result={}), "'protocolVersion' is a required property"),
        (line(id=1, result={"protocolVersion": 1}, extra=1), "extra"),
        (line(id="1", result={"protocolVersion": 1}), "nobody waits for"),
        (update(CHUNK)[:-1], "ends inside a line"),
    ],
)
async def test_what_the_protocol_forbids_fails_every_wait_and_the_end(said: bytes, complaint: str) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(SchemaViolation, match=complaint), flatten_subgroups=True):
        async with conversation(said) as (client, agent):
            request = client.start("initialize", {})
            await agent.aclose()
            with pytest.raises(SchemaViolation, match=complaint):
                await request.answer()


async def test_an_error_is_raised_with_its_code_and_data() -> None:
    async with conversation(line(id=1, error={"code": -32602, "message": "bad", "data": {"field": "cwd"}})) as (c, _):
        error = await c.fails("session/new", {})
    assert isinstance(error, AcpError)
    assert (error.code, error.message, error.data) == (-32602, "bad", {"field": "cwd"})


async def test_an_end_of_output_ends_every_wait() -> None:
    async with conversation() as (client, agent):
        request = client.start("initialize", {})
        await agent.aclose()
        with pytest.raises(Gone, match="the answer to initialize"):
            await request.answer()


async def test_a_question_is_answered_or_left_open_and_withdrawn() -> None:
    asked: JsonObject = {"sessionId": "s", "toolCall": CALL, "options": OPTIONS}
    async with conversation(line(id="q1", method="session/request_permission", params=asked)) as (client, agent):
        await client.wait_for(lambda: client.questions, "a question")
        assert client.questions[0].answered
        client.on_question = leave_open
        await agent.send(line(id="q2", method="session/request_permission", params=asked))
        question = await client.question("s")
        await agent.send(line(method="$/cancel_request", params={"requestId": "q2"}))
        with anyio.fail_after(5):
            await question.withdrawn.wait()
    assert not question.answered


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
async def test_a_process_left_behind_is_found_and_killed(tmp_path: Path) -> None:
    mark = str(tmp_path)
    command = [sys.executable, "-c", "print(flush=True); input()"]
    async with await anyio.open_process(command, env={**os.environ, "MARK": mark}) as sleeper:
        assert sleeper.stdout is not None
        with anyio.fail_after(5):
            await sleeper.stdout.receive()
            assert list(bearing(mark)) == [sleeper.pid]
            assert list(await none_left(mark, 0)) == [sleeper.pid]
            assert await sleeper.wait() == -9
    assert bearing(mark) == {}
