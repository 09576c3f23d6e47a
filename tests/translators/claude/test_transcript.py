"""Transcripts as histories, titles and list rows."""

from __future__ import annotations

import json

import pytest

from acp_manifold.translators.claude.listing import Facts
from acp_manifold.translators.claude.records import Title, decode_line, moment, title_of, typed, working_directory
from acp_manifold.translators.claude.transcript import History
from acp_manifold.translators.narrow import JsonObject, obj
from acp_manifold.translators.updates import Image, MessageChunk, Text, TextResource
from tests.translators.claude.recorded import entries, tell


def told(records: list[JsonObject]) -> list[str]:
    history = History()
    updates = [update for record in records for update in history.feed(record)]
    return [tell(update) for update in updates + history.finish()]


def user(said: object, uuid: str, **more: object) -> JsonObject:
    return {"type": "user", "uuid": uuid, "cwd": "/w", "message": {"role": "user", "content": said}, **more}


def agent(block: JsonObject, uuid: str, message_id: str = "m1") -> JsonObject:
    message: JsonObject = {"id": message_id, "model": "x", "content": [block]}
    return {"type": "assistant", "uuid": uuid, "cwd": "/w", "message": message}


def words(said: str) -> JsonObject:
    return {"type": "text", "text": said}


@pytest.mark.case("L06")
def test_a_history_holds_only_what_was_said_each_once() -> None:
    three = agent(words("three"), "u7", "m2")
    done: JsonObject = {"type": "tool_result", "tool_use_id": "T1", "content": "file text"}
    records = [
        user([words("one<system-reminder>r</system-reminder>")], "u1"),
        agent(words("two"), "u2"),
        agent({"type": "tool_use", "id": "T1", "name": "Read", "input": {"file_path": "/w/a"}}, "u3"),
        user([done], "u4"),
        user("<task-notification>x</task-notification>", "u5"),
        user("<local-command-caveat>x</local-command-caveat>", "u6"),
        user([words("summary")], "u8", isCompactSummary=True),
        user("meta", "u9", isMeta=True),
        user("[Request interrupted by user]", "u10"),
        {**agent(words("aside"), "u11"), "isSidechain": True},
        three,
        three,
    ]
    assert told(records) == [
        "user: one",
        "agent: two",
        "call Read [read] Read a in_progress",
        "update completed <```\nfile text\n```>",
        "agent: three",
    ]


@pytest.mark.parametrize(("kind", "status"), [("user-rejected", "cancelled"), ("permission-rule", "failed")])
def test_a_call_is_cancelled_if_the_turn_was_stopped_and_has_failed_if_it_was_refused(kind: str, status: str) -> None:
    call = agent({"type": "tool_use", "id": "T1", "name": "Bash", "input": {"command": "ls"}}, "u1")
    no: JsonObject = {"type": "tool_result", "tool_use_id": "T1", "content": "No", "is_error": True}
    assert told([call, user([no], "u2", toolDenialKind=kind)])[-1] == f"update {status}"


def test_a_call_that_was_never_answered_has_failed() -> None:
    call = agent({"type": "tool_use", "id": "T1", "name": "Bash", "input": {"command": "ls"}}, "u1")
    assert told([call])[-1] == "update failed"


def test_the_real_transcript_of_a_command_tells_the_same_as_its_stream() -> None:
    records = [obj(entry, "line") for entry in entries("transcript-permission-allow")]
    assert told(records) == [
        "user: SAY[2] RUN[touch made.txt && echo one && echo two >&2];;SAY[2]",
        "agent: word0 word1 ",
        "call Bash [execute] touch made.txt && echo one && echo two >&2 in_progress",
        "output one\ntwo",
        "update completed",
        "agent: word0 word1 ",
    ]


def test_the_real_transcript_of_edits_shows_whole_files() -> None:
    records = [obj(entry, "line") for entry in entries("transcript-edits")]
    assert "update completed /project/a.py: 'one\\ntwo\\nthree\\n' -> 'one\\n2\\nthree\\n'" in told(records)


