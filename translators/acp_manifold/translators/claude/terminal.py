"""The conversation of the interactive program: transcript records and hook calls in, updates out.

The transcript tells everything, but a text only when it is complete; the hook `MessageDisplay` tells the
text line by line as it streams, under an id of its own that no record bears (Claude Code 2.1.332). So
each text of a record is matched to what was displayed: what is missing is told, and nothing twice,
whichever of the two comes first. All else is told by what the records have in common with stream-json
frames, in `turn.Conversation`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from acp_manifold.translators.claude import terminal_tasks
from acp_manifold.translators.claude.endings import Failure
from acp_manifold.translators.claude.frames import Assistant, Result, TasksRunning, User, context_tokens, message_blocks
from acp_manifold.translators.claude.records import is_sidechain, is_stopped, typed_content
from acp_manifold.translators.claude.terminal_added import Added, Message
from acp_manifold.translators.claude.turn import Conversation
from acp_manifold.translators.claude.typed_commands import command_of, printed_by
from acp_manifold.translators.narrow import JsonObject, as_int, as_str, flag, obj, text
from acp_manifold.translators.updates import Compaction, MessageChunk, Prompt, Text, TurnEnd, Update, Usage

INTERRUPTED = "[Request interrupted by user"
"""How the record begins that an interrupt leaves."""


@dataclass(slots=True)
class _Displayed:
    """A text that the hook tells piece by piece."""

    told: str = ""
    waiting: dict[int, str] = field(default_factory=dict[int, str])
    """Pieces that came before the one they follow: each is a call of its own."""
    next: int = 0
    recorded: bool = False
    """Whether its record has come: all of it is told then."""


class TerminalConversation(Conversation):
    """One for each session and program."""

    def __init__(self, cwd: str) -> None:
        super().__init__(cwd)
        self.accepted = False
        """Whether the record of the prompt that was expected has come."""
        self.answered = False
        """Whether the model's last message of this turn asks for nothing more."""
        self.over = False
        """Whether a record has told the end of this turn."""
        self.at_work = False
        """Whether a turn runs by the last record, ours or one that the program began itself."""
        self.records = 0
        """Messages that were recorded so far."""
        self._expected: Prompt | None = None
        self._command = False
        """Whether the turn is a slash command."""
        self._displayed: dict[str, _Displayed] = {}
        self._unseen: list[str] = []
        """Texts told by a record that were not displayed yet."""
        self._early: list[JsonObject] = []
        """Calls of the hook that came before the record of the prompt they answer."""
        self._prompt_id = self._own_prompt_id = ""
        self._done: deque[str] = deque(maxlen=64)
        """The prompts whose turns are over: a call of the hook that comes late says what a record has said."""
        self._usage_of: dict[str, JsonObject] = {}
        self._stop = ""
        self._failure: str | None = None
        self._called: list[JsonObject] = []
        """Calls of the hook `PreToolUse`, the last ones."""
        self.outputs: dict[str, str] = {}
        """The files that background commands print into, by the id of the task."""
        self.added = Added()
        """What was typed into the turn."""
        self._begun_by: dict[str, str] = {}
        """Sub-agent -> the call that began it."""
        self._window = 0
        """Tokens that the context can hold, as far as the program has told."""
        self._cost: object = None
        self._told_usage: Usage | None = None

    def expect(self, prompt: Prompt, *, command: bool = False) -> None:
        """A prompt, which may be a slash command, is about to be submitted; the record of it begins the turn."""
        self._expected, self.outcome = prompt, None
        self._command = command
        self.accepted = self.answered = self.over = False
        self._prompt_id = ""
        self._displayed, self._unseen, self._early = {}, [], []
        self._usage_of, self._stop, self._failure = {}, "", None
        self.added = Added()

    def add(self, message: Message) -> None:
        """A message is about to be entered into the turn, which is not over before that was answered."""
        self.added.add(message)
        self.over = False

    def displayed(self, call: JsonObject) -> list[Update]:
        """A call of `MessageDisplay`: the next piece of a text."""
        if self._expected is not None and text(call, "prompt_id") not in self._done:
            self._early.append(call)
            return []
        prompt_id = text(call, "prompt_id")
        if prompt_id in self._done:
            return []
        # The record of what it answers may be yet to come.
        begun = self._begin_own(prompt_id) if prompt_id and prompt_id != self._prompt_id else []
        return [*begun, *self._piece(call)]

    def _piece(self, call: JsonObject) -> list[Update]:
        name, index = text(call, "message_id"), as_int(call.get("index")) or 0
        shown = self._displayed.setdefault(name, _Displayed())
        shown.waiting[index] = text(call, "delta")
        piece = ""
        while shown.next in shown.waiting:
            piece += shown.waiting.pop(shown.next)
            shown.next += 1
        before, shown.told = shown.told, shown.told + piece
        if shown.recorded or not piece:
            return []
        if not before:
            known = next((said for said in self._unseen if said.startswith(piece.rstrip())), None)
            if known is not None:
                self._unseen.remove(known)
                shown.recorded = True
                return []
        self._spoke = self.stirred = True
        return [MessageChunk("agent", Text(piece), name or None)]

    def about_to_call(self, call: JsonObject) -> None:
        """A call of `PreToolUse`, which alone tells the id of a tool call that is asked about next."""
        self._called = [*self._called[-15:], call]

    def asked_about(self, request: JsonObject) -> JsonObject:
        """A call of `PermissionRequest` as the request of the other protocol that says the same."""
        name, tool_input = text(request, "tool_name"), obj(request, "tool_input")
        same = (call for call in reversed(self._called) if call.get("tool_name") == name)
        ids = (text(call, "tool_use_id") for call in same if obj(call, "tool_input") == tool_input)
        return {
            "tool_name": name,
            "input": tool_input,
            "tool_use_id": next(ids, ""),
            "permission_suggestions": request.get("permission_suggestions"),
            "agent_id": request.get("agent_id"),
        }

    def has_call(self, call_id: str) -> bool:
        """Whether a tool call was told, and its end was not."""
        return call_id in self._calls or self._agents.maker(call_id) is not None

    @property
    def calls(self) -> bool:
        """Whether a tool call of the turn is open."""
        return bool(self._calls)

    @property
    def has_agents(self) -> bool:
        """Whether sub-agents work in the background."""
        return any(task.agent is not None for task in self.tasks.all())

    def has_agent(self, call_id: str) -> bool:
        """Whether a call was told that began a sub-agent, and not the agent's end."""
        return self._agents.runs(call_id)

    def begin_asked(self, request: JsonObject) -> list[Update]:
        """The tool call that is asked about, if its record has not come yet."""
        call_id = text(request, "tool_use_id")
        if not call_id or self.has_call(call_id):
            return []
        block: JsonObject = {
            "type": "tool_use",
            "id": call_id,
            "name": text(request, "tool_name"),
            "input": obj(request, "input"),
        }
        return self.feed(Assistant("", [block], {}, "", self._begun_by.get(text(request, "agent_id")), None))

    def recorded_of(self, agent_id: str, call_id: str, record: JsonObject) -> list[Update]:
        """A record that was appended to the transcript of a sub-agent, with the call that began it."""
        self._begun_by[agent_id] = call_id
        message = obj(record, "message")
        blocks = message_blocks(message)
        if record.get("type") == "assistant":
            name = text(message, "id") or text(record, "uuid")
            return self.feed(Assistant(name, blocks, {}, "", call_id, None))
        if record.get("type") == "user":
            # What it was asked is in the call.
            return self.feed(User(blocks, call_id, record.get("toolUseResult")))
        return []

    def recorded(self, record: JsonObject) -> list[Update]:
        """A record that was appended to the transcript."""
        kind = record.get("type")
        if is_sidechain(record):
            return []
        if (end := terminal_tasks.ended(record)) is not None:
            return [*self.feed(end), *(self._heard(record) if kind == "user" else [])]
        self.records += kind == "assistant"
        if kind == "assistant":
            self.at_work = True
            return self._said(record)
        if kind == "user":
            return self._heard(record)
        if kind == "system":
            return self._noted(record)
        if kind == "queue-operation":
            self.added.moved(record)
        return list(self.added.attached(record)) if kind == "attachment" else []

    def finish(self, *, interrupted: bool) -> list[Update]:
        """The turn is over: `outcome` tells how it ended."""
        updates = self._late()
        if self._prompt_id:
            self._done.append(self._prompt_id)
        if interrupted:
            self.interrupt()
        raw: JsonObject = {
            "subtype": "success",
            "stop_reason": self._stop or None,
            "usage": self._used(),
            "modelUsage": {self._model: {"contextWindow": self._window}},
            "total_cost_usd": self._cost,
        }
        said = Result(raw, self._failure is not None, self._failure or "", (self._uuid or "",), None)
        spoke, self._spoke = self._spoke, True  # Whatever was said is told.
        updates += self.feed(said)
        self._spoke = spoke
        self._told_usage = next((update for update in updates if isinstance(update, Usage)), self._told_usage)
        return updates

    def measured(self, status: JsonObject) -> list[Update]:
        """What the program tells its status line: how full the context is, and what the session has cost."""
        window = obj(status, "context_window")
        self._window = as_int(window.get("context_window_size")) or self._window
        self._cost = obj(status, "cost").get("total_cost_usd")
        used = context_tokens(obj(window, "current_usage"))
        if not used or not self._window:
            return []
        usage = Usage(used, self._window, float(self._cost) if isinstance(self._cost, int | float) else None)
        told, self._told_usage = self._told_usage, usage
        return [usage] if usage != told else []

    def _late(self) -> list[Update]:
        self._expected = None
        early, self._early = self._early, []
        return [update for call in early for update in self.displayed(call)]

    def _heard(self, record: JsonObject) -> list[Update]:
        blocks = message_blocks(obj(record, "message"))
        said = text(blocks[0], "text") if blocks else ""
        if said.startswith(INTERRUPTED):
            self.over, self.at_work = self.accepted and not self.added.open, False
            return self.end_own(TurnEnd("cancelled"))
        if any(block.get("type") == "tool_result" for block in blocks):
            self.at_work = True
            self._goes_on_behind(record)
            called = {text(block, "tool_use_id") for block in blocks}
            stopped = frozenset(called if is_stopped(record) else ())
            return self.feed(User(blocks, None, record.get("toolUseResult"), stopped))
        if obj(record, "origin").get("kind") == "task-notification":
            return self._begin_own(text(record, "promptId"))
        typed = typed_content(record)
        if not typed:
            return self._commanded(record)
        self.at_work = True
        uuid = text(record, "uuid")
        if self._expected is not None:
            return self._taken(record)
        added = self.added.said(said, uuid)
        if not added:
            return [MessageChunk("user", content, uuid or None) for content in typed]
        self._done.append(self._prompt_id)
        self._prompt_id = text(record, "promptId")
        self.over = self.answered = False
        return list(added)

    def _begin_own(self, prompt_id: str) -> list[Update]:
        """The program answers what nobody has typed, unless that has become part of a turn of ours."""
        if self._uuid is not None and not self.over:
            return []
        self._own_prompt_id = prompt_id or self._own_prompt_id
        self.at_work, self.idle, self._failure = True, False, None
        return self._own_state()

    def end_own(self, outcome: TurnEnd | None = None) -> list[Update]:
        """What the program did of its own accord is over: it failed, or ended like this; None: it was stopped."""
        if not self.own:
            return []
        failure = Failure("failed", self._failure) if self._failure is not None else None
        self._own_outcome, self.idle = failure or outcome or TurnEnd("cancelled"), True
        self._done.append(self._own_prompt_id)
        return self._end_own()

    def _goes_on_behind(self, record: JsonObject) -> None:
        """The result of a call may say that its command goes on in the background."""
        begun = terminal_tasks.begun(record)
        if begun is None:
            return
        if begun.output is not None:
            self.outputs[begun.frame.id] = begun.output
        self.feed(begun.frame)
        self.feed(TasksRunning({task.id: task.title for task in self.tasks.all()} | {begun.frame.id: begun.title}))

    def _commanded(self, record: JsonObject) -> list[Update]:
        """A record of a slash command, or of what it printed; only of one that a prompt is."""
        if not self._command:
            return []
        message = record if record.get("type") == "system" else obj(record, "message")
        if self._expected is not None and command_of(message) is not None:
            return self._taken(record)
        printed = printed_by(message) if self.accepted else None
        return [MessageChunk("agent", Text(printed), text(record, "uuid") or None)] if printed is not None else []

    def _taken(self, record: JsonObject) -> list[Update]:
        self._prompt_id = text(record, "promptId")
        self.begin(text(record, "uuid"), self._expected or ())
        self.accepted = self.stirred = True
        told, self._typed = self._typed, []
        return [*self._end_own(), *told, *self._late()]

    def _said(self, record: JsonObject) -> list[Update]:
        message = obj(record, "message")
        blocks = message_blocks(message)
        name = text(message, "id") or text(record, "uuid")
        usage = obj(message, "usage")
        if flag(record, "isApiErrorMessage"):
            self._failure = "\n".join(text(block, "text") for block in blocks)
            self._error = as_str(record.get("error")) or "unknown"
            self.answered = True
            return []
        if usage:
            self._usage_of[name] = usage
        self._failure = None
        self._stop = text(message, "stop_reason")
        self.answered = self._stop not in ("", "tool_use", "pause_turn")
        updates: list[Update] = []
        for block in blocks:
            told, rest = self._untold(block)
            if rest is not None:
                updates += self.feed(Assistant(told or name, [rest], usage, text(message, "model"), None, None))
        return updates

    def _untold(self, block: JsonObject) -> tuple[str, JsonObject | None]:
        """What of a block of a record was not told yet, and under which name the rest of it was."""
        if block.get("type") != "text":
            return "", block
        whole = text(block, "text")
        for name, shown in self._displayed.items():
            if not shown.recorded and whole.startswith(shown.told.rstrip()):
                shown.recorded = True
                rest = whole[len(shown.told) :]
                return name, {"type": "text", "text": rest} if rest.strip() else None
        self._unseen.append(whole)
        return "", block

    def _noted(self, record: JsonObject) -> list[Update]:
        subtype = text(record, "subtype")
        if subtype == "turn_duration":
            self.over, self.at_work = self.accepted and not self.added.open, False
            return self.end_own(TurnEnd("end_turn"))
        if subtype == "local_command":
            return self._commanded(record)
        if subtype == "compact_boundary":
            name = f"compaction-{text(record, 'uuid')}"
            return [Compaction(name, "in_progress"), Compaction(name, "completed")]
        return []

    def _used(self) -> JsonObject:
        """Tokens of the turn: of each message the last that was told."""
        used: dict[str, object] = {}
        for usage in self._usage_of.values():
            for key, value in usage.items():
                count, before = as_int(value), used.get(key, 0)
                if count is not None and isinstance(before, int):
                    used[key] = before + count
        return used
