"""Notifications of one Codex thread to updates, as they stream: one function per method.

`Stream` holds what must be remembered between two lines: how much of each message was streamed,
which tool calls are open. Which turn a line belongs to is not looked at here: the caller has
decided that the line counts. Methods and fields: codex-cli 0.163.0 and 0.171.0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_int, as_objects, as_str, obj, text
from acp_manifold.translators.updates import (
    BackgroundTask,
    Compaction,
    MessageChunk,
    Notice,
    Plan,
    PlanChunk,
    PlanEntry,
    PlanStatus,
    PlanText,
    Role,
    StopReason,
    TaskOutput,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolEnd,
    ToolOutput,
    TurnEnd,
    Unknown,
    Usage,
)

from . import items, notices
from .items import Updates

_PLAN_STATUSES: dict[str, PlanStatus] = {
    "pending": "pending",
    "inProgress": "in_progress",
    "completed": "completed",
}

OUTPUT_KEPT = 64 * 1024
"""Characters kept of what an open command has printed: the last ones."""

_TOKENS = ("inputTokens", "outputTokens", "cachedInputTokens", "cacheWriteInputTokens", "reasoningOutputTokens")
"""Kinds of tokens in a `TokenUsageBreakdown`, as a `TurnEnd` has them: cached ones are input too, thoughts output."""

_KILLED = 128
"""The exit codes of shells that were ended by a signal begin here."""

_ASKED_ABOUT = frozenset({"fileChange", "mcpToolCall"})
"""Item types whose approval request lacks what a person would want to see, or names no item."""


class _Printed:
    """What an open command has printed: how much, the last piece, and the end of it all."""

    __slots__ = ("bytes", "characters", "last", "tail", "_kept")

    def __init__(self) -> None:
        self.characters = 0
        self.bytes = 0
        self.last = ""
        self.tail: deque[str] = deque()
        self._kept = 0

    def add(self, piece: str) -> None:
        self.characters += len(piece)
        self.bytes += len(piece.encode("utf-8", "replace"))
        self.last = piece
        self.tail.append(piece)
        self._kept += len(piece)
        while self._kept > OUTPUT_KEPT:
            first = self.tail.popleft()
            spare = self._kept - OUTPUT_KEPT
            self._kept -= len(first)
            if len(first) > spare:
                self.tail.appendleft(first[spare:])
                self._kept += len(first) - spare


class Stream:
    """What a thread has told so far, as far as the next line depends on it."""

    __slots__ = (
        "_compaction",
        "_ending",
        "_noted",
        "_output",
        "_said",
        "_total",
        "earlier",
        "failure",
        "items",
        "open",
        "review",
        "stopping",
        "tokens",
        "usage",
    )

    def __init__(self) -> None:
        self._said: dict[str, int] = {}
        self._output: dict[str, _Printed] = {}
        self._total = -1
        self._compaction: str | None = None
        self._noted: set[Notice] = set()
        self._ending: set[str] = set()
        self.stopping = False
        """Whether this turn is being interrupted."""
        self.earlier: set[str] = set()
        """Open tool calls of turns before this one: they go on in the background."""
        self.open: dict[str, str] = {}
        """Tool calls that have begun and not ended: item id -> item type."""
        self.items: dict[str, JsonObject] = {}
        """The open items that an approval request speaks of without repeating them, by id."""
        self.review: str | None = None
        """The review that this turn has given."""
        self.usage: Usage | None = None
        """How full the context is, as told last."""
        self.failure: JsonObject = {}
        """The last error that is not retried, as `TurnError`."""
        self.tokens: list[int] = [0] * len(_TOKENS)
        """Tokens of this turn, in the order of `_TOKENS`."""

    def turn_begins(self) -> None:
        """Forget what belongs to one turn; open tool calls stay, since commands outlive turns."""
        self._said.clear()
        self.earlier = set(self.open)
        self.failure = {}
        self.tokens = [0] * len(_TOKENS)
        self.review = None
        self.stopping = False

    def translate(self, method: str, params: JsonObject) -> Updates:
        """The updates of one notification, often none; `Unknown` for a method nobody here knows."""
        handler = HANDLERS.get(method)
        if handler is None and method in DROPPED:
            return ()
        if handler is None:
            return (Unknown({"method": method, "params": params}),)
        return handler(self, params)

    def once(self, notice: Notice | None) -> Updates:
        """A notice that Codex gives with every turn, the first time."""
        if notice is None or notice in self._noted:
            return ()
        self._noted.add(notice)
        return (notice,)

    def compaction(self, item_id: str, status: Literal["in_progress", "completed", "cancelled"]) -> Updates:
        """A compaction begins or ends; told once each, since an end tells the beginning too if that was not told."""
        if status == "in_progress":
            if self._compaction == item_id:
                return ()
            self._compaction = item_id
        elif self._compaction != item_id:
            return ()
        else:
            self._compaction = None
        return (Compaction(item_id, status),)

    def end_open(self, status: ToolEnd) -> Updates:
        """End every open tool call, since nothing will come of it."""
        return (*self._end(list(self.open), status), *self.compaction(self._compaction or "", "cancelled"))

    def end_turn(self, *, interrupted: bool) -> Updates:
        """End the open tool calls of this turn, which it will not end itself.

        A command that a finished turn leaves running goes on; one of an interrupted turn is ended.
        """
        stopped = self.compaction(self._compaction or "", "cancelled")
        of_turn = [item_id for item_id in self.open if self._is_of_turn(item_id)]
        if interrupted:
            return stopped + self._end(of_turn, "cancelled")
        return stopped + self._end([item for item in of_turn if self.open[item] != "commandExecution"], "failed")

    def ending(self, item_id: str) -> None:
        """A command is being ended: its failure is that."""
        if item_id in self.open:
            self._ending.add(item_id)

    def is_stopped(self, end: ToolCallUpdate) -> bool:
        """Whether a call has failed because it was stopped.

        codex-cli 0.163.0 calls that a failure, with the exit code -1 or, sometimes, that of a killed shell; one that
        waited for consent it calls declined. With an exit code of its own a command of the turn had failed before.
        """
        if end.status != "failed":
            return False
        code = end.exit_code
        without_result = code is None or not 0 < code < _KILLED
        return end.id in self._ending or (self.stopping and self._is_of_turn(end.id) and without_result)

    def commands(self) -> list[str]:
        """Open commands that this turn began."""
        kinds = self.open.items()
        return [item_id for item_id, kind in kinds if kind == "commandExecution" and self._is_of_turn(item_id)]

    def outlived(self, *, turn_runs: bool) -> tuple[BackgroundTask, ...]:
        """Open commands that no turn waits for: those of earlier turns, of this one too once it is over."""
        ids = [item_id for item_id, kind in self.open.items() if kind == "commandExecution"]
        return tuple(
            BackgroundTask(item_id, text(self.items.get(item_id, {}), "command"), item_id, command=True)
            for item_id in ids
            if not (turn_runs and self._is_of_turn(item_id))
        )

    def _is_of_turn(self, item_id: str) -> bool:
        return item_id not in self.earlier

    def _end(self, ids: list[str], status: ToolEnd) -> tuple[ToolCallUpdate, ...]:
        for item_id in ids:
            self.closed(item_id)
        return tuple(ToolCallUpdate(item_id, status=status) for item_id in ids)

    def said(self, item_id: str, size: int) -> None:
        """Remember that `size` characters more of a message were streamed."""
        self._said[item_id] = self._said.get(item_id, 0) + size

    def rest_of(self, item_id: str, whole: str) -> str:
        """What of a message was not streamed yet."""
        return whole[self._said.pop(item_id, 0) :]

    def opened(self, item: JsonObject) -> None:
        """Remember a tool call that begins."""
        item_id, kind = text(item, "id"), text(item, "type")
        self.open[item_id] = kind
        if kind in _ASKED_ABOUT:
            self.items[item_id] = item

    def closed(self, item_id: str) -> None:
        """Forget a tool call that ended."""
        self.open.pop(item_id, None)
        self.items.pop(item_id, None)
        self._output.pop(item_id, None)
        self._ending.discard(item_id)

    def printed(self, item_id: str, piece: str) -> None:
        """Remember how much of a command's output was streamed, and its last piece."""
        printed = self._output.get(item_id) or self._output.setdefault(item_id, _Printed())
        printed.add(piece)

    def printed_by(self, item_id: str) -> tuple[int, str]:
        """How many characters of a command's output were streamed, and the last piece."""
        printed = self._output.get(item_id)
        return (printed.characters, printed.last) if printed is not None else (0, "")

    def printed_so_far(self, item_id: str) -> TaskOutput:
        """The output of an open command that was streamed, as much of its end as is kept."""
        printed = self._output.get(item_id)
        return TaskOutput("".join(printed.tail), printed.bytes) if printed is not None else TaskOutput("", 0)

    def count(self, usage: JsonObject) -> None:
        """Add what the last model request cost; the same report twice counts once."""
        total = as_int(obj(usage, "total").get("totalTokens"))
        if total is None or total == self._total:
            return
        self._total = total
        last = obj(usage, "last")
        self.tokens = [sum + (as_int(last.get(key)) or 0) for sum, key in zip(self.tokens, _TOKENS, strict=True)]

    def end(self, reason: StopReason) -> TurnEnd:
        """The end of the turn, with what it cost."""
        read, wrote, *details = self.tokens
        return TurnEnd(reason, read, wrote, *details) if read or wrote else TurnEnd(reason)


