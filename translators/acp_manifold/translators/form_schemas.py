"""The schema of an MCP elicitation as the fields of a form (MCP 2025-11-25).

MCP allows flat objects of strings, numbers, booleans, enums and arrays of enum values, and ACP the
same. What a server sends all the same, nested objects for one, can't be shown by any client: then
the whole form is refused, since a form with a question left out asks something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Literal, TypeAlias

from .forms import Choice, Field, Form, Misfit, Value, checked
from .narrow import JsonObject, as_int, as_list, as_object, as_objects, as_str, is_object, obj

FORMATS = frozenset({"email", "uri", "date", "date-time"})
"""Formats of text that ACP knows; others are left out."""

_MOST_LENGTH = 2**32 - 1
_MOST_INTEGER = 2**63 - 1


class Unshowable(Exception):
    """No form can ask what this schema asks; the text says why."""


def fields_of(schema: object, order: Sequence[str] = ()) -> tuple[Field, ...]:
    """The fields of a schema.

    Args:
        schema: A JSON Schema of an object; None has no fields.
        order: Names in the order to show; those not in it come behind, in the schema's own order.

    Raises:
        Unshowable: It asks for something that ACP's forms have no field for.
    """
    if schema is None:
        return ()
    if not is_object(schema):
        raise Unshowable("its schema is no object")
    properties = obj(schema, "properties")
    required = {name for name in as_list(schema.get("required")) if isinstance(name, str)}
    unknown = required - set(properties)
    if unknown:
        raise Unshowable(f"it requires {min(unknown)!r}, which it does not describe")
    names = [name for name in order if name in properties]
    names += [name for name in properties if name not in names]
    return tuple(_field(name, as_object(properties[name]), name in required) for name in names)


def _field(name: str, schema: JsonObject, required: bool) -> Field:
    kind = _kind(schema)
    make = _MAKERS.get(kind) if kind is not None else None
    if make is None:
        raise Unshowable(f"{name!r} is of a type that can't be asked for in a form: {kind or 'none is given'}")
    bare = Field(
        name,
        title=as_str(schema.get("title")),
        description=as_str(schema.get("description")),
        required=required,
    )
    field = make(bare, schema)
    default = schema.get("default")
    return field._replace(default=_fitting(field, default)) if default is not None else field


def _kind(schema: JsonObject) -> str | None:
    """The one type of a property, `null` beside it aside."""
    kinds = [kind for kind in as_list(schema.get("type")) if kind != "null"]
    kind = kinds[0] if len(kinds) == 1 else schema.get("type")
    if kind is None and (schema.get("enum") or schema.get("oneOf")):
        return "string"
    return kind if isinstance(kind, str) else None


def _fitting(field: Field, default: object) -> Value | None:
    """A default that its own field would take; others are left out."""
    try:
        return checked(Form("", "", (field,)), {field.name: default}).get(field.name)
    except Misfit:
        return None


def _string(field: Field, schema: JsonObject) -> Field:
    if "enum" in schema or "oneOf" in schema:
        return field._replace(kind="one", choices=_choices(field.name, schema, "oneOf"))
    form = as_str(schema.get("format"))
    return field._replace(
        kind="text",
        least=_bound(schema, "minLength", _MOST_LENGTH),
        most=_bound(schema, "maxLength", _MOST_LENGTH),
        pattern=as_str(schema.get("pattern")),
        format=form if form in FORMATS else None,
    )


def _integer(field: Field, schema: JsonObject) -> Field:
    least, most = as_int(schema.get("minimum")), as_int(schema.get("maximum"))
    fits = [bound if bound is not None and abs(bound) <= _MOST_INTEGER else None for bound in (least, most)]
    return field._replace(kind="integer", least=fits[0], most=fits[1])


def _number(field: Field, schema: JsonObject) -> Field:
    return field._replace(kind="number", least=_real(schema.get("minimum")), most=_real(schema.get("maximum")))


def _boolean(field: Field, schema: JsonObject) -> Field:
    return field._replace(kind="boolean")


def _array(field: Field, schema: JsonObject) -> Field:
    return field._replace(
        kind="some",
        choices=_choices(field.name, obj(schema, "items"), "anyOf"),
        least=_bound(schema, "minItems", _MOST_LENGTH),
        most=_bound(schema, "maxItems", _MOST_LENGTH),
    )


def _choices(name: str, schema: JsonObject, titled: Literal["oneOf", "anyOf"]) -> tuple[Choice, ...]:
    """What an enum offers: bare values, values with `enumNames` (as MCP had it first), or titled constants."""
    titles = [as_str(title) for title in as_list(schema.get("enumNames"))]
    values = as_list(schema.get("enum"))
    choices = [
        Choice(value, (titles[index] if index < len(titles) else None) or value)
        for index, value in enumerate(values)
        if isinstance(value, str)
    ]
    for option in as_objects(schema.get(titled)):
        value = as_str(option.get("const"))
        if value is not None:
            title = as_str(option.get("title")) or value
            choices.append(Choice(value, title, as_str(option.get("description"))))
    if not choices or len(choices) != len(values) + len(as_list(schema.get(titled))):
        raise Unshowable(f"{name!r} has choices that are no text, or none")
    return tuple(choices)


def _bound(schema: JsonObject, key: str, most: int) -> int | None:
    bound = as_int(schema.get(key))
    return bound if bound is not None and 0 <= bound <= most else None


def _real(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) else None


_Maker: TypeAlias = Callable[[Field, JsonObject], Field]

_MAKERS: dict[str, _Maker] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _array,
}


def page_of(url: object) -> str:
    """The address of a page that a person may be sent to.

    Raises:
        Unshowable: It is none of the web's: nothing else is to be opened because a server wants it.
    """
    address = as_str(url) or ""
    if not address.startswith(("https://", "http://")) or not address.isprintable() or " " in address:
        raise Unshowable("its link is no address of the web")
    return address
