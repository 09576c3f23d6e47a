"""One prompt, from acceptance to exactly one outcome."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal, TypeAlias

import anyio

from acp_manifold.translators.updates import MessageChunk, Prompt, TurnEnd

from .client import Client
from .errors import BridgeError, InvalidRequest, RequestCancelled

QUEUE_LIMIT = 64
"""How many prompts may wait behind the running one."""

CANCELLED = TurnEnd("cancelled")

State: TypeAlias = Literal["waiting", "running", "cancelling", "ended"]


class Turn:
    """A prompt of one client. `settle` counts once; whoever comes second changes nothing."""

    def __init__(self, prompt: Prompt, client: Client, failed: Callable[[BridgeError], None] | None = None) -> None:
        """
        Args:
            prompt: What to run.
            client: Whose it is.
            failed: Told the failure of a turn whose outcome nobody waits for.
        """
        self.prompt = prompt
        """What the person says; it may still grow while `taken` is false."""
        self.client = client
        self.taken = False
        """Whether a backend has been given the prompt."""
        self.added: Prompt = ()
        """What the backend has been given since, in the same turn."""
        self.message_id: str | None = None
        """What the conversation calls the prompt, once it has taken it in."""
        self._unnamed = False
        self._heard = 0
        """How many pieces of it the CLI has said under that name."""
        self.on_inserted: Callable[[str], None] | None = None
        """Called with that, before the clients are told anything that comes of it."""
        self._told = failed
        self.state: State = "waiting"
        self.scope = anyio.CancelScope()
        """Around the backend's work on this turn: cancelling it abandons the turn there."""
        self._outcome: TurnEnd | BridgeError | None = None
        self._ended = anyio.Event()

    def settle(self, outcome: TurnEnd | BridgeError) -> None:
        """Give the turn its outcome, unless it has one. A turn that was being cancelled ends `cancelled`."""
        if self.state == "ended":
            return
        self._outcome = CANCELLED if self.state == "cancelling" else outcome
        self.state = "ended"
        self._ended.set()
        if self._told is not None and isinstance(self._outcome, BridgeError):
            self._told(self._outcome)

    def insert(self, message_id: str, *, unnamed: bool) -> None:
        """The conversation has taken the prompt in.

        Args:
            message_id: Its name there.
            unnamed: Whether the name is ours, because the CLI began to answer without having said what was typed.
        """
        self.message_id, self._unnamed = message_id, unnamed
        if self.on_inserted is not None:
            self.on_inserted(message_id)

    def goes_on(self, update: MessageChunk) -> bool:
        """Whether this is more, under the prompt's name, than was told as the prompt: it is part of it from now on.

        What is added before a CLI has been sent the prompt, one may send as one message with it.
        """
        if update.message_id is None or update.message_id != self.message_id:
            return False
        self._heard += 1
        if self._heard <= len(self.prompt) or update.content not in self.added:
            return False
        self.prompt = (*self.prompt, update.content)
        return True

    def said_already(self, update: MessageChunk) -> bool:
        """Whether a CLI says only now what was typed, which its client was told under a name of ours."""
        return self._unnamed and update.content in self.prompt

    @property
    def result(self) -> TurnEnd | BridgeError | None:
        """Its outcome; None before it has one."""
        return self._outcome

    @property
    def failed(self) -> bool:
        """Whether its outcome is a failure."""
        return isinstance(self._outcome, BridgeError)

    async def ended(self) -> None:
        """Wait for the outcome."""
        await self._ended.wait()

    async def outcome(self) -> TurnEnd:
        """Wait for the outcome and give it.

        Raises:
            BridgeError: The turn failed.
        """
        await self._ended.wait()
        if isinstance(self._outcome, TurnEnd):
            return self._outcome
        assert self._outcome is not None
        raise self._outcome

    def __repr__(self) -> str:
        return f"<Turn {self.state}>"


class TurnQueue:
    """The turns of one session: at most one runs, the others wait in order."""

    def __init__(self) -> None:
        self._waiting: deque[Turn] = deque()
        self._arrived = anyio.Event()
        self.running: Turn | None = None

    def add(self, turn: Turn) -> None:
        """Put a turn at the end of the queue.

        Raises:
            InvalidRequest: `QUEUE_LIMIT` turns wait already.
        """
        if len(self._waiting) >= QUEUE_LIMIT:
            raise InvalidRequest(
                f"{QUEUE_LIMIT} prompts of this session wait already: wait for one to end, or cancel",
                {"reason": "too_many_prompts", "limit": QUEUE_LIMIT},
            )
        self._waiting.append(turn)
        self._arrived.set()

    async def next(self) -> Turn:
        """Wait for the next turn; it is the running one from now on."""
        while not self._waiting:
            self._arrived = anyio.Event()
            await self._arrived.wait()
        self.running = self._waiting.popleft()
        self.running.state = "running"
        return self.running

    def withdraw(self, turn: Turn, outcome: TurnEnd | None = None) -> bool:
        """Take one waiting turn out; False if it does not wait.

        Args:
            turn: Which.
            outcome: How it ends; without one as a request that its client took back.
        """
        if turn not in self._waiting:
            return False
        self._waiting.remove(turn)
        turn.settle(outcome or RequestCancelled())
        return True

    def drain(self) -> list[Turn]:
        """Take out everything that waits."""
        waiting = list(self._waiting)
        self._waiting.clear()
        return waiting

    def all(self) -> list[Turn]:
        """The running turn, then those that wait."""
        return [*([self.running] if self.running is not None else []), *self._waiting]

    @property
    def current(self) -> Turn | None:
        """The turn that a person would say runs: the running one, or the one that is about to."""
        return self.running or next(iter(self._waiting), None)

    @property
    def idle(self) -> bool:
        """Whether nothing runs and nothing waits."""
        return self.running is None and not self._waiting

    def __repr__(self) -> str:
        return f"<TurnQueue running={self.running!r} waiting={len(self._waiting)}>"
