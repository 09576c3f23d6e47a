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
    Plan,
    SessionState,
    ToolCall,
    TurnEnd,
    Update,
)

from .errors import BridgeError

if TYPE_CHECKING:
    from .turn import Turn


State: TypeAlias = Literal["running", "requires_action", "idle"]


def takes_in(turn: Turn, update: Update) -> bool:
    """Whether an update shows that the CLI has taken in the prompt of the turn that runs."""
    return turn.taken and isinstance(update, MessageChunk | ToolCall | Plan)


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
        self._questions = 0
        self.now = SessionState("idle")
        """What was told last, without how a turn ended: that is news only once."""

    def runs(self) -> None:
        """The prompt of a turn is taken in."""
        self._turn = True
        self._say()

    def ended(self, turn: Turn) -> None:
        """A turn is over; one that was never taken in changes nothing."""
        if not self._turn:
            return
        self._turn = False
        outcome = turn.result
        if isinstance(outcome, TurnEnd):
            self._say(outcome)
        elif isinstance(outcome, BridgeError):
            self._say(fault=Fault(outcome.code, outcome.message, outcome.data))

    def asks(self) -> None:
        """A question is put to the person."""
        self._questions += 1
        if self._questions == 1:
            self._say()

    def answered(self) -> None:
        """A question is answered, or taken back."""
        self._questions -= 1
        if not self._questions:
            self._say()

    def look(self) -> None:
        """Something may have gone into the background, or have ended there."""
        if self._background() != self.now.background:
            self._say()

    def _say(self, end: TurnEnd | None = None, fault: Fault | None = None) -> None:
        state: State = "requires_action" if self._questions else "running" if self._turn else "idle"
        self.now = SessionState(state, background=self._background())
        self._tell(self.now._replace(end=end, fault=fault) if self.now.state == "idle" else self.now)
