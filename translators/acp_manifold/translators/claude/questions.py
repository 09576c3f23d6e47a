"""What Claude Code asks of the person besides permissions, as forms, and their answers.

Facts of Claude Code 2.1.332: its tool AskUserQuestion asks by `can_use_tool`, and allowing it with
`answers` in the input answers it: question -> label, several labels in one text, joined by `, ` and
in JSON quotes where one holds a comma or quote; an own answer is as good as a label, and `annotations`
keep what was typed beside a label. A denial is a failed call, after which the turn goes on. MCP servers ask by the
control request `elicitation`, which names the server, never the call; its answer is MCP's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from acp_manifold.translators.form_schemas import Unshowable, fields_of, page_of
from acp_manifold.translators.forms import Choice, Field, Form, FormAnswer, Value
from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, as_str, flag, obj, text
from acp_manifold.translators.updates import ToolCallUpdate
from acp_manifold.translators.values import NamedTuple

DECLINED = "The user declined to answer. Go on without it, or ask in another way."
"""What the model is told when the person said no to its questions."""

DISMISSED = "The user did not answer."
"""What the model is told when a question was dismissed or withdrawn."""


class Inquiry(NamedTuple):
    """A question for the person, and how its answer goes back."""

    form: Form
    respond: Callable[[FormAnswer], JsonObject]
    """The control response for an answer."""


def of_model(request: JsonObject, call: ToolCallUpdate) -> Inquiry | JsonObject:
    """The model's own questions, which a request for its tool holds; or the answer to a request that can't be shown.

    Args:
        request: A `can_use_tool`.
        call: The tool call, as a person is shown it.
    """
    try:
        return of_tool(obj(request, "input"), call)
    except Unshowable as exc:
        return {"behavior": "deny", "message": f"The question can't be shown: {exc}. Ask in plain text instead."}


def of_tool(tool_input: JsonObject, call: ToolCallUpdate) -> Inquiry:
    """The form of an AskUserQuestion.

    Args:
        tool_input: Its input.
        call: The tool call, as a person is shown it.

    Raises:
        Unshowable: There is no question in it.
    """
    questions = [question for question in as_objects(tool_input.get("questions")) if _choices(question)]
    if not questions:
        raise Unshowable("it holds no question with answers to choose from")
    single = len(questions) == 1
    message = text(questions[0], "question") if single else "Please answer these questions."
    fields: list[Field] = []
    for index, question in enumerate(questions):
        fields += _fields(f"question_{index}", question, single)

    def respond(answer: FormAnswer) -> JsonObject:
        if answer.action != "accept":
            return {"behavior": "deny", "message": answer.reason or _REFUSALS[answer.action]}
        return {"behavior": "allow", "updatedInput": {**tool_input, **_answers(questions, answer.values)}}

    return Inquiry(Form(call.id, message, tuple(fields), call=call), respond)


def of_server(request: JsonObject, request_id: str, call: ToolCallUpdate | None) -> Inquiry:
    """The form, or the page, of an MCP server's elicitation.

    Args:
        request: The control request.
        request_id: Its id.
        call: The tool call that the server is at, if that is certain.

    Raises:
        Unshowable: It can't be put to a person.
    """
    server, message = text(request, "mcp_server_name"), text(request, "message")
    if text(request, "mode") == "url":
        form_id = page_id(server, as_str(request.get("elicitation_id")) or request_id)
        form = Form(form_id, message, url=page_of(request.get("url")), call=call, source=server)
    else:
        order = [name for name in as_list(request.get("property_order")) if isinstance(name, str)]
        form = Form(request_id, message, fields_of(request.get("requested_schema"), order), call=call, source=server)

    def respond(answer: FormAnswer) -> JsonObject:
        if answer.action != "accept":
            return {"action": answer.action}
        content: JsonObject = dict(answer.values)
        return {"action": "accept", "content": content} if form.url is None else {"action": "accept"}

    return Inquiry(form, respond)


def of_refusal(payload: JsonObject, request_id: str) -> Inquiry:
    """Whether to go on with another model where one has refused (`refusal_fallback_prompt`).

    Claude Code 2.1.332 keeps the refusal if that is not answered with a yes.

    Args:
        payload: Of the dialog.
        request_id: The id of the control request.

    Raises:
        Unshowable: It names no two models.
    """
    model, other = text(payload, "originalModel"), text(payload, "fallbackModel")
    if not model or not other:
        raise Unshowable("it does not say which models it is about")
    category = text(payload, "apiRefusalCategory")
    message = f"{model} declined this request{f' ({category})' if category else ''}. Retry with {other}?"
    choices = (
        Choice(_RETRY, f"Retry with {other}", f"The session goes on with {other}."),
        Choice(_KEEP, "Keep the refusal", "The turn ends with it."),
    )
    fields = (Field("choice", kind="one", description=text(payload, "guidanceText") or None, choices=choices),)

    def respond(answer: FormAnswer) -> JsonObject:
        retry = answer.action == "accept" and answer.values.get("choice") == _RETRY
        return {"behavior": "completed", "result": _RETRY if retry else _KEEP}

    return Inquiry(Form(request_id, message, fields), respond)


def page_id(server: str, elicitation_id: str) -> str:
    """The id of the form that opens a page: what servers call theirs is unique for each of them alone."""
    return f"{server}:{elicitation_id}"


def tools_of(server: str) -> str:
    """How the names of an MCP server's tools begin."""
    name = "".join(char if char.isascii() and (char.isalnum() or char in "_-") else "_" for char in server)
    return f"mcp__{name}__"


_RETRY, _KEEP = "retry_fallback", "cancelled"
"""The answers to `refusal_fallback_prompt`; the third, `edit_prompt`, is for hosts that can put a prompt back."""

_REFUSALS = {"decline": DECLINED, "cancel": DISMISSED}


def _fields(name: str, question: JsonObject, single: bool) -> list[Field]:
    several = flag(question, "multiSelect")
    picks = Field(
        name,
        kind="some" if several else "one",
        title=text(question, "header") or None,
        description=None if single else text(question, "question"),
        choices=_choices(question),
    )
    words = "besides what you picked" if several else "or a note on what you picked"
    own = Field(f"{name}_other", title="Other", description=f"An answer of your own, {words}.", beside=name)
    return [picks, own]


def _choices(question: JsonObject) -> tuple[Choice, ...]:
    if not text(question, "question"):
        return ()
    return tuple(
        Choice(label, label, as_str(option.get("description")) or None, as_str(option.get("preview")) or None)
        for option in as_objects(question.get("options"))
        if (label := text(option, "label"))
    )


def _answers(questions: list[JsonObject], values: dict[str, Value]) -> JsonObject:
    """`answers`, and `annotations` if there are any."""
    answers: JsonObject = {}
    notes: JsonObject = {}
    for index, question in enumerate(questions):
        name, asked = f"question_{index}", text(question, "question")
        picked, own = values.get(name), str(values.get(f"{name}_other", "")).strip()
        if flag(question, "multiSelect"):
            picks = picked if isinstance(picked, list) else []
            answers[asked] = _joined([*picks, *([own] if own else [])])
        elif picked is None:
            answers[asked] = own
        else:
            answers[asked] = picked
            if own:
                notes[asked] = {"notes": own}
    answers = {asked: answer for asked, answer in answers.items() if answer}
    return {"answers": answers, **({"annotations": {**notes}} if notes else {})}


def _joined(labels: list[str]) -> str:
    return ", ".join(
        json.dumps(label, ensure_ascii=False) if "," in label or '"' in label else label for label in labels
    )
