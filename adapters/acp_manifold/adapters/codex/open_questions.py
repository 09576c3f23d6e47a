"""Questions of a turn that does not wait for the answer: it goes on, and the answer is a message into it.

codex-cli 0.163.0 gives its newer models the tool `request_user_input_async`. What it asks comes as a message of the
agent's with `questions`, which everybody reads; who can be asked is asked besides, until the turn is over.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from acp_manifold.bridge.backend import SessionEvents
from acp_manifold.bridge.errors import BridgeError
from acp_manifold.translators.codex.questions import answer_text, open_form
from acp_manifold.translators.narrow import JsonObject, as_objects, text
from acp_manifold.translators.updates import Notice, Prompt, Text

logger = logging.getLogger(__name__)


class OpenQuestions:
    """Those of one thread."""

    def __init__(
        self, events: SessionEvents, tasks: TaskGroup, add_to_turn: Callable[[Prompt], Awaitable[bool]]
    ) -> None:
        """
        Args:
            events: Whom to ask.
            tasks: The session's task group.
            add_to_turn: Gives the running turn a message; False if no turn takes it any more.
        """
        self._events = events
        self._tasks = tasks
        self._add_to_turn = add_to_turn
        self._scopes: dict[str, anyio.CancelScope] = {}

    def put(self, item: JsonObject) -> None:
        """Ask what is in a message of the agent's, unless it is asked already."""
        if (item_id := text(item, "id")) not in self._scopes and as_objects(item.get("questions")):
            self._scopes[item_id] = anyio.CancelScope()
            self._tasks.start_soon(self._ask, item, self._scopes[item_id])

    def take_back(self) -> None:
        """The turn is over, or is to end."""
        scopes, self._scopes = self._scopes, {}
        for scope in scopes.values():
            scope.cancel()

    async def _ask(self, item: JsonObject, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                said = answer_text(item, await self._events.ask_form(open_form(item)))
            except Exception:
                # Boundary: whatever broke on the way to the person, the turn goes on without the answer.
                logger.exception("codex: a question failed and counts as not answered")
                return
            if said and not await self._added(said):
                words = "Codex had gone on without it. Send it as a message if it still matters."
                self._events.update(Notice("warning", "Your answer came too late", words))

    async def _added(self, said: str) -> bool:
        try:
            return await self._add_to_turn((Text(said),))
        except BridgeError as exc:
            logger.info("codex: an answer could not be added to its turn: %s", exc.message)
            return False