def test_the_notice_of_a_background_task_is_no_word_of_the_user() -> None:
    records = [obj(entry, "line") for entry in entries("transcript-background-task")]
    said = [line for line in told(records) if line.startswith("user: ")]
    assert said == ["user: RUNBG[sleep 0.5; touch fin];;SAY[2]", "user: SAY[2]"]


def facts(*records: JsonObject) -> Facts:
    gathered = Facts()
    for record in records:
        gathered.add(record)
    return gathered


def answered(model: object, uuid: str) -> JsonObject:
    return {**agent({"type": "text", "text": "x"}, uuid), "message": {"model": model, "content": [{"type": "text"}]}}


def test_the_model_is_that_of_the_last_answer_in_whatever_order_they_are_read() -> None:
    gathered = Facts()
    for at, model in ((30, "opus"), (20, "haiku"), (40, "<synthetic>"), (50, "\ud800"), (60, 5), (35, "fable")):
        gathered.add_last(answered(model, f"u{at}"), at)
    assert gathered.model == "fable"


@pytest.mark.parametrize(
    ("said", "cost"),
    [
        ({"totalCostUSD": 0.25}, 0.25),
        ({"totalCostUSD": 2}, 2.0),
        ({"totalCostUSD": 2, "hasUnknownModelCost": True}, None),
        ({"totalCostUSD": float("inf")}, None),
        ({"totalCostUSD": 10**400}, None),
        ({"totalCostUSD": True}, None),
        ({}, None),
    ],
)
def test_a_cost_counts_until_something_is_said_behind_it(said: JsonObject, cost: float | None) -> None:
    gathered = Facts()
    gathered.add_last({"type": "cost-state", **said}, 90)
    gathered.add_last(answered("opus", "u1"), 80)
    assert gathered.cost == cost
    gathered.add_last(answered("opus", "u2"), 100)
    assert gathered.cost is None
    gathered.add_last({"type": "cost-state", "totalCostUSD": 1.5}, 110)
    gathered.add_last({"type": "cost-state", **said}, 90)
    assert gathered.cost == 1.5


def test_a_copy_says_so_with_its_first_message() -> None:
    copied: JsonObject = {"forkedFrom": {"sessionId": "source", "messageUuid": "m"}}
    assert facts({**user("x", "u1"), **copied}, user("y", "u2")).forked_from == "source"
    assert facts(user("x", "u1"), {**user("y", "u2"), **copied}).forked_from is None


@pytest.mark.case("T05")
def test_an_unnamed_session_is_called_by_what_was_typed_first() -> None:
    gathered = facts(
        user("<command-name>/mcp</command-name>", "u1"),
        user("Caveat", "u2", isMeta=True),
        user("<system-reminder>x</system-reminder>", "u3"),
        user("[Request interrupted by user]", "u4"),
        user("Audit the parser", "u5"),
    )
    assert gathered.first_typed == "Audit the parser"
    with_links = facts(user([words("see"), words("[@n](x:n)"), words('<context ref="x:n">\nof it\n</context>')], "u1"))
    assert with_links.first_typed == "see @n"
    assert gathered.title is None and gathered.is_session


@pytest.mark.case("T04")
def test_a_custom_title_beats_a_generated_one_that_comes_later() -> None:
    gathered = facts(
        {"type": "custom-title", "customTitle": "Mine", "sessionId": "s"},
        {"type": "ai-title", "aiTitle": "Theirs", "sessionId": "s"},
    )
    assert gathered.title == Title("Mine", "user")


def test_a_title_inside_another_record_is_none() -> None:
    spoof = agent({"type": "tool_use", "id": "t", "name": "Read", "input": {"customTitle": "SPOOFED"}}, "u")
    assert title_of(spoof) is None
    assert facts(spoof).title is None


@pytest.mark.parametrize("kind, key", [("custom-title", "customTitle"), ("ai-title", "aiTitle")])
@pytest.mark.parametrize("empty", ["", "  \n", "\u200b\ufeff", "\x1b[0m", None, 7, ["x"]])
def test_a_title_of_which_nothing_shows_takes_no_other_s_place(kind: str, key: str, empty: object) -> None:
    gathered = facts({"type": kind, key: "Real"}, {"type": kind, key: empty})
    assert gathered.title is not None and gathered.title.text == "Real"


