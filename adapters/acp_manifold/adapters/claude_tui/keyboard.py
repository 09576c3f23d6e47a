"""What a person does at the keyboard: clear the line, paste, look, press Enter, press Escape.

Enter is pressed only once the text is seen in the input box: pressed before, the program may take it for
part of the paste, or submit without its last piece (Claude Code 2.1.332, on a busy machine).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from functools import partial
from typing import Final

import anyio

from acp_manifold.adapters.claude_tui.paste import pastes, squeezed
from acp_manifold.adapters.claude_tui.pty import Terminal
from acp_manifold.adapters.claude_tui.readiness import RESTING, Standing
from acp_manifold.adapters.claude_tui.screen import Screen
from acp_manifold.bridge.errors import BackendFault

logger = logging.getLogger(__name__)

ENTER: Final = b"\r"
ESCAPE: Final = b"\x1b"
SEND_NOW: Final = b"\x18\x13"
UP: Final = b"\x1b[A"
CLEAR: Final = b"\x03"
"""Ctrl-C empties the input box, however many lines are in it. Twice in a row it would end the program."""

CLEAR_AGAIN: Final = 3.0
"""Seconds after which it is no longer twice in a row, whatever was typed in between (2.1.332)."""

SEEN_LIMIT: Final = 5.0
"""Seconds for what was typed to be painted; 0.03 are usual, a second on a busy machine."""

LEAVING: Final = 0.5
"""Seconds in which what was submitted leaves the input box."""

ENTER_AGAIN: Final = 1.0
"""Seconds after which Enter is pressed again while what was typed is still in the box."""

ENTERS: Final = 8
"""How often: invisible characters take a second one, and one is lost now and then (2.1.332)."""

PIECE_LIMIT: Final = 1.0
"""Seconds for one piece of several."""

_TAIL: Final = 16
"""Characters by which the end of a text is known."""

_WAITS: Final = "Claude Code waits for an answer; what was typed was not sent"

_FOLDED: Final = "[Pasted text #"


class Occupied(BackendFault):
    """The program waits for an answer to something that has the keyboard now."""


class Keyboard:
    """The keyboard of one program; `using` is held by whoever types."""

    def __init__(self, terminal: Terminal, screen: Screen, standing: Standing) -> None:
        self.using = anyio.Lock()
        self._cleared_at = -math.inf
        self._terminal = terminal
        self._screen = screen
        self._standing = standing

    @property
    def box(self) -> str:
        """What is in the input box; empty if there is none."""
        return self._screen.look().box or ""

    async def clear(self) -> None:
        """See the input box empty, of what was just submitted or by emptying it; in mid-turn it is left as it is.

        Raises:
            BackendFault: It can't be emptied.
            BackendGone: The program ended.
        """
        for _ in range(3):
            if await self._standing.until(lambda: True if not self.box else None, LEAVING):
                return
            # While a turn runs it would stop that.
            if self._standing.status.name in RESTING:
                await anyio.sleep_until(self._cleared_at + CLEAR_AGAIN)
                await self._standing.until(lambda: True if not self._screen.is_leaving else None, CLEAR_AGAIN)
                self._cleared_at = anyio.current_time()
                await self._terminal.write(CLEAR)
        if self.box:
            raise BackendFault("The input line of Claude Code can't be emptied; close the session and open it again")

    async def put(self, text: str, *, whole: bool = False) -> None:
        """Paste a text that is `paste.safe`, and see it in the input box.

        Args:
            text: The text.
            whole: Whether it goes as one paste, folded by the program if it is long.

        Raises:
            Occupied: The program has come to ask something meanwhile.
            BackendFault: It does not appear.
            BackendGone: The program ended.
        """
        await self._write(pastes(text, whole=whole))
        tail = squeezed(text)[-_TAIL:]
        if not tail or await self._standing.until(lambda: self._shows(tail) or self._asks, SEEN_LIMIT):
            return
        # Painted in another way than it was typed, such as a character that has no glyph here: it is all that came.
        if not self.box:
            self.note("what was typed is not seen")
            raise BackendFault("Claude Code does not show what is typed into it")
        logger.info("%s: what was typed is not seen as it was typed", self._terminal.name)

    async def word(self, word: str) -> None:
        """Type a word, key by key as far as the program can tell, and see it in the input box.

        Raises:
            Occupied: The program has come to ask something meanwhile.
            BackendGone: The program ended.
        """
        await self._write([word.encode()])
        await self._standing.until(lambda: True if word.strip() in self.box else self._asks, SEEN_LIMIT)

    async def enter(self) -> None:
        """Press Enter; raises what `press` does."""
        await self.press(ENTER)

    async def press(self, key: bytes) -> None:
        """Press a key, unless something has come to stand in the way of the input box: it could be a yes to that.

        Raises:
            Occupied: The program waits for an answer to something else.
            BridgeError: A dialog of another kind.
        """
        if self._standing.asks:
            # Painted or not: a dialog that is about to be painted waits until nothing was typed for half a second.
            raise Occupied(_WAITS)
        dialog = self._screen.look().dialog
        if dialog is not None:
            raise self._standing.blocked(dialog)
        await self._terminal.write(key)

    @property
    def _asks(self) -> None:
        """Nothing, as long as the program asks nothing: what is typed then does not reach the input box.

        Raises:
            Occupied: It does.
        """
        if self._standing.asks:
            raise Occupied(_WAITS)

    def note(self, what: str) -> None:
        """Log that something did not happen, with what is on the screen."""
        logger.info("%s: %s; on the screen:\n%s", self._terminal.name, what, self._screen.last_words(40))

    async def send_now(self) -> None:
        """Have what is queued sent at once: cuts short an answer that streams, and no command (2.1.332)."""
        await self._terminal.write(SEND_NOW)

    async def take_back(self) -> None:
        """Have all that the program has queued come back into the input box."""
        await self._terminal.write(UP)

    async def escape(self) -> None:
        """Press Escape."""
        await self._terminal.write(ESCAPE)

    async def _write(self, pieces: Sequence[bytes]) -> None:
        for number, piece in enumerate(pieces):
            painted = self._screen.painted
            await self._terminal.write(piece)
            if number < len(pieces) - 1:
                await self._standing.until(partial(self._has_painted, painted), PIECE_LIMIT)

    def _has_painted(self, before: int) -> bool | None:
        return self._screen.painted > before or None

    def _shows(self, tail: str) -> bool | None:
        box = self.box
        return squeezed(box).endswith(tail) or box.endswith("]") and _FOLDED in box or None
