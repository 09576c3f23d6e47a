"""What Claude Code asks of the person, and how the answers go back."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.questions import of_server, of_tool, page_id, tools_of
from acp_manifold.translators.form_schemas import Unshowable
from acp_manifold.translators.forms import FormAnswer, Value
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import ToolCallUpdate

CALL = ToolCallUpdate("t1", title="Which db?")
DB: JsonObject = {
    "question": "Which db?",
    "header": "DB",
    "multiSelect": False,
    "options": [{"label": "Postgres", "description": "big"}, {"label": "SQLite", "preview": "a\nb"}],
}
PARTS: JsonObject = {
    "question": "Which parts?",
    "header": "Parts",
    "multiSelect": True,
    "options": [{"label": "a, b"}, {"label": 'say "c"'}, {"label": "d"}],
}
ASKED: JsonObject = {"questions": [DB, PARTS], "metadata": {"source": "x"}}


def test_several_questions_are_one_form_with_room_for_own_answers() -> None:
    form = of_tool(ASKED, CALL).form
    assert form.call == CALL and form.message == "Please answer these questions."
    assert [(field.name, field.kind, field.beside) for field in form.fields] == [
        ("question_0", "one", None),
        ("question_0_other", "text", "question_0"),
        ("question_1", "some", None),
        ("question_1_other", "text", "question_1"),
    ]
    assert form.fields[0].description == "Which db?" and form.fields[0].choices[1].preview == "a\nb"
    assert of_tool({"questions": [DB]}, CALL).form.message == "Which db?"


@pytest.mark.parametrize(
    ("values", "answers", "notes"),
    [
        (
            {"question_0": "SQLite", "question_1": ["a, b", 'say "c"', "d"]},
            {"Which db?": "SQLite", "Which parts?": '"a, b", "say \\"c\\"", d'},
            None,
        ),
        ({"question_0": "SQLite", "question_0_other": " fast "}, {"Which db?": "SQLite"}, {"notes": "fast"}),
        (
            {"question_0_other": "MySQL", "question_1_other": "e"},
            {"Which db?": "MySQL", "Which parts?": "e"},
            None,
        ),
        ({"question_1": ["d"], "question_1_other": "e, f"}, {"Which parts?": 'd, "e, f"'}, None),
        ({}, {}, None),
    ],
)
def test_answers_go_back_in_the_input(values: dict[str, Value], answers: JsonObject, notes: JsonObject | None) -> None:
    response = of_tool(ASKED, CALL).respond(FormAnswer("accept", values))
    expected = {**ASKED, "answers": answers, **({"annotations": {"Which db?": notes}} if notes else {})}
    assert response == {"behavior": "allow", "updatedInput": expected}


@pytest.mark.case("P03")
@pytest.mark.parametrize("answer", [FormAnswer("decline"), FormAnswer("cancel"), FormAnswer("cancel", reason="Why.")])
def test_no_answer_denies_the_call_and_lets_the_turn_go_on(answer: FormAnswer) -> None:
    response = of_tool(ASKED, CALL).respond(answer)
    assert response["behavior"] == "deny" and response["message"] and "interrupt" not in response
    assert answer.reason is None or response["message"] == "Why."


@pytest.mark.parametrize("questions", [[], [{}], [{"question": "What?", "options": []}], "x"])
def test_a_question_without_choices_can_not_be_shown(questions: object) -> None:
    with pytest.raises(Unshowable):
        of_tool({"questions": questions}, CALL)


def test_a_server_asks_by_a_form_in_the_order_it_gave() -> None:
    request: JsonObject = {
        "mcp_server_name": "el",
        "message": "Who?",
        "mode": "form",
        "requested_schema": {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer"}}},
        "property_order": ["a", "b"],
    }
    inquiry = of_server(request, "r1", CALL)
    assert [field.name for field in inquiry.form.fields] == ["a", "b"]
    assert (inquiry.form.source, inquiry.form.id, inquiry.form.call) == ("el", "r1", CALL)
    assert inquiry.respond(FormAnswer("accept", {"a": 1})) == {"action": "accept", "content": {"a": 1}}
    assert inquiry.respond(FormAnswer("decline", reason="x")) == {"action": "decline"}


def test_a_server_has_a_page_opened() -> None:
    request: JsonObject = {"mcp_server_name": "el", "mode": "url", "url": "https://x.org", "elicitation_id": "1"}
    inquiry = of_server(request, "r1", None)
    assert (inquiry.form.url, inquiry.form.id) == ("https://x.org", page_id("el", "1"))
    assert inquiry.respond(FormAnswer("accept")) == {"action": "accept"}


def test_the_tools_of_a_server_are_known_by_their_names() -> None:
    assert tools_of("my server.1") == "mcp__my_server_1__"
