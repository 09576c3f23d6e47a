"""The server of the hooks: it hears its sessions and nobody else."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx
import pytest

from acp_manifold.adapters.claude_tui.hooks import HEARD, HookServer, serve_hooks, settings_file
from acp_manifold.translators.narrow import JsonObject

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serving() -> AsyncGenerator[HookServer]:
    async with anyio.create_task_group() as tasks:
        server: HookServer = await tasks.start(serve_hooks)
        try:
            yield server
        finally:
            tasks.cancel_scope.cancel()


async def echo(call: JsonObject) -> JsonObject:
    return {"heard": call}


async def test_a_session_hears_the_calls_of_its_own_path_on_one_connection() -> None:
    async def other(call: JsonObject) -> JsonObject:
        return {"other": True}

    async with serving() as server, httpx.AsyncClient() as http:
        with server.heard(echo) as first, server.heard(other) as second:
            assert first != second
            for number in range(3):
                assert (await http.post(first, json={"n": number})).json() == {"heard": {"n": number}}
            assert (await http.post(second, json={})).json() == {"other": True}
            big = {"tool_input": "x" * 3_000_000}
            assert (await http.post(first, json=big)).json() == {"heard": big}


async def test_other_paths_hosts_and_methods_are_refused_and_those_of_a_session_that_ended() -> None:
    calls: list[JsonObject] = []

    async def note(call: JsonObject) -> JsonObject:
        calls.append(call)
        return {}

    async with serving() as server, httpx.AsyncClient() as http:
        with server.heard(note) as url:
            assert (await http.post(url + "x", json={})).status_code == 404
            assert (await http.post(url.rsplit("/", 1)[0], json={})).status_code == 404
            assert (await http.get(url)).status_code == 404
            assert (await http.post(url, json={}, headers={"host": "evil.example"})).status_code == 404
        assert (await http.post(url, json={})).status_code == 404
    assert calls == []


async def test_a_program_that_no_longer_waits_takes_its_call_back() -> None:
    cancelled = anyio.Event()
    asked = anyio.Event()

    async def wait(call: JsonObject) -> JsonObject:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()
        return {}

    async with serving() as server:
        with server.heard(wait) as url, anyio.fail_after(5):
            async with httpx.AsyncClient() as http, anyio.create_task_group() as tasks:

                async def call() -> None:
                    await http.post(url, json={}, timeout=None)

                tasks.start_soon(call)
                await asked.wait()
                tasks.cancel_scope.cancel()
            await cancelled.wait()


async def test_what_breaks_an_answer_costs_that_answer() -> None:
    async def broken(call: JsonObject) -> JsonObject:
        raise RuntimeError("broken")

    async with serving() as server, httpx.AsyncClient() as http:
        with server.heard(broken) as url:
            answer = await http.post(url, json={})
            assert (answer.status_code, answer.json()) == (200, {})
            assert (await http.post(url, content=b"no json")).json() == {}


async def test_what_speaks_no_http_is_shown_the_door() -> None:
    async with serving() as server:
        with server.heard(echo) as url:
            port = httpx.URL(url).port
            assert port is not None
            async with await anyio.connect_tcp("127.0.0.1", port) as stream:
                await stream.send(b"\x00garbage\r\n\r\n")
                with anyio.fail_after(5), pytest.raises(anyio.EndOfStream):
                    while True:
                        await stream.receive()


def test_the_settings_are_for_the_persons_eyes_only_and_go_with_the_session(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    (tmp_path / "state").mkdir()
    (folder / "s1.json").write_text("left by an agent that was killed")
    status = tmp_path / "it's here.json"
    with settings_file(folder, "s1", "http://127.0.0.1:1/secret", status) as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        settings = json.loads(path.read_text())
        subprocess.run(settings["statusLine"]["command"], shell=True, input=b"{}", check=True, timeout=20)
        assert status.read_bytes() == b"{}"
        hooks = settings["hooks"]
        assert set(hooks) == set(HEARD)
        assert all(hook[0]["hooks"][0]["url"] == "http://127.0.0.1:1/secret" for hook in hooks.values())
    assert list(folder.iterdir()) == []
