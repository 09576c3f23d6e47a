"""What lines of every protocol are, what joins them, and what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.wire.reading import Read, Reading, read
from acp_manifold.translators.wire.shape import Shape, is_piece, is_question, shape
from acp_manifold.translators.wire.titles import Said
from acp_manifold.translators.wire.words import LENGTH, shortened, words
from tests.view.scene import ONE, TWO, Scene, answer, chunk, delta, request, scene, update

RECORDINGS = sorted((Path(__file__).parents[3] / "recordings").rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (request(1, "session/new"), Shape("request", "session/new", "1")),
        (request(0, "initialize"), Shape("request", "initialize", "0")),
        ({"id": "1", "result": None}, Shape("answer", "", '"1"')),
        ({"id": 1, "error": {"code": 1}}, Shape("failure", "", "1")),
        (chunk("s", "x"), Shape("news", "session/update agent_message_chunk")),
        ({"method": "item/started", "params": {"item": {"type": "plan"}}}, Shape("news", "item/started plan")),
        (delta("x"), Shape("news", "stream_event content_block_delta text_delta")),
        ({"type": "system", "subtype": "init"}, Shape("news", "system init")),
        (
            {"type": "control_request", "request_id": "r", "request": {"subtype": "interrupt"}},
            Shape("request", "interrupt", '"r"'),
        ),
        (
            {"type": "control_response", "response": {"subtype": "success", "request_id": "r"}},
            Shape("answer", "", '"r"'),
        ),
        (
            {"type": "control_response", "response": {"subtype": "error", "request_id": "r"}},
            Shape("failure", "", '"r"'),
        ),
        ({"method": 5, "type": ["x"], "event": "x"}, Shape("news", "")),
        ({}, Shape("news", "")),
    ],
)
def test_the_shape_of_a_line(line: JsonObject, expected: Shape) -> None:
    assert shape(line) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("session/request_permission", True),
        ("elicitation/create", True),
        ("can_use_tool", True),
        ("item/commandExecution/requestApproval", True),
        ("item/tool/requestUserInput", True),
        ("mcpServer/elicitation/request", True),
        ("session/prompt", False),
        ("initialize", False),
        ("", False),
    ],
)
def test_questions_are_what_a_person_is_asked(name: str, expected: bool) -> None:
    assert is_question(name) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("session/update agent_message_chunk", True),
        ("item/agentMessage/delta", True),
        ("item/reasoning/summaryTextDelta", True),
        ("item/commandExecution/outputDelta", True),
        ("stream_event content_block_delta input_json_delta", True),
        ("stream_event message_delta", False),
        ("session/update tool_call", False),
    ],
)
def test_pieces_are_of_streams(name: str, expected: bool) -> None:
    assert is_piece(name) is expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (chunk("s", " word\n two "), " word two "),
        (
            request(1, "session/prompt", prompt=[{"type": "text", "text": "Hi"}, {"type": "text", "text": "there"}]),
            "Hi there",
        ),
        (update("s", "tool_call", title="ls", status="pending", rawInput={"text": "deeper"}), "ls · pending"),
        (answer(1, stopReason="end_turn"), "end_turn"),
        (answer(1, outcome={"outcome": "selected", "optionId": "allow"}), "allow"),
        ({"id": 1, "error": {"code": 5, "message": "No"}}, "No"),
        (request(1, "session/new", cwd="/project"), "/project"),
        (answer(1), ""),
        ({"_meta": {"text": "not this"}, "n": [1, None, [["x"]]]}, ""),
    ],
)
def test_a_line_in_a_few_words(line: JsonObject, expected: str) -> None:
    assert words(line) == expected


def test_words_are_cut_and_a_vast_line_is_not_read_to_its_end() -> None:
    assert len(shortened("x" * 10_000)) == LENGTH
    assert words({"a": [{"b": n} for n in range(100_000)], "z": {"y": {"text": "beyond"}}}) == ""


def readings(*entries: JsonObject, backend: str = "") -> list[Reading]:
    return read(entries, backend).readings


def whole(build: Scene) -> Read:
    return read(build.entries)


def test_an_answer_has_the_name_of_its_request_and_each_knows_the_other() -> None:
    s = Scene()
    s.client("in", request(1, "session/list"))
    s.client("out", request(1, "session/request_permission"), ONE)
    s.client("in", request(1, "session/list"), conn=2)
    s.client("in", answer(1, outcome={"optionId": "no"}))
    s.client("out", answer(1), conn=2)
    s.client("out", answer(1))
    found = whole(s)
    assert [reading.joined for reading in found.readings] == [5, 3, 4, 1, 2, 0]
    assert [reading.name for reading in found.readings[3:]] == [
        "session/request_permission",
        "session/list",
        "session/list",
    ]
    assert [reading.question for reading in found.readings] == [False, True, False, True, False, False]
    assert found.readings[3].session == ONE, "an answer belongs to the session of its request"
    assert (found.stray, found.waiting, found.repeated) == ([], [], [])


def test_what_nobody_answers_or_asked_for_is_told() -> None:
    s = Scene()
    s.client("in", request(1, "a"))
    s.client("in", request(1, "b"))
    s.client("out", answer(9))
    found = whole(s)
    assert (found.stray, found.waiting, found.repeated) == ([2], [1], [1])


def test_processes_of_one_backend_count_their_ids_each_for_itself() -> None:
    line: JsonObject = {"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize"}}
    reply: JsonObject = {"type": "control_response", "response": {"subtype": "success", "request_id": "r1"}}
    told: list[JsonObject] = [
        {"leg": "backend", "dir": way, "backend": "claude", "process": process, "line": said}
        for process, way, said in ((1, "out", line), (2, "out", line), (2, "in", reply), (1, "in", reply))
    ]
    assert [reading.joined for reading in readings(*told)] == [3, 2, 1, 0]


def test_lanes_are_clients_processes_and_sessions() -> None:
    lanes = list(dict.fromkeys((reading.lane, reading.session) for reading in read(scene()).readings if reading.lane))
    assert lanes[0] == ("client 1", "")
    assert (f"claude: {ONE}", ONE) in lanes
    assert (f"codex: {TWO}", TWO) in lanes


def test_a_line_without_a_session_belongs_to_the_only_one_its_process_serves() -> None:
    s = Scene()
    s.claude("out", {"type": "control_request", "request_id": "r", "request": {"subtype": "initialize"}}, "")
    s.claude("in", {"type": "system", "subtype": "init"}, ONE)
    s.codex("in", {"method": "configWarning"}, "")
    s.codex("in", {"method": "turn/started", "params": {"threadId": TWO}}, "")
    s.codex("in", {"method": "turn/started", "params": {"threadId": "another"}}, "")
    assert [reading.session for reading in whole(s).readings] == [ONE, ONE, "", TWO, "another"]
    assert whole(s).readings[2].lane == "codex 1"


def test_the_backend_of_the_header_holds_for_entries_that_name_none() -> None:
    entry: JsonObject = {"t": 0, "leg": "backend", "dir": "in", "line": {"type": "user", "session_id": "s"}}
    assert readings(entry, backend="codex")[0].lane == "codex: s"


def test_titles_are_found_wherever_they_stand_with_whose_they_are() -> None:
    told = [reading.title for reading in read(scene()).readings if reading.title is not None]
    assert told == [
        Said("Docs", "asked", "client"),
        Said("Docs", "written", "client"),
        Said("Dates and parsers", "heard", "generated"),
        Said("Dates and parsers", "news", "generated"),
        Said("Dates and parsers", "told", "generated"),
        Said("Parser of dates", "asked", "client"),
        Said("Parser of dates", "written", "client"),
        Said("Parser of dates", "heard", "client"),
        Said("A late generated one", "discarded", "generated"),
    ]


def test_a_title_that_the_bridge_knew_stays_that_of_who_made_it() -> None:
    s = Scene()
    s.client("in", request(1, "session/set_title", sessionId=ONE, title="Mine"), ONE)
    s.note({"note": "title", "title": "Mine", "origin": "user", "heard": "known"}, ONE)
    s.client("out", update(ONE, "session_info_update", title="Mine"), ONE)
    s.note({"note": "title", "title": "Mine", "origin": "user", "heard": "news"}, ONE)
    told = [reading.title.origin for reading in whole(s).readings if reading.title]
    assert told == ["client", "client", "client", "user"]


@pytest.mark.parametrize(
    ("leg", "way", "line", "title"),
    [
        ("client", "in", request(1, "_acpmux/rename", sessionId="s", newName="x"), Said("x", "asked", "client")),
        ("client", "in", request(1, "session/setTitle", sessionId="s", title="x"), Said("x", "asked", "client")),
        ("client", "out", update("s", "session_info_update", updatedAt="now"), None),
        ("store", "in", {"type": "custom-title", "customTitle": "x", "sessionId": "s"}, Said("x", "heard")),
        ("backend", "in", {"method": "thread/name/updated", "params": {"threadName": "x"}}, Said("x", "heard")),
        ("backend", "in", {"method": "thread/name/updated", "params": {"threadName": None}}, None),
        ("backend", "in", {"type": "system", "subtype": "other", "title": "x"}, None),
    ],
)
def test_who_spells_a_title_how(leg: str, way: str, line: JsonObject, title: Said | None) -> None:
    assert readings({"leg": leg, "dir": way, "line": line})[0].title == title


def test_an_entry_that_is_no_json_is_read_as_its_words() -> None:
    (reading,) = readings({"t": 0, "leg": "backend", "dir": "in", "text": "panicked\nat x"})
    assert (reading.kind, reading.name, reading.words) == ("news", "", "panicked at x")


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_every_line_of_the_real_clis_has_a_name_and_every_answer_its_request(path: Path) -> None:
    header, *entries = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    found = read(entries, header.get("cli", header.get("backend")) or "")
    assert [reading for reading in found.readings if not reading.name] == []
    assert found.stray == found.repeated == []
