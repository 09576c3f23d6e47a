"""What Codex asks of the person, and how the answers go back."""

from __future__ import annotations

import pytest

from acp_manifold.translators.codex.questions import ELICITATION, USER_INPUT, answer_text, inquiry_of, open_form
from acp_manifold.translators.form_schemas import Unshowable
from acp_manifold.translators.forms import FormAnswer, Value
from acp_manifold.translators.narrow import JsonObject

DB: JsonObject = {
    "id": "db",
    "header": "DB",
    "question": "Which db?",
    "isOther": True,
    "isSecret": False,
    "options": [{"label": "Postgres", "description": "big"}, {"label": "SQLite", "description": "small"}],
}
KEY: JsonObject = {"id": "key", "header": "Key", "question": "Your key?", "isSecret": True, "options": None}
ASKED: JsonObject = {"threadId": "T", "turnId": "U", "itemId": "c1", "questions": [DB, KEY]}


def test_questions_are_one_form_and_a_secret_is_one() -> None:
    form = inquiry_of(USER_INPUT, ASKED, 0, {}).form
    assert form.id == "c1" and form.call is None
    assert [(field.name, field.kind, field.required, field.secret) for field in form.fields] == [
        ("db", "one", False, False),
        ("db_other", "text", False, False),
        ("key", "text", True, True),
    ]


@pytest.mark.parametrize(
    ("values", "db"),
    [
        ({"db": "SQLite"}, ["SQLite"]),
        ({"db": "SQLite", "db_other": "fast"}, ["SQLite", "user_note: fast"]),
        ({"db_other": "MySQL"}, ["None of the above", "user_note: MySQL"]),
        ({}, []),
    ],
)
def test_answers_go_back_by_question(values: dict[str, Value], db: list[str]) -> None:
    result = inquiry_of(USER_INPUT, ASKED, 0, {}).respond(FormAnswer("accept", {**values, "key": "k"}))
    assert result == {"answers": {"db": {"answers": db}, "key": {"answers": ["k"]}}}


@pytest.mark.case("P03")
def test_no_answer_is_an_empty_one_and_says_why_nobody_was_asked() -> None:
    respond = inquiry_of(USER_INPUT, ASKED, 0, {}).respond
    assert respond(FormAnswer("decline")) == {"answers": {"db": {"answers": []}, "key": {"answers": []}}}
    assert "can't show" in str(respond(FormAnswer("decline", reason="The client can't show this.")))


def test_an_mcp_server_asks_for_the_call_it_is_at_when_that_is_certain() -> None:
    params: JsonObject = {
        "threadId": "T",
        "turnId": "U",
        "serverName": "el",
        "mode": "form",
        "_meta": None,
        "message": "Who?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    one: dict[str, JsonObject] = {"i1": {"server": "el"}, "i2": {"server": "other"}}
    inquiry = inquiry_of(ELICITATION, params, 7, one)
    assert inquiry.form.call is not None and inquiry.form.call.id == "i1" and inquiry.form.source == "el"
    assert inquiry_of(ELICITATION, params, 7, {**one, "i3": {"server": "el"}}).form.call is None
    accepted: JsonObject = {"action": "accept", "content": {"name": "Ann"}, "_meta": None}
    assert inquiry.respond(FormAnswer("accept", {"name": "Ann"})) == accepted
    for action in ("decline", "cancel"):
        assert inquiry.respond(FormAnswer(action)) == {"action": action, "content": None, "_meta": None}


def test_a_page_has_no_content_and_an_unknown_kind_can_not_be_shown() -> None:
    params: JsonObject = {
        "serverName": "el",
        "mode": "url",
        "url": "https://x.org",
        "elicitationId": "e",
        "message": "m",
    }
    inquiry = inquiry_of(ELICITATION, params, 7, {})
    assert (inquiry.form.id, inquiry.form.url) == ("el:e", "https://x.org")
    assert inquiry.respond(FormAnswer("accept")) == {"action": "accept", "content": None, "_meta": None}
    with pytest.raises(Unshowable):
        inquiry_of(ELICITATION, {**params, "mode": "openai/form"}, 7, {})


OPEN: JsonObject = {
    "type": "agentMessage",
    "id": "call_1",
    "text": "Which db?\n- Postgres\n- SQLite\n\nWhy?",
    "delivery": "async",
    "questions": [{"title": "Which db?", "options": ["Postgres", "SQLite", "SQLite"]}, {"title": "Why\nso?"}],
}


def test_questions_that_are_not_waited_for_are_one_form() -> None:
    form = open_form(OPEN)
    assert (form.id, form.call) == ("call_1", None) and "goes on" in form.message
    assert [(field.name, field.kind, field.required, field.description) for field in form.fields] == [
        ("question_0", "one", False, "Which db?"),
        ("question_0_other", "text", False, "An answer of your own, or a note on what you picked."),
        ("question_1", "text", False, "Why\nso?"),
    ]
    assert [choice.value for choice in form.fields[0].choices] == ["Postgres", "SQLite"]
    alone = open_form({**OPEN, "questions": [{"title": "Why?", "options": None}]})
    assert alone.message.startswith("Why?") and alone.fields[0].description is None


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"question_0": "SQLite"}, "> Which db?\n\nSQLite"),
        ({"question_0": "SQLite", "question_0_other": "fast"}, "> Which db?\n\nSQLite (fast)"),
        ({"question_0_other": "MySQL", "question_1": "so"}, "> Which db?\n\nMySQL\n\n> Why\n> so?\n\nso"),
        ({}, ""),
        ({"question_1": " "}, ""),
    ],
)
def test_their_answers_are_a_message_that_repeats_the_questions(values: dict[str, Value], said: str) -> None:
    assert answer_text(OPEN, FormAnswer("accept", values)) == said
    assert answer_text(OPEN, FormAnswer("decline", values)) == ""
