"""What one line is, of JSON-RPC or of Claude Code's stream-json: its kind, its name, the id that joins it with another.

Codex' app-server speaks JSON-RPC without its `jsonrpc` member, ACP with it. In stream-json a request is
a `control_request` and its answer a `control_response`, each with a `request_id` (Claude Code 2.1.332).
"""

from __future__ import annotations

import json
import re
from typing import Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_str, obj, text
from acp_manifold.translators.values import NamedTuple

Kind: TypeAlias = Literal["request", "answer", "failure", "news"]
"""`failure` is the answer that tells an error; `news` is whatever nobody answers."""


class Shape(NamedTuple):
    """What a line is."""

    kind: Kind
    name: str
    """The method, or the type with its sub-types, e.g. `session/update plan`, `system init`; of an answer ""."""
    id: str = ""
    """What joins a request with its answer, as JSON, so that 1 and "1" are two ids; "" where nothing does."""


_QUESTIONS = frozenset(
    {
        "session/request_permission",
        "elicitation/create",
        "can_use_tool",
        "elicitation",
        "request_user_dialog",
        "item/tool/requestUserInput",
        "mcpServer/elicitation/request",
    }
)
_STREAMS = re.compile(r"(_chunk|/delta|[a-z]Delta|content_block_delta \S+|thinking_tokens)$")


def shape(line: JsonObject) -> Shape:
    """What a line is; one that is neither JSON-RPC nor stream-json is news without a name."""
    method = as_str(line.get("method"))
    if method is not None:
        kind: Kind = "request" if line.get("id") is not None else "news"
        return Shape(kind, " ".join(filter(None, (method, _variant(obj(line, "params"))))), _id(line.get("id")))
    if "id" in line and ("result" in line or "error" in line):
        return Shape("failure" if "error" in line else "answer", "", _id(line["id"]))
    return _stream_json(line)


def is_question(name: str) -> bool:
    """Whether a request of this name asks a person."""
    return name in _QUESTIONS or name.endswith("/requestApproval")


def is_piece(name: str) -> bool:
    """Whether lines of this name come in great numbers, each with a piece of one text."""
    return _STREAMS.search(name) is not None


def _variant(params: JsonObject) -> str:
    """What a method with many meanings means this time: the kind of a session update, or of an item."""
    return text(obj(params, "update"), "sessionUpdate") or text(obj(params, "item"), "type")


def _stream_json(line: JsonObject) -> Shape:
    tag = text(line, "type")
    if tag == "control_request":
        return Shape("request", text(obj(line, "request"), "subtype"), _id(line.get("request_id")))
    if tag == "control_response":
        response = obj(line, "response")
        kind: Kind = "failure" if response.get("subtype") == "error" else "answer"
        return Shape(kind, "", _id(response.get("request_id")))
    event = obj(line, "event")
    parts = (tag, text(line, "subtype"), text(event, "type"), text(obj(event, "delta"), "type"))
    return Shape("news", " ".join(filter(None, parts)))


def _id(value: object) -> str:
    return "" if value is None else json.dumps(value)
