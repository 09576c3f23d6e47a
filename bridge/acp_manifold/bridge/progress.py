"""What goes on in a session, as its clients are told it: a prompt taken in, a question, the end of a turn.

A prompt is taken in when the CLI says what was typed, or, of a CLI that does not say it, when it begins to
answer: from then on it belongs to the conversation, under the name that the store has for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from acp_manifold.translators.updates import (
    BackgroundTask,
    Fault,
    MessageChunk,
    OwnTurn,
    Plan,
    SessionState,
    ToolCall,
    TurnEnd,
    Update,
)

from .errors import BackendFault, BridgeError

if TYPE_CHECKING:
    from .turn import Turn


State: TypeAlias = Literal["running", "requires_action", "idle"]


class Progress:
    """The state of one session."""

    def __init__(self, background: Callable[[], tuple[BackgroundTask, ...]], tell: Callable[[SessionState], None]):
        """
        Args:
            background: What goes on now though no turn needs it.
            tell: Told each new state.
        """
        self._background = background
        self._tell = tell
        self._turn = False
        self.own = False
        """Whether the backend works though nobody has prompted it."""
        self._questions = 0
        self.now = SessionState("idle")
        """What was told last, without how a turn ended: that is news only once."""

    def takes_in(self, turn: Turn, update: Update) -> bool:
        """Whether an update shows that the CLI has taken in the prompt of the turn that runs."""
        if self.own:
            # What it still says of its own accord shows nothing.
            return turn.taken and isinstance(update, MessageChunk) and update.role == "user"
        return turn.taken and isinstance(update, MessageChunk | ToolCall | Plan)

    def runs(self) -> None:
        """The prompt of a turn is taken in; what the backend did of its own accord has become part of it."""
        self._turn, self.own = True, False
        self._say()

    def ended(self, turn: Turn) -> None:
        """A turn is over; one that was never taken in changes nothing."""
        if not self._turn:
            return
        # What the backend has begun since its own end of the turn is told behind this end.
        begun, self.own = self.own, False
        self._turn = False
        outcome = turn.result
        if isinstance(outcome, TurnEnd):
            self._say(outcome)
        elif isinstance(outcome, BridgeError):
            self._say(fault=Fault(outcome.code, outcome.message, outcome.data))
        if begun:
            self.own = True
            self._say()

    def works(self, update: OwnTurn) -> None:
        """The backend works of its own accord, or has ended that."""
        if self.own == update.running:
            return
        self.own = update.running
        if self._turn:
            return
        self._say(update.end, Fault(BackendFault.code, update.failure) if update.failure is not None else None)

    def asks(self) -> None:
        """A question is put to the person."""
        self._questions += 1
        self._say_if_new()

    def answered(self) -> None:
        """A question is answered, or taken back."""
        self._questions -= 1
        self._say_if_new()

    def look(self) -> None:
        """Something may have gone into the background, or have ended there."""
        if self._background() != self.now.background:
            self._say()

    @property
    def _state(self) -> State:
        if not (self._turn or self.own):
            # What work in the background asks holds nothing up.
            return "idle"
        return "requires_action" if self._questions else "running"

    def _say_if_new(self) -> None:
        if self._state != self.now.state:
            self._say()

    def _say(self, end: TurnEnd | None = None, fault: Fault | None = None) -> None:
        self.now = SessionState(self._state, background=self._background())
        self._tell(self.now._replace(end=end, fault=fault) if self.now.state == "idle" else self.now)
