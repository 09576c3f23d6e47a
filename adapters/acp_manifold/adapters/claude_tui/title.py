"""The title of a session whose program is ours: `/rename` typed, confirmed by the record in the transcript.

The program keeps the title in memory and writes it again every so often, over whatever somebody else put
into the file meanwhile (Claude Code 2.1.332). So a title that another program gives is typed too. While a
dialog of the program's own holds the keyboard, a title is written into the transcript at once and typed
when the dialog is gone.

While another live session has the same name the program adds to it, both when it is typed and when it starts with
it: `Fix-eager-neumann`. That is stored and told; the exact title is typed as soon as nobody has it any more, and
stored when the program has ended.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from anyio import to_thread
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.at_rest import write_title
from acp_manifold.adapters.claude_tui.keyboard import ENTER_AGAIN, ENTERS, Keyboard, Occupied
from acp_manifold.adapters.claude_tui.readiness import Standing
from acp_manifold.bridge.errors import BackendFault, BackendGone, BridgeError, InvalidRequest
from acp_manifold.translators.claude.titles import given_form

logger = logging.getLogger(__name__)

RENAME_LIMIT: Final = 10.0
"""Seconds for the record of a rename; it is there 10 to 80 ms after Enter (2.1.332)."""


_ADDED: Final = re.compile(r"(.+)-[a-z]+-[a-z]+", re.DOTALL)
"""A title with what the program adds to it (2.1.332)."""


class TypedTitle:
    """One for each program."""

    def __init__(
        self,
        session_id: str,
        path: Path,
        kept: str | None,
        keyboard: Keyboard,
        standing: Standing,
        tasks: TaskGroup,
        ready: Callable[[], Awaitable[None]],
        *,
        stored: bool,
    ) -> None:
        """
        Args:
            session_id: The session.
            path: Its transcript.
            kept: A title that is to be written with the first turn.
            keyboard: Types.
            standing: Waits.
            tasks: What lives as long as the program.
            ready: Waits until the program has come up.
            stored: Whether the session is in the store.
        """
        self._id = session_id
        self._path = path
        self._kept = given_form(kept) if kept is not None else None
        self._keyboard = keyboard
        self._standing = standing
        self._tasks = tasks
        self._ready = ready
        self._stored = stored
        self._known: str | None = None
        """The title in the memory of the program, as far as it was told by us or by a record."""
        self._typing: str | None = None
        self._before: str | None = None
        """What was known when it began to be typed."""
        self._told: str | None = None
        """What the record says of the title that is being typed."""
        self._owed: str | None = None
        """A title that stands in the transcript and is still to be typed."""
        self._last: str | None = None
        """The last title in the transcript, of those that came since the program was started."""
        self._exact: str | None = None
        """The title without what the program has added to it, while something is added."""

    def moved(self, session_id: str, path: Path) -> None:
        """The conversation goes on under another id, in another transcript."""
        self._id, self._path = session_id, path

    def recorded(self, title: str) -> None:
        """A record of a custom title was appended to the transcript."""
        self._last = title
        added = _ADDED.fullmatch(title)
        if added is None or (added[1] != self._typing and self._standing.name != (title, True)):
            self._exact = None
        else:
            self._exact = added[1]
        # The program appends the title it had once more in between; and it stores another one than was typed
        # if a live session has that name.
        if self._typing is not None and (title == self._typing or title != self._before):
            self._told = self._known = title

    def appended(self, title: str) -> bool:
        """A custom title was appended, by whomever; one by another program is typed. True if it is out of date."""
        if not self._stored or self._standing.gone is not None:
            return False
        if self._last is not None and title != self._last:
            # Another one stands behind it by now.
            return True
        if self._typing is not None:
            return False
        if self._standing.name[0] == title:
            self._known = title
        if title != self._known:
            self._owed = title
            self._tasks.start_soon(self.settle)
        return False

    async def rename(self, title: str) -> str:
        """Set the title and give back what is stored.

        Raises:
            BackendFault: Nothing was stored.
            BackendGone: The program ended.
        """
        title = given_form(title)
        if not self._stored:
            self._kept = title
            return title
        await self._ready()
        if not self._standing.asks:
            with suppress(Occupied):
                return await self._type(title)
        self._known = self._owed = title
        return await to_thread.run_sync(write_title, self._path, self._id, title)

    def at_rest(self) -> None:
        """The program has ended: the exact title is stored."""
        exact, self._exact = self._exact, None
        if exact is None:
            return
        try:
            write_title(self._path, self._id, exact)
        except (FileNotFoundError, InvalidRequest) as exc:
            logger.info("claude-tui %s: its title stays as the program has it: %s", self._id[:8], exc)

    async def first(self) -> None:
        """The first prompt is about to be typed: the title that was kept goes ahead of it."""
        self._stored = True
        kept, self._kept = self._kept, None
        if kept is not None:
            await self._type(kept)

    async def settle(self) -> None:
        """Type the title that is still to be typed, if the keyboard is free for it."""
        if self._owed is None and self._exact is not None and not self._standing.is_taken(self._exact):
            self._owed = self._exact
        if self._owed is None or self._standing.asks:
            return
        owed, self._owed = self._owed, None
        try:
            await self._ready()
            await self._type(owed)
        except BackendGone:
            pass  # It will write no other title any more.
        except BridgeError as exc:
            # The next turn's end is another chance.
            self._owed = self._owed or owed
            logger.info("claude-tui %s: a title is still to be typed: %s", self._id[:8], exc.message)

    async def _type(self, title: str) -> str:
        async with self._keyboard.using:
            before, self._known = self._known, title
            self._typing, self._told, self._before = title, None, before
            try:
                found = await self._typed(title)
            finally:
                self._typing = None
            if found is not None:
                return found
            self._known = before
            raise BackendFault(f"Claude Code has not stored the title of session {self._id}; set it again")

    async def _typed(self, title: str) -> str | None:
        """What is stored once the command was typed; None if nothing is."""
        await self._keyboard.clear()
        # In two steps: as one, the program took it for a prompt (2.1.332).
        await self._keyboard.word("/rename ")
        await self._keyboard.put(title)
        for _ in range(ENTERS):
            await self._keyboard.enter()
            found = await self._standing.until(lambda: self._told, ENTER_AGAIN)
            if found is None and not self._keyboard.box:
                found = await self._standing.until(lambda: self._told, RENAME_LIMIT)
            if found is not None:
                return found
            self._keyboard.note("a title is not stored")
        return None
