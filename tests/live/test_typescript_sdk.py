"""The official TypeScript SDK as the client, by both of its entry points: what an editor built on it sees."""

from __future__ import annotations

import json
import sys
from typing import cast

import pytest

from acp_manifold.translators.narrow import JsonObject, obj

from .lab import Lab
from .leftovers import none_left
from .node import NODE_MODULES, SCRIPTS, run_node

pytestmark = [pytest.mark.anyio, pytest.mark.live]


@pytest.mark.parametrize("entry_point", ["stable", "unstable"])
async def test_the_typescript_sdk_drives_two_backends_on_one_connection(both: Lab, entry_point: str) -> None:
    bridge = [sys.executable, "-m", "acp_manifold.bridge"]
    script = SCRIPTS / "typescript_sdk.mjs"
    status, out, err = await run_node(script, NODE_MODULES, entry_point, both.cwd, *bridge, env=both.env, cwd=both.cwd)
    assert status == 0, err
    report = cast(JsonObject, json.loads(out))
    assert obj(report, "greeting")["protocolVersion"] == 1
    assert (report["unknown"], report["exit"], report["never"]) == (-32002, 0, [])
    for backend in ("claude", "codex"):
        seen = obj(report, backend)
        assert (seen["allowed"], seen["asked"], seen["cancelled"]) == ("end_turn", 1, "cancelled")
        assert " ".join(str(seen["said"]).split()) in (f"from {backend}stop me", f"from {backend} stop me")
        replayed = str(seen["replayed"])
        assert replayed.startswith("[RUN") and f"from {backend}" in replayed.replace("\n", "")
        assert seen["goesOn"] == "end_turn"
        if entry_point == "unstable":
            assert seen["title"] == f"{backend} title" and seen["listed"] == [seen["title"]]
        else:
            assert len(cast(list[object], seen["listed"])) == 1
    assert await none_left(str(both.folder), 5) == {}


async def test_the_typescript_sdks_draft_of_v2_drives_the_whole_life_of_a_session_on_both_backends(both: Lab) -> None:
    bridge = [sys.executable, "-m", "acp_manifold.bridge"]
    script = SCRIPTS / "typescript_sdk_v2.mjs"
    status, out, err = await run_node(script, NODE_MODULES, both.cwd, *bridge, env=both.env, cwd=both.cwd)
    assert status == 0, err
    report = cast(JsonObject, json.loads(out))
    assert obj(report, "greeting")["protocolVersion"] == 2
    assert (report["unknown"], report["exit"]) == (-32002, 0)
    for backend in ("claude", "codex"):
        seen = obj(report, backend)
        assert (seen["allowed"], seen["question"]) == ("end_turn", ["command"])
        assert seen["states"] == ["running", "requires_action", "running", "idle"]
        assert f"out-of-{backend}" in str(seen["printed"])
        assert (seen["queued"], seen["cancelled"]) == (-32800, "cancelled")
        assert seen["stopped"] == ["cancelled", "cancelled"]
        title = f"{backend} title"
        assert seen["title"] == seen["resumedTitle"] == title
        assert seen["status"] == {"status": "open", "state": {"state": "idle", "background": []}}
        assert (seen["echoed"], seen["sameIds"]) == (True, True)
        replayed = cast(list[list[str]], seen["replayed"])
        assert replayed[0][0] == "user_message" and replayed[1] == ["agent_message", f"from {backend}"]
        assert (seen["goesOn"], seen["forked"]) == ("end_turn", "end_turn")
        assert cast(list[str], seen["listed"])[0] == title
        assert seen["archived"] == [None, True] and seen["left"] == [title, None]
    assert await none_left(str(both.folder), 5) == {}
