"""The interactive program as a backend: Claude Code's own store and titles, served by a program in a terminal.

All that concerns the store, the login and the program on disk is the `claude` backend's. The two are
never served at once: a session of the store would be listed by both.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from acp_manifold.adapters.claude.backend import ClaudeBackend
from acp_manifold.adapters.claude.login import default_mode
from acp_manifold.adapters.claude.program import config_dir, person_environment
from acp_manifold.bridge.backend import BackendSession, Host, Program, SessionEvents, SessionSpec

if TYPE_CHECKING:
    from acp_manifold.adapters.claude_tui.hooks import HookServer


class ClaudeTuiBackend(ClaudeBackend):
    """Sessions served by Claude Code's interactive program, one each."""

    name = "claude-tui"
    label = "Claude Code (interactive)"
    install_hint = (
        "it needs a terminal as Linux and macOS have it; use --backend claude"
        if sys.platform == "win32"
        else ClaudeBackend.install_hint
    )
    endpoint_types: tuple[str, ...] = ()
    """A client's endpoint is not put into the program."""
    _hooks: HookServer | None = None

    def program(self) -> Program | None:
        """The program, where there are terminals to run it in; see `Backend.program`."""
        return None if sys.platform == "win32" else super().program()

    @asynccontextmanager
    async def running(self, host: Host) -> AsyncGenerator[None, None]:
        """See `Backend.running`."""
        async with super().running(host):
            try:
                yield
            finally:
                self._hooks = None

    def _serve(
        self, command: tuple[str, ...], spec: SessionSpec, events: SessionEvents, session_id: str, *, resumed: bool
    ) -> AbstractAsyncContextManager[BackendSession]:
        return self._typed_into(command, spec, events, session_id, resumed)

    @asynccontextmanager
    async def _typed_into(
        self, command: tuple[str, ...], spec: SessionSpec, events: SessionEvents, session_id: str, resumed: bool
    ) -> AsyncGenerator[BackendSession, None]:
        from acp_manifold.adapters.claude_tui.hooks import serve_hooks
        from acp_manifold.adapters.claude_tui.serve import serve

        life = self._running_life
        if self._hooks is None:
            hooks: HookServer = await life.tasks.start(serve_hooks)
            self._hooks = self._hooks or hooks
        config = config_dir(self._environ)
        path: Path = self._store.expected_path(session_id, spec.cwd)
        env = {**person_environment(self._environ), "DISABLE_AUTOUPDATER": "1"}
        if spec.unnamed:
            # Without a title of the terminal it has none made for the session (2.1.332).
            env["CLAUDE_CODE_DISABLE_TERMINAL_TITLE"] = "1"
        # Where the person has not said otherwise, they are asked, as by the `claude` backend: the program's own
        # default, auto mode, is meant for people who look at the terminal.
        own = default_mode(self._environ)
        async with serve(
            command,
            env,
            config,
            spec,
            events,
            path,
            session_id,
            life,
            self._hooks,
            mode=own or "default",
            own_mode=own is not None,
            resumed=resumed,
        ) as session:
            yield session

    def lab(self, folder: Path, model_url: str) -> dict[str, str]:
        """A private store whose folder is trusted, and a scripted model; see `Backend.lab`."""
        from acp_manifold.adapters.claude_tui.lab import prepare

        return prepare(folder, model_url)
