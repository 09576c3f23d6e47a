"""The state of one session's conversation: frames in, updates out, and which result ends the prompt.

A prompt is one user message with an id of ours. Claude Code 2.1.332 names that id in its
`command_lifecycle` frames and in `user_message_uuids` of the `result`; turns that it begins itself
(a background task has ended) carry an `origin` instead, and results of local commands carry
neither. So a result ends the prompt if it names the prompt's id, or names none and no origin
(case M05). What comes outside of a prompt is told all the same; it only ends nothing. A prompt that
is sent meanwhile is `queued` until such a turn is over, with no `idle` in between. Messages that
were added to the turn (`steering`) are answered before it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from acp_manifold.translators.claude import tools
from acp_manifold.translators.claude.records import FILLERS
from acp_manifold.translators.narrow import JsonObject, as_int, as_objects, as_str, obj, text
from acp_manifold.translators.updates import (
    Compaction,
    MessageChunk,
    OfSubagent,
    OwnTurn,
    Prompt,
    Text,
    ToolCallUpdate,
    ToolEnd,
    TurnEnd,
    Unknown,
    Update,
    Usage,
)
from acp_manifold.translators.values import NamedTuple

from . import plans
from .background import Tasks
from .deltas import Messages, ToolUse
from .endings import Failure, Outcome, ending
from .frames import (
    Assistant,
    Compacting,
    Frame,
    Lifecycle,
    Noted,
    Result,
    State,
    StreamEvent,
    TaskEnded,
    TasksRunning,
    TaskStarted,
    User,
    context_tokens,
)
from .steering import Priority, Steered, joined
from .subagents import Subagents

_NOTHING: list[Update] = []


class _OpenCall(NamedTuple):
    name: str
    known: bool
    """Whether its input was told."""
    command: str | None = None
    """What it runs, if it is a command."""


class Conversation:
    """One for each session and process. Not a line of I/O in it: the adapter feeds it and sends what it must."""

    def __init__(self, cwd: str) -> None:
        self.outcome: Outcome | None = None
        """How the prompt ended; None while it runs."""
        self.unknown: Unknown | None = None
        """The frame fed last, if no function here knows it: for the log."""
        self.tasks = Tasks()
        """What runs in the background."""
        self.idle = True
        """Whether no turn runs, neither ours nor one that the CLI began itself."""
        self.own = False
        """Whether a turn runs that the CLI began itself."""
        self.steered = Steered()
        """What was added to the turn."""
        self._own_outcome: Outcome | None = None
        """How that ended, as long as the CLI has not said that it is over."""
        self._so_far: Outcome | None = None
        """How what was answered so far ended, while something added is still to be answered."""
        self._cwd = cwd
        self._messages = Messages()
        self._calls: dict[str, _OpenCall] = {}
        self._plan = plans.Tasks()
        self._agents = Subagents(cwd)
        self._compaction: str | None = None
        self._error: str | None = None
        self._uuid: str | None = None
        self._typed: list[MessageChunk] = []
        self.stirred = False
        """Whether anything came that shows that the CLI has taken the prompt."""
        self._interrupted = False
        self._queued = False
        self._spoke = False
        self._context = 0
        self._model = ""

    def begin(self, uuid: str, prompt: Prompt = ()) -> None:
        """A prompt is being sent as the user message `uuid`; once the CLI has taken it, that is told as typed."""
        self._uuid, self.outcome = uuid, None
        self._error = None
        self.steered, self._so_far = Steered(), None
        self._typed = _typed(uuid, prompt)
        self.stirred = self._interrupted = self._queued = self._spoke = False

    def steer(self, uuid: str, prompt: Prompt = ()) -> Priority:
        """The message `uuid` is being added to the turn, told as typed once it is taken; gives its priority."""
        self.steered.add(uuid, _typed(uuid, prompt))
        return "next" if self._calls else "now"

    def interrupt(self) -> None:
        """An interrupt is being sent: from now on `idle` ends the prompt too, for a CLI that gives no result."""
        self._interrupted = True

    def interrupt_answered(self, still_queued: list[str]) -> None:
        """The CLI took the interrupt. Messages it names have not begun and get a result of their own."""
        self._queued = self._uuid in still_queued
        self.stirred = self.stirred or not self._queued

    def feed(self, frame: Frame) -> list[Update]:
        """The updates of one frame, in order."""
        self.unknown = frame if isinstance(frame, Unknown) else None
        handler = _HANDLERS.get(type(frame))
        updates = handler(self, frame) if handler is not None else _NOTHING
        if self._typed and self.stirred:
            updates = [*self._typed, *updates]
            self._typed = []
        return updates

    def only_call(self, tools_begin: str) -> str | None:
        """The one open call of a tool whose name begins so; None if there is none, or several."""
        open_calls = [call_id for call_id, call in self._calls.items() if call.name.startswith(tools_begin)]
        return open_calls[0] if len(open_calls) == 1 else None

    def placed(self, update: ToolCallUpdate) -> Update:
        """What is told of a call, in the conversation of the sub-agent that has made it, if one did."""
        maker = self._agents.maker(update.id)
        return OfSubagent(maker, update) if maker is not None else update

    def end_open_calls(self, status: ToolEnd) -> list[Update]:
        """The updates that end every call of the turn still open, because nothing will come of them."""
        ended: list[Update] = [
            ToolCallUpdate(call_id, status=status)
            for call_id, call in self._calls.items()
            if call.name not in plans.TOOLS and not self.tasks.holds(call_id)
        ]
        agents = [update for call_id in self._calls for update in self._ended_agent(call_id, status)]
        self._calls = {}
        return [*agents, *ended]

    def _ended_agent(self, call_id: str, status: ToolEnd) -> list[Update]:
        return _NOTHING if self.tasks.holds(call_id) else self._agents.ended(call_id, status)

    def abandon(self, status: ToolEnd) -> list[Update]:
        """The updates that end all that is open, in the background too, because the process is gone."""
        return (
            self._agents.all_ended(status)
            + self.end_open_calls(status)
            + self.tasks.abandon(status)
            + self._end_compaction("cancelled")
            + self._end_own()
        )

    def _settle(self, outcome: Outcome) -> list[Update]:
        """A cycle of the turn is over; the turn is, unless something that was added is still to be answered."""
        self._so_far = joined(self._so_far, outcome)
        if not self.steered.open:
            return self._end(self._so_far)
        self._spoke, self._error = False, None
        told: list[Update] = [MessageChunk("agent", Text(outcome.text))] if isinstance(outcome, Failure) else []
        return told + self.end_open_calls(_left_open(outcome))

    def _end(self, outcome: Outcome | None) -> list[Update]:
        self.outcome, self._uuid = outcome, None
        return [*self._end_compaction("cancelled"), *self.end_open_calls(_left_open(outcome))]

    def _stream(self, frame: StreamEvent) -> list[Update]:
        if frame.parent is not None:
            return _NOTHING
        self.stirred = not self.own
        piece = self._messages.stream(frame.event)
        if isinstance(piece, MessageChunk):
            self._spoke = True
            return [piece]
        return self._begin_call(piece) if isinstance(piece, ToolUse) else _NOTHING

    def _begin_call(self, use: ToolUse) -> list[Update]:
        self._calls[use.id] = _OpenCall(use.name, known=False)
        return [] if use.name in plans.TOOLS else [tools.begun(use.id, use.name, self._cwd)]

    def _assistant(self, frame: Assistant) -> list[Update]:
        if frame.parent is not None:
            return self._agents.said(frame)
        self.stirred = not self.own
        self._error = frame.error
        if frame.error is not None:
            # The result repeats this text, and is an error.
            return _NOTHING
        if frame.usage:
            self._context, self._model = context_tokens(frame.usage), frame.model
        updates: list[Update] = []
        for block in frame.blocks:
            if block.get("type") in tools.CALL_BLOCKS:
                updates += self._call(block)
            elif text(block, "type").endswith("_tool_result"):
                updates += self._served(block)
            elif (chunk := self._messages.finished(frame.message_id, block)) is not None and _worth_saying(chunk):
                self._spoke = True
                updates.append(chunk)
        return updates

    def _call(self, block: JsonObject) -> list[Update]:
        call_id, name, tool_input = text(block, "id"), text(block, "name"), obj(block, "input")
        open_call = self._calls.get(call_id)
        self._calls[call_id] = _OpenCall(name, known=True, command=as_str(tool_input.get("command")))
        if name in plans.TOOLS:
            plan = self._plan.called(call_id, name, tool_input)
            return [plan] if plan is not None else []
        if open_call is not None and open_call.known:
            return []
        call = tools.call if open_call is None else tools.known
        agent = self._agents.begun(call_id, tool_input) if name in tools.AGENT_TOOLS else []
        return [call(call_id, name, tool_input, self._cwd), *agent]

    def _served(self, block: JsonObject) -> list[Update]:
        """The result of a tool that runs where the model does: it stands in the model's own message."""
        call_id = text(block, "tool_use_id")
        open_call = self._calls.pop(call_id, None)
        return [tools.served(call_id, block)] if open_call is not None else []

    def _user(self, frame: User) -> list[Update]:
        if frame.parent is not None:
            return self._agents.heard(frame)
        self.stirred = not self.own
        results = [block for block in frame.blocks if block.get("type") == "tool_result"]
        structured = frame.tool_use_result if len(results) == 1 else None
        updates: list[Update] = []
        for block in results:
            call_id = text(block, "tool_use_id")
            open_call = self._calls.pop(call_id, None)
            if open_call is not None and open_call.name in plans.TOOLS:
                plan = self._plan.answered(call_id, structured)
                updates += [plan] if plan is not None else []
            elif open_call is not None:
                stopped = call_id in frame.stopped
                updates += self._ended_agent(call_id, tools.end_of(block, stopped=stopped))
                told = tools.outcome(call_id, open_call.name, block, structured, self._cwd, stopped=stopped)
                updates += map(_goes_on, told) if self.tasks.holds(call_id) else told
        return updates

    def _result(self, frame: Result) -> list[Update]:
        if self._uuid is None or not self._answers(frame):
            return self._own_result(frame) if self.own else _NOTHING
        updates: list[Update] = []
        outcome = ending(frame, interrupted=self._interrupted, spoke=self._spoke, error=self._error)
        if not isinstance(outcome, Failure):
            unsaid = frame.is_error or not self._spoke
            if frame.text and unsaid and outcome.stop_reason != "cancelled":
                updates.append(MessageChunk("agent", Text(frame.text), as_str(frame.raw.get("uuid"))))
            updates += self._usage(frame.raw)
        return updates + self._settle(outcome)

    def _own_result(self, frame: Result) -> list[Update]:
        outcome = ending(frame, interrupted=self._interrupted, spoke=self._spoke, error=self._error)
        self._own_outcome = outcome
        return [] if isinstance(outcome, Failure) else self._usage(frame.raw)

    def _answers(self, frame: Result) -> bool:
        if frame.user_message_uuids:
            added = self.steered.answered(frame.user_message_uuids)
            return added or self._uuid in frame.user_message_uuids
        return frame.origin in (None, "human")

    def _usage(self, raw: JsonObject) -> list[Update]:
        models = obj(raw, "modelUsage")
        size = as_int(obj(models, self._model).get("contextWindow"))
        if size is None:
            size = max((as_int(use.get("contextWindow")) or 0 for use in as_objects(list(models.values()))), default=0)
        if not size or not self._context:
            return []
        cost = raw.get("total_cost_usd")
        return [Usage(self._context, size, float(cost) if isinstance(cost, int | float) else None)]

    def _lifecycle(self, frame: Lifecycle) -> list[Update]:
        told = self.steered.moved(frame.uuid, frame.state)
        if told is not None:
            over = self._so_far is not None and not self.steered.open
            return self._end(self._so_far) if over else [*told]
        if frame.uuid != self._uuid or (self.own and frame.state == "queued"):
            return _NOTHING
        if frame.state == "cancelled" and self._so_far is None:
            self.stirred = not self.own
            return self._settle(TurnEnd("cancelled"))
        self.stirred = True
        before = self._end_own()
        if frame.state == "started":
            self._queued = False
            typed, self._typed = self._typed, []
            return [*before, *typed]
        if frame.state == "completed" and self._so_far is None:
            return before + self._settle(TurnEnd("end_turn"))
        return before

    def _task_started(self, frame: TaskStarted) -> list[Update]:
        call = self._calls.get(frame.call_id or "")
        if call is None:
            self.tasks.started(frame, None)
        else:
            self.tasks.started(frame, call.command, agent=call.name in tools.AGENT_TOOLS)
        return _NOTHING

    def _task_ended(self, frame: TaskEnded) -> list[Update]:
        return self._of_agents(self.tasks.ended(frame))

    def _tasks_running(self, frame: TasksRunning) -> list[Update]:
        return self._of_agents(self.tasks.listed(frame))

    def _of_agents(self, ended: list[Update]) -> list[Update]:
        """The ends of background tasks, those of sub-agents with the ends of their conversations."""
        told: list[Update] = []
        for update in ended:
            if isinstance(update, ToolCallUpdate):
                if words := self._agents.last_words(update.id):
                    update = update._replace(content=(Text(words),))
                told += self._agents.ended(update.id, _end(update))
            told.append(update)
        return told

    def _notice(self, frame: Noted) -> list[Update]:
        return [frame.notice]

    def _compacting(self, frame: Compacting) -> list[Update]:
        if frame.status != "in_progress":
            return self._end_compaction(frame.status, frame.error)
        if self._compaction is not None:
            return _NOTHING
        self._compaction = frame.id
        return [Compaction(frame.id, "in_progress")]

    def _end_compaction(
        self, status: Literal["completed", "failed", "cancelled"], error: str | None = None
    ) -> list[Update]:
        compaction, self._compaction = self._compaction, None
        return [Compaction(compaction, status, error=error)] if compaction is not None else []

    def _state(self, frame: State) -> list[Update]:
        self.idle = frame.state == "idle"
        if self._uuid is None or self.own:
            return self._own_state()
        if frame.state != "idle":
            self.stirred = True
            return _NOTHING
        if self._so_far is not None and self.steered.all_taken:
            return self._end(self._so_far)
        # The idle of the turn before may come after the next prompt was sent, hence `stirred`.
        if self._interrupted and self.stirred and not self._queued:
            return self._end(TurnEnd("cancelled"))
        return _NOTHING

    def _own_state(self) -> list[Update]:
        """The CLI works, or rests, without a prompt of ours."""
        if self.idle:
            return self._end_own()
        if self.own:
            return _NOTHING
        self.own = True
        self._own_outcome, self._error = None, None
        self._interrupted = self._spoke = False
        return [OwnTurn(running=True)]

    def _end_own(self) -> list[Update]:
        if not self.own:
            return []
        self.own = False
        outcome, self._own_outcome = self._own_outcome, None
        if isinstance(outcome, Failure):
            return [OwnTurn(False, failure=outcome.text)]
        return [OwnTurn(False, outcome)]


