"""Messages typed into the running turn, and taken back when it is stopped; what becomes of them `Added` tells."""

from __future__ import annotations

from typing import Final

from acp_manifold.adapters.claude_tui.attachments import in_files
from acp_manifold.adapters.claude_tui.keyboard import ENTER_AGAIN, ENTERS, Keyboard
from acp_manifold.adapters.claude_tui.paste import prompt as safe_prompt
from acp_manifold.adapters.claude_tui.paste import safe
from acp_manifold.adapters.claude_tui.readiness import Standing
from acp_manifold.adapters.claude_tui.turn import Turn
from acp_manifold.bridge.errors import BackendFault, BridgeError, InvalidParams, InvalidRequest
from acp_manifold.translators.claude.terminal import TerminalConversation
from acp_manifold.translators.claude.terminal_added import Message
from acp_manifold.translators.claude.typed import letters, typed_parts
from acp_manifold.translators.updates import Prompt

ADD_LIMIT: Final = 60.0
"""Seconds for a program to come up and take the prompt that something is to be added to."""

TAKE_BACK: Final = 1.0
"""Seconds for what is queued to be taken back; 0.05 are usual (2.1.332)."""


class Adding:
    """One for each program."""

    def __init__(self, talk: TerminalConversation, standing: Standing, keyboard: Keyboard) -> None:
        self._talk = talk
        self._standing = standing
        self._keyboard = keyboard

    async def add(self, turn: Turn, prompt: Prompt) -> bool:
        """Type a message into a turn, as soon as its prompt is taken.

        Returns:
            Whether the turn has it; not if it is over, or is being stopped.

        Raises:
            InvalidRequest: A question has the keyboard.
            InvalidParams: It can't be typed.
            BackendFault: The program does not take it.
            BackendGone: The program ended.
        """
        if turn.command is not None or turn.ending or turn.interrupted:
            return False
        turn.adding += 1
        try:
            await self._standing.until(lambda: turn.over or turn.interrupted or self._has(turn) or None, ADD_LIMIT)
            async with self._keyboard.using:
                return await self._type(turn, prompt)
        finally:
            turn.adding -= 1
            self._standing.stir()

    async def take_back(self) -> None:
        """Have nothing of it run behind an interrupt, as far as it is still in the queue and no question is open."""
        if self._talk.added.queued and not self._standing.asks:
            await self._keyboard.take_back()
            await self._standing.until(lambda: not self._talk.added.queued or None, TAKE_BACK)

    def _has(self, turn: Turn) -> bool:
        """Whether the program has taken the prompt of the turn."""
        return turn.entered > 0 and self._talk.accepted

    async def _type(self, turn: Turn, prompt: Prompt) -> bool:
        if turn.over or turn.interrupted or not self._has(turn):
            return False
        if self._standing.asks:
            raise InvalidRequest("Claude Code asks something, which has the keyboard: answer that first")
        words, contexts = typed_parts(turn.files.enter_context(in_files(prompt)))
        parts = list(filter(None, [safe_prompt(words), *(f"\n{safe(context)}" for context in contexts)]))
        if not parts:
            raise InvalidParams("prompt: nothing in it can be typed")
        await self._keyboard.clear()
        for number, part in enumerate(parts):
            await self._keyboard.put(part, whole=number > 0)
        if turn.interrupted:
            return False
        message = Message(letters("".join(parts)), prompt)
        was_over = self._talk.over
        self._talk.add(message)
        try:
            await self._enter(message)
        except BridgeError:
            self._talk.added.drop(message)
            self._talk.over = was_over
            raise
        return True

    async def _enter(self, message: Message) -> None:
        for _ in range(ENTERS):
            await self._keyboard.enter()
            if await self._standing.until(lambda: message.queued or not message.open or None, ENTER_AGAIN):
                if message.open and not self._talk.calls:
                    await self._keyboard.send_now()
                return
        raise BackendFault("Claude Code does not take the message; send it as a prompt")
