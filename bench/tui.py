"""The interactive program: how soon it is ready, has a title, and says what its hook has told."""

from __future__ import annotations

import datetime
import re
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from acp_manifold.adapters.claude_tui.pty import COLUMNS, ROWS, terminal
from acp_manifold.adapters.claude_tui.readiness import Standing
from acp_manifold.adapters.claude_tui.screen import Screen
from acp_manifold.adapters.demo.editor import start
from acp_manifold.translators.narrow import JsonObject

from .work import allow, titles

TURNS = 5
_LIMIT = 120.0
_LOOK = 0.005
"""Seconds between two looks at the registry and the screen."""

_HOOK = re.compile(r"^(\S+ \S+) .*: hook MessageDisplay$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Tui:
    """What one start showed, in seconds."""

    own_start: float
    """From the start of the program, run by itself in a terminal, to its input box."""
    ready: float
    """From `session/new` to the word that a prompt can be typed."""
    rename: float
    """A title set while nothing runs."""
    text: float
    """From the hook's call to the text at the client."""


async def measure(
    command: Sequence[str], program: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path, config: Path
) -> Tui:
    """Start the program by itself, and then a session on it.

    Args:
        command: Us.
        program: Claude Code.
        env: The whole environment.
        cwd: Where it works.
        log: Takes our stderr.
        config: Claude Code's own folder.

    Raises:
        BridgeError: It answered with an error or went away.
        TimeoutError: It took too long.
    """
    with anyio.fail_after(_LIMIT):
        own = await _own_start(program, env, cwd, config)
        return await _session(command, env, cwd, log, own)


async def _own_start(program: Sequence[str], env: Mapping[str, str], cwd: Path, config: Path) -> float:
    screen = Screen(ROWS, COLUMNS)
    begun = time.perf_counter()
    async with terminal(program, cwd=str(cwd), env=env, name="bench", on_output=screen.feed) as running:
        standing = Standing(config, running.pid, screen, str(cwd), program[0])
        while await standing.until(lambda: standing.is_ready or None, _LOOK) is None:
            pass
        return time.perf_counter() - begun


async def _session(command: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path, own: float) -> Tui:
    heard: dict[str, list[float]] = {}
    ready = anyio.Event()

    def hear(_session: str, update: JsonObject) -> None:
        kind = str(update.get("sessionUpdate"))
        heard.setdefault(kind, []).append(time.time())
        if kind == "available_commands_update":
            ready.set()

    async with start((*command, "--backend", "claude-tui", "--verbose"), env, log, hear, allow) as editor:
        await editor.initialize()
        begun = time.time()
        session = await editor.new_session(str(cwd), "claude-tui")
        await ready.wait()
        up = heard["available_commands_update"][0] - begun
        before = len(_hook_calls(log))
        for _ in range(TURNS):
            await editor.prompt(session, "Say a word SAY[1]")
        told = heard["agent_message_chunk"]
        called = _hook_calls(log)[before:]
        rename = await titles(editor, session)
    late = [there - hook for hook, there in zip(called, told, strict=True)]
    return Tui(own, up, rename, statistics.median(late))


def _hook_calls(log: Path) -> list[float]:
    """When each was told by the hook, in seconds since 1970."""
    found = _HOOK.findall(log.read_text())
    return [datetime.datetime.strptime(at, "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp() for at in found]
