"""Where the program stands: what its record in the registry and its screen say together, and waiting for a change.

Ready means: the registry says idle, nothing is waited for, the input box is painted, and all of that for
half a second, since a dialog may open just after (Claude Code 2.1.332). A dialog is told for what it is
and never answered.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import anyio

from acp_manifold.adapters.claude.registry import is_name_taken, record_of
from acp_manifold.adapters.claude_tui.screen import Dialog, Kind, Screen
from acp_manifold.bridge.errors import BackendFault, BackendGone, BridgeError, LoginNeeded
from acp_manifold.translators.narrow import as_int, as_str, text
from acp_manifold.translators.values import NamedTuple

T = TypeVar("T")

STABLE: Final = 0.5
"""Seconds that a new program has to look ready, or show a dialog, before either is believed."""

UNKNOWN_STABLE: Final = 3.0
"""Seconds for something that looks like a dialog and is none that is known."""

START_LIMIT: Final = 60.0
"""Seconds for a new program to come up; Claude Code 2.1.332 needs 0.5, on a machine that is busy several."""

RESTING: Final = frozenset({"idle", "shell"})
"""What the registry says while no turn runs; `shell`: a command goes on in the background."""

_WHAT_TO_DO: Final[dict[Kind, str]] = {
    "trust": "asks whether you trust the folder {cwd}. Run `{command}` there in a terminal once and answer it",
    "key": "asks whether to use the API key in the environment. Run `{command}` in a terminal once and answer it, "
    "or unset ANTHROPIC_API_KEY",
    "onboarding": "is not set up yet. Run `{command}` in a terminal once",
    "mode": "asks which permission mode is to be your default. Run `{command}` in a terminal once and answer it",
    "offline": "can't reach its service. Check the connection",
    "permission": "asks for a permission that could not be put to you here. Cancel the turn",
    "unknown": "shows a dialog that can't be answered from here. Run `{command}` in a terminal and answer it",
}


class Status(NamedTuple):
    """The program's record in the registry."""

    name: str
    """`idle`, `busy`, `waiting`, `shell`; empty without a record."""
    waiting_for: str | None
    since: int
    """When it became so, in milliseconds since 1970."""


class Standing:
    """One for each program."""

    def __init__(self, config: Path, pid: int, screen: Screen, cwd: str, command: str) -> None:
        """
        Args:
            config: Claude Code's own folder, with the registry.
            pid: The program.
            screen: Its screen.
            cwd: Where it runs.
            command: What a person types to start it.
        """
        self._config = config
        self._pid = pid
        self._screen = screen
        self._words = {"cwd": cwd, "command": command}
        self._changed = anyio.Event()
        self.gone: BackendGone | None = None
        """Why it serves nothing any more; ends every wait."""
        self.questions = 0
        """How many questions are with the person."""
        self.agents = False
        """Whether sub-agents work in the background and, by the transcript, nothing else does: the registry says `busy`
        as long as they do, and takes a prompt all the same (2.1.332)."""

    @property
    def record(self) -> Path:
        """The file of the registry: whoever watches it calls `stir`."""
        return self._config / "sessions" / f"{self._pid}.json"

    @property
    def status(self) -> Status:
        """What the registry says now."""
        record = record_of(self.record) or {}
        return Status(
            text(record, "status"), as_str(record.get("waitingFor")), as_int(record.get("statusUpdatedAt")) or 0
        )

    @property
    def session_id(self) -> str | None:
        """The session that it is about, by the registry."""
        return as_str((record_of(self.record) or {}).get("sessionId"))

    @property
    def asks(self) -> bool:
        """Whether a question has the keyboard, or is about to: its hook comes first, and typing would delay it."""
        return self.questions > 0 or self.status.name == "waiting"

    @property
    def name(self) -> tuple[str | None, bool]:
        """What the program calls the session, by the registry; whether that is not its title, which another one has."""
        record = record_of(self.record) or {}
        return as_str(record.get("name")), record.get("nameSource") == "collision"

    def is_taken(self, name: str) -> bool:
        """Whether another live session has that name."""
        return is_name_taken(self._config, name, self._pid)

    @property
    def is_ready(self) -> bool:
        """Whether a prompt can be typed now."""
        status = self.status
        rests = status.name in RESTING or (status.name == "busy" and self.agents and not self._screen.is_at_work)
        return rests and status.waiting_for is None and self._screen.look().ready

    def stir(self) -> None:
        """Something of the program has changed: screen, registry, transcript, a hook."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def until(self, look: Callable[[], T | None], limit: float) -> T | None:
        """What `look` finds, now or after a change within `limit` seconds; None if it is nothing by then.

        Raises:
            BackendGone: The program ended first.
        """
        with anyio.move_on_after(limit):
            while True:
                changed = self._changed
                found = look()
                if found is not None:
                    return found
                if self.gone is not None:
                    raise BackendGone(self.gone.message)
                await changed.wait()
        return look()

    async def come_up(self) -> None:
        """Wait until a new program is ready.

        Raises:
            LoginNeeded: It shows its login.
            BackendFault: It shows another dialog, or nothing in time.
            BackendGone: It ended.
        """
        with anyio.move_on_after(START_LIMIT):
            while True:
                seen: Dialog | bool | None = await self.until(self._seen, START_LIMIT)
                if seen is None:
                    break
                patience = UNKNOWN_STABLE if isinstance(seen, Dialog) and seen.kind == "unknown" else STABLE
                if await self.until(self._other_than(seen), patience) is not None:
                    continue
                if isinstance(seen, Dialog):
                    raise self.blocked(seen)
                return
        raise BackendFault(
            f"Claude Code did not come up in {START_LIMIT:.0f} s; on its screen:\n{self._screen.last_words()}"
        )

    def blocked(self, dialog: Dialog) -> BridgeError:
        """What a dialog means for whoever wants to go on."""
        if dialog.kind == "login":
            return LoginNeeded(f"Claude Code has no login. Run `{self._words['command']}` in a terminal and log in")
        what = _WHAT_TO_DO[dialog.kind].format_map(self._words)
        shown = f"; it says:\n{dialog.text}" if dialog.kind == "unknown" else ""
        return BackendFault(f"Claude Code {what}{shown}")

    def _seen(self) -> Dialog | bool | None:
        """A dialog, or True if all is ready; None if it is neither."""
        if self.is_ready:
            return True
        return self._screen.look().dialog

    def _other_than(self, seen: Dialog | bool) -> Callable[[], bool | None]:
        return lambda: self._seen() != seen or None