def test_a_directory_is_absolute_and_can_be_one() -> None:
    bad: list[object] = ["rel", "~/x", "", "/a\0b", "/a\udc80", None, 1, ["/x"]]
    assert [working_directory({"cwd": cwd}) for cwd in bad] == [None] * len(bad)
    assert [working_directory({"cwd": cwd}) for cwd in ("/", "/дом/a b\n😀")] == ["/", "/дом/a b\n😀"]
    assert facts(user("x", "u1", cwd="rel"), user("y", "u2")).cwd == "/w"


@pytest.mark.case("L02")
@pytest.mark.parametrize(
    "stamp, time",
    [
        ("2026-01-01T10:00:00.123Z", "2026-01-01T10:00:00.123Z"),
        ("2026-01-01T10:00:00Z", "2026-01-01T10:00:00.000Z"),
        ("2026-01-01T10:00:00.5Z", "2026-01-01T10:00:00.500Z"),
        ("2026-01-01T10:00:00.999999999Z", "2026-01-01T10:00:00.999Z"),
        ("2026-01-01T01:00:00.000+02:00", "2025-12-31T23:00:00.000Z"),
        ("2026-01-01T10:00:00-0530", "2026-01-01T15:30:00.000Z"),
        ("2026-01-01T10:00:00", "2026-01-01T10:00:00.000Z"),
        ("0001-01-01T00:00:00+02:00", None),
        ("2026-13-01T10:00:00.000Z", None),
        ("2026-01-01", None),
        ("2026-W01-1T10:00:00Z", None),
        ("٢٠٢٦-01-01T10:00:00Z", None),
        ("yesterday", None),
        (1767261600000, None),
        (None, None),
    ],
)
def test_a_time_is_told_in_one_form_however_it_is_written(stamp: object, time: str | None) -> None:
    assert moment({"timestamp": stamp}) == time


@pytest.mark.case("L02")
def test_the_time_is_that_of_the_last_message() -> None:
    gathered = facts(
        user("hi", "u1", timestamp="2026-01-01T10:00:00.000Z"),
        {"type": "system", "subtype": "local_command", "timestamp": "2026-01-01T13:00:00.000Z"},
        user("<command-name>/usage</command-name>", "u2", timestamp="2026-01-01T13:00:00.000Z"),
        {"type": "ai-title", "aiTitle": "x"},
    )
    assert gathered.updated_at == "2026-01-01T10:00:00.000Z"


@pytest.mark.case("L05")
def test_a_worker_and_an_empty_file_are_no_sessions() -> None:
    assert not facts({"type": "mode"}, user("x", "u", isSidechain=True)).is_session
    assert not facts(user("x", "u", teamName="crew")).is_session
    assert not facts({"type": "custom-title", "customTitle": "x"}).is_session
    assert not facts().is_session


@pytest.mark.case("L09")
def test_what_can_be_read_of_a_damaged_line_is_read() -> None:
    assert decode_line(b'{"a":1}{"b":2}') == ([{"a": 1}, {"b": 2}], True)
    assert decode_line(b'{"a":1}{"b":') == ([{"a": 1}], False)
    assert decode_line(b'{"a":"cu}{"b":2}') == ([{"b": 2}], False)
    assert decode_line(b"\0" * 4096) == ([], False)
    assert decode_line(b"[1]") == ([], False)
    assert decode_line(b'{"a":"\xff"}')[0] != []


@pytest.mark.case("F02")
def test_exotic_line_separators_stay_in_their_record() -> None:
    said = "a\u2028b\u2029c\x85d\x0be\x0cf"
    line = json.dumps(user(said, "u1"), ensure_ascii=False).encode()
    assert told(decode_line(line)[0]) == [f"user: {said}"]


def test_only_injected_parts_of_a_text_go() -> None:
    assert typed("Why is <b>this</b> here?\n<system-reminder>\nx\n</system-reminder>") == "Why is <b>this</b> here?"
    assert typed("<ide_selection>x</ide_selection>Fix it") == "Fix it"
    assert typed("I typed <system-reminder> myself") == "I typed <system-reminder> myself"


