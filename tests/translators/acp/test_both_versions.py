"""Whatever a session tells, a client of v1 and a client of v2 that keep to the protocol's rules end with the same."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.acp.patches import diff_contents, git_patch
from acp_manifold.translators.acp.plainer import plainer
from acp_manifold.translators.acp.terminals import Terminals
from acp_manifold.translators.acp.v2_telling import Telling
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text
from acp_manifold.translators.updates import (
    BackgroundTask,
    Command,
    Commands,
    Compaction,
    Diff,
    Message,
    MessageChunk,
    Notice,
    OfSubagent,
    Plan,
    PlanEntry,
    PlanText,
    Role,
    SessionInfo,
    SessionState,
    Subagent,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
    Update,
    Usage,
)
from tests.schema import schema

TAKES_ALL = ClientCapabilities(plan=True, subagents=True, notices=True, compaction=True, terminal_output=True)
FINAL = ("completed", "failed", "cancelled")
INNER = (MessageChunk, ToolCall, ToolCallUpdate, ToolOutput)
"""What happens in the session of a sub-agent."""


MERGED = {"subagent_update": "sessionId", "compaction_update": "compactionId"}
"""Kinds of updates that patch what has the id in this field."""


@dataclass
class Shown:
    """What a person sees in the end."""

    messages: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    calls: dict[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])
    printed: dict[str, str] = field(default_factory=dict[str, str])
    exits: dict[str, object] = field(default_factory=dict[str, object])
    about: dict[str, object] = field(default_factory=dict[str, object])
    notices: list[object] = field(default_factory=list[object])
    merged: dict[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])
    """Sub-agents and compactions."""


class Reader:
    """A client of either version: what it shows of each session, the sub-agents' among them."""

    def __init__(self, version: int = 2) -> None:
        self._version = version
        self._sessions: dict[str, _SessionReader] = {}

    @property
    def shown(self) -> dict[str, Shown]:
        """By session, but for those of which nothing is shown."""
        found = {session_id: reader.shown for session_id, reader in self._sessions.items()}
        return {session_id: shown for session_id, shown in found.items() if shown != Shown()}

    def take(self, params: JsonObject) -> None:
        session_id = text(params, "sessionId")
        self._sessions.setdefault(session_id, _SessionReader(self._version)).take(obj(params, "update"))


