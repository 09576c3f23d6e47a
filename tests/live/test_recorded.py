"""Recordings of the real CLIs, looked over, compared and shown by the commands for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from anyio import to_thread
from click.testing import CliRunner, Result

from acp_manifold.bridge.commands import acp_manifold
from acp_manifold.translators.narrow import as_objects
from tests.schema import PATH
from tests.view.browser import chromium, missing

from .conftest import MakeLab
from .lab import Lab, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]

ASKING = {"claude": "RUN[touch made.txt]", "codex": "RUNESC[touch made.txt]"}
"""What makes each CLI ask before it runs a command."""


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(acp_manifold, [str(word) for word in words])


async def take(world: Lab, *backends: str) -> Path:
    """Record a turn with a question in it, and a rename, of a session of each backend."""
    file = world.folder / "take.jsonl"
    async with started(world, "--titles", "off", "--record", str(file)) as agent:
        await agent.initialize()
        for backend in backends:
            session = await agent.new_session(world.cwd, backend)
            assert await agent.ask(session, f"SAY[5] {ASKING[backend]};;SAY[3]") == "end_turn"
            await agent.request("session/set_title", {"sessionId": session, "title": f"Mine on {backend}"})
    return file


@pytest.mark.parametrize("backend", ["claude", "codex"])
async def test_two_takes_of_one_scene_are_without_fault_and_alike(lab: MakeLab, backend: str) -> None:
    one, other = await take(lab(backend), backend), await take(lab(backend), backend)
    checked = run("recordings", "check", one, other, "--schema", PATH / "v1" / "schema.unstable.json")
    assert checked.exit_code == 0, checked.output
    pairs = as_objects(json.loads(run("recordings", "diff", one, other, "--json").output))
    found = [item for pair in pairs for item in as_objects(pair["differences"])]
    # How often a CLI writes some records, or tells its state, is a matter of moments; what it says is not.
    unlike = [item for item in found if item["leg"] == "backend" and (item["sign"] == "~" or item["dir"] == "out")]
    assert unlike == []


@pytest.mark.skipif(missing() is not None, reason=str(missing()))
async def test_a_recording_of_both_clis_is_shown_with_a_lane_for_each_session(lab: MakeLab) -> None:
    file = await take(lab(), "claude", "codex")
    page = file.with_suffix(".html")
    made = run("view", file, "-o", page)
    assert made.exit_code == 0, made.output

    def look() -> tuple[list[str], int, list[str]]:
        with chromium() as browser:
            shown = browser.new_page()
            shown.goto(page.as_uri())
            lanes = shown.locator(".lane b").all_text_contents()
            shown.locator("button.mark.question").click()
            asked = shown.locator(".row.request .join").all_text_contents()
            shown.locator("button.mark.title").click()
            origins = shown.locator(".row.client.request .origin").all_text_contents()
            return lanes, len(asked), origins

    lanes, asked, origins = await to_thread.run_sync(look)
    assert lanes[:2] == ["client 1", "bridge"]
    assert {"Mine on claude", "Mine on codex"} <= set(lanes)
    assert asked == 4, "each CLI asks the bridge, and the bridge its client"
    assert origins == ["client", "client"]
