"""Work that goes on in the background of a session: listed, read and ended from that session alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from .editor import Editor, Refused, editor_on
from .scripted import ScriptedBackend, ScriptedSession

pytestmark = pytest.mark.anyio

LIST, OUTPUT, STOP = (f"_acp-manifold/background/{name}" for name in ("list", "output", "stop"))


async def two_sessions(editor: Editor, backend: ScriptedBackend, cwd: Path) -> tuple[str, str, ScriptedSession]:
    """Two sessions, the first with a task `b1` behind it; their ids, and the first one's CLI."""
    a, b = await editor.new(cwd), await editor.new(cwd)
    backend.sessions[0].go_on_behind("b1", "call-1")
    return a, b, backend.sessions[0]


async def test_a_task_is_listed_read_and_stopped_from_its_own_session(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        a, _, cli = await two_sessions(editor, alpha, tmp_path)
        row = {"taskId": "b1", "title": "sleep 9", "toolCallId": "call-1"}
        assert await editor.request(LIST, sessionId=a) == {"tasks": [row]}
        output = await editor.request(OUTPUT, sessionId=a, taskId="b1")
        assert output == {"output": "ticks", "totalBytes": 5, "truncated": False}
        assert await editor.request(STOP, sessionId=a, taskId="b1") == {}
        assert cli.behind == {}
        assert await editor.request(LIST, sessionId=a) == {"tasks": []}


async def test_from_another_session_a_task_is_not_found(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        _, b, cli = await two_sessions(editor, alpha, tmp_path)
        assert await editor.request(LIST, sessionId=b) == {"tasks": []}
        for method in (OUTPUT, STOP):
            with pytest.raises(Refused) as refused:
                await editor.request(method, sessionId=b, taskId="b1")
            assert (refused.value.code, refused.value.data) == (-32002, {"sessionId": b, "taskId": "b1"})
        assert list(cli.behind) == ["b1"]


async def test_the_vendors_spelling_says_whether_it_stopped_anything(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        a, b, cli = await two_sessions(editor, alpha, tmp_path)
        method = "_session/async_task/stop"
        assert await editor.request(method, sessionId=b, asyncTaskId="b1") == {"stopped": False}
        assert list(cli.behind) == ["b1"]
        assert await editor.request(method, sessionId=a, asyncTaskId="b1") == {"stopped": True}


@pytest.mark.parametrize("params", [{}, {"taskId": 3}, {"taskId": None}])
async def test_a_missing_or_wrong_task_id_names_the_field(tmp_path: Path, params: dict[str, object]) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path)
        for method in (OUTPUT, STOP):
            with pytest.raises(Refused) as refused:
                await editor.request(method, sessionId=session, **params)
            assert (refused.value.code, refused.value.data) == (-32602, {"field": "taskId"})


async def test_a_session_at_rest_has_no_background_work(tmp_path: Path) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha, idle=0.01) as editor:
        session = await editor.new(tmp_path)
        await alpha.sessions[0].let_go()
        assert await editor.request(LIST, sessionId=session) == {"tasks": []}
        with pytest.raises(Refused):
            await editor.request(STOP, sessionId=session, taskId="b1")
        assert len(alpha.sessions) == 1


@pytest.mark.parametrize("method", ["session/close", "session/delete"])
async def test_the_end_of_a_session_ends_its_work_and_tells_so_before_the_answer(tmp_path: Path, method: str) -> None:
    alpha = ScriptedBackend()
    async with editor_on(alpha) as editor:
        a, b, cli = await two_sessions(editor, alpha, tmp_path)
        asked = editor.prompt(a, "go")
        await cli.prompted()
        await editor.answer(editor.ask(method, sessionId=a))
        kinds = [
            (line.get("id"), line.get("method")) for line in editor.lines if line.get("id") == asked or "id" not in line
        ]
        assert [update["status"] for update in editor.updates(a, "tool_call_update")] == ["failed"]
        assert kinds[-1] == (asked, None), "nothing is told of a turn after its outcome"
        cli.say("late")
        await editor.round_trip()
        assert editor.said(a) == ""
        assert await editor.request(LIST, sessionId=b) == {"tasks": []}
