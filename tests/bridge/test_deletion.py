"""A deleted session is gone for everybody at once, also if its store keeps it; a refusal leaves it as it was."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge import hub as hubs
from acp_manifold.bridge.backend import SessionRow
from acp_manifold.bridge.errors import BackendFault
from acp_manifold.bridge.ledger import Ledger
from acp_manifold.translators.narrow import JsonObject

from .editor import Editor, Refused, editor_on, editors
from .scripted import OPTIONS, ScriptedBackend, ScriptedSession

pytestmark = pytest.mark.anyio

END_TURN: JsonObject = {"stopReason": "end_turn"}


def two_stored(cwd: Path) -> ScriptedBackend:
    """A store with an archive, with a session and a copy that is built on it."""
    alpha = ScriptedBackend()
    alpha.has_archive = True
    for name in ("one", "copy"):
        alpha.stored[name] = SessionRow(name, str(cwd), alpha.tick())
    alpha.copies["one"] = {"copy"}
    return alpha


async def is_gone(editor: Editor, session: str, cwd: Path) -> None:
    """Nobody can do anything with it, nor see it."""
    for shown in ("exclude", "only", "include"):
        assert session not in [row["sessionId"] for row in await editor.listed(archived=shown)]
    opening: JsonObject = {"cwd": str(cwd), "mcpServers": []}
    asked: dict[str, JsonObject] = {
        "session/load": opening,
        "session/resume": opening,
        "session/fork": opening,
        "session/set_title": {"title": "No"},
        "session/status": {},
        "session/unarchive": {},
        "session/close": {},
    }
    for method, params in asked.items():
        with pytest.raises(Refused) as refused:
            await editor.request(method, sessionId=session, **params)
        assert refused.value.code == -32002, method
    assert await editor.request("session/delete", sessionId=session) == {}


@pytest.mark.parametrize("is_open", [False, True])
async def test_what_the_store_keeps_for_its_copies_is_gone_all_the_same(tmp_path: Path, is_open: bool) -> None:
    alpha = two_stored(tmp_path)
    async with editors(alpha, count=2) as (editor, other):
        assert len(await other.listed()) == 2, "the other one knows it"
        if is_open:
            await editor.request("session/load", sessionId="one", cwd=str(tmp_path), mcpServers=[])
        assert await editor.request("session/delete", sessionId="one") == {}
        assert alpha.stored.keys() == {"one", "copy"} and alpha.archived == {"one"}
        await is_gone(editor, "one", tmp_path)
        await is_gone(other, "one", tmp_path)
        assert [row["sessionId"] for row in await editor.listed()] == ["copy"]
        assert await other.request("session/delete", sessionId="copy") == {}
        assert alpha.stored == {}, "with the last copy it goes"


async def test_another_agent_knows_what_was_deleted_and_removes_it_when_its_copies_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hubs, "SWEEP_DELAY", 0.0)
    alpha, ledger = two_stored(tmp_path), tmp_path / "ledger"
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        await editor.listed()
        async with editor_on(alpha, ledger=Ledger(ledger)) as other:
            await other.request("session/delete", sessionId="one")
        await is_gone(editor, "one", tmp_path)
    del alpha.stored["copy"]
    async with editor_on(alpha, ledger=Ledger(ledger)) as editor:
        await editor.request("initialize", protocolVersion=1)
        with anyio.fail_after(3):
            while alpha.stored:
                await anyio.lowlevel.checkpoint()
    assert Ledger(ledger).marked("alpha", "deleted") == frozenset()


@pytest.mark.parametrize("method", ["session/delete", "session/archive"])
async def test_a_refusal_leaves_a_session_that_is_open(tmp_path: Path, method: str) -> None:
    alpha = ScriptedBackend()
    alpha.refuses_delete = alpha.refuses_archive = BackendFault("the store says no")
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path)
        for number in range(2):
            cli, asked = await prompted(editor, alpha, session, number)
            with pytest.raises(Refused, match="the store says no"):
                await editor.request(method, sessionId=session)
            assert (await editor.answer(asked))["stopReason"] == "cancelled" and not cli.open
            await editor.request("session/set_title", sessionId=session, title=f"Still here {number}")
            assert editor.titles(session)[-1] == f"Still here {number}"
        cli, asked = await prompted(editor, alpha, session, 2)
        cli.finish()
        assert await editor.answer(asked) == END_TURN
        alpha.refuses_delete = None
        assert await editor.request("session/delete", sessionId=session) == {}
        await is_gone(editor, session, tmp_path)


@pytest.mark.case("L10")
@pytest.mark.parametrize("method", ["session/delete", "session/archive", "session/close"])
async def test_what_is_asked_for_while_a_session_ends_is_told_so(tmp_path: Path, method: str) -> None:
    alpha = ScriptedBackend()
    alpha.options = OPTIONS
    async with editor_on(alpha) as editor:
        session = await editor.new(tmp_path)
        cli, asked = await prompted(editor, alpha, session, 0)
        alpha.closing = anyio.Event()
        ending = editor.ask(method, sessionId=session)
        await cli.let_go()
        late = editor.prompt(session, "late")
        option = editor.ask("session/set_config_option", sessionId=session, configId="mode", value="plan")
        assert (await editor.answer(asked))["stopReason"] == "cancelled"
        alpha.closing.set()
        assert await editor.answer(ending) == {}
        assert (await editor.answer(late))["stopReason"] == "cancelled"
        with pytest.raises(Refused, match="was closed meanwhile") as refused:
            await editor.answer(option)
        assert refused.value.code == -32002


async def prompted(editor: Editor, backend: ScriptedBackend, session: str, number: int) -> tuple[ScriptedSession, int]:
    """The CLI of that number of the session, opened by a prompt if need be and in its turn, and the prompt's id."""
    asked = editor.prompt(session, "go")
    while len(backend.sessions) <= number:
        await backend.opened()
    await backend.sessions[number].prompted()
    return backend.sessions[number], asked
