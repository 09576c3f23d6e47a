"""The vendors' session index on the real CLIs: a followed list, foreign changes in it, rows by id, archive."""

from __future__ import annotations

import pytest

from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, obj, text

from .client import Client
from .conftest import MakeLab, both_and_codex_in_v2
from .lab import beside, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]

MODELS = {"claude": "claude-", "codex": "gpt-"}

AIR: JsonObject = {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionIndex"]}}}


def details(row: JsonObject) -> JsonObject:
    return obj(obj(obj(row, "_meta"), "jetbrains"), "air")


def changed(agent: Client) -> list[JsonObject]:
    """Every row that the followed lists told, in order."""
    messages = [obj(line, "params") for line in agent.lines if line.get("method") == "_session/list/changes"]
    return [row for message in messages for row in as_objects(message["sessions"])]


def removed(agent: Client) -> list[object]:
    messages = [obj(line, "params") for line in agent.lines if line.get("method") == "_session/list/changes"]
    return [session for message in messages for session in as_list(message["removed"])]


async def tells(agent: Client, session: str, **wanted: object) -> None:
    """Wait for a row of the session with these fields, its own or those of the index."""

    def look() -> bool:
        rows = [{**row, **details(row)} for row in changed(agent) if row["sessionId"] == session]
        return any(all(row.get(key) == value for key, value in wanted.items()) for row in rows)

    await agent.wait_for(look, f"a row of {session} with {wanted}")


@both_and_codex_in_v2
async def test_a_followed_list_tells_own_and_foreign_changes(lab: MakeLab, backend: str, version: int) -> None:
    here = lab(backend)
    async with started(here, "--backend", backend, version=version) as agent:
        await agent.initialize(_meta=AIR)
        await agent.request("_session/list/subscribe", {"cwd": here.cwd})
        session = await agent.new_session(here.cwd, backend)
        turn = agent.prompt(session, "Some work on payments GATE[mid] SAY[1]")
        await tells(agent, session, state="running")
        here.model.gate("mid").set()
        await turn.answer()
        await tells(agent, session, state="idle")
        async with started(beside(here), "--backend", backend, version=version) as other:
            await other.initialize(_meta=AIR)
            foreign = await other.new_session(here.cwd, backend)
            await other.ask(foreign, "Something quite different SAY[1]")
            await tells(agent, foreign, archived=False)
            await other.request("session/set_title", {"sessionId": foreign, "title": "Of the other"})
            await tells(agent, foreign, title="Of the other")
            rows = await agent.request("_session/batch_get", {"sessionIds": [foreign, "no-such", session]})
            assert [row["sessionId"] for row in as_objects(rows["sessions"])] == [foreign, session]
            assert text(details(as_objects(rows["sessions"])[0]), "model").startswith(MODELS[backend])

            await other.request("_session/archive", {"sessionId": foreign})
            (update,) = [u for u in other.heard(foreign, "session_info_update") if "_meta" in u]
            assert details(update)["archived"] is True
            listed = await other.request("session/list", {"_meta": {"jetbrains": {"air": {"list": {"limit": 5}}}}})
            assert [row["sessionId"] for row in as_objects(listed["sessions"])] == [session]
            await other.request("_session/unarchive", {"sessionId": foreign})
            await other.request("session/delete", {"sessionId": foreign})
            await agent.wait_for(lambda: foreign in removed(agent), "the removal")
        assert text(changed(agent)[-1], "cwd") == here.cwd


async def rows_of(agent: Client) -> dict[str, JsonObject]:
    """What the list tells of each session beside its row."""
    listed = await agent.request("session/list", {"_meta": {"jetbrains": {"air": {"list": {}}}}})
    return {text(row, "sessionId"): details(row) for row in as_objects(listed["sessions"])}


async def test_a_row_of_claude_code_tells_model_cost_and_source(lab: MakeLab) -> None:
    here = lab("claude")
    async with started(here, "--backend", "claude", "--titles", "off") as agent:
        await agent.initialize(_meta=AIR)
        session = await agent.new_session(here.cwd)
        await agent.ask(session, "SAY[1]")
        cost = obj(agent.heard(session, "usage_update")[-1], "cost")
        assert (await rows_of(agent))[session]["cost"] == cost and cost["currency"] == "USD"
        await agent.request("session/close", {"sessionId": session})
        params: JsonObject = {"sessionId": session, "cwd": here.cwd, "mcpServers": []}
        copy = text(await agent.request("session/fork", params), "sessionId")
        rows = await rows_of(agent)
        assert rows[session]["cost"] == cost
        assert rows[copy]["forkedFrom"] == session and "cost" not in rows[copy]
        assert rows[session]["model"] == rows[copy]["model"] == "claude-opus-5-5"
