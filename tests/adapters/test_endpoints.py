"""The list of models of an endpoint: asked once, not for long, and never a reason to fail."""

from __future__ import annotations

import logging

import anyio
import httpx
import pytest
import respx

from acp_manifold.adapters import endpoints
from acp_manifold.adapters.endpoints import RETRY, ModelLists

pytestmark = pytest.mark.anyio

URL = "https://gateway.example/v1/models"
HEADERS = {"Authorization": "Bearer s3cr3t"}


class Clock:
    """Seconds, as the test has it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def test_a_list_is_asked_for_once_with_the_headers_of_the_session(respx_mock: respx.MockRouter) -> None:
    route = respx_mock.get(URL, headers=HEADERS).respond(json={"data": [{"id": "b"}, {"id": "a"}, {"id": "b"}, {}]})
    lists = ModelLists()
    found: list[tuple[str, ...]] = []

    async def ask() -> None:
        found.append(await lists.models(URL, HEADERS))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(ask)
    assert found == [("b", "a")] * 3 and route.call_count == 1


async def test_another_login_gets_its_own_list(respx_mock: respx.MockRouter) -> None:
    respx_mock.get(URL, headers=HEADERS).respond(json={"data": [{"id": "a"}]})
    respx_mock.get(URL, headers={"Authorization": "Bearer other"}).respond(json={"models": [{"slug": "z"}]})
    lists = ModelLists()
    assert await lists.models(URL, HEADERS) == ("a",)
    assert await lists.models(URL, {"Authorization": "Bearer other"}) == ("z",)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(404),
        httpx.Response(302, headers={"location": "https://elsewhere.example/steals"}),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[1]),
        httpx.Response(200, json={"data": [{"id": 7}, "x"]}),
        httpx.ConnectError("no route, and a header: s3cr3t"),
        httpx.ReadTimeout("slow"),
    ],
)
async def test_no_list_is_no_fault_and_is_not_asked_for_again_at_once(
    respx_mock: respx.MockRouter, caplog: pytest.LogCaptureFixture, answer: httpx.Response | Exception
) -> None:
    caplog.set_level(logging.INFO)
    route = respx_mock.get(URL).mock(side_effect=[answer, httpx.Response(200, json={"data": [{"id": "a"}]})])
    clock = Clock()
    lists = ModelLists(clock)
    assert await lists.models(URL, HEADERS) == ()
    assert await lists.models(URL, HEADERS) == () and route.call_count == 1
    clock.now += RETRY
    assert await lists.models(URL, HEADERS) == ("a",)
    assert "s3cr3t" not in caplog.text


async def test_an_endpoint_that_says_nothing_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "PATIENCE", 0.05)

    async def silent(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await anyio.sleep_forever()

    with anyio.fail_after(10):
        async with (
            await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(listener.serve, silent)
            port = listener.extra(anyio.abc.SocketAttribute.local_port)
            assert await ModelLists().models(f"http://127.0.0.1:{port}/v1/models", {}) == ()
            tasks.cancel_scope.cancel()


async def test_a_list_that_never_ends_is_not_read(
    monkeypatch: pytest.MonkeyPatch, respx_mock: respx.MockRouter
) -> None:
    monkeypatch.setattr(endpoints, "LONGEST", 100)
    respx_mock.get(URL).respond(text="x" * 1000)
    assert await ModelLists().models(URL, HEADERS) == ()
