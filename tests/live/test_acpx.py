"""acpx as the client: the command line that speaks ACP, with both CLIs behind the agent."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, obj, text

from .conftest import MakeLab
from .lab import Lab
from .leftovers import none_left
from .node import NODE_MODULES, run_node

pytestmark = [pytest.mark.anyio, pytest.mark.live]

ESCALATES = {"claude": "RUN[{}]", "codex": "RUNESC[{}]"}
"""A command that each CLI asks about as it is configured out of the box."""


class Acpx:
    """acpx in a lab: each call is a process of its own, and another one keeps the agent for the next prompt."""

    def __init__(self, lab: Lab, backend: str) -> None:
        self._lab = lab
        self._options = ["--agent", f"{sys.executable} -m acp_manifold.bridge --backend {backend}"]

    async def __call__(self, *words: str) -> str:
        """What a call prints; it has to succeed."""
        script = NODE_MODULES / "acpx" / "dist" / "cli.js"
        status, out, err = await run_node(script, *self._options, *words, env=self._lab.env, cwd=self._lab.cwd)
        assert status == 0, f"acpx {words}: status {status}\n{out}\n{err}"
        return out

    async def lines(self, *words: str) -> list[JsonObject]:
        """The lines of the protocol that a call exchanges, both ways."""
        return [as_object(json.loads(line)) for line in (await self("--format", "json", *words)).splitlines()]


async def nothing_left(lab: Lab) -> None:
    """Waits until acpx has let everything of the lab go."""
    assert await none_left(str(lab.folder), 20) == {}


def methods(lines: list[JsonObject]) -> list[str]:
    return [text(line, "method") for line in lines if "method" in line]


def said(lines: list[JsonObject]) -> str:
    updates = [obj(obj(line, "params"), "update") for line in lines if line.get("method") == "session/update"]
    chunks = [update for update in updates if update.get("sessionUpdate") == "agent_message_chunk"]
    return "".join(text(obj(chunk, "content"), "text") for chunk in chunks)


async def runs_a_prompt_and_allows_what_it_asks(acpx: Acpx, lab: Lab, backend: str) -> None:
    once = await acpx.lines("--approve-all", "exec", ESCALATES[backend].format("touch yes") + " ;; TEXT<<done>>")
    assert said(once) == "done" and (Path(lab.cwd) / "yes").exists()
    asked_of_us = ["initialize", "session/new", "session/prompt"]
    assert [method for method in methods(once) if method in asked_of_us] == asked_of_us
    assert {*methods(once)} - {*asked_of_us, "session/close"} == {"session/update", "session/request_permission"}


async def test_acpx_runs_a_prompt_and_allows_what_it_asks(lab: MakeLab) -> None:
    here = lab("claude")
    await runs_a_prompt_and_allows_what_it_asks(Acpx(here, "claude"), here, "claude")
    await nothing_left(here)


async def test_acpx_goes_on_with_a_session_cancels_lists_and_loads(lab: MakeLab) -> None:
    here = lab("codex")
    acpx = Acpx(here, "codex")
    await runs_a_prompt_and_allows_what_it_asks(acpx, here, "codex")
    await acpx("sessions", "new", "--name", "one")
    assert "hello" in await acpx("--ttl", "1", "prompt", "-s", "one", "TEXT<<hello>>")
    await nothing_left(here)
    again = await acpx.lines("prompt", "-s", "one", "TEXT<<again>>")
    assert {"session/load", "session/resume"} & {*methods(again)} and "session/new" not in methods(again)
    assert said(again).endswith("again")

    await acpx("prompt", "-s", "one", "--no-wait", "TEXT<<stop>> GATE[held] TEXT<<not said>>")
    await here.model.gate("held").reached()
    assert "cancel" in await acpx("cancel", "-s", "one")
    (listed,) = await acpx.lines("sessions", "list")
    assert len(as_objects(listed.get("sessions"))) == 2
    history = await acpx("sessions", "history", "one")
    assert "again" in history and history.rstrip().endswith("assistant\tstop")
    await acpx("sessions", "close", "one")
    await nothing_left(here)
