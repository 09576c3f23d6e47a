"""The program for a session, from its command line to the end of all that belongs to it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio

from acp_manifold.adapters.claude.carried import Carried
from acp_manifold.adapters.claude.command import mcp_config_file, places
from acp_manifold.adapters.claude.life import Life
from acp_manifold.adapters.claude.lock import lock_folder, locked
from acp_manifold.adapters.claude_tui.hooks import HookServer, private_file, settings_file
from acp_manifold.adapters.claude_tui.pty import COLUMNS, ROWS, terminal
from acp_manifold.adapters.claude_tui.readiness import Standing
from acp_manifold.adapters.claude_tui.screen import Screen
from acp_manifold.adapters.claude_tui.session import TuiSession
from acp_manifold.bridge.backend import SessionEvents, SessionSpec
from acp_manifold.bridge.ledger import state_directory
from acp_manifold.bridge.taps import taps
from acp_manifold.translators.instructions import SystemPrompt
from acp_manifold.translators.narrow import JsonObject

NAME = "claude-tui"


@contextmanager
def system_prompt_argument(folder: Path, session_id: str, prompt: SystemPrompt | None) -> Generator[list[str]]:
    """The argument for what the client has to say to the model, which stands in a file for the person's eyes only."""
    if prompt is None:
        yield []
        return
    option = "append-system-prompt-file" if prompt.mode == "append" else "system-prompt-file"
    with private_file(folder / f"{session_id}.txt", prompt.text) as path:
        yield [f"--{option}={path}"]


@asynccontextmanager
async def serve(
    command: tuple[str, ...],
    env: Mapping[str, str],
    config: Path,
    spec: SessionSpec,
    events: SessionEvents,
    path: Path,
    session_id: str,
    life: Life,
    hooks: HookServer,
    *,
    mode: str | None,
    resumed: bool,
) -> AsyncGenerator[TuiSession]:
    """Run the program for a session for as long as the context is open.

    Args:
        command: The program.
        env: Its whole environment.
        config: Claude Code's own folder.
        spec: Where and with what.
        events: Whom to tell.
        path: Where its transcript is, or will be.
        session_id: The session.
        life: What the sessions of the backend share.
        hooks: Who hears its hooks.
        mode: The permission mode to begin in; None: the person's own.
        resumed: Whether it is in the store, and to be gone on with.

    Raises:
        InvalidRequest: Another agent has the session.
        BackendGone: It can't be started.
    """
    carried = life.carried.setdefault(session_id, Carried())
    folder = state_directory() / NAME
    screen = Screen(ROWS, COLUMNS)
    session: TuiSession | None = None
    failure: Exception | None = None

    def painted(data: bytes) -> None:
        screen.feed(data)
        if session is not None:
            session.stirred()

    place = taps.open("backend", NAME, session_id, command)

    async def called(call: JsonObject) -> JsonObject:
        if place.tap is not None:
            place.tap("in", json.dumps(call).encode())
        answer = await session.hook(call) if session is not None else {}
        if place.tap is not None:
            place.tap("out", json.dumps(answer).encode())
        return answer

    with (
        locked(lock_folder(), session_id),
        mcp_config_file(spec.mcp_servers) as mcp_config,
        hooks.heard(called) as url,
        settings_file(folder, session_id, url) as settings,
        system_prompt_argument(folder, session_id, spec.system_prompt) as instructions,
    ):
        words = [f"--resume={session_id}" if resumed else f"--session-id={session_id}", f"--settings={settings}"]
        if mode is not None:
            words.append(f"--permission-mode={mode}")
        words += instructions
        words += places(spec, mcp_config, carried)
        name = f"{NAME} {session_id[:8]}"
        async with terminal((*command, *words), cwd=spec.cwd, env=env, name=name, on_output=painted) as program:
            async with anyio.create_task_group() as tasks:
                standing = Standing(config, program.pid, screen, spec.cwd, " ".join(command))
                session = TuiSession(
                    session_id, program, screen, standing, path, tasks, spec, events, carried, resumed=resumed
                )
                unwatch = [life.host.watch(file, session.stirred) for file in (standing.record, path)]
                tasks.start_soon(session.run)
                try:
                    taps.keep(NAME, session_id, config, lambda: path)
                    taps.note(place, {"note": "start"})
                    with life.serving(program.pid, session):
                        yield session
                except Exception as exc:
                    # Carried past the task group, which would wrap it: the caller is to see it as it was raised.
                    failure = exc
                finally:
                    taps.note(place, {"note": "exit", "asked": True})
                    taps.forget(NAME, session_id)
                    session.close()
                    for stop in unwatch:
                        stop()
                    tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
