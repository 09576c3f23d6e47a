"""What counts as a change on the wire, and what is only another day."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import JsonObject, as_object
from acp_manifold.translators.wire.comparing import Change, Difference, compare
from acp_manifold.translators.wire.normal import normal
from tests.view.scene import ONE, Scene, chunk, delta, request, scene, update

RECORDINGS = Path(__file__).parents[3] / "recordings"


def one(*lines: JsonObject, way: str = "out") -> list[JsonObject]:
    s = Scene()
    for line in lines:
        s.client(way, line, ONE)
    return s.entries


def test_ids_times_paths_and_counts_are_no_changes() -> None:
    text = json.dumps(scene())
    other = (
        text.replace(ONE, "0e6aa5c1-0000-4000-8000-123456789abc")
        .replace("toolu_1", "toolu_2")
        .replace("/project", "/tmp/x/y")
    )
    assert other != text
    assert compare(scene(), json.loads(other)) == []


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"id": 5, "toolCallId": "x", "leafUuid": "x", "message_ids": ["a", "b"]}, ["<id>"] * 3 + [["<id>", "<id>"]]),
        ({"id": "mode", "optionId": "allow", "modelId": "m-5", "request_id": "r1"}, ["mode", "allow", "m-5", "<id>"]),
        (
            {"timestamp": 17, "durationMs": 3, "startedAt": None, "when": 1796128312671},
            ["<time>", "<time>", None, "<time>"],
        ),
        ({"at": "2026-12-01T12:00:00.123Z and 2026-12-01"}, ["<time> and 2026-12-01"]),
        ({"inputTokens": 5, "total_cost_usd": 0.5, "exitCode": 1, "ok": True}, ["<count>", "<count>", 1, True]),
        ({"text": "see /home/user/a.py or ./b.py:3"}, ["see <path> or ./b.py:3"]),
        ({"url": "http://127.0.0.1:4242/x", "sum": "d41d8cd98f00b204e9800998ecf8427e"}, ["http://<place>/x", "<hash>"]),
        ({"text": f"[{ONE}]", "id": ""}, ["[<id>]", ""]),
    ],
)
def test_what_differs_each_time_becomes_the_name_of_its_kind(line: JsonObject, expected: list[object]) -> None:
    assert list(normal(line).values()) == expected


def test_a_message_that_came_or_went_is_told_once_with_how_often() -> None:
    plan = update(ONE, "plan", entries=[])
    assert compare(one(), one(plan, plan)) == [Difference("+", "client", False, "session/update plan", 2)]
    assert compare(one(plan), one()) == [Difference("-", "client", False, "session/update plan", 1)]


def test_members_that_changed_are_told_with_their_place() -> None:
    before = update(ONE, "tool_call", title="ls", kind="read", content=[{"a": 1}], locations=[1, 2])
    after = update(ONE, "tool_call", title="ls -l", status="pending", content=[{"a": 1.0}], locations=[2, 3, 4])
    name = "session/update tool_call"
    assert [found.change for found in compare(one(before), one(after)) if found.name == name] == [
        Change("~", "params.update.title", "ls", "ls -l"),
        Change("-", "params.update.kind", "read", None),
        Change("~", "params.update.content[].a", 1, 1.0),
        Change("-", "params.update.locations[]", 1, None),
        Change("+", "params.update.locations[]", None, 3),
        Change("+", "params.update.locations[]", None, 4),
        Change("+", "params.update.status", None, "pending"),
    ]


def test_the_same_in_another_order_and_a_stream_in_other_pieces_are_no_changes() -> None:
    plan, notice = update(ONE, "plan", entries=[]), update(ONE, "notice", text="x")
    assert compare(one(plan, notice, plan), one(plan, plan, notice)) == []
    assert compare(one(chunk(ONE, "a"), chunk(ONE, "b"), plan), one(chunk(ONE, "ab"), plan)) == []


def test_a_change_of_a_piece_other_than_of_what_it_says_is_one() -> None:
    s, t = Scene(), Scene()
    s.claude("in", delta("a"))
    t.claude("in", {**delta("b"), "new": True})
    assert compare(s.entries, t.entries) == [
        Difference(
            "~", "backend", True, "stream_event content_block_delta text_delta", 1, Change("+", "new", None, True)
        )
    ]


def test_directions_and_sessions_are_kept_apart() -> None:
    assert len(compare(one(request(1, "x")), one(request(1, "x"), way="in"))) == 2
    s, t = Scene(), Scene()
    for build, first, second in ((s, "a", "b"), (t, "b", "a")):
        build.codex("in", {"method": first}, "session-1")
        build.codex("in", {"method": second}, "session-2")
    assert len(compare(s.entries, t.entries)) == 4


def test_real_recordings_of_two_scenarios_differ_where_they_should() -> None:
    def entries(name: str) -> list[JsonObject]:
        lines = (RECORDINGS / "codex" / "0.163.0" / name).read_text(encoding="utf-8").splitlines()[1:]
        return [as_object(json.loads(line)) for line in lines]

    accepted, declined = entries("approval-accept.jsonl"), entries("approval-decline.jsonl")
    assert compare(accepted, accepted) == []
    changes = {
        (found.name, found.change.place, found.change.after) for found in compare(accepted, declined) if found.change
    }
    assert ("answer to item/commandExecution/requestApproval", "result.decision", "decline") in changes
    assert ("item/completed commandExecution", "params.item.status", "declined") in changes
