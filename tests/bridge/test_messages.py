from __future__ import annotations

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_manifold.bridge.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, ErrorObject
from acp_manifold.bridge.messages import Invalid, Notification, Request, RequestId, Response, encode, parse
from acp_manifold.translators.narrow import JsonObject

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def refused(line: bytes) -> tuple[RequestId, int]:
    message = parse(line)
    assert isinstance(message, Invalid)
    return message.id, message.error.code


@pytest.mark.parametrize("known", [7, 0, -1, "7", "", None, 2**70])
def test_a_request_keeps_its_id_as_it_came(known: RequestId) -> None:
    line = json.dumps({"jsonrpc": "2.0", "id": known, "method": "m", "params": {"a": 1}}).encode()
    message = parse(line)
    assert message == Request(known, "m", {"a": 1})
    assert isinstance(message, Request) and type(message.id) is type(known)


def test_without_an_id_it_is_a_notification() -> None:
    assert parse(b'{"jsonrpc":"2.0","method":"m","params":{"a":[1]}}') == Notification("m", {"a": [1]})


@pytest.mark.parametrize("params", ["", ',"params":null', ',"params":{}'])
def test_missing_params_are_an_empty_object(params: str) -> None:
    assert parse(f'{{"jsonrpc":"2.0","id":1,"method":"m"{params}}}'.encode()) == Request(1, "m", {})


@pytest.mark.parametrize("params", ["[1]", "[]", "1", '"x"', "true"])
def test_params_that_are_no_object_are_invalid_params(params: str) -> None:
    assert refused(f'{{"jsonrpc":"2.0","id":"q","method":"m","params":{params}}}'.encode()) == ("q", INVALID_PARAMS)


def test_a_notification_with_bad_params_is_not_to_be_answered() -> None:
    message = parse(b'{"jsonrpc":"2.0","method":"m","params":[1]}')
    assert isinstance(message, Invalid) and not message.answerable


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b'{"jsonrpc":"2.0","id":1,"method":"m"',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":-Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":' + b"9" * 5000 + b"}}",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b"\xef\xbb\xbf{}",
        '{"jsonrpc":"2.0"}'.encode("utf-16"),
    ],
    ids=lambda line: repr(line[:50]),
)
def test_what_is_no_json_is_a_parse_error(line: bytes) -> None:
    assert refused(line) == (None, PARSE_ERROR)


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("[]", None),
        ('[{"jsonrpc":"2.0","id":1,"method":"m"}]', None),
        ("1", None),
        ('"text"', None),
        ("null", None),
        ("{}", None),
        ('{"id":1,"method":"m"}', 1),
        ('{"jsonrpc":"1.0","id":"a","method":"m"}', "a"),
        ('{"jsonrpc":2.0,"id":1,"method":"m"}', 1),
        ('{"jsonrpc":"2.0","id":1}', 1),
        ('{"jsonrpc":"2.0","id":1,"method":7}', 1),
        ('{"jsonrpc":"2.0","id":1,"method":null}', 1),
        ('{"jsonrpc":"2.0","method":7}', None),
        ('{"jsonrpc":"2.0","id":1.5,"method":"m"}', None),
        ('{"jsonrpc":"2.0","id":true,"method":"m"}', None),
        ('{"jsonrpc":"2.0","id":[1],"method":"m"}', None),
        ('{"jsonrpc":"2.0","id":{},"method":"m"}', None),
        ('{"jsonrpc":"2.0","id":1.5,"result":1}', None),
        ('{"jsonrpc":"2.0","result":1}', None),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(line: str, known: RequestId) -> None:
    assert refused(line.encode()) == (known, INVALID_REQUEST)


def test_a_batch_is_told_apart() -> None:
    message = parse(b"[]")
    assert isinstance(message, Invalid) and "batches are not supported" in message.error.message


def test_a_broken_answer_is_not_refused_under_an_id_that_may_be_the_senders_own() -> None:
    assert refused(b'{"id":0,"result":{}}') == (None, INVALID_REQUEST)


def test_answers_are_read() -> None:
    assert parse(b'{"jsonrpc":"2.0","id":3,"result":{"a":1}}') == Response(3, {"a": 1}, None)
    assert parse(b'{"jsonrpc":"2.0","id":"3","result":null}') == Response("3", None, None)
    assert parse(b'{"jsonrpc":"2.0","id":3,"error":{"code":-5,"message":"no","data":[1]}}') == Response(
        3, None, ErrorObject(-5, "no", [1])
    )


def test_an_error_without_its_members_is_an_error_still() -> None:
    message = parse(b'{"jsonrpc":"2.0","id":3,"error":"broken"}')
    assert isinstance(message, Response) and message.error is not None


def test_the_last_of_two_equal_keys_counts() -> None:
    assert parse(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}') == Request(2, "m", {})


def test_half_a_surrogate_pair_goes_out_as_the_replacement_character() -> None:
    message = parse(rb'{"jsonrpc":"2.0","id":"\ud800","method":"m","params":{"t":"a\udc00b"}}')
    assert isinstance(message, Request)
    assert encode({"id": message.id, "t": message.params["t"]}) == '{"id":"\ufffd","t":"a\ufffdb"}'.encode()


def test_two_halves_that_met_go_out_as_the_character_they_mean() -> None:
    assert encode({"t": "\ud83d" + "\ude00"}) == '{"t":"😀"}'.encode()


def test_a_number_that_json_lacks_goes_out_as_null() -> None:
    assert encode({"a": [float("nan"), {"b": float("inf")}, 1.5]}) == b'{"a":[null,{"b":null},1.5]}'


def test_what_is_no_json_can_not_be_encoded() -> None:
    with pytest.raises(TypeError):
        encode({"a": object()})
    circle: list[object] = []
    circle.append(circle)
    with pytest.raises(RecursionError):
        encode({"a": circle})


@given(value=json_values)
def test_whatever_is_encoded_is_one_line_of_strict_json(value: object) -> None:
    def no_constant(name: str) -> object:
        raise AssertionError(name)

    line = encode({"value": value})
    assert b"\n" not in line
    decoded = cast(JsonObject, json.loads(line.decode("utf-8"), parse_constant=no_constant))
    assert list(decoded) == ["value"]


@given(value=st.dictionaries(st.text(), st.integers() | st.text() | st.booleans() | st.none(), max_size=5))
def test_what_is_encoded_is_read_back_as_it_was(value: dict[str, object]) -> None:
    message = parse(encode({"jsonrpc": "2.0", "id": 1, "method": "m", "params": value}))
    assert message == Request(1, "m", value)


@given(line=st.binary(max_size=200))
def test_any_line_is_some_message(line: bytes) -> None:
    assert isinstance(parse(line), Request | Notification | Response | Invalid)


@given(value=json_values)
def test_any_json_is_some_message(value: object) -> None:
    assert isinstance(parse(json.dumps(value).encode()), Request | Notification | Response | Invalid)
