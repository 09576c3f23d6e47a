"""The published ACP schemas, unstable parts included, as a judge of every line the agent sends.

The schemas, one for each protocol version, are those of the npm package @agentclientprotocol/sdk
2.4.0, which `make install` fetches.
A message is checked against the definition of its method alone (`x-method` and `x-side` in the
schema), and a session update against its own variant, so that an error names the field that is wrong.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from jsonschema import Draft202012Validator

from acp_manifold.bridge.recording.schema import Validator, update_variants
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

SDK_VERSION = "2.4.0"
ROOT = Path(__file__).parent.parent
PATH = ROOT / ".cache" / "acp-sdk" / SDK_VERSION / "package" / "schema"

_OURS = {"session/setTitle", "session/rename"}
"""Methods that clients use though no schema has them; their results are any object."""


class SchemaViolation(AssertionError):
    """The agent sent a line that the protocol does not allow."""


class Schema:
    """The definitions of one schema file, looked up by method."""

    def __init__(self, version: int) -> None:
        path = PATH / f"v{version}" / "schema.unstable.json"
        if not path.is_file():
            raise AssertionError(f"The ACP schema is missing: {path}. Run `make install`, which fetches it.")
        document = cast(JsonObject, json.loads(path.read_text(encoding="utf-8")))
        self._definitions = obj(document, "$defs")
        self._requests: dict[str, str] = {}
        self._notifications: dict[str, str] = {}
        self._results: dict[str, str] = {}
        for name, definition in self._definitions.items():
            self._register(name, cast(JsonObject, definition))
        self.agent_methods = frozenset(self._results)
        """Every request that the protocol has for an agent."""
        self.client_methods = frozenset(self._requests) | frozenset(self._notifications)
        """Every request and notification that the protocol has for a client."""
        self._validators: dict[str, Validator] = {}
        self._updates = {tag: self._compile(of_it) for tag, of_it in update_variants(self._definitions).items()}
        self.update_tags = frozenset(self._updates)
        """The kinds of session updates."""
        self._seen: set[str] = set()
        """Shapes of updates that were found valid: a stream of thousands of chunks is one shape."""

    def kinds(self, definition: str, field: str = "type") -> set[str]:
        """The values of a field that the protocol has for the variants of a definition, those of its parts included."""
        found: set[str] = set()
        node = obj(self._definitions, definition)
        for variant in as_objects(node.get("anyOf")) or [node]:
            value = variant.get("const") if field == "" else obj(obj(variant, "properties"), field).get("const")
            if isinstance(value, str):
                found.add(value)
        return found

    def check(self, message: object, *, answers: str | None = None) -> None:
        """Judge one message from the agent.

        Args:
            message: The decoded line.
            answers: For a response, the method of the request it answers; None when it answers none.

        Raises:
            SchemaViolation: It is not what the schema asks for; the text says where.
        """
        if not isinstance(message, dict):
            raise SchemaViolation(f"Not a JSON object: {message!r:.300}")
        message = cast(JsonObject, message)
        if message.get("jsonrpc") != "2.0":
            raise SchemaViolation(f"No jsonrpc 2.0 in {message!r:.300}")
        if "method" in message:
            self._check_call(message)
        else:
            self._check_response(message, answers)

    def _check_call(self, message: JsonObject) -> None:
        method = text(message, "method")
        members = {"jsonrpc", "method", "params", "id"}
        _only(message, members)
        table = self._requests if "id" in message else self._notifications
        if method.startswith("_"):
            return
        if method not in table:
            kind = "request" if "id" in message else "notification"
            raise SchemaViolation(f"An agent sends no {kind} {method!r}: {message!r:.300}")
        if method == "session/update":
            self._check_update(obj(message, "params"))
        else:
            self._validate(table[method], message.get("params"), method)

    def _check_update(self, params: JsonObject) -> None:
        """Like the definition of the whole, but straight to the variant: faster, and clearer when it fails."""
        _only(params, {"sessionId", "update", "_meta"})
        self._validate("SessionId", params.get("sessionId"), "session/update")
        update = obj(params, "update")
        tag = text(update, "sessionUpdate")
        if tag not in self._updates:
            raise SchemaViolation(f"Unknown session update {tag!r}: {params!r:.300}")
        shape = _shape(update)
        if shape not in self._seen:
            _judge(self._updates[tag], update, f"session/update {tag}")
            self._seen.add(shape)

    def _check_response(self, message: JsonObject, answers: str | None) -> None:
        _only(message, {"jsonrpc", "id", "result", "error"})
        if ("result" in message) == ("error" in message) or "id" not in message:
            raise SchemaViolation(f"A response has an id and either a result or an error: {message!r:.300}")
        if message["id"] is not None or "result" in message:
            self._validate("RequestId", message["id"], "the id of a response")
        if "error" in message:
            self._validate("Error", message["error"], f"the error of {answers}")
        elif answers is None:
            raise SchemaViolation(f"A result for no request: {message!r:.300}")
        elif answers in self._results:
            self._validate(self._results[answers], message["result"], f"the result of {answers}")
        elif not (answers.startswith("_") or answers in _OURS):
            raise SchemaViolation(f"{answers} has no result in the schema, yet one was sent: {message!r:.300}")

    def _register(self, name: str, definition: JsonObject) -> None:
        method, side = text(definition, "x-method"), text(definition, "x-side")
        if name.endswith("Response") and side == "agent":
            self._results[method] = name
        elif name.endswith("Request") and side == "client":
            self._requests[method] = name
        elif name.endswith("Notification") and side in {"client", "protocol"}:
            self._notifications[method] = name

    def _validate(self, name: str, value: object, where: str) -> None:
        validator = self._validators.get(name)
        if validator is None:
            validator = self._validators[name] = self._compile({"$ref": f"#/$defs/{name}"})
        _judge(validator, value, where)

    def _compile(self, definition: JsonObject) -> Validator:
        whole = cast(Mapping[str, None], {**definition, "$defs": self._definitions})
        return cast(Validator, Draft202012Validator(whole))


def _only(message: JsonObject, members: set[str]) -> None:
    unknown = set(message) - members
    if unknown:
        raise SchemaViolation(f"Members the protocol doesn't have, {sorted(unknown)}: {message!r:.300}")


def _shape(update: JsonObject) -> str:
    """The update without the text of its chunk and the name of its message, any string being as good as another."""
    content = obj(update, "content")
    if isinstance(content.get("text"), str):
        update = {**update, "content": {**content, "text": ""}}
    if isinstance(update.get("messageId"), str):
        update = {**update, "messageId": ""}
    return json.dumps(update, sort_keys=True)


def _judge(validator: Validator, value: object, where: str) -> None:
    errors = [f"{error.json_path}: {error.message:.300}" for error in validator.iter_errors(value)]
    if errors:
        raise SchemaViolation(f"{where}, {'; '.join(errors[:3])}")


@functools.cache
def schema(version: int = 1) -> Schema:
    """The schema of a protocol version, read once."""
    return Schema(version)