def _typed(uuid: str, prompt: Prompt) -> list[MessageChunk]:
    """What the person typed, under the name that the transcript will have for it."""
    return [MessageChunk("user", content, uuid) for content in prompt]


def _left_open(outcome: Outcome | None) -> ToolEnd:
    """How the calls end that a turn with this outcome has left open."""
    return "cancelled" if isinstance(outcome, TurnEnd) and outcome.stop_reason == "cancelled" else "failed"


def _end(update: ToolCallUpdate) -> ToolEnd:
    return update.status if update.status in ("completed", "cancelled") else "failed"


def _goes_on(update: Update) -> Update:
    """The result of a call whose work goes on in the background: it has ended for the model, not for the person."""
    return update._replace(status="in_progress", exit_code=None) if isinstance(update, ToolCallUpdate) else update


def _worth_saying(chunk: MessageChunk) -> bool:
    """Whether a finished block that was not streamed is more than a filler of the CLI's own."""
    return not (isinstance(chunk.content, Text) and chunk.content.text in FILLERS)


# Each function takes the one class it stands under; no type can say that of a table.
_HANDLERS: dict[type, Callable[[Conversation, Any], list[Update]]] = {
    Noted: Conversation._notice,  # pyright: ignore[reportPrivateUsage]
    Compacting: Conversation._compacting,  # pyright: ignore[reportPrivateUsage]
    StreamEvent: Conversation._stream,  # pyright: ignore[reportPrivateUsage]
    Assistant: Conversation._assistant,  # pyright: ignore[reportPrivateUsage]
    User: Conversation._user,  # pyright: ignore[reportPrivateUsage]
    Result: Conversation._result,  # pyright: ignore[reportPrivateUsage]
    Lifecycle: Conversation._lifecycle,  # pyright: ignore[reportPrivateUsage]
    State: Conversation._state,  # pyright: ignore[reportPrivateUsage]
    TaskStarted: Conversation._task_started,  # pyright: ignore[reportPrivateUsage]
    TaskEnded: Conversation._task_ended,  # pyright: ignore[reportPrivateUsage]
    TasksRunning: Conversation._tasks_running,  # pyright: ignore[reportPrivateUsage]
}
