"""Questions with more than one answer to choose: forms, links to open, and what a person says to them.

No protocol's spelling. A form is flat, as ACP and MCP have it: fields of text, numbers, yes or no,
one of several, some of several. `checked` is the only way from what a client sends to an answer, so
that a backend never gets what was not offered. Apart from `updates` because few sessions ask any.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Literal, TypeAlias

from acp_manifold.translators.values import NamedTuple

from .narrow import JsonObject, as_list, is_list, is_object, is_text
from .updates import ToolCallUpdate

Value: TypeAlias = str | int | float | bool | list[str]
"""What one field is answered with; a list for a field of kind `some`."""

FieldKind: TypeAlias = Literal["text", "number", "integer", "boolean", "one", "some"]
"""`one` and `some` are picked from the choices of the field."""


class Choice(NamedTuple):
    """One thing that can be picked."""

    value: str
    """What picking it answers."""
    title: str
    description: str | None = None
    preview: str | None = None
    """What it would look like: text to show while it is looked at."""


class Field(NamedTuple):
    """One thing that a form asks for."""

    name: str
    kind: FieldKind = "text"
    title: str | None = None
    description: str | None = None
    required: bool = False
    choices: tuple[Choice, ...] = ()
    least: int | float | None = None
    """The smallest number, the fewest characters of a text, the fewest picks."""
    most: int | float | None = None
    pattern: str | None = None
    """A regular expression for a text, as JSON Schema has them. Told to the client, and left to who asks to check:
    an expression of others may take for ever."""
    format: str | None = None
    """`email`, `uri`, `date` or `date-time`; checked as `pattern` is."""
    default: Value | None = None
    secret: bool = False
    """Whether the answer must not be seen by others, nor kept in a log."""
    beside: str | None = None
    """The name of the field of choices that this one takes an own answer for."""


class Form(NamedTuple):
    """What is asked of the person, all of it at once."""

    id: str
    """Unique in its session."""
    message: str
    fields: tuple[Field, ...] = ()
    """None of them: a plain yes or no to the message."""
    url: str | None = None
    """A page to open, in place of fields; yes means that it was opened."""
    call: ToolCallUpdate | None = None
    """The tool call it is asked for, if the client knows of one."""
    source: str | None = None
    """Who asks, if it is not the CLI itself: an MCP server's name."""


Action: TypeAlias = Literal["accept", "decline", "cancel"]
"""`decline` is a no; `cancel` is no answer: dismissed, withdrawn, nobody there, not understood."""


class FormAnswer(NamedTuple):
    """What became of a form. Anything but `accept` refuses this one question, and never ends a turn."""

    action: Action
    values: dict[str, Value] = {}
    """By the names of fields; those left open are not in it."""
    reason: str | None = None
    """Why it is no `accept`, where the person has not said it; without any answer of theirs in it."""


WITHDRAWN = FormAnswer("cancel", reason="The question was taken back before it was answered.")
NOBODY = FormAnswer("decline", reason="Nobody is there who could be asked.")


class Misfit(Exception):
    """An answer that does not fit its form; the text names the field, never the answer."""


def checked(form: Form, content: object) -> dict[str, Value]:
    """The answers in what a client sent for the fields of a form; what no field asked for is left out.

    Raises:
        Misfit: One doesn't fit its field, or is missing.
    """
    if content is not None and not is_object(content):
        raise Misfit("the content is no object")
    given: JsonObject = content or {}
    values: dict[str, Value] = {}
    for field in form.fields:
        said = given.get(field.name)
        if said is None or (said == "" and not field.required):
            if field.required:
                raise Misfit(f"{field.name!r} is required")
            continue
        values[field.name] = _CHECKS[field.kind](field, said)
    return values


def _text(field: Field, said: object) -> Value:
    if not isinstance(said, str) or not is_text(said):
        raise Misfit(f"{field.name!r} must be text")
    _within(field, len(said), "characters")
    return said


def _number(field: Field, said: object) -> Value:
    if isinstance(said, bool) or not isinstance(said, int | float) or not isfinite(said):
        raise Misfit(f"{field.name!r} must be a number")
    _within(field, said, "")
    return said


def _integer(field: Field, said: object) -> Value:
    if isinstance(said, float) and said.is_integer():
        said = int(said)
    if isinstance(said, bool) or not isinstance(said, int):
        raise Misfit(f"{field.name!r} must be a whole number")
    _within(field, said, "")
    return said


def _boolean(field: Field, said: object) -> Value:
    if not isinstance(said, bool):
        raise Misfit(f"{field.name!r} must be true or false")
    return said


def _one(field: Field, said: object) -> Value:
    for choice in field.choices:
        if choice.value == said:
            return choice.value
    raise Misfit(f"{field.name!r} was answered with what was not offered")


def _some(field: Field, said: object) -> Value:
    if not is_list(said):
        raise Misfit(f"{field.name!r} must be a list")
    offered = [choice.value for choice in field.choices]
    picked = [value for value in as_list(said) if isinstance(value, str) and value in offered]
    if len(picked) != len(said) or len(set(picked)) != len(picked):
        raise Misfit(f"{field.name!r} was answered with what was not offered")
    _within(field, len(picked), "choices")
    return picked


def _within(field: Field, amount: float, what: str) -> None:
    if field.least is not None and amount < field.least:
        raise Misfit(f"{field.name!r} must be at least {field.least} {what}".rstrip())
    if field.most is not None and amount > field.most:
        raise Misfit(f"{field.name!r} must be at most {field.most} {what}".rstrip())


_CHECKS: dict[FieldKind, Callable[[Field, object], Value]] = {
    "text": _text,
    "number": _number,
    "integer": _integer,
    "boolean": _boolean,
    "one": _one,
    "some": _some,
}