class _SessionReader:
    """Merges messages by their ids, and everything else that has an id by its fields."""

    def __init__(self, version: int) -> None:
        self.shown = Shown()
        self._version = version
        self._texts: dict[tuple[str, object], int] = {}
        self._open: tuple[str, object] | None = None

    def take(self, update: JsonObject) -> None:
        tag = text(update, "sessionUpdate")
        if tag == "session_message":
            # What a sub-agent is told to do stands in the call that began it, in v1.
            return
        if tag in MERGED:
            self._merge(MERGED[tag], update)
        elif "message" in tag or "thought" in tag:
            self._message(tag.removesuffix("_chunk"), update, whole=not tag.endswith("_chunk"))
        elif tag in ("tool_call", "tool_call_update"):
            self._call(update)
        elif tag == "terminal_output_chunk":
            self._print(text(update, "terminalId"), b64decode(text(update, "data")).decode())
        elif tag == "terminal_update":
            self._terminal(text(update, "terminalId"), update)
        elif tag in ("plan", "plan_update"):
            plan = obj(update, "plan") or update
            self.shown.about[text(plan, "planId", "plan")] = plan["entries"] if "entries" in plan else plan["content"]
        elif tag == "plan_removed":
            self.shown.about["plan"] = []
        elif tag == "notice":
            self.shown.notices.append((update["severity"], update["title"]))
        elif tag == "available_commands_update":
            commands = as_objects(update["availableCommands"])
            self.shown.about["commands"] = [(c["name"], obj(c, "input").get("hint")) for c in commands]
        elif tag in ("usage_update", "session_info_update"):
            self.shown.about |= {key: value for key, value in update.items() if key != "sessionUpdate"}

    def _merge(self, identity: str, update: JsonObject) -> None:
        fields = {key: value for key, value in update.items() if key not in ("sessionUpdate", identity, "capabilities")}
        if "state" in fields:
            fields["state"] = obj(update, "state")["state"]
        if identity == "compactionId":
            self._open = None
        if fields:
            self.shown.merged.setdefault(text(update, identity), {}).update(fields)

    def _terminal(self, terminal: str, update: JsonObject) -> None:
        if "output" in update:
            self.shown.printed.pop(terminal, None)
            self._print(terminal, b64decode(text(obj(update, "output"), "data")).decode())
        if update.get("exitStatus") is not None:
            self.shown.exits[terminal] = obj(update, "exitStatus").get("exitCode")
        elif "exitStatus" in update:
            self.shown.exits.pop(terminal, None)

    def _message(self, who: str, update: JsonObject, *, whole: bool) -> None:
        blocks = as_objects(update["content"]) if whole else [obj(update, "content")]
        words = "".join(text(block, "text") for block in blocks)
        identity = update.get("messageId")
        if identity is None:
            # Without a name in v1: the message at the end goes on, if it has none either.
            if self._open is None or self._open[0] != who:
                self._open = who, object()
            identity = self._open[1]
        else:
            self._open = None
        # In v2 an id is one message's, of whatever kind.
        place = self._texts.setdefault((who if self._version == 1 else "", identity), len(self.shown.messages))
        if place == len(self.shown.messages):
            self.shown.messages.append((who, ""))
        before = "" if whole else self.shown.messages[place][1]
        self.shown.messages[place] = who, before + words

    def _call(self, update: JsonObject) -> None:
        call = self.shown.calls.get(text(update, "toolCallId"))
        if call is None:
            self._open = None
            call = self.shown.calls[text(update, "toolCallId")] = {}
        call |= {key: update[key] for key in ("title", "kind") if key in update}
        if "status" in update:
            # In v1 a call that was stopped is one that has failed.
            call["status"] = {"cancelled": "failed"}.get(text(update, "status"), update["status"])
        if "content" in update:
            call["content"] = [_content(item) for item in as_objects(update["content"])]
        meta = obj(update, "_meta")
        if "terminal_output" in meta:
            self._print(text(update, "toolCallId"), text(obj(meta, "terminal_output"), "data"))
        if "terminal_exit" in meta:
            self.shown.exits[text(update, "toolCallId")] = obj(meta, "terminal_exit").get("exit_code")

    def _print(self, terminal: str, data: str) -> None:
        if data:
            self.shown.printed[terminal] = self.shown.printed.get(terminal, "") + data


def _content(item: JsonObject) -> tuple[object, ...]:
    """A content item in words that both versions have; a diff as the patch that v2 has for it."""
    if item["type"] != "diff":
        return item["type"], text(obj(item, "content"), "text")
    if "changes" in item:
        (change,) = as_objects(item["changes"])
        return change["path"], change["operation"] == "add", text(obj(item, "patch"), "text")
    old = str(item["oldText"]) if "oldText" in item else None
    diff = Diff(text(item, "path"), old, text(item, "newText"))
    return item["path"], old is None, git_patch([diff])


T = TypeVar("T")


def made(kind: Callable[..., T], *parts: SearchStrategy[object], **named: SearchStrategy[object]) -> SearchStrategy[T]:
    """Values of a kind; Hypothesis is told all parts of it."""

    def call(*args: object, **keywords: object) -> T:
        return kind(*args, **keywords)

    return st.builds(call, *parts, **named)


WORDS = st.sampled_from(["a", "b ", "\x00", "\u2028", "ü\n", "😀", ""])
"""Few and short: what matters is their order."""
LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=9).map("\n".join)
CALLS = ["c1", "c2"]
AGENTS = ["s1", "s2"]
STATES: list[Literal["in_progress", "completed", "failed", "cancelled"]] = [
    "in_progress",
    "completed",
    "failed",
    "cancelled",
]


def whole(lines: str) -> str:
    """Whole lines."""
    return lines and lines + "\n"


