"""What Codex asks of the person besides approvals, as forms, and their answers.

Facts of codex-cli 0.163.0: `item/tool/requestUserInput` comes in plan mode, and with the feature
`default_mode_request_user_input` in the default one; each question has options or is typed, takes an own
answer beside them if `isOther`, and no item tells of the call. An empty answer lets the turn go on, an
error does too. `request_user_input_async` asks and does not wait: it says itself that the reply is to come as a
message of the person's. A real MCP elicitation has no `codex_approval_kind`; it names the server and the turn,
not the call, its properties are in the order of the alphabet, and nothing ever tells that a page is done.
"""

from __future__ import annotations

from collections.abc import Callable

from acp_manifold.translators.form_schemas import Unshowable, fields_of, page_of
from acp_manifold.translators.forms import Choice, Field, Form, FormAnswer
from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, as_str, flag, text
from acp_manifold.translators.updates import ToolCallUpdate
from acp_manifold.translators.values import NamedTuple

from .approvals import Items

USER_INPUT = "item/tool/requestUserInput"
ELICITATION = "mcpServer/elicitation/request"

_NOTE = "user_note: "
"""How Codex' own dialog marks what was typed."""

_NONE_OF_THESE = "None of the above"
"""What its dialog answers for an own answer, which then comes as a note."""


class Inquiry(NamedTuple):
    """A question for the person, and how its answer goes back."""

    form: Form
    respond: Callable[[FormAnswer], JsonObject]
    """The JSON-RPC result for an answer."""


def inquiry_of(method: str, params: JsonObject, request_id: object, open_items: Items) -> Inquiry:
    """The form in a server request of one of the two kinds.

    Raises:
        Unshowable: It can't be put to a person.
    """
    return _user_input(params) if method == USER_INPUT else _elicitation(params, request_id, open_items)


def _user_input(params: JsonObject) -> Inquiry:
    questions = [question for question in as_objects(params.get("questions")) if text(question, "id")]
    if not questions:
        raise Unshowable("it holds no question")
    single = len(questions) == 1
    message = text(questions[0], "question") if single else "Please answer these questions."
    fields: list[Field] = []
    for question in questions:
        fields += _fields(question, single)

    def respond(answer: FormAnswer) -> JsonObject:
        if answer.action != "accept":
            reason = [f"{_NOTE}(no answer) {answer.reason}"] if answer.reason else []
            return {"answers": {text(question, "id"): {"answers": reason} for question in questions}}
        return {"answers": {text(question, "id"): {"answers": _said(question, answer)} for question in questions}}

    return Inquiry(Form(text(params, "itemId"), message, tuple(fields)), respond)


def open_form(item: JsonObject) -> Form:
    """The form of a message that asks and does not wait (`request_user_input_async`); its questions are not empty."""
    questions = as_objects(item.get("questions"))
    single = len(questions) == 1
    message = text(questions[0], "title") if single else "Please answer these questions."
    fields: list[Field] = []
    for index, question in enumerate(questions):
        options = dict.fromkeys(option for option in as_list(question.get("options")) if isinstance(option, str))
        choices = tuple(Choice(option, option) for option in options if option)
        name, asked = f"question_{index}", None if single else text(question, "title")
        if choices:
            fields.append(Field(name, kind="one", description=asked, choices=choices))
            words = "An answer of your own, or a note on what you picked."
            fields.append(Field(f"{name}_other", title="Other", description=words, beside=name))
        else:
            fields.append(Field(name, description=asked))
    return Form(text(item, "id"), f"{message} (Codex goes on while you answer.)", tuple(fields))


def answer_text(item: JsonObject, answer: FormAnswer) -> str:
    """What was answered to `open_form`, as a message that repeats the questions; empty if nothing was."""
    told: list[str] = []
    for index, question in enumerate(as_objects(item.get("questions"))):
        picked = str(answer.values.get(f"question_{index}", "")).strip()
        own = str(answer.values.get(f"question_{index}_other", "")).strip()
        said = f"{picked} ({own})" if picked and own else picked or own
        if said:
            asked = text(question, "title").replace("\n", "\n> ")
            told.append(f"> {asked}\n\n{said}")
    return "\n\n".join(told) if answer.action == "accept" else ""


def _fields(question: JsonObject, single: bool) -> list[Field]:
    name, secret = text(question, "id"), flag(question, "isSecret")
    title, asked = as_str(question.get("header")) or None, None if single else text(question, "question")
    choices = tuple(
        Choice(label, label, as_str(option.get("description")) or None)
        for option in as_objects(question.get("options"))
        if (label := text(option, "label"))
    )
    if not choices:
        return [Field(name, title=title, description=asked, required=True, secret=secret)]
    fields = [Field(name, kind="one", title=title, description=asked, choices=choices)]
    if flag(question, "isOther"):
        words = "An answer of your own, or a note on what you picked."
        fields.append(Field(f"{name}_other", title="Other", description=words, secret=secret, beside=name))
    return fields


def _said(question: JsonObject, answer: FormAnswer) -> list[str]:
    name = text(question, "id")
    picked, own = answer.values.get(name), str(answer.values.get(f"{name}_other", "")).strip()
    said = [str(picked)] if picked is not None else []
    if own:
        said = [*(said or [_NONE_OF_THESE]), f"{_NOTE}{own}"]
    return said


def _elicitation(params: JsonObject, request_id: object, open_items: Items) -> Inquiry:
    server, message, mode = text(params, "serverName"), text(params, "message"), text(params, "mode")
    calls = [item_id for item_id, item in open_items.items() if text(item, "server") == server]
    # Which of several it is asked for is not told.
    call = ToolCallUpdate(calls[0]) if len(calls) == 1 else None
    form_id = f"{server}:{as_str(params.get('elicitationId')) or request_id}"
    if mode == "url":
        form = Form(form_id, message, url=page_of(params.get("url")), call=call, source=server)
    elif mode == "form":
        form = Form(form_id, message, fields_of(params.get("requestedSchema")), call=call, source=server)
    else:
        raise Unshowable(f"it is of a kind that is not known here: {mode[:40] or 'none is given'}")

    def respond(answer: FormAnswer) -> JsonObject:
        accepted = answer.action == "accept" and form.url is None
        return {"action": answer.action, "content": dict(answer.values) if accepted else None, "_meta": None}

    return Inquiry(form, respond)
