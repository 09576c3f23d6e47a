"""The protocol version of a connection: agreed on once, as the SDK's own router does it (2.4.0)."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.connection import Protocol
from acp_manifold.bridge.hub import Hub
from acp_manifold.bridge.ledger import Ledger
from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.acp.v2_requests import client_in_v1
from acp_manifold.translators.narrow import JsonObject, as_objects, obj

from .editor import Editor, Refused, connect
from .scripted import ScriptedBackend

pytestmark = pytest.mark.anyio

INFO: JsonObject = {"name": "editor", "version": "0"}


@asynccontextmanager
async def uninitialized(protocol: Protocol = "auto") -> AsyncGenerator[Editor]:
    hub = Hub([ScriptedBackend()], Ledger(None), grace=10.0)
    async with hub.running(), anyio.create_task_group() as tg:
        editor = connect(hub, tg, protocol)
        yield editor
        editor.hang_up()
        tg.cancel_scope.cancel()


async def refused(editor: Editor, method: str, **params: object) -> Refused:
    with pytest.raises(Refused) as caught:
        await editor.request(method, **params)
    return caught.value


@pytest.mark.parametrize(
    ("protocol", "requested", "answered"),
    [
        ("auto", 1, 1),
        ("auto", 2, 2),
        ("auto", 3, 2),
        ("auto", 99, 2),
        ("v1", 0, 1),
        ("v1", 1, 1),
        ("v1", 2, 1),
        ("v1", 99, 1),
        ("v2", 2, 2),
        ("v2", 3, 2),
    ],
)
async def test_the_highest_version_at_or_below_the_requested_one_is_spoken(
    protocol: Protocol, requested: int, answered: int
) -> None:
    async with uninitialized(protocol) as editor:
        result = await editor.request("initialize", protocolVersion=requested, info=INFO)
        assert result["protocolVersion"] == answered
        assert ("info" in result, "agentInfo" in result) == (answered == 2, answered == 1)


@pytest.mark.parametrize(("protocol", "requested", "supported"), [("auto", 0, [1, 2]), ("v2", 1, [2]), ("v2", 0, [2])])
async def test_a_version_that_is_not_served_is_refused_with_those_that_are(
    protocol: Protocol, requested: int, supported: list[int]
) -> None:
    async with uninitialized(protocol) as editor:
        error = await refused(editor, "initialize", protocolVersion=requested, info=INFO)
        assert (error.code, error.data) == (-32022, {"requested": requested, "supported": supported})
        assert (await editor.request("initialize", protocolVersion=2, info=INFO))["protocolVersion"] == 2


@pytest.mark.parametrize("params", [{}, {"protocolVersion": "2"}, {"protocolVersion": 1.5}, {"protocolVersion": -1}])
async def test_what_is_no_version_is_refused_and_the_connection_stays_open(params: JsonObject) -> None:
    async with uninitialized() as editor:
        assert (await refused(editor, "initialize", **params)).code == -32602
        assert (await refused(editor, "session/list")).code == -32600
        assert (await editor.request("initialize", protocolVersion=1))["protocolVersion"] == 1


async def test_a_v2_client_says_who_it_is_and_one_of_a_newer_version_need_not() -> None:
    async with uninitialized() as editor:
        for info in (None, "editor", {"name": "editor"}):
            assert (await refused(editor, "initialize", protocolVersion=2, info=info)).code == -32602
        result = await editor.request("initialize", protocolVersion=7, info=5, capabilities=["new"])
        assert result["protocolVersion"] == 2


async def test_a_v2_client_that_is_served_v1_is_taken_by_its_word() -> None:
    air = {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionIndex"]}}}
    can: JsonObject = {"auth": {"terminal": {}}, "elicitation": {"form": {}}, "_meta": air}
    async with uninitialized("v1") as editor:
        for capabilities, index in ((can, True), ("nonsense", False)):
            result = await editor.request("initialize", protocolVersion=2, info=INFO, capabilities=capabilities)
            extensions = obj(obj(obj(result, "_meta"), "jetbrains"), "air").get("capabilities")
            assert (extensions is not None) == index
            terminal = [method for method in as_objects(result["authMethods"]) if method.get("type") == "terminal"]
            assert bool(terminal) == index
        # What it says in the words of v1 counts then.
        result = await editor.request(
            "initialize", protocolVersion=2, info=INFO, capabilities=can, clientCapabilities={}
        )
        assert "jetbrains" not in obj(result, "_meta")


def test_a_v2_client_that_is_served_v1_takes_what_v1_has_words_for() -> None:
    can = client_in_v1({"capabilities": {"elicitation": {"form": {}}, "auth": {"terminal": {}}}})
    assert can == ClientCapabilities(elicitation_form=True, plan=True, boolean_options=True, terminal_login=True)


async def test_in_v2_no_request_has_the_id_null() -> None:
    async with uninitialized() as editor:
        initialize: JsonObject = {"protocolVersion": 2, "info": INFO}
        editor.send({"jsonrpc": "2.0", "id": None, "method": "initialize", "params": initialize})
        first = await editor.wait_for(lambda line: line.get("id", 1) is None)
        assert obj(first, "error")["code"] == -32600
        await editor.request("initialize", **initialize)
        heard = len(editor.lines)
        editor.send({"jsonrpc": "2.0", "id": None, "method": "session/list", "params": {}})
        second = await editor.wait_for(lambda line: line.get("id", 1) is None, since=heard)
        assert obj(second, "error")["code"] == -32600


async def test_v2_is_initialized_again_only_ahead_of_everything_else_and_v1_at_any_time() -> None:
    async with uninitialized() as editor:
        await editor.request("initialize", protocolVersion=2, info=INFO)
        assert (await editor.request("initialize", protocolVersion=3))["protocolVersion"] == 2
        assert (await refused(editor, "initialize", protocolVersion=1, info=INFO)).code == -32600
        await editor.listed()
        assert (await refused(editor, "initialize", protocolVersion=2, info=INFO)).code == -32600
    async with uninitialized() as editor:
        await editor.request("initialize", protocolVersion=1)
        await editor.listed()
        assert (await editor.request("initialize", protocolVersion=2, info=INFO))["protocolVersion"] == 1


@pytest.mark.parametrize(("flag", "requested", "answer"), [("v1", 2, '"protocolVersion":1'), ("v2", 1, "-32022")])
async def test_one_version_alone_is_served_if_the_command_line_says_so(
    tmp_path: Path, flag: str, requested: int, answer: str
) -> None:
    params = {"protocolVersion": requested, "info": INFO}
    ask = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}).encode() + b"\n"
    home = {"HOME": str(tmp_path), "CODEX_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "acp_manifold.bridge", "--backend", "claude", "--protocol", flag]
    with anyio.fail_after(60):
        done = await anyio.run_process(command, input=ask, env={**os.environ, **home})
    assert answer in done.stdout.decode()
