"""The small parts: commands, diffs, prompts, rows, titles, failures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_manifold.translators.codex.commands import kind_of, unwrap
from acp_manifold.translators.codex.diffs import Change, diffs_of, headline, hunks_of
from acp_manifold.translators.codex.failures import Failure, failure_of
from acp_manifold.translators.codex.naming import LONGEST, request_text, title_in
from acp_manifold.translators.codex.prompts import to_input
from acp_manifold.translators.codex.threads import row_of, typed
from acp_manifold.translators.narrow import as_objects, obj, text
from acp_manifold.translators.updates import Diff, Image, ResourceLink, Text

from .recorded import recorded


@pytest.mark.parametrize(
    ("command", "known_as"),
    [
        ("/bin/bash -lc 'echo hi'", "echo hi"),
        ("/bin/zsh -lc ls", "ls"),
        ("bash -c \"echo 'a b'\"", "echo 'a b'"),
        ("/bin/bash -lc 'echo it'\"'\"'s'", "echo it's"),
        ("python3 -c 'print(1)'", "python3 -c 'print(1)'"),
        ("/bin/bash -lc 'a' b", "/bin/bash -lc 'a' b"),
        ("/bin/bash -lc 'unbalanced", "/bin/bash -lc 'unbalanced"),
        ("/bin/bash script.sh", "/bin/bash script.sh"),
        ("", ""),
    ],
)
def test_the_shell_around_a_command_is_taken_off(command: str, known_as: str) -> None:
    assert unwrap(command) == known_as


@pytest.mark.parametrize(
    ("types", "kind"),
    [
        (["read"], "read"),
        (["read", "search"], "search"),
        (["listFiles"], "search"),
        (["read", "unknown"], "execute"),
        ([], "execute"),
    ],
)
def test_a_command_executes_unless_all_it_does_is_known_to_be_harmless(types: list[str], kind: str) -> None:
    assert kind_of([{"type": name} for name in types]) == kind


def test_each_hunk_is_a_diff_of_its_own() -> None:
    patch = "@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -9 +9,2 @@ def f():\n x\n+y\n\\ No newline at end of file\n"
    assert diffs_of(Change("/f", "update", None, patch)) == (
        Diff("/f", "a\nb\n", "a\nB\n"),
        Diff("/f", "x", "x\ny", line=9),
    )
    assert [hunk.line for hunk in hunks_of(patch)] == [1, 9]


def test_a_form_feed_in_source_is_no_line_end() -> None:
    (hunk,) = hunks_of("@@ -1 +1 @@\n-a\x0cb\u2028c\n+d\n")
    assert (hunk.old, hunk.new) == ("a\x0cb\u2028c\n", "d\n")


@pytest.mark.parametrize(
    ("change", "title", "kind"),
    [
        (Change("/a/new.py", "add", None, ""), "Create new.py", "edit"),
        (Change("/a/old.py", "delete", None, ""), "Delete old.py", "delete"),
        (Change("/a/b.py", "update", "/a/c.py", ""), "Move b.py to c.py", "move"),
    ],
)
def test_a_single_change_is_called_by_its_file(change: Change, title: str, kind: str) -> None:
    assert headline([change]) == (title, kind)


def test_a_prompt_is_sent_block_by_block() -> None:
    prompt = (
        Text("look at"),
        ResourceLink("file:///a%20b/c.py", "c.py"),
        ResourceLink("https://h.test/x", "x"),
        Image("aGk=", "image/png"),
    )
    assert to_input(prompt) == [
        {"type": "text", "text": "look at", "text_elements": []},
        {"type": "text", "text": "[@c.py](/a b/c.py)", "text_elements": []},
        {"type": "text", "text": "[@x](https://h.test/x)", "text_elements": []},
        {"type": "image", "url": "data:image/png;base64,aGk="},
    ]


@pytest.mark.case("T05")
@pytest.mark.parametrize(
    ("preview", "shown"),
    [
        ("Plan the move", "Plan the move"),
        ("# AGENTS.md instructions for /w\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>\n<environment_context>..", None),
        ("<environment_context>\n<cwd>/w</cwd>\n</environment_context>\nFix it", "Fix it"),
        ("# AGENTS.md instructions for /w\n<environment_context>...</environment_context>", None),
        ("<div>broken</div> why?", "<div>broken</div> why?"),
        ("[Image]", None),
        ("[Image] [Image]", None),
        ("an [Image] too", "an [Image] too"),
        ('see [@n](x:n)now<context ref="x:n">\nsecret\n</context>', "see @n now"),
        ("[@c.py](/a b/c.py)look at it", "@c.py look at it"),
        ('<context ref="x:n">\ncut o', None),
        ("", None),
    ],
)
def test_what_no_person_typed_is_no_title(preview: str, shown: str | None) -> None:
    row = row_of({"id": "t", "cwd": "/w", "preview": preview})
    assert row is not None and row.preview == shown


@given(st.text())
def test_what_has_no_injected_block_stays_as_it_is(said: str) -> None:
    assert typed("x" + said) == "x" + said


def test_a_recorded_row_is_read_whole() -> None:
    (thread,) = as_objects(recorded("list-and-history").result("thread/list").get("data"))
    row = row_of(thread)
    assert row is not None
    assert (row.id, row.cwd, row.name, row.archived) == (thread["id"], "/project", "Payments rework", False)
    assert row.seconds == thread["recencyAt"]


def test_the_recorded_title_thread_is_no_row() -> None:
    thread = obj(recorded("title-thread").result("thread/start"), "thread")
    assert text(thread, "threadSource") == "thread_title"
    assert row_of(thread) is None


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ('{"title": " Fix it "}', "Fix it"),
        ('{"title": "' + "x" * 99 + '"}', "x" * LONGEST),
        ('{"title": ""}', None),
        ('{"title": 3}', None),
        ("no json", None),
        ("[]", None),
        ("", None),
    ],
)
def test_a_generated_title_is_what_the_schema_asked_for_or_none(answer: str, title: str | None) -> None:
    assert title_in(answer) == title


def test_a_long_prompt_is_cut_for_the_title() -> None:
    assert len(request_text("x" * 1_000_000)) < 5_000


@pytest.mark.case("A02")
@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ({"message": "m", "codexErrorInfo": "unauthorized"}, Failure("login", "m")),
        ({"message": "m", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 401}}}, Failure("login", "m")),
        ({"message": "m", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 500}}}, Failure("other", "m")),
        ({"message": "m", "codexErrorInfo": "usageLimitExceeded"}, Failure("other", "m")),
        ({"message": "m", "codexErrorInfo": "contextWindowExceeded"}, Failure("too_long", "m")),
        ({"message": '{"error": {"message": "inner"}}'}, Failure("other", "inner")),
        ({"message": "{broken", "additionalDetails": "more"}, Failure("other", "{broken (more)")),
        ({"message": "bad key sk-proj-abc123 in Bearer eyJhbGciOi"}, Failure("other", "bad key sk-... in Bearer ...")),
        ({}, Failure("other", "Codex gave no reason")),
    ],
)
def test_a_failure_is_told_in_codex_words(error: dict[str, object], failure: Failure) -> None:
    assert failure_of(error) == failure
