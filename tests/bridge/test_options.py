"""Options of a session, between clients and a scripted backend: order, refusals, who is told what."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.backend import SessionRow
from acp_manifold.bridge.errors import BackendGone, InvalidRequest, RestartNeeded
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .editor import Editor, Refused, editor_on, editors
from .scripted import OPTIONS, ScriptedBackend

pytestmark = pytest.mark.anyio


def with_options(name: str = "alpha") -> ScriptedBackend:
    backend = ScriptedBackend(name)
    backend.options = OPTIONS
    return backend


def held(result: JsonObject) -> dict[str, object]:
    return {text(option, "id"): option["currentValue"] for option in as_objects(result["configOptions"])}


def tags(editor: Editor, session: str) -> list[object]:
    return [update["sessionUpdate"] for update in editor.updates(session)]


async def refused(editor: Editor, method: str, **params: object) -> Refused:
    """The error of a request that has to fail."""
    with pytest.raises(Refused) as caught:
        await editor.request(method, **params)
    return caught.value


async def opened(editor: Editor, cwd: Path) -> JsonObject:
    return await editor.request("session/new", cwd=str(cwd), mcpServers=[])


async def test_the_answer_holds_options_and_modes_and_nothing_is_told_twice(tmp_path: Path) -> None:
    async with editor_on(with_options()) as editor:
        result = await opened(editor, tmp_path)
        assert held(result) == {"backend": "alpha", "mode": "ask", "model": "small", "fast": "off"}
        assert obj(result, "modes")["currentModeId"] == "ask"
        assert [mode["id"] for mode in as_objects(obj(result, "modes")["availableModes"])] == ["ask", "plan", "all"]
        assert tags(editor, text(result, "sessionId")) == []


async def test_a_switch_is_a_boolean_only_for_clients_that_take_it(tmp_path: Path) -> None:
    async with editors(with_options(), initialize=False) as (editor,):
        able: JsonObject = {"session": {"configOptions": {"boolean": {}}}}
        await editor.request("initialize", protocolVersion=1, clientCapabilities=able)
        session = text(await opened(editor, tmp_path), "sessionId")
        fast: JsonObject = {"sessionId": session, "configId": "fast"}
        assert (
            held(await editor.request("session/set_config_option", **fast, type="boolean", value=True))["fast"] is True
        )
        assert held(await editor.request("session/set_config_option", **fast, value="off"))["fast"] is False
        assert (await refused(editor, "session/set_config_option", **fast, type="boolean", value="on")).code == -32602
        assert (await refused(editor, "session/set_config_option", **fast, value="perhaps")).code == -32602
        assert (await refused(editor, "session/set_config_option", **fast, value=3)).code == -32602
        assert (await refused(editor, "session/set_config_option", **fast, type=5, value=True)).code == -32602


async def test_what_is_unknown_is_refused_with_what_there_is(tmp_path: Path) -> None:
    async with editor_on(with_options()) as editor:
        session = text(await opened(editor, tmp_path), "sessionId")
        error = await refused(editor, "session/set_config_option", sessionId=session, configId="x", value="y")
        assert error.code == -32602 and "backend, mode, model, fast" in error.message
        error = await refused(editor, "session/set_config_option", sessionId=session, configId="model", value="huge")
        assert error.code == -32602 and "small, big" in error.message
        assert (await refused(editor, "session/set_mode", sessionId=session, modeId="yolo")).code == -32602
        assert (await refused(editor, "session/set_mode", sessionId="nobody", modeId="ask")).code == -32002


async def test_a_change_is_told_to_every_client_and_modes_by_both_names(tmp_path: Path) -> None:
    backend = with_options()
    async with editors(backend, count=2) as (first, second):
        session = text(await opened(first, tmp_path), "sessionId")
        live = await backend.opened()
        backend.stored[session] = SessionRow(session, str(tmp_path), "2026-01-01T00:00:00.000Z")
        await second.request("session/resume", sessionId=session, cwd=str(tmp_path), mcpServers=[])
        assert await first.request("session/set_mode", sessionId=session, modeId="plan") == {}
        for editor in (first, second):
            assert tags(editor, session)[-2:] == ["config_option_update", "current_mode_update"]
        live.change("model", "big")
        live.change("model", "big")
        await first.request("session/set_model", sessionId=session, modelId="small")
        assert tags(second, session).count("config_option_update") == 3
        assert live.sets == [("mode", "plan"), ("model", "small")]


async def test_changes_keep_their_order_and_a_prompt_behind_them_runs_with_them(tmp_path: Path) -> None:
    backend = with_options()
    async with editor_on(backend) as editor:
        session = text(await opened(editor, tmp_path), "sessionId")
        live = await backend.opened()
        live.holds_up = anyio.Event()
        first = editor.ask("session/set_config_option", sessionId=session, configId="model", value="big")
        second = editor.ask("session/set_config_option", sessionId=session, configId="model", value="small")
        turn = editor.ask("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "go"}])
        await anyio.wait_all_tasks_blocked()
        assert live.sets == [("model", "big")] and live.prompts == []
        live.holds_up.set()
        await live.prompted()
        assert live.sets == [("model", "big"), ("model", "small")]
        assert held(await editor.answer(second))["model"] == "small"
        await editor.answer(first)
        live.finish()
        await editor.answer(turn)


async def test_a_refusal_is_passed_on_and_what_holds_stays(tmp_path: Path) -> None:
    backend = with_options()
    async with editor_on(backend) as editor:
        session = text(await opened(editor, tmp_path), "sessionId")
        live = await backend.opened()
        live.refuses_options = [InvalidRequest("not on this plan")]
        error = await refused(editor, "session/set_config_option", sessionId=session, configId="fast", value="on")
        assert (error.code, error.message) == (-32600, "not on this plan")
        assert tags(editor, session) == []


@pytest.mark.parametrize("why", [RestartNeeded("to be started with it"), BackendGone("crashed")])
async def test_a_change_outlives_the_cli_that_was_asked_for_it(tmp_path: Path, why: InvalidRequest) -> None:
    backend = with_options()
    async with editor_on(backend) as editor:
        session = text(await opened(editor, tmp_path), "sessionId")
        before = await backend.opened()
        before.refuses_options = [why]
        if isinstance(why, BackendGone):
            before.die("crashed")
        result = await editor.request("session/set_config_option", sessionId=session, configId="mode", value="all")
        assert held(result)["mode"] == "all"
        assert backend.sessions[-1] is not before and backend.sessions[-1].id == before.id
        assert not before.open


async def test_the_options_change_with_the_backend(tmp_path: Path) -> None:
    async with editor_on(with_options(), ScriptedBackend("beta")) as editor:
        session = text(await opened(editor, tmp_path), "sessionId")
        params: JsonObject = {"sessionId": session, "configId": "backend"}
        assert held(await editor.request("session/set_config_option", **params, value="beta")) == {"backend": "beta"}
        assert (await refused(editor, "session/set_mode", sessionId=session, modeId="ask")).code == -32602
        assert held(await editor.request("session/set_config_option", **params, value="alpha"))["mode"] == "ask"
        assert (await refused(editor, "session/set_config_option", **params, value=True)).code == -32602