def queued(prompt: object, **more: object) -> JsonObject:
    attachment: JsonObject = {
        "type": "queued_command",
        "commandMode": "prompt",
        "prompt": prompt,
        "source_uuid": "s",
        **more,
    }
    return {"type": "attachment", "uuid": "a1", "attachment": attachment}


@pytest.mark.case("L06")
def test_what_was_said_in_mid_turn_is_the_persons_and_other_attachments_are_nothing() -> None:
    picture: JsonObject = {"type": "image", "source": {"data": "QQ==", "media_type": "image/png"}}
    history = History()
    (said, image) = history.feed(queued([words("and quickly"), picture]))
    assert said == MessageChunk("user", Text("and quickly"), "s")
    assert image == MessageChunk("user", Image("QQ==", "image/png"), "s")
    assert history.feed(queued([words("again")])) == []
    assert told([queued("as a text")]) == ["user: as a text"]
    assert told([queued("<task-notification>x</task-notification>")]) == []
    assert told([queued("x", commandMode="task-notification")]) == []
    assert told([{"type": "attachment", "uuid": "a2", "attachment": {"type": "todo"}}]) == []


def command(name: str, printed: str, *, by_a_client: bool = False) -> list[JsonObject]:
    """The records of a command, as Claude Code 2.1.332 writes them."""
    args = name.partition(" ")[2]
    tags = f"<command-name>/{name.partition(' ')[0]}</command-name>\n<command-args>{args}</command-args>"
    output = f"<local-command-stdout>{printed}</local-command-stdout>"
    typed: JsonObject = {"type": "user", "uuid": f"u-{name}", "message": {"role": "user", "content": tags}}
    if by_a_client:
        return [typed, {"type": "user", "uuid": f"o-{name}", "message": {"role": "user", "content": output}}]
    return [typed, {"type": "system", "subtype": "local_command", "uuid": f"o-{name}", "content": output}]


def test_what_was_sent_along_with_a_command_is_told_behind_it() -> None:
    tags = "<command-name>/fix</command-name>\n<command-args>[@n](x:n)</command-args>"
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    made = [words('<context ref="x:n">\nof it\n</context>'), picture, words("Fix [@n](x:n)")]
    records = [
        user(tags, "u1", promptId="p1"),
        user(made, "u2", promptId="p1", isMeta=True),
        agent(words("fixed"), "u3"),
        user([picture, words("read")], "u4", promptId="p1", isMeta=True),
    ]
    history = History()
    told = [update for record in records for update in history.feed(record)]
    assert told == [
        MessageChunk("user", Text("/fix [@n](x:n)"), "u1"),
        MessageChunk("user", Image("QUJD", "image/png"), "u1"),
        MessageChunk("user", TextResource("x:n", "of it"), "u1"),
        MessageChunk("agent", Text("fixed"), "m1"),
    ]


def test_commands_are_told_as_they_were_typed_with_what_they_printed() -> None:
    records: list[JsonObject] = [
        *command("context", "\x1b[1mContext\x1b[22m\n"),
        *command("model opus", "Set model to Opus"),
        *command("compact", "Compacted ", by_a_client=True),
        *command("model sonnet", "Set model to sonnet", by_a_client=True),
        {"type": "user", "uuid": "b", "message": {"role": "user", "content": "<bash-input>ls</bash-input>"}},
        {"type": "user", "uuid": "c", "message": {"role": "user", "content": "<bash-stdout>a</bash-stdout>"}},
        {
            "type": "user",
            "uuid": "d",
            "isMeta": True,
            "message": {"role": "user", "content": "<command-name>/x</command-name>"},
        },
    ]
    history = History()
    told = [update for record in records for update in history.feed(record)] + history.finish()
    said = [(u.role, u.content.text) for u in told if isinstance(u, MessageChunk) and isinstance(u.content, Text)]
    assert said == [
        ("user", "/context"),
        ("agent", "Context"),
        ("user", "/model opus"),
        ("agent", "Set model to Opus"),
        ("user", "/compact"),
        # The model that a client has set was typed by nobody.
        ("user", "! ls"),
        ("agent", "a"),
    ]
