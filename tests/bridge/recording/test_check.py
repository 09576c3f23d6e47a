"""What is found in a recording that is not as it should be, and that nothing is found in one that is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_manifold.bridge.recording.check import Finding, check
from acp_manifold.bridge.recording.reader import Recording, read
from acp_manifold.bridge.recording.schema import AcpSchema, NoSchema
from acp_manifold.translators.narrow import JsonObject
from tests.schema import PATH
from tests.view.scene import HEADER, ONE, Scene, answer, chunk, request, scene, update, write

ROOT = Path(__file__).parents[3]
REAL = sorted((ROOT / "recordings").rglob("*.jsonl"))
SCHEMA = PATH / "v1" / "schema.unstable.json"
ENVIRON = {"THE_API_KEY": "very-secret-0123"}


def recorded(folder: Path, entries: list[JsonObject], header: JsonObject = HEADER) -> Recording:
    return read(write(folder / "a.jsonl", entries, header))


def findings(folder: Path, build: Scene, schema: AcpSchema | None = None) -> list[Finding]:
    return check(recorded(folder, build.entries), ENVIRON, "/home/ann", "ann", schema)


def test_a_good_recording_has_nothing_to_be_found(tmp_path: Path) -> None:
    assert check(recorded(tmp_path, scene()), ENVIRON, "/home/ann", "ann") == []


@pytest.mark.parametrize("path", REAL, ids=lambda path: f"{path.parent.parent.name}-{path.stem}")
def test_the_recordings_here_have_no_fault(path: Path) -> None:
    found = check(read(path), {}, "/home/ann", "ann")
    assert [finding for finding in found if finding.severity == "fault"] == []


def test_time_that_goes_back_is_noted(tmp_path: Path) -> None:
    s = Scene()
    s.after(5).client("in", request(1, "initialize"))
    s.after(-3).client("out", answer(1))
    assert findings(tmp_path, s) == [Finding("note", 3, "t goes back from 5 to 2.0021")]


def test_what_answers_nothing_is_noted_and_an_id_given_twice_is_a_fault(tmp_path: Path) -> None:
    s = Scene()
    s.client("out", answer(7))
    s.client("in", request(1, "session/list"))
    s.client("in", request(1, "session/list"))
    assert findings(tmp_path, s) == [
        Finding("note", 2, "answers no request of this recording"),
        Finding("fault", 4, "session/list has the id of an open request"),
        Finding("note", 4, "session/list has no answer in this recording"),
    ]


def test_a_breach_of_ours_is_a_fault_and_one_of_the_client_a_note(tmp_path: Path) -> None:
    s = Scene()
    s.client("in", {"method": "session/cancel"})
    s.client("in", "no JSON")
    s.client("out", {"method": "session/update", "params": {"sessionId": ONE, "update": {"sessionUpdate": "plan"}}})
    s.client("out", "no JSON")
    s.client("out", update(ONE, "unheard_of"))
    found = [(finding.severity, finding.number) for finding in findings(tmp_path, s)]
    assert found == [("note", 2), ("note", 3), ("fault", 4), ("fault", 5), ("note", 6)]


def test_a_frame_that_no_translator_knows_is_noted(tmp_path: Path) -> None:
    s = Scene()
    s.claude("in", {"type": "brand_new", "subtype": "thing"})
    s.codex("in", {"neither": "nor"})
    assert [finding.what for finding in findings(tmp_path, s)] == [
        "no translator knows brand_new thing",
        "has neither a method nor a type",
    ]


@pytest.mark.parametrize(
    ("secret", "where", "kind"),
    [
        ({"note": "key is very-secret-0123"}, "line.params.note", "token"),
        ({"deep": [{"x": "write to ann@company.org"}]}, "line.params.deep[0].x", "email"),
        ({"cwd": "/home/ann/project"}, "line.params.cwd", "home"),
        ({"cwd": "/Users/bob/project"}, "line.params.cwd", "somebody's home directory"),
        ({"cwd": "C:\\Users\\bob\\project"}, "line.params.cwd", "somebody's home directory"),
        ({"headers": {"X": "what it says"}}, "line.params.headers.X", "header"),
        ({"log": "Authorization: Bearer abcdefghijklmnop"}, "line.params.log", "token"),
    ],
)
def test_what_looks_unscrubbed_is_told_by_its_place_and_never_shown(
    tmp_path: Path, secret: JsonObject, where: str, kind: str
) -> None:
    s = Scene()
    s.client("in", request(1, "_x", **secret))
    s.client("out", answer(1))
    (found,) = findings(tmp_path, s)
    assert (found.severity, found.number) == ("fault", 2)
    assert found.what == f"{where} looks unscrubbed: {kind}"


def test_placeholders_are_no_secrets(tmp_path: Path) -> None:
    s = Scene()
    s.client("in", request(1, "_x", key="<token-1>", cwd="/<home>/x", headers={"X": "<header-1>"}, home="/home/user/x"))
    s.client("out", answer(1))
    assert findings(tmp_path, s) == []


def test_the_header_is_looked_at_too_and_a_cut_file_is_a_fault(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", scene(), {**HEADER, "scenario": "at ann@company.org"})
    path.write_bytes(path.read_bytes()[:-20])
    found = check(read(path), ENVIRON, "/home/ann", "ann")
    assert found[0] == Finding("fault", 1, "scenario looks unscrubbed: email")
    assert found[-1].number == 0
    assert "cut off" in found[-1].what


def test_a_schema_judges_what_lines_carry(tmp_path: Path) -> None:
    s = Scene()
    s.client("in", request(1, "session/new", cwd=5, mcpServers=[]))
    s.client("out", answer(1, session="x"))
    s.client("out", chunk(ONE, "fine"))
    s.client("out", update(ONE, "tool_call", title="no id"))
    s.client("in", request(2, "_ours", anything=1))
    s.client("out", answer(2, whatever=True))
    assert findings(tmp_path, s) == []
    found = findings(tmp_path, s, AcpSchema(SCHEMA))
    assert [(finding.severity, finding.number) for finding in found] == [("note", 2), ("fault", 3), ("fault", 5)]
    assert "NewSessionRequest: $.cwd" in found[0].what
    assert "toolCallId" in found[2].what


def test_what_is_no_schema_of_the_protocol_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "schema.json"
    for text in ("{", json.dumps({"$defs": {"A": {"type": "string"}}})):
        place.write_text(text)
        with pytest.raises(NoSchema, match="schema"):
            AcpSchema(place)
    with pytest.raises(NoSchema, match="can't be read"):
        AcpSchema(tmp_path / "none.json")
