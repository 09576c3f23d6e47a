"""`can_use_tool` as a question, and what each answer sends back."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.permissions import Asked, answer, asked
from acp_manifold.translators.narrow import JsonObject, as_objects, text
from acp_manifold.translators.updates import CommandToRun, Text
from tests.translators.claude.recorded import requests


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
    assert question.command == CommandToRun("touch made.txt && echo one && echo two >&2", "/project")
    assert question.reason == "scripted"


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


PLAN: JsonObject = {"tool_name": "ExitPlanMode", "tool_use_id": "t1", "input": {"plan": "# Plan", "planFilePath": "/p"}}


def test_the_end_of_planning_shows_the_plan_and_the_modes_it_may_go_on_in() -> None:
    question = asked(PLAN, "/w").question
    assert question.tool_call.content == (Text("# Plan"),) and question.tool_call.kind == "switch_mode"
    assert [(option.kind, option.name) for option in question.options] == [
        ("allow_always", "Yes, and accept all edits"),
        ("allow_once", "Yes, and ask before each edit"),
        ("reject_once", "No, keep planning"),
    ]


@pytest.mark.parametrize(("choice", "mode"), [("plan:edits", "acceptEdits"), ("allow", "default")])
def test_an_approved_plan_goes_on_in_the_mode_that_was_chosen(choice: str, mode: str) -> None:
    assert answer(asked(PLAN, "/w"), choice) == {
        "behavior": "allow",
        "updatedInput": PLAN["input"],
        "updatedPermissions": [{"type": "setMode", "mode": mode, "destination": "session"}],
    }


@pytest.mark.case("P03")
@pytest.mark.parametrize("choice", ["reject", "bypassPermissions", None])
def test_a_plan_that_is_not_approved_is_planned_on(choice: str | None) -> None:
    response = answer(asked(PLAN, "/w"), choice)
    assert response["behavior"] == "deny" and "interrupt" not in response
    assert choice is None or "keep planning" in text(response, "message")
