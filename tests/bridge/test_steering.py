"""`_session/steering` on a scripted backend."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.bridge.errors import BackendFault, BackendGone
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import Text

from .editor import Editor, Refused, editor_on
from .scripted import ScriptedBackend

pytestmark = pytest.mark.anyio


async def steer(editor: Editor, session: str, words: str, **more: object) -> JsonObject:
    prompt = [{"type": "text", "text": words}]
    return await editor.request("_session/steering", sessionId=session, prompt=prompt, **more)


async def test_it_is_advertised_at_the_top_of_the_greeting(tmp_path: Path) -> None:
    async with editor_on(ScriptedBackend()) as editor:
        greeting = await editor.request("initialize", protocolVersion=1)
    assert greeting["_meta"] == {"steering": {"supported": True}}


async def test_a_message_goes_to_the_running_turn_and_not_to_those_that_wait(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with editor_on(backend) as editor:
        session = await editor.new(tmp_path)
        first = editor.prompt(session, "one")
        live = await backend.opened()
        await live.prompted()
        second = editor.prompt(session, "two")
        assert await steer(editor, session, "and quickly") == {"outcome": "injected"}
        assert live.steered == [(Text("and quickly"),)]
        live.finish()
        assert (await editor.answer(first))["stopReason"] == "end_turn"
        assert await live.prompted() == (Text("two"),)
        live.finish()
        await editor.answer(second)


async def test_a_message_before_the_cli_is_up_is_part_of_the_prompt(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with editor_on(backend) as editor:
        session = await editor.new(tmp_path)
        live = await backend.opened()
        prompt: JsonObject = {"sessionId": session, "prompt": [{"type": "text", "text": "one"}]}
        added: JsonObject = {**prompt, "prompt": [{"type": "text", "text": "and this"}]}
        editor.send(
            {"jsonrpc": "2.0", "id": "p", "method": "session/prompt", "params": prompt},
            {"jsonrpc": "2.0", "id": "s", "method": "_session/steering", "params": added},
        )
        assert await editor.answer("s") == {"outcome": "injected"}
        said = await live.prompted()
        assert (*said, *(text for more in live.steered for text in more)) == (Text("one"), Text("and this"))
        live.finish()
        await editor.answer("p")


async def test_what_was_added_to_a_prompt_that_a_dying_cli_had_not_taken_goes_to_the_next(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with editor_on(backend) as editor:
        session = await editor.new(tmp_path)
        request = editor.prompt(session, "one")
        live = await backend.opened()
        await live.prompted()
        assert await steer(editor, session, "and this") == {"outcome": "injected"}
        gone = BackendGone("died idle")
        gone.untaken = True
        live.die("died idle")
        live.fail(gone)
        again = await backend.opened()
        assert await again.prompted() == (Text("one"), Text("and this"))
        again.finish()
        await editor.answer(request)


async def test_a_turn_that_is_being_cancelled_takes_nothing(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with editor_on(backend) as editor:
        session = await editor.new(tmp_path)
        request = editor.prompt(session, "one")
        live = await backend.opened()
        await live.prompted()
        live.heeds = False
        editor.tell("session/cancel", sessionId=session)
        await live.interrupted()
        idle: JsonObject = {"steering": {"idleBehavior": "promptRequired"}}
        assert (await steer(editor, session, "late", _meta=idle))["outcome"] == "promptRequired"
        assert live.steered == []
        live.finish("cancelled")
        assert (await editor.answer(request))["stopReason"] == "cancelled"


async def test_a_refusal_of_the_cli_is_an_outcome_with_its_reason(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with editor_on(backend) as editor:
        session = await editor.new(tmp_path)
        request = editor.prompt(session, "one")
        live = await backend.opened()
        await live.prompted()
        backend.refuses_steering = BackendFault("a review can't be steered")
        assert await steer(editor, session, "x") == {"outcome": "failed", "reason": "a review can't be steered"}
        live.finish()
        await editor.answer(request)


async def test_a_turn_that_nobody_waits_for_tells_its_failure(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with editor_on(backend) as editor:
        session = await editor.new(tmp_path)
        assert await steer(editor, session, "go") == {"outcome": "startedNewTurn"}
        live = await backend.opened()
        await live.prompted()
        live.fail(BackendFault("the model is away"))
        await editor.update(session, "agent_message_chunk")
        assert editor.said(session) == "The turn failed: the model is away"


async def test_a_rename_in_mid_turn_is_a_rename(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with editor_on(backend) as editor:
        session = await editor.new(tmp_path)
        request = editor.prompt(session, "one")
        live = await backend.opened()
        await live.prompted()
        assert await steer(editor, session, "/rename Better") == {"outcome": "injected"}
        assert live.steered == [] and editor.titles(session) == ["Better"]
        live.finish()
        await editor.answer(request)


@pytest.mark.parametrize("wrong", [{"prompt": []}, {"prompt": None}, {"_meta": {"steering": {"idleBehavior": 1}}}])
async def test_wrong_params_reach_no_backend(tmp_path: Path, wrong: JsonObject) -> None:
    backend = ScriptedBackend()
    async with editor_on(backend) as editor:
        session = await editor.new(tmp_path)
        params: JsonObject = {"sessionId": session, "prompt": [{"type": "text", "text": "x"}], **wrong}
        with pytest.raises(Refused) as refusal:
            await editor.request("_session/steering", **params)
        assert refusal.value.code == -32602
        assert backend.sessions[0].prompts == []
