"""Forms: made from MCP's schemas, shown as ACP has them or as choices, and answered with what fits alone."""

from __future__ import annotations

import pytest

from acp_manifold.translators.acp.forms import elicitation_params, form_answer
from acp_manifold.translators.choices import stepwise, unaskable
from acp_manifold.translators.form_schemas import Unshowable, fields_of, page_of
from acp_manifold.translators.forms import Field, Form, FormAnswer, Misfit, checked
from acp_manifold.translators.narrow import JsonObject, obj
from acp_manifold.translators.updates import Question, ToolCallUpdate
from tests.schema import schema

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "age": {"type": "integer", "minimum": 0, "maximum": 150, "default": "old"},
        "share": {"type": "number", "maximum": 1.5, "default": 0.5},
        "ok": {"type": ["boolean", "null"], "default": True},
        "color": {"type": "string", "enum": ["red", "blue"], "enumNames": ["Red"], "default": "blue"},
        "size": {"oneOf": [{"const": "s", "title": "Small", "description": "fits"}, {"const": "l"}]},
        "many": {"type": "array", "maxItems": 2, "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b"}]}},
        "few": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "default": ["z"]},
        "name": {"type": "string", "title": "Name", "minLength": 1, "maxLength": -1, "format": "uuid", "pattern": "a+"},
        "mail": {"type": "string", "format": "email"},
    },
    "required": ["name"],
}
FORM = Form("f1", "Who are you?", fields_of(SCHEMA, ["name", "gone"]), source="probe")
ONE, SOME, TYPED = FORM.fields[4], FORM.fields[6], FORM.fields[0]


def asked(form: Form, *chosen: str | None) -> tuple[list[Question], FormAnswer]:
    """The questions that a form is asked by, and what comes of it."""
    steps, questions, answers = stepwise(form), list[Question](), iter(chosen)
    try:
        question = next(steps)
        while True:
            questions.append(question)
            question = steps.send(next(answers))
    except StopIteration as end:
        assert list(answers) == []
        return questions, end.value


def test_a_schema_is_shown_as_the_protocol_has_forms() -> None:
    params = elicitation_params("s1", FORM)
    schema().check({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})
    assert params["message"] == "The MCP server probe asks: Who are you?"
    asks = obj(params, "requestedSchema")
    assert list(obj(asks, "properties")) == ["name", "age", "share", "ok", "color", "size", "many", "few", "mail"]
    assert asks["required"] == ["name"]
    assert obj(asks, "properties") == {
        "name": {"type": "string", "title": "Name", "minLength": 1, "pattern": "a+"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "share": {"type": "number", "maximum": 1.5, "default": 0.5},
        "ok": {"type": "boolean", "default": True},
        "color": {
            "type": "string",
            "oneOf": [{"const": "red", "title": "Red"}, {"const": "blue", "title": "blue"}],
            "default": "blue",
        },
        "size": {
            "type": "string",
            "oneOf": [{"const": "s", "title": "Small", "description": "fits"}, {"const": "l", "title": "l"}],
        },
        "many": {
            "type": "array",
            "items": {"anyOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "b"}]},
            "maxItems": 2,
        },
        "few": {"type": "array", "items": {"anyOf": [{"const": "x", "title": "x"}, {"const": "y", "title": "y"}]}},
        "mail": {"type": "string", "format": "email"},
    }


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "object", "properties": {}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "array", "items": {"enum": [1, 2]}},
        {"type": "string", "enum": ["a", 1]},
        {"type": "string", "enum": []},
        {"$ref": "#/x"},
        {},
    ],
)
def test_what_no_form_has_a_field_for_is_refused_whole(odd: JsonObject) -> None:
    with pytest.raises(Unshowable, match="odd"):
        fields_of({"type": "object", "properties": {"fine": {"type": "string"}, "odd": odd}})
    with pytest.raises(Unshowable, match="missing"):
        fields_of({"type": "object", "properties": {}, "required": ["missing"]})


def test_an_answer_that_fits_is_taken_and_what_nobody_asked_for_is_left_out() -> None:
    content = {"name": "Ann", "age": 3.0, "ok": False, "many": ["b", "a"], "mail": "", "share": None, "extra": 1}
    assert form_answer(FORM, {"action": "accept", "content": content}) == FormAnswer(
        "accept", {"name": "Ann", "age": 3, "ok": False, "many": ["b", "a"]}
    )


@pytest.mark.case("P03")
@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("name", ""),
        ("name", None),
        ("name", 3),
        ("name", "\ud800"),
        ("age", True),
        ("age", 151),
        ("age", 1.5),
        ("share", "x"),
        ("share", float("nan")),
        ("ok", "yes"),
        ("color", "green"),
        ("color", ["red"]),
        ("many", "a"),
        ("many", ["a", "c"]),
        ("many", ["a", "a"]),
        ("few", [1]),
    ],
)
def test_an_answer_that_does_not_fit_is_none_and_is_not_repeated_in_the_reason(field: str, said: object) -> None:
    answer = form_answer(FORM, {"action": "accept", "content": {"name": "A", field: said}})
    assert answer.action == "cancel" and answer.values == {}
    assert answer.reason is not None and repr(field) in answer.reason and "green" not in answer.reason


