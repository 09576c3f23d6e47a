"""The published schema of ACP as a judge of lines, for who has it and the package jsonschema.

Neither is part of an installation: the schema is a file of the npm package @agentclientprotocol/sdk (2.4.0:
`schema/v1/schema.unstable.json`), whose definitions tell method and side in `x-method` and `x-side`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Protocol, cast

from acp_manifold.bridge.errors import BridgeError
from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, obj, text

_PARTS = ("Request", "Response", "Notification")

_AT_MOST = 3
"""Faults of one line that are told."""


class NoSchema(BridgeError):
    """The schema can't be used; the message says why."""


class Fault(Protocol):
    """What a validator finds."""

    @property
    def json_path(self) -> str:
        """Where."""
        ...

    @property
    def message(self) -> str:
        """What is wrong."""
        ...


class Validator(Protocol):
    """What is used of a jsonschema validator, whose own types know only values known to be JSON."""

    def iter_errors(self, instance: object) -> Iterable[Fault]:
        """All that is wrong with a value."""
        ...


class AcpSchema:
    """One version of the protocol.

    Args:
        path: The schema's file.

    Raises:
        NoSchema: It can't be read, is none of ACP, or jsonschema is not installed.
    """

    def __init__(self, path: Path) -> None:
        try:
            from jsonschema import Draft202012Validator
        except ImportError as exc:
            raise NoSchema("To check against a schema, install the package jsonschema.") from exc
        try:
            document = cast(object, json.loads(path.read_bytes()))
        except (OSError, ValueError) as exc:
            raise NoSchema(f"{path} can't be read as a schema: {exc}") from exc
        self._make = cast("Callable[[object], Validator]", Draft202012Validator)
        self._definitions = obj(as_object(document), "$defs")
        self._names: dict[tuple[str, str], str] = {}
        """By method and part (request, response, notification), the definition of what is carried."""
        for name, definition in self._definitions.items():
            method, part = text(as_object(definition), "x-method"), next(filter(name.endswith, _PARTS), None)
            if method and part:
                self._names[method, part] = name
        if not self._names:
            raise NoSchema(f"{path} is no schema of ACP: nothing in it belongs to a method.")
        self._updates = update_variants(self._definitions)
        self._validators: dict[str, Validator] = {}

    def faults(self, method: str, line: JsonObject) -> list[str]:
        """What is wrong with what a line carries, at most three things; nothing where the schema knows no such method.

        Args:
            method: Its method; of an answer that of its request.
            line: One of the client leg, JSON-RPC in itself.
        """
        if "error" in line:
            return self._judged("Error", {"$ref": "#/$defs/Error"}, line["error"])
        if "method" not in line:
            return self._part(method, "Response", line.get("result"))
        update = obj(obj(line, "params"), "update")
        if method == "session/update" and (variant := self._updates.get(text(update, "sessionUpdate"))):
            # Straight to the variant: of a union a validator only says that none fits.
            return self._judged(f"session/update {_tag(variant)}", variant, update)
        return self._part(method, "Request" if "id" in line else "Notification", line.get("params"))

    def _part(self, method: str, part: str, value: object) -> list[str]:
        name = self._names.get((method, part))
        return self._judged(name, {"$ref": f"#/$defs/{name}"}, value) if name is not None else []

    def _judged(self, name: str, definition: JsonObject, value: object) -> list[str]:
        validator = self._validators.get(name)
        if validator is None:
            validator = self._validators[name] = self._make({**definition, "$defs": self._definitions})
        errors = islice(validator.iter_errors(value), _AT_MOST)
        return [f"is not what the schema has for {name}: {error.json_path}: {error.message:.200}" for error in errors]


def update_variants(definitions: JsonObject) -> dict[str, JsonObject]:
    """The definitions of the session updates, by their `sessionUpdate`; what is left for others has none."""
    union = obj(definitions, "SessionUpdate")
    return {tag: variant for variant in as_objects(union.get("oneOf", union.get("anyOf"))) if (tag := _tag(variant))}


def _tag(variant: JsonObject) -> str:
    return text(obj(obj(variant, "properties"), "sessionUpdate"), "const")
