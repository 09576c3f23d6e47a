"""The vendors' session index over scripted backends: opt-in, rows by id, list options, followed lists."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from acp_manifold.bridge.backend import SessionRow
from acp_manifold.bridge.live_list import MAX_SUBSCRIPTIONS
from acp_manifold.translators.acp import v1
from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, obj, text

from .editor import Editor, Refused, editors
from .scripted import ScriptedBackend

pytestmark = pytest.mark.anyio

INDEX: JsonObject = {"_meta": {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionIndex"]}}}}


@asynccontextmanager
async def indexed(*backends: ScriptedBackend) -> AsyncGenerator[Editor]:
    """An editor that has asked for the session index."""
    async with editors(*backends, initialize=False) as (editor,):
        await editor.request("initialize", protocolVersion=1, clientCapabilities=INDEX)
        yield editor


def air(row: JsonObject) -> JsonObject:
    return obj(obj(obj(row, "_meta"), "jetbrains"), "air")


def options(**said: object) -> JsonObject:
    return {"jetbrains": {"air": {"list": said}}}


class Changes:
    """What a followed list told, message by message."""

    def __init__(self, editor: Editor, subscription: str) -> None:
        self._editor = editor
        self._subscription = subscription
        self._looked = 0

    async def next(self) -> JsonObject:
        """The next message."""

        def wanted(line: JsonObject) -> bool:
            return (
                line.get("method") == "_session/list/changes"
                and obj(line, "params").get("subscriptionId") == self._subscription
            )

        line = await self._editor.wait_for(wanted, self._looked)
        self._looked = self._editor.lines.index(line, self._looked) + 1
        return obj(line, "params")

    async def row(self) -> JsonObject:
        """The one row of the next message."""
        message = await self.next()
        (row,) = as_objects(message["sessions"])
        assert message["removed"] == []
        return row


async def follow(editor: Editor, cwd: Path) -> Changes:
    answer = await editor.request("_session/list/subscribe", cwd=str(cwd))
    await editor.round_trip()
    return Changes(editor, text(answer, "subscriptionId"))


def store(backend: ScriptedBackend, cwd: Path, *names: str) -> None:
    for name in names:
        backend.stored[name] = SessionRow(name, str(cwd), backend.tick(), name.upper())


async def test_what_is_advertised_is_what_was_asked_for(tmp_path: Path) -> None:
    async with indexed(ScriptedBackend()) as editor:
        greeting = await editor.request("initialize", protocolVersion=1, clientCapabilities=INDEX)
    assert air(greeting) == {"version": 1, "capabilities": list(v1.AIR)}


@pytest.mark.parametrize("method", ["batch_get", "list/subscribe", "list/unsubscribe", "archive", "unarchive"])
async def test_without_the_opt_in_there_is_no_such_method(tmp_path: Path, method: str) -> None:
    backend = ScriptedBackend()
    async with editors(backend) as (editor,):
        store(backend, tmp_path, "a")
        with pytest.raises(Refused) as refusal:
            await editor.request(f"_session/{method}", sessionId="a", sessionIds=["a"], cwd=str(tmp_path))
        assert refusal.value.code == -32601
        (row,) = await editor.listed(_meta=options(limit=1))
        assert "jetbrains" not in obj(row, "_meta")


async def test_rows_are_got_by_id_in_the_order_asked_for(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend(), ScriptedBackend("beta")
    async with indexed(alpha, beta) as editor:
        store(alpha, tmp_path, "a", "b")
        store(beta, tmp_path, "c")
        rows = as_objects((await editor.request("_session/batch_get", sessionIds=["c", "no-such", "a"]))["sessions"])
        assert [row["sessionId"] for row in rows] == ["c", "a"]
        assert [row["title"] for row in rows] == ["C", "A"]
        assert await editor.request("_session/batch_get", sessionIds=[]) == {"sessions": []}
        for wrong in (None, "a", ["a", "a"], [" "], [1]):
            with pytest.raises(Refused) as refusal:
                await editor.request("_session/batch_get", sessionIds=wrong)
            assert refusal.value.code == -32602
        with pytest.raises(Refused):
            await editor.request("_session/batch_get", sessionIds=["a"], more=1)


@pytest.mark.parametrize("own", [True, False])
async def test_archiving_what_is_not_open_is_told_to_who_follows_the_list(tmp_path: Path, own: bool) -> None:
    alpha = ScriptedBackend()
    alpha.has_archive = own
    async with indexed(alpha) as editor:
        store(alpha, tmp_path, "a")
        changes = await follow(editor, tmp_path)
        for archived in (True, False):
            await editor.request(f"session/{'archive' if archived else 'unarchive'}", sessionId="a")
            assert (await changes.row()).get("archived") is archived


async def test_list_options_limit_and_filter_and_bind_the_cursor(tmp_path: Path) -> None:
    alpha, beta = ScriptedBackend(), ScriptedBackend("beta")
    async with indexed(alpha, beta) as editor:
        store(alpha, tmp_path, "a", "b", "c")
        store(beta, tmp_path, "d")
        await editor.request("_session/archive", sessionId="b")
        seen: list[object] = []
        cursor: dict[str, object] = {}
        while True:
            page = await editor.request("session/list", _meta=options(limit=2), **cursor)
            seen += [row["sessionId"] for row in as_objects(page["sessions"])]
            if "nextCursor" not in page:
                break
            assert len(as_list(page["sessions"])) == 2
            cursor = {"cursor": page["nextCursor"]}
        assert sorted(map(str, seen)) == ["a", "c", "d"]
        with pytest.raises(Refused) as refusal:
            await editor.request("session/list", _meta=options(limit=2, archived="all"), **cursor)
        assert refusal.value.code == -32602
        (row,) = await editor.listed(_meta=options(archived="archived"))
        assert (row["sessionId"], air(row)["archived"], row["archived"]) == ("b", True, True)
        assert len(await editor.listed(_meta=options(archived="all", limit=1000))) == 4
        wrongs = ({"limit": 0}, {"limit": True}, {"limit": "9"}, {"archived": "some"}, {"includeWorktrees": 1})
        for wrong in wrongs:
            with pytest.raises(Refused) as refusal:
                await editor.request("session/list", _meta=options(**wrong))
            assert refusal.value.code == -32602


async def test_a_followed_list_tells_what_goes_on_in_sessions_that_are_open_here(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with indexed(backend) as editor:
        changes = await follow(editor, tmp_path)
        session = await editor.new(tmp_path)
        request = editor.prompt(session, "one")
        live = await backend.opened()
        await live.prompted()
        row = await changes.row()
        assert (row["sessionId"], air(row)["state"]) == (session, "running")
        assert "lastPromptAt" in air(row) and "lastTurnEndedAt" not in air(row)
        live.finish()
        await editor.answer(request)
        row = await changes.row()
        assert air(row)["state"] == "idle" and "lastTurnEndedAt" in air(row)
        await editor.request("session/set_title", sessionId=session, title="New name")
        assert (await changes.row())["title"] == "New name"
        await editor.request("session/delete", sessionId=session)
        message = await changes.next()
        assert (message["sessions"], message["removed"]) == ([], [session])


async def test_a_followed_list_tells_what_other_programs_do(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    elsewhere = tmp_path / "elsewhere"
    async with indexed(backend) as editor:
        store(backend, tmp_path, "a", "b")
        store(backend, elsewhere, "x")
        changes = await follow(editor, tmp_path)
        while not backend.followers:
            await editor.round_trip()
        backend.store_title("a", "Renamed", "user")
        backend.store_title("x", "Not ours", "user")
        for session in ("a", "x"):
            backend.touched(session)
        assert (await changes.row())["title"] == "Renamed"
        # Nobody knows which it was: rows are compared with those before.
        store(backend, tmp_path, "c")
        del backend.stored["b"]
        backend.touched(None)
        message = await changes.next()
        assert [row["sessionId"] for row in as_objects(message["sessions"])] == ["c"]
        assert message["removed"] == ["b"]


async def test_a_list_that_is_not_followed_any_more_costs_nothing(tmp_path: Path) -> None:
    backend = ScriptedBackend()
    async with indexed(backend) as editor:
        followed = [
            await editor.request("_session/list/subscribe", cwd=str(tmp_path)) for _ in range(MAX_SUBSCRIPTIONS)
        ]
        with pytest.raises(Refused) as refusal:
            await editor.request("_session/list/subscribe", cwd=str(tmp_path))
        assert (refusal.value.code, refusal.value.data) == (-32602, {"reason": "too_many_subscriptions", "max": 128})
        for _ in range(2):
            assert await editor.request("_session/list/unsubscribe", **followed[0]) == {}
        assert await editor.request("_session/list/subscribe", cwd=str(tmp_path))
        while len(backend.followers) < MAX_SUBSCRIPTIONS:
            await editor.round_trip()
        editor.hang_up()
        with anyio.fail_after(5):
            while backend.followers:
                await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("cwd", [None, "here", 5])
async def test_a_list_is_followed_by_an_absolute_path(cwd: object) -> None:
    async with indexed(ScriptedBackend()) as editor:
        with pytest.raises(Refused) as refusal:
            await editor.request("_session/list/subscribe", cwd=cwd)
        assert refusal.value.code == -32602
