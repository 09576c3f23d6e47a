"""What the client leg may hold, held against the published schemas."""

from __future__ import annotations

import json
from typing import cast

import pytest

from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, obj, text
from acp_manifold.translators.wire import acp
from acp_manifold.translators.wire.acp import Breach, breaches
from tests.schema import PATH
from tests.view.scene import answer, chunk, request, update


def methods(side: str, part: str) -> set[str]:
    """The methods of both versions that a side serves, or hears."""
    found: set[str] = set()
    for version in (1, 2):
        document = cast(JsonObject, json.loads((PATH / f"v{version}" / "schema.unstable.json").read_text()))
        for name, definition in obj(document, "$defs").items():
            if name.endswith(part) and text(as_object(definition), "x-side") in (side, "protocol"):
                found.add(text(as_object(definition), "x-method"))
    return found


def tags() -> set[str]:
    found: set[str] = set()
    for version in (1, 2):
        document = cast(JsonObject, json.loads((PATH / f"v{version}" / "schema.unstable.json").read_text()))
        union = obj(obj(document, "$defs"), "SessionUpdate")
        for variant in as_objects(union.get("oneOf", union.get("anyOf"))):
            found.add(text(obj(obj(variant, "properties"), "sessionUpdate"), "const"))
    return found - {""}


def test_the_names_are_those_of_the_schemas() -> None:
    assert methods("agent", "Request") == acp.REQUESTS_IN
    assert methods("client", "Request") == acp.REQUESTS_OUT
    assert methods("agent", "Notification") == acp.NEWS_IN
    assert methods("client", "Notification") == acp.NEWS_OUT
    assert tags() == acp.UPDATES


@pytest.mark.parametrize(
    ("inward", "line"),
    [
        (True, request(1, "session/new")),
        (True, request(1, "session/setTitle")),
        (True, request(1, "_vendor/thing")),
        (True, {"jsonrpc": "2.0", "method": "session/cancel"}),
        (False, answer(1)),
        (False, {"jsonrpc": "2.0", "id": None, "error": {"code": -1, "message": ""}}),
        (False, chunk("s", "x")),
        (False, request(1, "session/request_permission")),
    ],
)
def test_what_the_protocol_has_is_no_breach(inward: bool, line: JsonObject) -> None:
    assert list(breaches(inward, line)) == []


@pytest.mark.parametrize(
    ("inward", "line", "certain", "words"),
    [
        (True, {"id": 1, "method": "session/new"}, True, "jsonrpc"),
        (True, {"jsonrpc": "2.0", "id": 1.5, "method": "session/new"}, True, "id"),
        (True, {"jsonrpc": "2.0", "id": True, "method": "session/new"}, True, "id"),
        (True, {"jsonrpc": "2.0", "id": 1, "method": 5}, True, "method"),
        (True, {**request(1, "session/new"), "result": {}}, True, "both"),
        (True, {**request(1, "session/new"), "params": []}, True, "params"),
        (True, request(1, "session/request_permission"), False, "no such request"),
        (False, {"jsonrpc": "2.0", "method": "session/nothing"}, False, "no such notification"),
        (False, update("", "plan"), True, "no session"),
        (False, update("s", ""), True, "not of what"),
        (False, update("s", "news"), False, "no such update"),
        (False, {"jsonrpc": "2.0", "id": 1}, True, "neither"),
        (False, {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}}, True, "neither"),
        (False, {"jsonrpc": "2.0", "id": 1, "error": {"code": "x"}}, True, "error"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(inward: bool, line: JsonObject, certain: bool, words: str) -> None:
    (found,) = breaches(inward, line)
    assert found == Breach(found.what, certain)
    assert words in found.what
