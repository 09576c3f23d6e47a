"""One client on the bridge: what it may ask, in which order, and what it gets for what is wrong."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.backend import SessionRow
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .editor import Editor, Refused, editor_on, editors
from .scripted import QUESTION, ScriptedBackend

pytestmark = pytest.mark.anyio


async def refused(editor: Editor, method: str, **params: object) -> Refused:
    with pytest.raises(Refused) as caught:
        await editor.request(method, **params)
    return caught.value


async def test_a_prompt_is_answered_after_its_updates(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        asked = editor.prompt(session, "hello")
        await cli.prompted()
        cli.say("one ")
        cli.say("two")
        cli.finish()
        assert await editor.answer(asked) == {"stopReason": "end_turn"}
        assert editor.said(session) == "one two"
        assert "method" not in editor.lines[-1]


async def test_initialize_comes_first() -> None:
    async with editors(ScriptedBackend(), initialize=False) as (editor,):
        editor.tell("session/cancel", sessionId="x")
        assert (await refused(editor, "session/list")).code == -32600
        assert (await refused(editor, "initialize", protocolVersion="1")).data == {"field": "protocolVersion"}
        result = await editor.request("initialize", protocolVersion=1)
        assert result["protocolVersion"] == 1
        sessions = obj(obj(result, "agentCapabilities"), "sessionCapabilities")
        assert sessions["title"] == {} and sessions["setTitle"] == {}
        assert await editor.listed() == []


async def test_what_is_advertised_is_served_and_nothing_else(tmp_path: Path) -> None:
    async with editor_on(ScriptedBackend()) as editor:
        for method in ("nonsense", "session/nonsense"):
            assert (await refused(editor, method, sessionId="x")).code == -32601
        served = ("load", "resume", "fork", "set_title", "close", "archive", "unarchive", "status")
        for method in (f"session/{name}" for name in served):
            error = await refused(editor, method, sessionId="x", cwd=str(tmp_path), mcpServers=[], title="t")
            assert error.code == -32002


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "cwd"),
        ({"cwd": 7}, "cwd"),
        ({"cwd": "rel/dir"}, "cwd"),
        ({"cwd": "~/x"}, "cwd"),
        ({"cwd": "/no/such"}, "cwd"),
        ({"cwd": "/etc/passwd"}, "cwd"),
        ({"cwd": "/tmp\0x"}, "cwd"),
        ({"cwd": "/", "mcpServers": {}}, "mcpServers"),
        ({"cwd": "/", "mcpServers": [{"name": "x"}]}, "mcpServers[0].command"),
        ({"cwd": "/", "mcpServers": [{"name": "x", "type": "acp", "serverId": "x"}]}, "mcpServers[0].type"),
        ({"cwd": "/", "mcpServers": [{"name": "", "command": "", "env": [{"name": 1}]}]}, "mcpServers[0].env[0].name"),
        ({"cwd": "/", "additionalDirectories": ["rel"]}, "additionalDirectories[0]"),
        ({"cwd": "/", "_meta": {"acp-manifold": {"backend": "nobody"}}}, "backend"),
        ({"cwd": "/", "_meta": {"acp-manifold": {"backend": 3}}}, "_meta.acp-manifold.backend"),
    ],
)
@pytest.mark.case("A04")
async def test_bad_params_of_session_new_name_the_field_and_start_nothing(params: JsonObject, field: str) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        error = await refused(editor, "session/new", **params)
        assert (error.code, error.data["field"]) == (-32602, field)
        assert alpha.sessions == []


@pytest.mark.parametrize(
    ("prompt", "field"),
    [
        (None, "prompt"),
        ("hello", "prompt"),
        ([], "prompt"),
        ([{"type": "text", "text": "  \n "}], "prompt"),
        ([{"type": "text"}], "prompt[0].text"),
        ([{"type": "image", "data": "", "mimeType": "image/png"}], "prompt[0].data"),
        ([{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}], "prompt[0].type"),
        (["text"], "prompt[0]"),
    ],
)
async def test_bad_prompts_name_the_field_and_reach_no_backend(tmp_path: Path, prompt: object, field: str) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path)
        error = await refused(editor, "session/prompt", sessionId=session, prompt=prompt)
        assert (error.code, error.data["field"]) == (-32602, field)
        assert alpha.sessions[0].prompts == []


@pytest.mark.case("L01")
async def test_unknown_sessions_are_an_error_and_make_nothing(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        unknown = "11111111-2222-4333-8444-555555555555"
        for method in ("session/load", "session/resume", "session/prompt", "session/set_title", "session/close"):
            error = await refused(
                editor,
                method,
                sessionId=unknown,
                cwd=str(tmp_path),
                mcpServers=[],
                title="t",
                prompt=[{"type": "text", "text": "x"}],
            )
            assert (error.code, error.data) == (-32002, {"sessionId": unknown})
        assert await editor.request("session/delete", sessionId=unknown) == {}
        assert alpha.sessions == []


async def test_the_backend_is_chosen_by_meta_or_is_the_first(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    async with editor_on(alpha, beta) as editor:
        assert (await editor.new(tmp_path)).startswith("alpha-")
        assert (await editor.new(tmp_path, "beta")).startswith("beta-")


async def test_the_backend_can_be_switched_until_the_first_prompt(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    async with editor_on(alpha, beta) as editor:
        session = await editor.new(tmp_path, title="Kept")
        result = await editor.request("session/set_config_option", sessionId=session, configId="backend", value="beta")
        (option,) = as_objects(result["configOptions"])
        assert option["currentValue"] == "beta"
        assert not alpha.sessions[0].open and beta.sessions[0].open
        asked = editor.prompt(session, "hi")
        cli = beta.sessions[0]
        await cli.prompted()
        cli.finish()
        await editor.answer(asked)
        with pytest.raises(Refused, match="fixed"):
            await editor.request("session/set_config_option", sessionId=session, configId="backend", value="alpha")
        (row,) = await editor.listed()
        assert (row["sessionId"], row["title"]) == (session, "Kept")
        assert obj(obj(row, "_meta"), "acp-manifold") == {"backend": "beta"}


async def test_a_missing_login_is_said_and_the_other_backend_works(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    alpha.login_state = "out"
    async with editor_on(alpha, beta) as editor:
        error = await refused(editor, "session/new", cwd=str(tmp_path), mcpServers=[])
        assert error.code == -32000 and "alpha login" in error.message
        assert (await refused(editor, "authenticate", methodId="alpha-login")).code == -32000
        assert await editor.request("authenticate", methodId="beta-login") == {}
        assert (await refused(editor, "authenticate", methodId="x")).code == -32602
        assert await editor.new(tmp_path, "beta")


async def test_the_list_joins_all_backends_newest_first_in_pages(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    for index in range(150):
        backend = (alpha, beta)[index % 2]
        stamp = f"2026-01-01T00:{index // 60:02d}:{index % 60:02d}.000Z"
        backend.stored[f"s{index}"] = SessionRow(f"s{index}", "/one" if index % 3 else "/two", stamp)
    async with editor_on(alpha, beta) as editor:
        first = await editor.request("session/list")
        second = await editor.request("session/list", cursor=first["nextCursor"])
        ids = [text(row, "sessionId") for row in as_objects(first["sessions"]) + as_objects(second["sessions"])]
        assert ids == [f"s{index}" for index in reversed(range(150))]
        assert "nextCursor" not in second
        assert {row["cwd"] for row in await editor.listed(cwd="/two")} == {"/two"}
        for bad in ("", "abc", "é", 7, text(first, "nextCursor") + "A"):
            assert (await refused(editor, "session/list", cursor=bad)).code == -32602
        assert (await refused(editor, "session/list", cursor=first["nextCursor"], cwd="/two")).code == -32602
        assert (await refused(editor, "session/list", cwd="relative")).code == -32602


async def test_a_question_reaches_the_client_and_its_answer_the_backend(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path)
        cli = alpha.sessions[0]
        for given, expected in (("yes", "yes"), ("no", "no"), ("never offered", None), (None, None)):
            since = len(editor.lines)
            asked = editor.prompt(session, "go")
            await cli.prompted()
            answer: list[str | None] = []
            async with anyio.create_task_group() as tg:

                async def put(into: list[str | None]) -> None:
                    into.append(await cli.events.ask(QUESTION))

                tg.start_soon(put, answer)
                question = await editor.question(since)
                assert question.params["sessionId"] == session
                question.answer(given)
            assert answer == [expected]
            cli.finish()
            await editor.answer(asked)


async def test_garbage_is_answered_and_the_connection_goes_on(tmp_path: Path) -> None:
    async with editor_on(ScriptedBackend()) as editor:
        since = len(editor.lines)
        editor.send_bytes(b'{"broken\n[]\n"text"\n\n{"jsonrpc":"2.0","id":77,"result":{}}\n')
        await editor.round_trip()
        codes = [obj(line, "error").get("code") for line in editor.lines[since:]]
        assert codes == [-32700, -32600, -32600, -32601]
        assert await editor.new(tmp_path)


@pytest.mark.case("L01")
async def test_text_that_is_none_names_no_session_and_no_directory(tmp_path: Path) -> None:
    async with editor_on(ScriptedBackend()) as editor:
        for method in ("session/load", "session/resume", "session/close", "session/set_title", "_acpmux/rename"):
            error = await refused(
                editor, method, sessionId="\ud800", cwd=str(tmp_path), mcpServers=[], title="t", newName="t"
            )
            assert error.code == -32002
        assert await editor.request("session/delete", sessionId="\ud800") == {}
        for cwd in ("/a\0b", "/\ud800"):
            assert (await refused(editor, "session/list", cwd=cwd)).code == -32602
            assert (await refused(editor, "session/new", cwd=cwd, mcpServers=[])).code == -32602