def _agent_delta(stream: Stream, params: JsonObject) -> Updates:
    return _delta(stream, params, "agent")


def _thought_delta(stream: Stream, params: JsonObject) -> Updates:
    return _delta(stream, params, "thought")


def _delta(stream: Stream, params: JsonObject, role: Role) -> Updates:
    item_id, delta = params.get("itemId"), params.get("delta")
    if not isinstance(item_id, str) or not isinstance(delta, str) or not delta:
        return ()
    stream.said(item_id, len(delta))
    return (MessageChunk(role, Text(delta), item_id),)


def _thought_part(stream: Stream, params: JsonObject) -> Updates:
    if not as_int(params.get("summaryIndex")):
        return ()
    return _delta(stream, {"itemId": params.get("itemId"), "delta": "\n\n"}, "thought")


def _output_delta(stream: Stream, params: JsonObject) -> Updates:
    item_id, delta = params.get("itemId"), params.get("delta")
    if not isinstance(item_id, str) or not isinstance(delta, str) or not delta:
        return ()
    stream.printed(item_id, delta)
    return (ToolOutput(item_id, delta),)


def _item_started(stream: Stream, params: JsonObject) -> Updates:
    item = obj(params, "item")
    call = items.started(item)
    if call is None:
        kind = text(item, "type")
        if kind == items.COMPACTION:
            return stream.compaction(text(item, "id"), "in_progress")
        # What was typed is told too: the session knows who has it on the screen already.
        return items.replayed(item) if kind == "userMessage" else ()
    stream.opened(item)
    return (call,)


