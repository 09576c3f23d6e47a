"""Recorded turns of codex-cli 0.163.0 through the translators, line by line."""

from __future__ import annotations

import pytest

from acp_manifold.translators.codex.items import replayed
from acp_manifold.translators.codex.turn import Stream
from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, obj, text
from acp_manifold.translators.updates import (
    Diff,
    Location,
    MessageChunk,
    Plan,
    PlanEntry,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolEnd,
    ToolOutput,
    Unknown,
    Usage,
)

from .recorded import SCENARIOS, flat, items, recorded, said, translated


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_recorded_line_is_known(scenario: str) -> None:
    assert flat(translated(scenario)) is not None
    header = recorded(scenario).header
    assert header.get("cli_version", obj(header, "clis").get("codex")) == "0.163.0"


def test_a_turn_with_a_thought_and_text_is_told_piece_by_piece() -> None:
    _, *chunks = [update for update in flat(translated("text-turn")) if isinstance(update, MessageChunk)]
    assert [(chunk.role, chunk.content) for chunk in chunks] == [
        ("thought", Text("thinking about it")),
        ("agent", Text("word0 ")),
        ("agent", Text("word1 ")),
        ("agent", Text("word2 ")),
    ]
    assert len({chunk.message_id for chunk in chunks if chunk.role == "agent"}) == 1


def test_what_a_person_typed_is_told_once_by_the_name_it_has_in_the_history() -> None:
    (item,) = [
        obj(params, "item")
        for method, params in recorded("text-turn").notifications()
        if method == "item/started" and text(obj(params, "item"), "type") == "userMessage"
    ]
    typed = [update for update in flat(translated("text-turn")) if isinstance(update, MessageChunk)][0]
    assert (typed.role, typed.message_id) == ("user", text(item, "id"))
    assert said(flat(translated("text-turn")), "user") == said(list(replayed(item)), "user") != ""


def test_the_context_and_the_tokens_of_a_turn_are_counted() -> None:
    stream = Stream()
    updates = [stream.translate(*line) for line in recorded("commands").notifications() if "turnId" in line[1]]
    usages = [update for update in flat(updates) if isinstance(update, Usage)]
    assert set(usages) == {Usage(15, 258400)}
    assert stream.end("end_turn")[:3] == ("end_turn", 10 * len(usages), 5 * len(usages))


def test_commands_have_the_title_a_person_knows_and_a_kind() -> None:
    calls = [update for update in flat(translated("commands")) if isinstance(update, ToolCall)]
    assert [(call.title, call.kind, call.locations) for call in calls] == [
        ("for i in 1 2 3; do echo line $i; sleep 0.3; done", "execute", ()),
        ("cat notes.txt", "read", (Location("/project/notes.txt"),)),
        ("rg two .", "search", (Location("/project"),)),
        ("exit 3", "execute", ()),
    ]
    assert calls[1].raw_input == {"command": "cat notes.txt", "cwd": "/project"}


def test_output_is_told_once_whether_or_not_it_was_streamed() -> None:
    updates = flat(translated("commands"))
    ids = [update.id for update in updates if isinstance(update, ToolCall)]
    printed = {call: "".join(u.data for u in updates if isinstance(u, ToolOutput) and u.id == call) for call in ids}
    assert list(printed.values()) == ["line 2\nline 3\n", "one\ntwo\n", "./notes.txt:two\n", ""]


def test_output_that_codex_did_not_stream_comes_with_the_end() -> None:
    ends = [update for update in flat(translated("commands")) if isinstance(update, ToolCallUpdate)]
    assert [end.content for end in ends] == [(Text("```console\nline 1\n```"),), None, None, None]


@pytest.mark.parametrize("aggregated", ["ab", "cut in its middle", None])
def test_output_that_was_streamed_whole_or_can_not_be_compared_is_not_told_again(aggregated: str | None) -> None:
    stream = Stream()
    stream.translate("item/commandExecution/outputDelta", {"itemId": "c", "delta": "ab"})
    item = {"type": "commandExecution", "id": "c", "status": "completed", "aggregatedOutput": aggregated}
    end = stream.translate("item/completed", {"item": item})[-1]
    assert isinstance(end, ToolCallUpdate) and end.content is None


def test_a_command_ends_with_its_status_and_exit_code() -> None:
    ends = [update for update in flat(translated("commands")) if isinstance(update, ToolCallUpdate)]
    assert [end.status for end in ends] == ["completed", "completed", "completed", "failed"]
    assert as_object(ends[3].raw_output)["exitCode"] == 3


@pytest.mark.parametrize(
    ("scenario", "status"),
    [("approval-accept", "completed"), ("approval-decline", "failed"), ("approval-cancel", "failed")],
)
def test_the_answer_to_an_approval_shows_in_the_tool_call(scenario: str, status: str) -> None:
    ends = [update for update in flat(translated(scenario)) if isinstance(update, ToolCallUpdate)]
    assert [end.status for end in ends] == [status]


