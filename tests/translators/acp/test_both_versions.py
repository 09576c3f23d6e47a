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
    Command,
    Commands,
    Diff,
    Message,
    MessageChunk,
    Notice,
    Plan,
    PlanEntry,
    Role,
    SessionInfo,
    SessionState,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
    Update,
    Usage,
)
from tests.schema import schema

TAKES_ALL = ClientCapabilities(plan=True, subagents=True, notices=True, compaction=True, terminal_output=True)
FINAL = ("completed", "failed")


@dataclass
class Shown:
    """What a person sees in the end."""

    messages: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    calls: dict[str, dict[str, object]] = field(default_factory=dict[str, dict[str, object]])
    printed: dict[str, str] = field(default_factory=dict[str, str])
    exits: dict[str, object] = field(default_factory=dict[str, object])
    about: dict[str, object] = field(default_factory=dict[str, object])
    notices: list[object] = field(default_factory=list[object])


class Reader:
    """A client of either version: merges messages by their ids, and calls by their fields."""

    def __init__(self) -> None:
        self.shown = Shown()
        self._texts: dict[tuple[str, object], int] = {}
        self._open: tuple[str, object] | None = None

    def take(self, update: JsonObject) -> None:
        tag = text(update, "sessionUpdate")
        if "message" in tag or "thought" in tag:
            self._message(tag.removesuffix("_chunk"), update, whole=not tag.endswith("_chunk"))
        elif tag in ("tool_call", "tool_call_update"):
            self._call(update)
        elif tag == "terminal_output_chunk":
            self._print(text(update, "terminalId"), b64decode(text(update, "data")).decode())
        elif tag == "terminal_update" and "exitStatus" in update:
            self.shown.exits[text(update, "terminalId")] = obj(update, "exitStatus").get("exitCode")
        elif tag in ("plan", "plan_update"):
            self.shown.about["plan"] = (obj(update, "plan") or update)["entries"]
        elif tag == "plan_removed":
            self.shown.about["plan"] = []
        elif tag == "notice":
            self.shown.notices.append((update["severity"], update["title"]))
        elif tag == "available_commands_update":
            commands = as_objects(update["availableCommands"])
            self.shown.about["commands"] = [(c["name"], obj(c, "input").get("hint")) for c in commands]
        elif tag in ("usage_update", "session_info_update"):
            self.shown.about |= {key: value for key, value in update.items() if key != "sessionUpdate"}

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
        place = self._texts.setdefault((who, identity), len(self.shown.messages))
        if place == len(self.shown.messages):
            self.shown.messages.append((who, ""))
        before = "" if whole else self.shown.messages[place][1]
        self.shown.messages[place] = who, before + words

    def _call(self, update: JsonObject) -> None:
        call = self.shown.calls.get(text(update, "toolCallId"))
        if call is None:
            self._open = None
            call = self.shown.calls[text(update, "toolCallId")] = {}
        call |= {key: update[key] for key in ("title", "kind", "status") if key in update}
        if "content" in update:
            call["content"] = [_content(item) for item in as_objects(update["content"])]
        meta = obj(update, "_meta")
        if "terminal_output" in meta:
            self._print(text(update, "toolCallId"), text(obj(meta, "terminal_output"), "data"))
        if "terminal_exit" in meta:
            self.shown.exits[text(update, "toolCallId")] = obj(meta, "terminal_exit").get("exit_code")

    def _print(self, terminal: str, data: str) -> None:
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


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
LINES = st.lists(st.sampled_from(["a", "b", "c", ""]), max_size=9).map("\n".join)
ROLES: list[Role] = ["user", "agent", "thought"]
CALLS = ["c1", "c2"]
STATES: list[Literal["in_progress", "completed", "failed"]] = ["in_progress", "completed", "failed"]


def whole(lines: str) -> str:
    """Whole lines."""
    return lines and lines + "\n"


contents = st.lists(made(Text, WORDS) | made(Diff, st.just("/a/b"), st.none() | LINES, LINES), max_size=2).map(tuple)
chunks = made(MessageChunk, st.sampled_from(ROLES), made(Text, WORDS), st.sampled_from([None, "m1", "m2"]))
patches = made(
    ToolCallUpdate,
    st.sampled_from(CALLS),
    title=st.none() | WORDS,
    status=st.none() | st.sampled_from(STATES),
    content=st.none() | contents,
    exit_code=st.none() | st.integers(0, 255),
)
besides = (
    made(Plan, st.lists(made(PlanEntry, WORDS, st.sampled_from(["pending", "completed"]))).map(tuple))
    | made(Usage, st.integers(0, 9), st.integers(1, 9))
    | made(SessionInfo, st.none() | WORDS)
    | made(Notice, st.sampled_from(["info", "error"]), WORDS.filter(bool))
    | made(Commands, st.lists(made(Command, WORDS, WORDS, st.none() | WORDS)).map(tuple))
    | st.sampled_from([SessionState("running"), SessionState("idle")])
)
updates = st.lists(
    chunks
    | made(ToolCall, st.sampled_from(CALLS), WORDS, content=contents, runs_in=st.sampled_from([None, "/src"]))
    | patches
    | made(ToolOutput, st.sampled_from(CALLS), WORDS)
    | WORDS.map(lambda words: Message("user", (Text(words),), "typed"))
    | besides,
    max_size=30,
)


def told(wanted: list[Update]) -> list[Update]:
    """The updates in an order that backends keep to: calls begin once and end once, only commands print."""
    kept: list[Update] = []
    commands: dict[str, bool] = {}
    ended: set[str] = set()
    typed = False
    for update in wanted:
        if isinstance(update, ToolCall):
            if update.id in commands:
                continue
            commands[update.id] = update.runs_in is not None
        elif isinstance(update, ToolCallUpdate | ToolOutput):
            if update.id not in commands or update.id in ended:
                continue
            if isinstance(update, ToolOutput) and not commands[update.id]:
                continue
            if isinstance(update, ToolCallUpdate) and update.status in FINAL:
                ended.add(update.id)
        kept.append(update)
        if isinstance(update, Message):
            kept.pop()
            if not typed:
                kept += [update, *(MessageChunk("user", part, update.message_id) for part in update.content)]
            typed = True
    return kept


@settings(max_examples=60, deadline=None)
@given(updates)
def test_a_reader_of_v1_and_a_reader_of_v2_end_with_the_same_conversation(wanted: list[Update]) -> None:
    v1_reader, v2_reader, terminals, telling = Reader(), Reader(), Terminals(), Telling("mark")
    for update in told(wanted):
        taken = plainer(update, TAKES_ALL)
        params = terminals.render("s", taken) if taken is not None else None
        if params is not None:
            v1_reader.take(obj(params, "update"))
        for params in telling.updates("s", update):
            schema(2).check({"jsonrpc": "2.0", "method": "session/update", "params": params})
            v2_reader.take(obj(params, "update"))
    assert v1_reader.shown == v2_reader.shown


@settings(max_examples=60, deadline=None)
@given(updates)
def test_a_history_told_twice_ends_with_the_same_conversation_as_once(wanted: list[Update]) -> None:
    once, twice = Reader(), Reader()
    named = [u for u in told(wanted) if not isinstance(u, MessageChunk) or u.message_id is not None]
    named = [u for u in named if not isinstance(u, Notice)]
    for reader, times in ((once, 1), (twice, 2)):
        for _ in range(times):
            telling = Telling("mark", history=True)
            reader.shown.printed.clear()
            for update in named:
                for params in telling.updates("s", update):
                    reader.take(obj(params, "update"))
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