def _item_completed(stream: Stream, params: JsonObject) -> Updates:
    item = obj(params, "item")
    kind = text(item, "type")
    if kind in items.TOOLS:
        return _tool_completed(stream, item)
    if kind == items.COMPACTION:
        item_id = text(item, "id")
        return (*stream.compaction(item_id, "in_progress"), *stream.compaction(item_id, "completed"))
    if kind == items.PLAN:
        rest = stream.rest_of(text(item, "id"), text(item, "text"))
        chunk = (PlanChunk(text(item, "id"), rest),) if rest else ()
        return (*chunk, PlanText(text(item, "id"), text(item, "text")))
    if items.is_review_again(item, stream.review):
        return ()
    stream.review = items.review_in(item) or stream.review
    said = items.said_by(item)
    if said is not None:
        return _message_completed(stream, item, *said)
    return () if kind in items.SILENT or kind == "userMessage" else (Unknown(item),)


def _tool_completed(stream: Stream, item: JsonObject) -> Updates:
    item_id = text(item, "id")
    begun = () if item_id in stream.open else _item_started(stream, {"item": item})
    streamed, last = stream.printed_by(item_id)
    output = None if streamed else items.whole_output(item)
    ended = _end_of(stream, item)
    lost = items.lost_beginning(item, streamed, last)
    if ended is not None and lost is not None:
        ended = ended._replace(content=(lost,))
    if ended is not None and stream.is_stopped(ended):
        ended = ended._replace(status="cancelled", exit_code=None)
    stream.closed(item_id)
    return (*begun, *((output,) if output else ()), *((ended,) if ended else ()))


def _end_of(stream: Stream, item: JsonObject) -> ToolCallUpdate | None:
    """The end of a tool call; diffs that were told at its start are not told again."""
    begun = stream.items.get(text(item, "id"), {})
    if text(begun, "type") == "fileChange" and begun.get("changes") == item.get("changes"):
        return ToolCallUpdate(text(item, "id"), status=items.status_of(item))
    return items.completed(item)


def _message_completed(stream: Stream, item: JsonObject, role: Role, whole: str) -> Updates:
    item_id = text(item, "id")
    rest = stream.rest_of(item_id, whole)
    return (MessageChunk(role, Text(rest), item_id),) if rest else ()


