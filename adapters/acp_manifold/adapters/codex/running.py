"""A turn of ours on its way: from `turn/start` to `turn/completed`, to the error, or to the server's end."""

from __future__ import annotations

import anyio

from acp_manifold.bridge.errors import BackendFault, BackendGone, BridgeError, LoginNeeded
from acp_manifold.translators.codex.failures import failure_of, stop_of
from acp_manifold.translators.codex.turn import Stream
from acp_manifold.translators.narrow import JsonObject, obj, text
from acp_manifold.translators.updates import OwnTurn, StopReason, TurnEnd

from .program import login_command


class Running:
    """What is known of the turn so far. Changed by the reader's task alone, but for `cancelling`."""

    __slots__ = ("cancelling", "ended", "gone", "id", "identified", "inner", "left", "outcome", "started", "unnamed")

    def __init__(self) -> None:
        self.id: str | None = None
        """Codex' id, once it has answered `turn/start`."""
        self.unnamed = False
        """Whether Codex has taken the request for the turn without naming it: the next that starts is it."""
        self.inner: str | None = None
        """The turn inside it that does the work, of a review: what Codex wants interrupted (codex-cli 0.163.0)."""
        self.identified = anyio.Event()
        """Set with `id`, and at the end at the latest."""
        self.started = anyio.Event()
        """Set when Codex has begun the turn (before, it refuses an interrupt and runs on), at the end at the latest."""
        self.ended = anyio.Event()
        self.outcome: JsonObject = {}
        """The `turn` of `turn/completed`."""
        self.gone: BackendGone | None = None
        """Why the turn has no outcome, if the server went."""
        self.cancelling = False
        self.left: list[str] = []
        """Commands that an interrupt left running: ids of their items."""

    def identify(self, turn_id: str) -> None:
        """Codex has answered with the turn's id."""
        self.id = turn_id
        self.identified.set()

    def end(self, outcome: JsonObject | None = None, gone: BackendGone | None = None) -> None:
        """The turn is over, and whoever waits for any of its events goes on; what comes later changes nothing."""
        if self.ended.is_set():
            return
        self.outcome = outcome or {}
        self.gone = gone
        for event in (self.identified, self.started, self.ended):
            event.set()

    def result(self, stream: Stream) -> TurnEnd:
        """How the turn ended.

        Raises:
            BackendGone: The server went.
            LoginNeeded: The model's API wants a login.
            BackendFault: The turn failed, in Codex' words.
        """
        if self.gone is not None:
            raise BackendGone(self.gone.message, self.gone.data)
        return _result(self.outcome, stream)


def own_end(outcome: JsonObject, stream: Stream) -> OwnTurn:
    """The end of a turn that Codex began itself, from the `turn` of its `turn/completed`."""
    try:
        return OwnTurn(False, _result(outcome, stream))
    except BridgeError as exc:
        return OwnTurn(False, failure=exc.message)


def _result(outcome: JsonObject, stream: Stream) -> TurnEnd:
    status = text(outcome, "status")
    if status == "failed":
        error = obj(outcome, "error") or stream.failure
        stopped = stop_of(error)
        if stopped is None:
            raise _fault(error)
        return stream.end(stopped)
    reason: StopReason = "cancelled" if status == "interrupted" else "end_turn"
    return stream.end(reason)


def _fault(error: JsonObject) -> BridgeError:
    failure = failure_of(error)
    if failure.kind == "login":
        how = f"run `{login_command()} login` in a terminal, then try again"
        return LoginNeeded(f"Codex needs a login: {how}. It said: {failure.text}")
    if failure.kind == "too_long":
        return BackendFault(f"The conversation no longer fits into the model's context: {failure.text}")
    return BackendFault(f"Codex: {failure.text}")
