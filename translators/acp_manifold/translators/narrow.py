"""From untyped JSON to named types: the only place where a wire value is cast.

Every function takes a decoded JSON value and gives back one type, or a neutral value
(`None`, an empty dict, an empty list) when the wire holds something else. Nothing here
raises: what is required is checked by the caller, who knows how to say what is missing.
"""

from __future__ import annotations

from typing import TypeAlias, TypeGuard

JsonObject: TypeAlias = dict[str, object]
"""A decoded JSON object whose values are not looked at yet."""


def is_object(value: object) -> TypeGuard[JsonObject]:
    """Whether the value is a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether the value is a JSON array."""
    return isinstance(value, list)


def as_object(value: object) -> JsonObject:
    """The value if it is a JSON object, else an empty one."""
    return value if is_object(value) else {}


def as_list(value: object) -> list[object]:
    """The value if it is a JSON array, else an empty one."""
    return value if is_list(value) else []


def as_objects(value: object) -> list[JsonObject]:
    """The objects of a JSON array; other members are left out."""
    return [item for item in as_list(value) if is_object(item)]


def as_str(value: object) -> str | None:
    """The value if it is a string, else None."""
    return value if isinstance(value, str) else None


def as_int(value: object) -> int | None:
    """The value if it is an integer (true and false are not), else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def text(obj: JsonObject, key: str, default: str = "") -> str:
    """The string under `key`, else `default`."""
    value = obj.get(key)
    return value if isinstance(value, str) else default


def obj(parent: JsonObject, key: str) -> JsonObject:
    """The object under `key`, else an empty one."""
    return as_object(parent.get(key))


def flag(parent: JsonObject, key: str) -> bool:
    """Whether `key` holds exactly `true`."""
    return parent.get(key) is True


def is_text(value: str) -> bool:
    """Whether a string can be written as UTF-8: JSON may bring halves of surrogate pairs, which can't."""
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)
