"""JSON-RPC 2.0 messages as data: one line of bytes to one message, one object to one line.

Nothing here raises for what the other side sent. What is no message becomes `Invalid`, which
holds the answer to give. Ids are kept exactly as they came: 1 and "1" are two ids. There are
no batches and no parameters by position (ACP schema v1, SDK 2.4.0).
"""

from __future__ import annotations

import json
import math
from typing import NoReturn, TypeAlias, cast

from acp_manifold.translators.narrow import JsonObject, as_int, as_object, as_str
from acp_manifold.translators.values import NamedTuple

from .errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ErrorObject

RequestId: TypeAlias = str | int | None
"""What may stand in `id`: the schema of ACP v1 allows null for a request, and it is answered with null."""


class Request(NamedTuple):
    """A message that wants an answer."""

    id: RequestId
    method: str
    params: JsonObject


class Notification(NamedTuple):
    """A message that wants none."""

    method: str
    params: JsonObject


class Response(NamedTuple):
    """The answer to a request of ours."""

    id: RequestId
    result: object
    """Whatever `result` held; None when there is an error."""
    error: ErrorObject | None


class Invalid(NamedTuple):
    """A line that is no message, and what to tell its sender."""

    id: RequestId
    """The id to answer with; None when there is none to be trusted."""
    error: ErrorObject
    answerable: bool = True
    """False for a notification with bad parameters: JSON-RPC forbids to answer one."""


Message: TypeAlias = Request | Notification | Response | Invalid


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def parse(line: bytes) -> Message:
    """The message in one line, whatever the line holds."""
    try:
        value = cast(object, _decode(line.decode("utf-8")))
    except UnicodeDecodeError as exc:
        return Invalid(None, ErrorObject(PARSE_ERROR, f"Parse error: not UTF-8 at byte {exc.start}"))
    except ValueError as exc:
        return Invalid(None, ErrorObject(PARSE_ERROR, f"Parse error: {str(exc)[:200]}"))
    except RecursionError:
        return Invalid(None, ErrorObject(PARSE_ERROR, "Parse error: nested too deeply"))
    if isinstance(value, dict):
        return _classify(cast(JsonObject, value))
    if isinstance(value, list):
        return _invalid(None, "batches are not supported")
    return _invalid(None, "a message is a JSON object")


def encode(obj: JsonObject) -> bytes:
    """One line of UTF-8 without its newline.

    Half a surrogate pair becomes U+FFFD, a float that JSON can't hold becomes null.

    Raises:
        TypeError: Something in `obj` is no JSON.
        RecursionError: It is nested too deeply, or holds itself.
    """
    try:
        text = _encode(obj)
    except ValueError:
        text = _encode(_finite(obj))
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        # By way of UTF-16, so that two halves that met in the text become the character they mean.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode("utf-8")


def request_id(value: object) -> RequestId:
    """The value if it can be an id, else None. True, false and 1.5 can't."""
    return value if isinstance(value, str) else as_int(value)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(member) for key, member in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_finite(member) for member in cast("list[object]", value)]
    return value


def _classify(obj: JsonObject) -> Message:
    answer = "method" not in obj and ("result" in obj or "error" in obj)
    # The id of an answer is one of ours: an error sent back under it could hit a request of the sender's own.
    known = None if answer else request_id(obj.get("id"))
    if obj.get("jsonrpc") != "2.0":
        return _invalid(known, 'jsonrpc must be "2.0"')
    if "id" in obj and obj["id"] is not None and request_id(obj["id"]) is None:
        return _invalid(None, "id must be a string, an integer or null")
    if answer:
        return _response(obj)
    method = obj.get("method")
    if not isinstance(method, str):
        return _invalid(known, "method must be a string" if "method" in obj else "neither method nor result nor error")
    return _call(obj, known, method)


def _call(obj: JsonObject, known: RequestId, method: str) -> Message:
    params = obj.get("params")
    if params is not None and not isinstance(params, dict):
        kind = "by-position params are not supported" if isinstance(params, list) else "params must be an object"
        error = ErrorObject(INVALID_PARAMS, f"Invalid params: {kind}")
        return Invalid(known, error, answerable="id" in obj)
    named = cast("JsonObject | None", params) or {}
    return Request(known, method, named) if "id" in obj else Notification(method, named)


def _response(obj: JsonObject) -> Message:
    if "id" not in obj:
        return _invalid(None, "an answer needs an id")
    answered = request_id(obj["id"])
    if obj.get("error") is None:
        return Response(answered, obj.get("result"), None)
    error = as_object(obj["error"])
    code = as_int(error.get("code"))
    message = as_str(error.get("message"))
    return Response(
        answered,
        None,
        ErrorObject(INTERNAL_ERROR if code is None else code, message or "no message given", error.get("data")),
    )


def _invalid(known: RequestId, reason: str) -> Invalid:
    return Invalid(known, ErrorObject(INVALID_REQUEST, f"Invalid request: {reason}"))