@pytest.mark.parametrize(
    ("result", "action", "explained"),
    [
        ({"action": "decline"}, "decline", False),
        ({"action": "cancel", "content": {"name": "A"}}, "cancel", False),
        ({"action": "later"}, "cancel", True),
        ({"action": "accept", "content": []}, "cancel", True),
        ("accept", "cancel", True),
        (None, "cancel", False),
    ],
)
def test_everything_but_an_accept_gives_no_values(result: object, action: str, explained: bool) -> None:
    answer = form_answer(FORM, result)
    assert (answer.action, answer.values, answer.reason is not None) == (action, {}, explained)


def test_a_page_is_shown_with_an_id_that_is_ours() -> None:
    form = Form("probe:1", "Log in", url=page_of("https://example.org/x?y=1"), call=ToolCallUpdate("c1"))
    params = elicitation_params("s1", form)
    schema().check({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params})
    assert params["elicitationId"] == "s1:probe:1" and params["toolCallId"] == "c1"


@pytest.mark.parametrize("url", ["javascript:alert(1)", "file:///etc/passwd", "https://a b", "https://a\n", "", None])
def test_nothing_but_the_web_is_opened(url: object) -> None:
    with pytest.raises(Unshowable):
        page_of(url)


def test_a_secret_is_marked_and_an_own_answer_is_for_those_who_know_the_mark() -> None:
    form = Form("f", "Key?", (Field("key", secret=True), Field("x_other", beside="x")))
    plain = obj(obj(elicitation_params("s", form), "requestedSchema"), "properties")
    assert obj(plain, "key")["_meta"] == {"acp-manifold": {"secret": True}} and "_meta" not in obj(plain, "x_other")
    marked = obj(obj(elicitation_params("s", form, air=True), "requestedSchema"), "properties")
    assert "customAnswer" in str(obj(marked, "x_other")["_meta"])


def test_choices_are_asked_one_after_the_other() -> None:
    form = Form("f", "Please choose.", (FORM.fields[4], FORM.fields[3], FORM.fields[8]))
    questions, answer = asked(form, "answer:1", "answer:1")
    assert answer == FormAnswer("accept", {"color": "blue", "ok": False})
    assert [option.name for option in questions[0].options] == ["Red", "blue", "Skip this question", "Don't answer"]
    assert questions[1].tool_call.title == "ok"
    assert asked(form, "skip", "skip")[1] == FormAnswer("accept", {})


def test_several_are_picked_until_the_person_says_that_it_is_all() -> None:
    form = Form("f", "Which?", (SOME._replace(least=2, most=None, choices=(*SOME.choices, FORM.fields[4].choices[0])),))
    questions, answer = asked(form, "answer:1", "answer:0", "done")
    assert answer == FormAnswer("accept", {"many": ["a", "b"]})
    assert [[option.id for option in question.options] for question in questions] == [
        ["answer:0", "answer:1", "answer:2", "decline"],
        ["answer:0", "answer:2", "decline"],
        ["done", "answer:2", "decline"],
    ]
    assert questions[2].tool_call.title == "Which? (chosen: A, b)"
    assert questions[2].options[0].name == "That is all: A, b"


@pytest.mark.case("P03")
@pytest.mark.parametrize(("chosen", "action"), [("decline", "decline"), (None, "cancel"), ("answer:7", "cancel")])
def test_a_no_at_any_question_is_a_no_to_all(chosen: str | None, action: str) -> None:
    form = Form("f", "Please choose.", (ONE, ONE._replace(name="again")))
    questions, answer = asked(form, "answer:0", chosen)
    assert (answer.action, answer.values, len(questions)) == (action, {}, 2)


@pytest.mark.parametrize("url", [None, "https://example.org"])
def test_a_page_and_a_plain_message_are_a_yes_or_no(url: str | None) -> None:
    form = Form("f", "Go on?", url=url)
    (question,), answer = asked(form, "accept")
    assert answer == FormAnswer("accept", {}) and question.tool_call.id == "f"
    assert [option.kind for option in question.options] == ["allow_once", "reject_once"]
    assert (url or "Go on?") in str(question.tool_call.content)
    assert asked(form, "decline")[1].action == "decline"


def test_what_has_to_be_typed_can_not_be_asked_by_choosing() -> None:
    assert unaskable(Form("f", "", (ONE, TYPED))) is not None
    assert unaskable(Form("f", "", (TYPED._replace(required=False),))) is not None
    assert unaskable(Form("f", "", (ONE, TYPED._replace(required=False)))) is None
    with pytest.raises(Misfit):
        checked(Form("f", "", (TYPED,)), {})
