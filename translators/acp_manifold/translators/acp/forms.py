"""Forms to ACP's `elicitation/create` and back (v1, SDK 2.4.0, unstable schema)."""

from __future__ import annotations

from collections.abc import Callable

from acp_manifold.translators.acp.requests import META_KEY
from acp_manifold.translators.forms import Choice, Field, FieldKind, Form, FormAnswer, Misfit, checked
from acp_manifold.translators.narrow import JsonObject, as_object

_PREVIEW = "_claude/askUserQuestionOption"
"""The key under which the clients of today look for what a choice would look like."""

_SECRET = "A secret: it is passed on, and neither shown nor logged here."


def elicitation_params(session_id: str, form: Form, *, air: bool = False) -> JsonObject:
    """Params of `elicitation/create`.

    Args:
        session_id: Whose question it is.
        form: What to ask.
        air: Whether the client has the vendor's extensions, one of which marks fields for an own answer.
    """
    params: JsonObject = {"sessionId": session_id, "message": message_of(form)}
    if form.call is not None:
        params["toolCallId"] = form.call.id
    if form.source is not None:
        params["_meta"] = {META_KEY: {"mcpServer": form.source}}
    if form.url is not None:
        return {**params, "mode": "url", "url": form.url, "elicitationId": elicitation_id(session_id, form.id)}
    properties: JsonObject = {field.name: _property(field, air) for field in form.fields}
    schema: JsonObject = {"type": "object", "properties": properties}
    required = [field.name for field in form.fields if field.required]
    if required:
        schema["required"] = required
    return {**params, "mode": "form", "requestedSchema": schema}


def elicitation_id(session_id: str, form_id: str) -> str:
    """The id of a page to open, of ours: those of two sessions' MCP servers may be the same."""
    return f"{session_id}:{form_id}"


def message_of(form: Form) -> str:
    """What a form says, and who says it, if it is an MCP server."""
    return form.message if form.source is None else f"The MCP server {form.source} asks: {form.message}"


def form_answer(form: Form, result: object) -> FormAnswer:
    """What a client's answer to `elicitation/create` means; one that doesn't fit the form counts as none, as None."""
    if result is None:
        return FormAnswer("cancel")
    answer = as_object(result)
    match answer.get("action"):
        case "accept":
            try:
                return FormAnswer("accept", checked(form, answer.get("content")))
            except Misfit as exc:
                return FormAnswer("cancel", reason=f"The client's answer does not fit the form: {exc}.")
        case "decline":
            return FormAnswer("decline")
        case "cancel":
            return FormAnswer("cancel")
        case _:
            return FormAnswer("cancel", reason="The client's answer was not understood.")


def _property(field: Field, air: bool) -> JsonObject:
    description = field.description
    meta: JsonObject = {}
    if field.secret:
        description = f"{description}\n\n{_SECRET}" if description else _SECRET
        meta[META_KEY] = {"secret": True}
    if field.beside is not None and air:
        meta["jetbrains"] = {
            "air": {"version": 1, "customAnswer": {"questionId": field.beside, "isCustomAnswer": True}}
        }
    said: JsonObject = {"title": field.title, "description": description, "default": field.default}
    body = {**_BODIES[field.kind](field), **said, "_meta": meta or None}
    return {key: value for key, value in body.items() if value is not None}


def _text(field: Field) -> JsonObject:
    return {
        "type": "string",
        "minLength": field.least,
        "maxLength": field.most,
        "pattern": field.pattern,
        "format": field.format,
    }


def _number(field: Field) -> JsonObject:
    return {"type": field.kind, "minimum": field.least, "maximum": field.most}


def _boolean(field: Field) -> JsonObject:
    return {"type": "boolean"}


def _one(field: Field) -> JsonObject:
    return {"type": "string", "oneOf": [_choice(choice) for choice in field.choices]}


def _some(field: Field) -> JsonObject:
    choices = [_choice(choice) for choice in field.choices]
    return {"type": "array", "items": {"anyOf": choices}, "minItems": field.least, "maxItems": field.most}


def _choice(choice: Choice) -> JsonObject:
    option: JsonObject = {"const": choice.value, "title": choice.title}
    if choice.description is not None:
        option["description"] = choice.description
    if choice.preview is not None:
        option["_meta"] = {_PREVIEW: {"preview": choice.preview}}
    return option


_BODIES: dict[FieldKind, Callable[[Field], JsonObject]] = {
    "text": _text,
    "number": _number,
    "integer": _number,
    "boolean": _boolean,
    "one": _one,
    "some": _some,
}
