from __future__ import annotations

import json
import logging
import math
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import cast

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_manifold.bridge.errors import InvalidParams, MethodNotFound, PeerGone, RemoteError
from acp_manifold.bridge.messages import Request, RequestId, encode, parse
from acp_manifold.bridge.outbound import Outbound
from acp_manifold.bridge.peer import Call, Peer
from acp_manifold.translators.narrow import JsonObject, as_object

pytestmark = pytest.mark.anyio

NOTHING: JsonObject = {}


class Script:
    """A handler whose methods each show one way to answer."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.calls: dict[object, Call] = {}
        self.ended: list[str] = []
        self.release = anyio.Event()

    def request(self, method: str, params: JsonObject, call: Call) -> object:
        self.seen.append(method)
        self.calls[call.id] = call
        match method:
            case "now":
                return {"params": params}
            case "wait":
                return self._wait(method)
            case "wait-own-way":
                call.on_cancel = self.release.set
                return self._wait(method)
            case "wait-bad-hook":
                call.on_cancel = self._fail
                return self._wait(method)
            case "refuse":
                raise InvalidParams("cwd: must be absolute", {"field": "cwd"})
            case "refuse-later":
                return self._refuse_later()
            case "break":
                raise ValueError("secret")
            case "break-later":
                return self._break_later()
            case "unencodable":
                return {"x": object()}
            case _:
                raise MethodNotFound(f"Method not found: {method}")

    def notification(self, method: str, params: JsonObject) -> None:
        self.seen.append(method)
        if method == "break":
            raise ValueError("in a notification")

    def closed(self) -> None:
        self.ended.append("closed")

    async def _wait(self, method: str) -> object:
        try:
            await self.release.wait()
        except BaseException:
            self.ended.append("cancelled")
            raise
        return {"waited": method}

    async def _refuse_later(self) -> None:
        await checkpoint()
        async with anyio.create_task_group():
            raise InvalidParams("title: must not be empty")

    async def _break_later(self) -> object:
        await checkpoint()
        raise ValueError("secret")

    def _fail(self) -> None:
        raise RuntimeError("the hook is broken")


class Client:
    """The other side of the link: says bytes, hears messages."""

    def __init__(self, *, limit: int = 1024) -> None:
        self.script = Script()
        self._to_peer, self._receive = anyio.create_memory_object_stream[bytes](math.inf)
        self._heard, self._listen = anyio.create_memory_object_stream[JsonObject](math.inf)
        self.outbound = Outbound(self._write)
        self.peer = Peer(self.script, self.outbound, limit=limit)
        self.readable = True

    def say(self, *messages: JsonObject) -> None:
        self.say_bytes(b"".join(encode({"jsonrpc": "2.0", **message}) + b"\n" for message in messages))

    def say_bytes(self, data: bytes) -> None:
        self._to_peer.send_nowait(data)

    def hang_up(self) -> None:
        self._to_peer.close()

    async def hear(self) -> JsonObject:
        with anyio.fail_after(5):
            return await self._listen.receive()

    async def run(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.outbound.run)
            await self.peer.run(self._receive.receive)
            self.outbound.close()

    def close(self) -> None:
        for stream in (self._to_peer, self._receive, self._heard, self._listen):
            stream.close()

    async def _write(self, data: bytes) -> None:
        if not self.readable:
            raise anyio.BrokenResourceError
        for line in data.splitlines():
            message = cast(JsonObject, json.loads(line))
            assert message.pop("jsonrpc") == "2.0"
            self._heard.send_nowait(message)


@asynccontextmanager
async def connected(*, limit: int = 1024) -> AsyncGenerator[Client]:
    client = Client(limit=limit)
    try:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.run)
                yield client
                client.hang_up()
    finally:
        client.close()


def error_of(message: JsonObject) -> tuple[object, object]:
    return message["id"], as_object(message["error"]).get("code")


async def probe(client: Client) -> None:
    """The link still works."""
    client.say({"id": "probe", "method": "now"})
    assert await client.hear() == {"id": "probe", "result": {"params": {}}}


# ---- what they ask of us


async def test_a_plain_result_is_the_answer_at_once() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "now", "params": {"a": 1}})
        assert await client.hear() == {"id": 1, "result": {"params": {"a": 1}}}


async def test_an_awaited_result_holds_up_nobody_else() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "wait"}, {"id": "1", "method": "now"})
        assert (await client.hear())["id"] == "1"
        client.script.release.set()
        assert await client.hear() == {"id": 1, "result": {"waited": "wait"}}


async def test_messages_reach_the_handler_in_order_of_arrival() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "wait"}, {"method": "note"}, {"id": 2, "method": "now"}, {"method": "note2"})
        await client.hear()
        assert client.script.seen == ["wait", "note", "now", "note2"]


async def test_an_id_of_null_is_answered_with_null() -> None:
    async with connected() as client:
        client.say({"id": None, "method": "now"})
        assert await client.hear() == {"id": None, "result": {"params": {}}}


@pytest.mark.parametrize("method", ["break", "break-later"])
async def test_a_fault_of_ours_is_an_internal_error_that_tells_nothing(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected() as client:
        client.say({"id": 1, "method": method})
        answer = await client.hear()
        assert error_of(answer) == (1, -32603)
        assert "secret" not in json.dumps(answer)
        assert "secret" in caplog.text
        await probe(client)


async def test_a_refusal_has_its_code_and_data() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "refuse"})
        assert await client.hear() == {
            "id": 1,
            "error": {"code": -32602, "message": "cwd: must be absolute", "data": {"field": "cwd"}},
        }


async def test_a_refusal_out_of_a_task_group_is_the_refusal(caplog: pytest.LogCaptureFixture) -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "refuse-later"})
        assert error_of(await client.hear()) == (1, -32602)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_an_unknown_method_is_the_handlers_to_refuse() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "nope"})
        assert error_of(await client.hear()) == (1, -32601)


async def test_a_result_that_is_no_json_is_an_internal_error() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "unencodable"})
        assert error_of(await client.hear()) == (1, -32603)
        await probe(client)


async def test_a_notification_that_fails_is_logged_and_not_answered(caplog: pytest.LogCaptureFixture) -> None:
    async with connected() as client:
        client.say({"method": "break"})
        await probe(client)
    assert "notification break failed" in caplog.text


async def test_an_id_in_use_is_refused_and_its_first_owner_undisturbed() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "wait"}, {"id": 1, "method": "now"})
        assert error_of(await client.hear()) == (1, -32600)
        client.script.release.set()
        assert await client.hear() == {"id": 1, "result": {"waited": "wait"}}
        client.say({"id": 1, "method": "now"})
        assert await client.hear() == {"id": 1, "result": {"params": {}}}


async def test_1_and_the_text_1_are_two_ids() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "wait"}, {"id": "1", "method": "wait"})
        client.script.release.set()
        assert {(await client.hear())["id"], (await client.hear())["id"]} == {1, "1"}


# ---- taking back


async def test_a_request_that_is_taken_back_is_answered_once_and_its_task_cancelled() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "wait"}, {"method": "$/cancel_request", "params": {"requestId": 1}})
        assert error_of(await client.hear()) == (1, -32800)
        client.script.release.set()
        await probe(client)
        assert client.script.ended == ["cancelled"]


async def test_the_handler_may_choose_how_a_request_taken_back_ends() -> None:
    async with connected() as client:
        back: JsonObject = {"method": "$/cancel_request", "params": {"requestId": "p"}}
        client.say({"id": "p", "method": "wait-own-way"}, back, back)
        assert await client.hear() == {"id": "p", "result": {"waited": "wait-own-way"}}
        assert client.script.calls["p"].cancelled
        await probe(client)
        assert client.script.ended == []


async def test_a_broken_hook_ends_the_request_all_the_same() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "wait-bad-hook"}, {"method": "$/cancel_request", "params": {"requestId": 1}})
        assert error_of(await client.hear()) == (1, -32603)
        await probe(client)


@pytest.mark.parametrize("params", [{"requestId": 7}, {"requestId": "1"}, {"requestId": True}, {"requestId": [1]}, {}])
async def test_taking_back_what_is_not_there_changes_nothing(params: JsonObject) -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "wait"}, {"id": None, "method": "wait"})
        client.say({"method": "$/cancel_request", "params": params})
        await probe(client)
        client.script.release.set()
        assert {(await client.hear())["id"], (await client.hear())["id"]} == {1, None}


async def test_an_id_is_free_again_once_its_request_was_taken_back() -> None:
    async with connected() as client:
        client.say({"id": 1, "method": "wait"}, {"method": "$/cancel_request", "params": {"requestId": 1}})
        client.say({"id": 1, "method": "now"})
        assert error_of(await client.hear()) == (1, -32800)
        assert await client.hear() == {"id": 1, "result": {"params": {}}}


# ---- what we ask of them


async def test_a_request_of_ours_gets_its_answer() -> None:
    async with connected() as client:
        results: dict[str, object] = {}

        async def ask(method: str) -> None:
            results[method] = await client.peer.request(method, {"of": method})

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "a")
            tasks.start_soon(ask, "b")
            first, second = await client.hear(), await client.hear()
            assert first["id"] != second["id"]
            client.say({"id": second["id"], "result": second["method"]}, {"id": first["id"], "result": first["method"]})
        assert results == {"a": "a", "b": "b"}


async def test_the_two_directions_may_use_the_same_ids() -> None:
    ours = NOTHING
    async with connected() as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.peer.request, "ours", NOTHING)
            ours = await client.hear()
            client.say({"id": ours["id"], "method": "wait"}, {"id": ours["id"], "result": None})
        client.script.release.set()
        assert await client.hear() == {"id": ours["id"], "result": {"waited": "wait"}}


async def test_an_error_answer_is_raised() -> None:
    async with connected() as client:
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(RemoteError, match="no") as caught:
                    await client.peer.request("ours", {})
                assert caught.value.remote_code == -5

            tasks.start_soon(ask)
            asked = await client.hear()
            client.say({"id": asked["id"], "error": {"code": -5, "message": "no"}})


async def test_a_wait_that_is_cancelled_takes_the_request_back_and_ignores_a_late_answer() -> None:
    asked = NOTHING
    async with connected() as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.peer.request, "ours", NOTHING)
            asked = await client.hear()
            tasks.cancel_scope.cancel()
        assert await client.hear() == {"method": "$/cancel_request", "params": {"requestId": asked["id"]}}
        client.say({"id": asked["id"], "result": "late"})
        await probe(client)


@pytest.mark.case("F03")
async def test_an_answer_to_nothing_gets_no_reply() -> None:
    async with connected() as client:
        client.say({"id": 0, "result": 1}, {"id": "x", "result": 1}, {"id": None, "error": {"code": 1, "message": ""}})
        await probe(client)


async def test_updates_and_answers_keep_their_order() -> None:
    async with connected() as client:
        client.peer.notify("update", {"n": 1})
        client.say({"id": 1, "method": "wait"})
        await checkpoint()
        client.script.release.set()
        assert [(await client.hear()).get("method"), (await client.hear()).get("id")] == ["update", 1]


# ---- the end


async def test_at_the_end_of_the_link_all_waits_end() -> None:
    gone: list[str] = []
    async with connected() as client:
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                with pytest.raises(PeerGone):
                    await client.peer.request("ours", {})
                gone.append("ours")

            tasks.start_soon(ask)
            client.say({"id": 1, "method": "wait"})
            await client.hear()
            client.hang_up()
    assert gone == ["ours"]
    assert client.script.ended == ["closed", "cancelled"]
    with pytest.raises(PeerGone):
        await client.peer.request("too late", {})


async def test_a_last_line_without_newline_counts() -> None:
    async with connected() as client:
        client.say_bytes(b'{"jsonrpc":"2.0","id":1,"method":"now"}')
        client.hang_up()
        assert (await client.hear())["id"] == 1


async def test_no_bytes_are_the_end_too() -> None:
    async with connected() as client:
        client.say_bytes(b"")
    assert client.script.ended == ["closed"]


@pytest.mark.case("K02")
async def test_a_client_that_no_longer_reads_is_the_end_of_the_link() -> None:
    client = Client()
    client.readable = False
    client.say({"id": 1, "method": "wait"}, {"id": 2, "method": "now"})
    with anyio.fail_after(5):
        await client.run()
    assert client.script.ended == ["closed", "cancelled"]
    client.close()


async def test_when_its_own_scope_is_cancelled_the_handler_is_told_once() -> None:
    client = Client()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.run)
            client.say({"id": 1, "method": "wait"}, {"id": 2, "method": "now"})
            await client.hear()
            tasks.cancel_scope.cancel()
    assert sorted(client.script.ended) == ["cancelled", "closed"]
    client.close()


# ---- garbage


@pytest.mark.case("F03")
@pytest.mark.parametrize(
    ("line", "known", "code"),
    [
        (b"nonsense", None, -32700),
        (b"\xff\xfe", None, -32700),
        (b"[" * 900, None, -32700),
        (b"[]", None, -32600),
        (b'{"id":5,"method":"now"}', 5, -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"now"}', None, -32600),
        (b'{"jsonrpc":"2.0","id":"p","method":"now","params":[1]}', "p", -32602),
    ],
)
async def test_a_line_that_is_no_message_is_refused_and_the_link_goes_on(line: bytes, known: object, code: int) -> None:
    async with connected() as client:
        client.say_bytes(line + b"\n")
        assert error_of(await client.hear()) == (known, code)
        await probe(client)


@pytest.mark.case("F01")
async def test_a_line_over_the_limit_is_one_error_that_names_it() -> None:
    async with connected(limit=1024) as client:
        for _ in range(5):
            client.say_bytes(b"x" * 1000)
        client.say_bytes(b"\n")
        answer = await client.hear()
        assert error_of(answer) == (None, -32600)
        assert "1024" in json.dumps(answer)
        await probe(client)


@pytest.mark.case("F02")
async def test_text_with_other_line_separators_arrives_whole() -> None:
    text = "a\u2028b\u2029c\u0085d"
    async with connected() as client:
        raw = f'{{"jsonrpc":"2.0","id":1,"method":"now","params":{{"t":"{text}"}}}}\r\n\r\n'
        client.say_bytes(raw.encode())
        client.say({"id": 2, "method": "now", "params": {"t": "\u000b\u000c"}})
        assert await client.hear() == {"id": 1, "result": {"params": {"t": text}}}
        assert await client.hear() == {"id": 2, "result": {"params": {"t": "\u000b\u000c"}}}


ids = st.one_of(st.integers(0, 3), st.sampled_from(["0", "1", "a"]), st.none())
methods = st.sampled_from(["now", "wait", "wait-own-way", "refuse", "refuse-later", "break", "break-later", "nope"])


def as_line(message: JsonObject) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


def request_line(known: RequestId, method: str) -> bytes:
    return as_line({"id": known, "method": method})


def notification_line(method: str) -> bytes:
    return as_line({"method": method, "params": {}})


def cancel_line(known: RequestId) -> bytes:
    return as_line({"method": "$/cancel_request", "params": {"requestId": known}})


def answer_line(known: RequestId) -> bytes:
    return as_line({"id": known, "result": {}})


lines = st.one_of(
    st.builds(request_line, ids, methods),
    st.builds(notification_line, methods),
    st.builds(cancel_line, ids),
    st.builds(answer_line, ids),
    st.binary(max_size=30).filter(lambda data: b"\n" not in data),
    st.sampled_from([b"", b"{}", b"[]", b"null", b'{"jsonrpc":"2.0","id":1', b"x" * 1100, b"\r"]),
)


def requests_in(said: list[bytes]) -> Counter[object]:
    """How often each id asks for something; a text id is told from a number by its quotes."""
    asked: Counter[object] = Counter()
    for line in said:
        message = parse(line)
        if isinstance(message, Request):
            asked[repr(message.id)] += 1
    return asked


@given(said=st.lists(lines, max_size=12), places=st.lists(st.integers(0, 2000), max_size=8), release=st.booleans())
@settings(deadline=None)
def test_whatever_is_said_each_request_gets_one_answer_and_the_link_lives(
    said: list[bytes], places: list[int], release: bool
) -> None:
    data = b"".join(line + b"\n" for line in said)
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    pieces = [data[start:end] for start, end in zip(edges, edges[1:], strict=False)]
    logging.disable(logging.CRITICAL)
    try:
        answers = anyio.run(_converse, [piece for piece in pieces if piece], release)
    finally:
        logging.disable(logging.NOTSET)
    given_to = Counter(repr(answer["id"]) for answer in answers if answer["id"] is not None)
    asked = Counter({known: count for known, count in requests_in(said).items() if known != "None"})
    assert given_to == asked
    nulls = sum(answer["id"] is None for answer in answers)
    assert nulls >= requests_in(said)["None"]


async def _converse(pieces: list[bytes], release: bool) -> list[JsonObject]:
    """Say the pieces, one turn of the loop apart, let end what waits, and give all answers but the probes'."""
    answers: list[JsonObject] = []
    async with connected() as client:
        for piece in pieces:
            client.say_bytes(piece)
            await checkpoint()
        if release:
            client.script.release.set()
        for number in range(5):
            client.say({"id": f"probe {number}", "method": "now"})
            while (answer := await client.hear())["id"] != f"probe {number}":
                answers.append(answer)
            client.script.release.set()
    return answers