contents = st.lists(made(Text, WORDS) | made(Diff, st.just("/a/b"), st.none() | LINES, LINES), max_size=2).map(tuple)
agent_roles: list[Role] = ["agent", "thought"]
chunks = made(
    MessageChunk, st.sampled_from(agent_roles), made(Text, WORDS), st.sampled_from([None, "m1", "m2"])
) | made(MessageChunk, st.just("user"), made(Text, WORDS), st.sampled_from([None, "u1"]))
patches = made(
    ToolCallUpdate,
    st.sampled_from(CALLS),
    title=st.none() | WORDS,
    status=st.none() | st.sampled_from(STATES),
    content=st.none() | contents,
    exit_code=st.none() | st.integers(0, 255),
)
tasks = made(BackgroundTask, WORDS, WORDS, st.sampled_from(CALLS), st.booleans()) | made(
    BackgroundTask, WORDS, WORDS, agent=st.sampled_from(AGENTS)
)
besides = (
    made(Plan, st.lists(made(PlanEntry, WORDS, st.sampled_from(["pending", "completed"]))).map(tuple))
    | made(Usage, st.integers(0, 9), st.integers(1, 9))
    | made(SessionInfo, st.none() | WORDS)
    | made(Notice, st.sampled_from(["info", "error"]), WORDS.filter(bool))
    | made(Commands, st.lists(made(Command, WORDS, WORDS, st.none() | WORDS)).map(tuple))
    | made(PlanText, st.just("p"), WORDS)
    | made(Compaction, st.just("k"), st.sampled_from(STATES), st.none() | WORDS)
    | made(SessionState, st.sampled_from(["running", "idle"]), background=st.lists(tasks, max_size=2).map(tuple))
)
agents = made(
    Subagent, st.sampled_from(AGENTS), st.sampled_from(["running", "idle"]), st.none() | WORDS, prompt=st.none() | WORDS
)
calls = st.sampled_from(CALLS)
beginnings = made(ToolCall, calls, WORDS, content=contents, runs_in=st.sampled_from([None, "/src"]))
MOST = st.one_of(chunks, chunks, beginnings, patches, patches, made(ToolOutput, calls, WORDS))
"""What fills most of a conversation."""
updates = st.lists(
    st.one_of(
        MOST,
        MOST,
        MOST,
        besides,
        agents,
        made(OfSubagent, st.sampled_from(AGENTS), st.one_of(MOST, agents)),
        WORDS.map(lambda words: Message("user", (Text(words),), "typed")),
    ),
    min_size=10,
    max_size=40,
)


def told(wanted: list[Update]) -> list[Update]:
    """The updates in an order that backends keep to, in the session and in those of its sub-agents."""
    orders = {agent: _Order(f"{agent}-") for agent in AGENTS} | {"": _Order("")}
    begun: set[str] = set()
    kept: list[Update] = []
    for update in wanted:
        if isinstance(update, Subagent):
            begun.add(update.id)
            kept.append(update)
        elif isinstance(update, SessionState):
            tasks = {t.id: t for t in update.background if t.agent in begun or orders[""].goes_on(t)}
            kept.append(update._replace(background=tuple(tasks.values())))
        elif not isinstance(update, OfSubagent):
            kept += orders[""].told(update)
        elif update.id in begun and isinstance(update.update, Subagent):
            if update.update.id in begun - {update.id}:
                kept.append(update)
        elif update.id in begun:
            inner = orders[update.id].told(update.update)
            kept += [OfSubagent(update.id, one) for one in inner if isinstance(one, INNER)]
    return kept


class _Order:
    """One conversation: calls begin once and end once, only commands print; the ids of calls are its own."""

    def __init__(self, mark: str) -> None:
        self._mark = mark
        self._commands: dict[str, bool] = {}
        self._ended: set[str] = set()
        self._typed = False

    def told(self, update: Update) -> list[Update]:
        if isinstance(update, ToolCall | ToolCallUpdate | ToolOutput):
            update = update._replace(id=self._mark + update.id)
        if isinstance(update, ToolCall):
            if update.id in self._commands:
                return []
            self._commands[update.id] = update.runs_in is not None
        elif isinstance(update, ToolCallUpdate | ToolOutput):
            if update.id not in self._commands or update.id in self._ended:
                return []
            if isinstance(update, ToolOutput) and not self._commands[update.id]:
                return []
            if isinstance(update, ToolCallUpdate) and update.status in FINAL:
                self._ended.add(update.id)
        elif isinstance(update, Message):
            if self._typed:
                return []
            self._typed = True
            return [update, *(MessageChunk("user", part, update.message_id) for part in update.content)]
        return [update]

    def goes_on(self, task: BackgroundTask) -> bool:
        """Whether a task is that of a call that has begun and not ended, and of its kind."""
        call = task.tool_call_id
        return call in self._commands and call not in self._ended and task.command == self._commands[call]