def test_a_file_change_shows_both_sides_of_each_file() -> None:
    updates = flat(translated("file-change"))
    (call,) = [update for update in updates if isinstance(update, ToolCall)]
    assert (call.title, call.kind) == ("Edit 4 files", "edit")
    assert call.content == (
        Diff("/project/to.txt", "a\nb\n", "a\nB\n", moved_from="/project/from.txt"),
        Diff("/project/gone.txt", "bye\n", "", deleted=True),
        Diff("/project/new.txt", None, "hello\nworld\n"),
        Diff("/project/old.txt", "one\ntwo\nthree\n", "one\nTWO\nthree\n"),
    )
    assert call.locations[3] == Location("/project/old.txt", 1)
    (end,) = [update for update in updates if isinstance(update, ToolCallUpdate)]
    assert end == ToolCallUpdate(call.id, status="completed")


def test_diffs_that_changed_until_the_end_are_told_again() -> None:
    stream = Stream()
    item: dict[str, object] = {"type": "fileChange", "id": "f", "changes": [], "status": "completed"}
    stream.translate("item/started", {"item": item})
    changes = [{"path": "/a", "kind": {"type": "add"}, "diff": "x"}]
    (end,) = stream.translate("item/completed", {"item": {**item, "changes": changes}})
    assert isinstance(end, ToolCallUpdate) and end.content == (Diff("/a", None, "x"),)


def test_a_declined_file_change_fails() -> None:
    updates = flat(translated("file-change-declined"))
    assert [u.status for u in updates if isinstance(u, ToolCallUpdate)] == ["failed"]
    assert [(u.title, u.kind) for u in updates if isinstance(u, ToolCall)] == [("Edit old.txt", "edit")]


@pytest.mark.parametrize(
    ("asked", "item", "status"),
    [
        ("stopping", {"status": "failed", "exitCode": -1}, "cancelled"),
        ("stopping", {"status": "declined", "exitCode": None}, "cancelled"),
        ("stopping", {"status": "failed", "exitCode": 137}, "cancelled"),
        ("stopping", {"status": "failed", "exitCode": 2}, "failed"),
        ("stopping", {"status": "completed", "exitCode": 0}, "completed"),
        ("ending", {"status": "failed", "exitCode": -1}, "cancelled"),
        ("ending", {"status": "failed", "exitCode": 1}, "cancelled"),
        ("ending", {"status": "completed", "exitCode": 0}, "completed"),
        ("", {"status": "failed", "exitCode": -1}, "failed"),
        ("", {"status": "declined", "exitCode": None}, "failed"),
    ],
)
def test_a_command_is_cancelled_if_it_was_to_stop_unless_it_has_ended_by_itself(
    asked: str, item: JsonObject, status: str
) -> None:
    stream = Stream()
    command: JsonObject = {"type": "commandExecution", "id": "i", "command": "make", "cwd": "/w"}
    stream.turn_begins()
    stream.translate("item/started", {"item": command})
    stream.stopping = asked == "stopping"
    if asked == "ending":
        stream.ending("i")
    end = stream.translate("item/completed", {"item": {**command, **item}})[-1]
    assert isinstance(end, ToolCallUpdate) and end.status == status
    assert status != "cancelled" or end.exit_code is None


def test_an_interrupt_cancels_no_command_of_an_earlier_turn() -> None:
    stream = Stream()
    command: JsonObject = {"type": "commandExecution", "id": "i", "command": "make", "cwd": "/w"}
    stream.translate("item/started", {"item": command})
    stream.turn_begins()
    stream.stopping = True
    (end,) = stream.translate("item/completed", {"item": {**command, "status": "failed", "exitCode": -1}})
    assert isinstance(end, ToolCallUpdate) and end.status == "failed"


@pytest.mark.parametrize(("interrupted", "status"), [(True, "cancelled"), (False, "failed")])
def test_what_a_turn_leaves_open_is_cancelled_if_it_was_stopped(interrupted: bool, status: ToolEnd) -> None:
    stream = Stream()
    stream.translate("item/started", {"item": {"type": "webSearch", "id": "w", "query": "acp"}})
    assert stream.end_turn(interrupted=interrupted) == (ToolCallUpdate("w", status=status),)


def test_an_interrupted_turn_leaves_its_command_to_be_ended() -> None:
    stream = Stream()
    told = recorded("interrupt").notifications()
    until_the_end = told[: [method for method, _ in told].index("turn/completed")]
    updates = [stream.translate(*line) for line in until_the_end if "turnId" in line[1]]
    (call,) = [update for update in flat(updates) if isinstance(update, ToolCall)]
    assert stream.open == {call.id: "commandExecution"}
    assert stream.end_open("failed") == (ToolCallUpdate(call.id, status="failed"),)
    assert stream.open == {}


def test_a_plan_is_told_whole() -> None:
    (plan,) = [update for update in flat(translated("plan")) if isinstance(update, Plan)]
    assert plan.entries == (PlanEntry("Look", "in_progress"), PlanEntry("Leap", "pending"))