def _plan_updated(stream: Stream, params: JsonObject) -> Updates:
    steps = as_objects(params.get("plan"))
    return (Plan(tuple(PlanEntry(text(step, "step"), _plan_status(step)) for step in steps)),)


def _plan_status(step: JsonObject) -> PlanStatus:
    return _PLAN_STATUSES.get(text(step, "status"), "pending")


def _tokens_used(stream: Stream, params: JsonObject) -> Updates:
    usage = obj(params, "tokenUsage")
    stream.count(usage)
    used, size = as_int(obj(usage, "last").get("totalTokens")), as_int(usage.get("modelContextWindow"))
    if used is None or not size:
        return ()
    stream.usage = Usage(used, size)
    return (stream.usage,)


def _error(stream: Stream, params: JsonObject) -> Updates:
    if params.get("willRetry") is not True:
        stream.failure = obj(params, "error")
    notice = notices.of("error", params)
    return (notice,) if notice is not None else ()


def _plan_delta(stream: Stream, params: JsonObject) -> Updates:
    item_id, delta = text(params, "itemId"), text(params, "delta")
    if not item_id or not delta:
        return ()
    stream.said(item_id, len(delta))
    return (PlanChunk(item_id, delta),)


def _progress(stream: Stream, params: JsonObject) -> Updates:
    item_id, message = text(params, "itemId"), text(params, "message")
    return (ToolCallUpdate(item_id, content=(Text(message),)),) if message and item_id in stream.open else ()


def _review(stream: Stream, params: JsonObject) -> Updates:
    """A review by Codex' own guardian, which decides in the person's place whether something may run."""
    review = obj(params, "review")
    call_id, status = f"review-{text(params, 'reviewId')}", text(review, "status")
    if status == "inProgress":
        return (ToolCall(call_id, "Review of what is to run", "think", "in_progress", name="guardian"),)
    risk, why = text(review, "riskLevel"), text(review, "rationale")
    words = ". ".join(filter(None, (status.capitalize(), f"Risk: {risk}" if risk else "", why)))
    ended: ToolEnd = "completed" if status == "approved" else "failed"
    return (ToolCallUpdate(call_id, status=ended, content=(Text(words),)),)


def _notice(method: str) -> _Handler:
    def told(stream: Stream, params: JsonObject) -> Updates:
        return stream.once(notices.of(method, params))

    return told


_Handler: TypeAlias = Callable[[Stream, JsonObject], Updates]

HANDLERS: dict[str, _Handler] = {
    "item/agentMessage/delta": _agent_delta,
    "item/plan/delta": _plan_delta,
    "item/reasoning/summaryTextDelta": _thought_delta,
    "item/reasoning/textDelta": _thought_delta,
    "item/reasoning/summaryPartAdded": _thought_part,
    "item/commandExecution/outputDelta": _output_delta,
    "item/mcpToolCall/progress": _progress,
    "item/autoApprovalReview/started": _review,
    "item/autoApprovalReview/completed": _review,
    "item/started": _item_started,
    "item/completed": _item_completed,
    "turn/plan/updated": _plan_updated,
    "thread/tokenUsage/updated": _tokens_used,
    "error": _error,
    "warning": _notice("warning"),
    "guardianWarning": _notice("guardianWarning"),
    "model/rerouted": _notice("model/rerouted"),
    "hook/completed": _notice("hook/completed"),
}
"""Notification method -> what it tells a client."""

DROPPED = {
    "item/commandExecution/terminalInteraction": "what the model types is in no client's view of a command",
    "thread/compacted": "the item contextCompaction tells it",
    "hook/started": "its end tells",
    "turn/moderationMetadata": "for hosts that moderate",
    "model/verification": "for hosts that verify accounts",
    "model/safetyBuffering/updated": "the answer comes later, that is all",
    "modelProvider/authRecoveryStarted": "an error follows if it fails",
    "modelProvider/authRecoveryCompleted": "an error follows if it fails",
    "autoApprovalReview/strictReviewRequired": "the review itself is told",
    "thread/environment/connected": "there is one environment: this machine",
    "thread/environment/disconnected": "there is one environment: this machine",
}
"""Notifications of a turn that tell a client nothing, and why; others are not even sent to us (`NEVER_USED`)."""


def item_of(params: JsonObject) -> str | None:
    """The id of the item a notification speaks of."""
    return as_str(params.get("itemId")) or as_str(obj(params, "item").get("id"))