@settings(max_examples=250, deadline=None)
@given(updates)
def test_a_reader_of_v1_and_a_reader_of_v2_end_with_the_same_conversation(wanted: list[Update]) -> None:
    v1_reader, v2_reader, terminals, telling = Reader(1), Reader(2), Terminals(), Telling("mark")
    for update in told(wanted):
        taken = plainer(update, TAKES_ALL)
        params = terminals.render("s", taken) if taken is not None else None
        if params is not None:
            v1_reader.take(params)
        for params in telling.updates("s", update):
            schema(2).check({"jsonrpc": "2.0", "method": "session/update", "params": params})
            v2_reader.take(params)
    assert v1_reader.shown == v2_reader.shown


@settings(max_examples=250, deadline=None)
@given(updates)
def test_a_history_told_twice_ends_with_the_same_conversation_as_once(wanted: list[Update]) -> None:
    once, twice = Reader(), Reader()
    inner = [(u, u.update if isinstance(u, OfSubagent) else u) for u in told(wanted)]
    named = [u for u, said in inner if not isinstance(said, MessageChunk) or said.message_id is not None]
    named = [u for u in named if not isinstance(u, Notice)]
    for reader, times in ((once, 1), (twice, 2)):
        for _ in range(times):
            telling = Telling("mark", history=True)
            for update in named:
                for params in telling.updates("s", update):
                    reader.take(params)
    assert once.shown == twice.shown


@given(st.none() | LINES, LINES)
def test_a_patch_makes_the_new_text_of_the_old_one(old: str | None, new: str) -> None:
    patch = git_patch([Diff("/a/b", old, new)])
    assert applied(old or "", patch) == new
    head = "diff --git a/a/b b/a/b\n"
    assert patch == "" or patch.startswith(head)


passages = st.lists(st.tuples(st.integers(1, 4), LINES.map(whole), LINES.map(whole)), min_size=1, max_size=4)


@given(passages)
def test_the_passages_of_one_file_are_the_hunks_of_one_patch(between: list[tuple[int, str, str]]) -> None:
    before = after = ""
    diffs: list[Diff] = []
    for rows, old, new in between:
        before, after = before + "row\n" * rows, after + "row\n" * rows
        diffs.append(Diff("/a/b", old, new, line=before.count("\n") + 1))
        before, after = before + old, after + new
    (item,) = diff_contents(diffs)
    assert item["changes"] == [{"operation": "modify", "path": "/a/b"}]
    assert applied(before, text(obj(item, "patch"), "text")) == after


def test_a_file_that_moves_and_changes_says_both() -> None:
    (item,) = diff_contents([Diff("/a/new", "x\n", "y\n", line=3, moved_from="/a/old")])
    assert item["changes"] == [{"operation": "move", "oldPath": "/a/old", "path": "/a/new"}]
    assert text(obj(item, "patch"), "text") == (
        "diff --git a/a/old b/a/new\nrename from a/old\nrename to a/new\n--- a/a/old\n+++ b/a/new\n"
        "@@ -3,1 +3,1 @@\n-x\n+y\n"
    )


def applied(old: str, patch: str) -> str:
    """The old text with the hunks of a patch, each of which has to stand where it says on both sides."""
    rows = old.splitlines(keepends=True)
    made: list[str] = []
    done = 0
    for hunk in patch.split("@@ -")[1:]:
        span, _, body = hunk.partition(" @@\n")
        (begin, count), (new_begin, new_count) = (map(int, side.split(",")) for side in span.split(" +"))
        first = begin - 1 if count else begin
        kept: list[str] = []
        for row in body.splitlines(keepends=True):
            if row.startswith("\\"):
                kept[-1:] = [kept[-1].removesuffix("\n")]
            else:
                kept.append(row)
        was = [row[1:] for row in kept if row[0] in " -"]
        assert rows[first : first + count] == was, "the hunk stands where it says"
        made += rows[done:first]
        assert len(made) == (new_begin - 1 if new_count else new_begin), "in the new file too"
        made += [row[1:] for row in kept if row[0] in " +"]
        done = first + count
    return "".join([*made, *rows[done:]])
