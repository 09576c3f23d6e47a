"""The program for a session, from its command line to the end of all that belongs to it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from anyio import to_thread
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.command import mcp_config_file, places
from acp_manifold.adapters.claude.life import Life
from acp_manifold.adapters.claude.lock import lock_folder, locked
from acp_manifold.adapters.claude.registry import record_of
from acp_manifold.adapters.claude_tui.commands import offered
from acp_manifold.adapters.claude_tui.hooks import Answerer, HookServer, private_file, settings_file
from acp_manifold.adapters.claude_tui.options import begin_with, start_words
from acp_manifold.adapters.claude_tui.pty import COLUMNS, ROWS, terminal
from acp_manifold.adapters.claude_tui.readiness import Standing
from acp_manifold.adapters.claude_tui.screen import Screen
from acp_manifold.adapters.claude_tui.session import TuiSession
from acp_manifold.bridge.backend import SessionEvents, SessionSpec
from acp_manifold.bridge.ledger import state_directory
from acp_manifold.bridge.taps import Place, taps
from acp_manifold.translators.instructions import SystemPrompt
from acp_manifold.translators.narrow import JsonObject

NAME = "claude-tui"


@contextmanager
def system_prompt_argument(folder: Path, session_id: str, prompt: SystemPrompt | None) -> Generator[list[str]]:
    """The arguments for what the client has to say to the model, which stands in a file for the person's eyes only.

    Claude Code 2.1.332 records the whole system prompt with a conversation's first request and sends that ever after,
    unless it is told not to.
    """
    if prompt is None:
        yield []
        return
    option = "append-system-prompt-file" if prompt.mode == "append" else "system-prompt-file"
    with private_file(folder / f"{session_id}.txt", prompt.text) as path:
        yield [f"--{option}={path}", "--system-prompt-snapshot=off"]


def recorded(place: Place, answerer: Answerer) -> Answerer:
    """The same, with each call and its answer told to who listens there."""

    async def answered(call: JsonObject) -> JsonObject:
        if place.tap is not None:
            place.tap("in", json.dumps(call).encode())
        answer = await answerer(call)
        if place.tap is not None:
            place.tap("out", json.dumps(answer).encode())
        return answer

    return answered


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
    mode: str,
    own_mode: bool,
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
        mode: The permission mode to begin in.
        own_mode: Whether that is the person's own, in which the program begins by itself.
        resumed: Whether it is in the store, and to be gone on with.

    Raises:
        InvalidRequest: Another agent has the session.
        BackendGone: It can't be started.
    """
    carried = life.carry(session_id, stored=resumed)
    begun_in = carried.mode or mode
    menu, _ = life.shelf.recall(life.shelf.mark(command), spec.cwd)
    if spec.wishes is not None:
        begin_with(carried, spec.wishes.options, menu)
    commands = await to_thread.run_sync(offered, config, spec.cwd)
    folder = state_directory() / NAME
    screen = Screen(ROWS, COLUMNS)
    session: TuiSession | None = None

    def stirred() -> None:
        if session is not None:
            session.stirred()

    def painted(data: bytes) -> None:
        screen.feed(data)
        stirred()

    def measured() -> None:
        # Half of it may be there: it is told again when the rest is.
        if session is not None and (told := record_of(status)) is not None:
            session.measured(told)

    place = taps.open("backend", NAME, session_id, command)

    async def called(call: JsonObject) -> JsonObject:
        return await session.hook(call) if session is not None else {}

    with (
        locked(lock_folder(), session_id) as lock,
        mcp_config_file(spec.mcp_servers) as mcp_config,
        hooks.heard(recorded(place, called)) as url,
        private_file(folder / f"{session_id}.status.json", "") as status,
        settings_file(folder, session_id, url, status) as settings,
        system_prompt_argument(folder, session_id, spec.system_prompt) as instructions,
        ExitStack() as afterwards,
    ):
        words = [f"--resume={session_id}" if resumed else f"--session-id={session_id}", f"--settings={settings}"]
        words += [*start_words(carried, mode, own_mode=own_mode), *instructions]
        words += places(spec, mcp_config, carried)
        name = f"{NAME} {session_id[:8]}"
        async with terminal((*command, *words), cwd=spec.cwd, env=env, name=name, on_output=painted) as program:
            standing = Standing(config, program.pid, screen, spec.cwd, " ".join(command))
            unwatch = [life.host.watch(file, stirred) for file in (standing.record, path)]
            unwatch.append(life.host.watch(status, measured))

            def moved(session: TuiSession, to: str, here: Path = path) -> Path:
                """The conversation goes on under another id: the lock, the watch and what is kept go with it."""
                lock.take(to)
                life.moved(session, carried)
                there = here.with_name(f"{to}{here.suffix}")
                taps.keep(NAME, to, config, lambda: there)
                unwatch.append(life.host.watch(there, stirred))
                return there

            def made(tasks: TaskGroup) -> TuiSession:
                return TuiSession(
                    session_id,
                    program,
                    screen,
                    standing,
                    path,
                    tasks,
                    spec,
                    events,
                    carried,
                    moved,
                    lambda folder, changed: unwatch.append(life.host.watch_folder(folder, changed)),
                    mode=begun_in,
                    menu=menu,
                    commands=commands,
                    resumed=resumed,
                )

            taps.keep(NAME, session_id, config, lambda: path)
            taps.note(place, {"note": "start"})
            try:
                async with life.serve(program.pid, made) as session:
                    afterwards.callback(session.at_rest)
                    yield session
            finally:
                taps.note(place, {"note": "exit", "asked": True})
                for one in {session_id, session_id if session is None else session.id}:
                    taps.forget(NAME, one)
                for stop in unwatch:
                    stop()