@pytest.mark.case("M02")
def test_two_threads_are_told_apart_by_their_id() -> None:
    told = recorded("two-threads")
    threads = {text(params, "threadId") for _, params in told.notifications() if "turnId" in params}
    spoken = sorted(said(flat(translated("two-threads", thread))) for thread in threads)
    assert spoken == ["a0 a1 a2 a3 a4 a5 ", "b0 b1 b2 b3 b4 b5 "]


def test_a_retried_error_is_not_the_failure_but_the_last_one_is() -> None:
    stream = Stream()
    failures: list[str] = []
    for method, params in recorded("failing-api").notifications():
        if method == "error":
            stream.translate(method, params)
            failures.append(text(stream.failure, "message")[:35])
    assert failures[:5] == [""] * 5
    assert failures[5:] == ["unexpected status 401 Unauthorized:", '{"error": {"type": "scripted", "mes']


def test_history_is_told_by_the_same_functions_as_live_items() -> None:
    updates = [
        update for item in items(recorded("list-and-history").result("thread/items/list")) for update in replayed(item)
    ]
    assert [type(update) for update in updates] == [
        MessageChunk,
        MessageChunk,
        MessageChunk,
        MessageChunk,
        ToolCall,
        ToolOutput,
        ToolCallUpdate,
        MessageChunk,
    ]
    chunks = [update for update in updates if isinstance(update, MessageChunk)]
    assert [chunk.role for chunk in chunks] == ["user", "agent", "user", "thought", "agent"]


def test_the_rest_of_a_message_comes_with_its_end_and_only_once() -> None:
    stream = Stream()
    item = {"type": "agentMessage", "id": "m", "text": "one two"}
    assert stream.translate("item/agentMessage/delta", {"itemId": "m", "delta": "one "}) != ()
    assert stream.translate("item/completed", {"item": item}) == (MessageChunk("agent", Text("two"), "m"),)


def test_a_tool_call_that_was_never_begun_is_begun_by_its_end() -> None:
    item = {"type": "webSearch", "id": "w", "query": "acp"}
    call, end = Stream().translate("item/completed", {"item": item})
    assert call == ToolCall("w", "Search the web: acp", "search", "in_progress", name="web_search")
    assert isinstance(end, ToolCallUpdate) and end.status == "completed"


@pytest.mark.parametrize(
    "item",
    [
        {"type": "mcpToolCall", "id": "i", "server": "s", "tool": "t", "status": "completed", "arguments": {"a": 1}},
        {"type": "dynamicToolCall", "id": "i", "tool": "t", "status": "failed", "arguments": None},
        {"type": "imageView", "id": "i", "path": "/a/b.png"},
        {"type": "imageGeneration", "id": "i", "status": "completed", "result": "aGk="},
        {"type": "collabAgentToolCall", "id": "i", "tool": "spawnAgent", "status": "interrupted", "prompt": "go"},
        {"type": "subAgentActivity", "id": "i", "kind": "started", "agentPath": "a"},
        {"type": "fileChange", "id": "i", "changes": "not a list", "status": "completed"},
        {"type": "commandExecution", "id": "i", "commandActions": [None, 3]},
    ],
)
def test_tool_items_begin_and_end_whatever_their_fields_hold(item: dict[str, object]) -> None:
    stream = Stream()
    (call,) = stream.translate("item/started", {"item": item})
    assert isinstance(call, ToolCall) and call.id == "i" and call.status == "in_progress" and call.title
    end = stream.translate("item/completed", {"item": item})[-1]
    assert isinstance(end, ToolCallUpdate) and end.status in ("completed", "failed", "cancelled")
    assert stream.open == {}


def test_unknown_items_and_methods_are_passed_on_as_they_are() -> None:
    assert Stream().translate("item/completed", {"item": {"type": "new"}}) == (Unknown({"type": "new"}),)
    assert Stream().translate("new/thing", {"a": 1}) == (Unknown({"method": "new/thing", "params": {"a": 1}}),)
    assert Stream().translate("item/agentMessage/delta", {"itemId": 3, "delta": None}) == ()


def test_thoughts_of_several_parts_are_parted_by_an_empty_line() -> None:
    stream = Stream()
    parts = [("summaryPartAdded", 0, None), ("summaryTextDelta", 0, "a"), ("summaryPartAdded", 1, None)]
    told = [
        update
        for method, index, delta in [*parts, ("summaryTextDelta", 1, "b")]
        for update in stream.translate(
            f"item/reasoning/{method}", {"itemId": "r", "summaryIndex": index, "delta": delta}
        )
    ]
    assert said(list(told), "thought") == "a\n\nb"
    whole = {"type": "reasoning", "id": "r", "summary": ["a", "b"]}
    assert stream.translate("item/completed", {"item": whole}) == ()


def test_recorded_rows_of_the_list_have_the_name() -> None:
    (thread,) = as_objects(recorded("list-and-history").result("thread/list").get("data"))
    assert thread["name"] == "Payments rework"
    assert obj(thread, "status")["type"] == "idle"
