"""The permission mode of the interactive program: read from its last line, set by Shift+Tab.

The program goes round its modes with Shift+Tab (Claude Code 2.1.332: default, accept edits, plan and, with models that
have it, auto). The line below its input box names the one it is in, at once and in mid-turn too; so what is told is
what is painted, and a mode counts as set when it is seen there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from acp_manifold.adapters.claude.carried import Carried
from acp_manifold.adapters.claude_tui.keyboard import Keyboard
from acp_manifold.adapters.claude_tui.readiness import Standing
from acp_manifold.adapters.claude_tui.screen import Screen
from acp_manifold.bridge.errors import BackendFault, InvalidRequest
from acp_manifold.bridge.options import checked
from acp_manifold.translators.claude import options as wire
from acp_manifold.translators.updates import ConfigOption, Options

logger = logging.getLogger(__name__)

NEXT_MODE: Final = b"\x1b[Z"
"""Shift+Tab."""

PAINTED: Final = 2.0
"""Seconds for the next mode to be named; 0.05 are usual, more on a busy machine."""

_ROUND: Final = ("default", "acceptEdits", "plan", "auto")


class TypedMode:
    """One for each program."""

    def __init__(
        self,
        keyboard: Keyboard,
        screen: Screen,
        standing: Standing,
        carried: Carried,
        begun_in: str,
        tell: Callable[[Options], None],
    ) -> None:
        """
        Args:
            keyboard: Types.
            screen: What is painted.
            standing: Waits.
            carried: What the session keeps from one program to the next.
            begun_in: The mode that the program was started in.
            tell: Told the options whenever they change.
        """
        self._keyboard = keyboard
        self._screen = screen
        self._standing = standing
        self._carried = carried
        self._mode = begun_in
        self._tell = tell
        self._absent: frozenset[str] = frozenset()

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        """The one option there is."""
        offered = [mode for mode in _ROUND if mode not in self._absent]
        return (wire.mode_option(self._mode, offered),)

    def look(self) -> None:
        """Something was painted: another mode may be named."""
        mode = self._screen.mode
        if mode is None:
            return
        self._carried.in_mode(mode)
        if mode != self._mode:
            logger.debug("the interactive program is in the mode %s", mode)
            self._mode = mode
            self._carried.keep()
            self._tell(Options(self.options))

    async def set(self, option_id: str, value: str | bool) -> None:
        """Go round to a mode; see `BackendSession.set_option`.

        Raises:
            InvalidParams: There is no such option or mode.
            InvalidRequest: The program asks something, or does not come to the mode.
            BackendGone: The program ended.
        """
        wanted = str(checked(self.options, option_id, value))
        async with self._keyboard.using:
            first: str | None = None
            while self._mode != wanted:
                if self._mode == first:
                    self._absent |= {wanted}
                    self._tell(Options(self.options))
                    raise InvalidRequest(f"Claude Code does not offer the mode {wanted} here; it is in {self._mode}")
                first = first or self._mode
                await self._next()

    async def _next(self) -> None:
        before = self._mode
        try:
            await self._keyboard.press(NEXT_MODE)
        except BackendFault as exc:
            raise InvalidRequest(f"{exc.message}. The mode can be set once that is answered") from exc

        def another() -> bool | None:
            self.look()
            return self._mode != before or self._screen.look().dialog is not None or None

        if await self._standing.until(another, PAINTED) is None:
            raise InvalidRequest(f"Claude Code stays in the mode {before}")
        dialog = self._screen.look().dialog
        if dialog is not None:
            # A mode that is to be agreed to first, by a person who reads what it says: left with Escape.
            await self._keyboard.escape()
            raise InvalidRequest(self._standing.blocked(dialog).message)
