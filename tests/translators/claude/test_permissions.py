"""`can_use_tool` as a question, and what each answer sends back."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.permissions import Asked, answer, asked, unanswerable
from acp_manifold.translators.narrow import JsonObject, as_objects, text
from tests.translators.claude.recorded import requests

CHOICE: JsonObject = {
    "tool_name": "AskUserQuestion",
    "tool_use_id": "t1",
    "input": {"questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}], "multiSelect": False}]},
}


@pytest.fixture
def touch() -> tuple[Asked, JsonObject]:
    (request,) = requests("permission-allow", "can_use_tool")
    return asked(request, "/project"), request


def test_the_options_name_what_they_allow_and_for_how_long(touch: tuple[Asked, JsonObject]) -> None:
    question = touch[0].question
    assert [(option.kind, option.name) for option in question.options] == [
        ("allow_once", "Allow once"),
        ("allow_always", "Always allow Bash(touch made.txt && echo one && echo two >&2) in this project, for me"),
        ("allow_always", "Allow, and add /project to the working directories in this session"),
        ("allow_always", "Allow, and accept all edits in this session"),
        ("reject_once", "Reject"),
    ]
    assert question.tool_call.title == "touch made.txt && echo one && echo two >&2"
    assert question.tool_call.kind == "execute" and question.tool_call.status == "pending"


def test_allow_once_sends_the_input_back_and_no_permissions(touch: tuple[Asked, JsonObject]) -> None:
    question, request = touch
    assert answer(question, "allow") == {"behavior": "allow", "updatedInput": request["input"]}


def test_allow_always_sends_the_suggestion_back_that_was_chosen(touch: tuple[Asked, JsonObject]) -> None:
    question, request = touch
    suggestions = as_objects(request["permission_suggestions"])
    assert len(suggestions) == 3
    for index, suggestion in enumerate(suggestions):
        assert answer(question, f"always:{index}") == {
            "behavior": "allow",
            "updatedInput": request["input"],
            "updatedPermissions": [suggestion],
        }


@pytest.mark.case("P03")
@pytest.mark.parametrize("choice", ["reject", "always:7", "always:x", "answer:0", "ALLOW", "", None])
def test_everything_else_refuses_without_ending_the_turn(touch: tuple[Asked, JsonObject], choice: str | None) -> None:
    response = answer(touch[0], choice)
    assert response["behavior"] == "deny" and text(response, "message")
    assert "interrupt" not in response


@pytest.mark.case("P03")
@pytest.mark.parametrize(
    "suggestion",
    [
        {"type": "setMode", "mode": "bypassPermissions", "destination": "session"},
        {"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "deny", "destination": "session"},
        {"type": "addRules", "rules": [{"toolName": "Bash"}], "behavior": "allow", "destination": "the moon"},
        {"type": "novel", "destination": "session"},
        {},
    ],
)
def test_a_suggestion_that_is_not_understood_is_not_offered(suggestion: JsonObject) -> None:
    question = asked({"tool_name": "Bash", "input": {}, "permission_suggestions": [suggestion]}, "/w").question
    assert [option.id for option in question.options] == ["allow", "reject"]


def test_a_question_of_the_model_is_answered_by_choosing() -> None:
    question = asked(CHOICE, "/w")
    assert unanswerable(CHOICE) is None
    assert [option.name for option in question.question.options] == ["A", "B", "Don't answer"]
    response = answer(question, "answer:1")
    assert response["behavior"] == "allow"
    updated = response["updatedInput"]
    assert isinstance(updated, dict) and updated["answers"] == {"Which?": "B"}
    assert answer(question, "allow")["behavior"] == "deny"


def test_questions_of_another_form_are_not_asked() -> None:
    several: JsonObject = {"tool_name": "AskUserQuestion", "input": {"questions": [{}, {}]}}
    assert unanswerable(several)
    assert unanswerable({"tool_name": "Bash", "input": {}}) is None
