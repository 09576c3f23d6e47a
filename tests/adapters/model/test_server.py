"""The scripted model over its two APIs, asked by hand as the CLIs ask it."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import cast

import anyio
import httpx
import pytest

from acp_manifold.adapters.model import Model, run_model
from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, obj, text

pytestmark = pytest.mark.anyio

TOOLS = [{"name": "Bash"}]


@pytest.fixture
async def model() -> AsyncGenerator[Model]:
    async with run_model() as running:
        yield running


@pytest.fixture
async def http(model: Model) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=model.url, timeout=5, trust_env=False) as client:
        yield client


def messages(prompt: str, **more: object) -> JsonObject:
    return {"model": "m", "stream": True, "tools": TOOLS, "messages": [{"role": "user", "content": prompt}], **more}


def responses(prompt: str, *items: JsonObject, **more: object) -> JsonObject:
    user: JsonObject = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]}
    return {"model": "m", "tools": TOOLS, "input": [user, *items], **more}


def events(response: httpx.Response) -> list[JsonObject]:
    """The data of all events; a name that is not the type in the data fails."""
    found: list[JsonObject] = []
    for block in response.text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append(cast(JsonObject, json.loads(data.removeprefix("data: "))))
        assert name == f"event: {found[-1]['type']}"
    return found


async def test_messages_stream_text_then_calls(http: httpx.AsyncClient) -> None:
    heard = events(await http.post("/v1/messages", json=messages("REASON[hm] SAY[2] RUN[ls]")))
    assert [event["type"] for event in heard if event["type"] != "content_block_delta"] == [
        "message_start",
        *("content_block_start", "content_block_stop") * 3,
        "message_delta",
        "message_stop",
    ]
    deltas = [obj(event, "delta") for event in heard if event["type"] == "content_block_delta"]
    assert [delta["text"] for delta in deltas if "text" in delta] == ["word0 ", "word1 "]
    assert json.loads(text(deltas[-1], "partial_json")) == {"command": "ls", "description": "scripted"}
    assert [event["index"] for event in heard if event["type"] == "content_block_stop"] == [0, 1, 2]
    assert obj(heard[-2], "delta")["stop_reason"] == "tool_use"


async def test_messages_go_on_where_results_came_back(http: httpx.AsyncClient) -> None:
    body = messages("RUN[ls] ;; TEXT<<seen>>")
    cast(list[JsonObject], body["messages"]).extend(
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]},
        ]
    )
    answer = (await http.post("/v1/messages", json={**body, "stream": False})).json()
    assert answer["content"] == [{"type": "text", "text": "seen"}]
    assert answer["stop_reason"] == "end_turn"


async def test_a_prompt_behind_the_result_of_an_interrupted_call_is_the_prompt(http: httpx.AsyncClient) -> None:
    body = messages("RUN[ls] ;; TEXT<<old>>")
    said = ["[Request interrupted by user for tool use]", "TEXT<<new>>", "<system-reminder>r</system-reminder>"]
    result = {"type": "tool_result", "tool_use_id": "t", "content": "x"}
    cast(list[JsonObject], body["messages"]).extend(
        [
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]},
            {"role": "user", "content": [result, *({"type": "text", "text": words} for words in said)]},
        ]
    )
    answer = (await http.post("/v1/messages", json={**body, "stream": False})).json()
    assert answer["content"] == [{"type": "text", "text": "new"}]


async def test_responses_stream_items_and_complete(http: httpx.AsyncClient) -> None:
    heard = events(await http.post("/v1/responses", json=responses("SAY[2] RUNESC[ls]")))
    done = [obj(event, "item") for event in heard if event["type"] == "response.output_item.done"]
    assert [item["type"] for item in done] == ["message", "function_call"]
    assert as_objects(done[0]["content"])[0]["text"] == "word0 word1 "
    assert json.loads(text(done[1], "arguments"))["sandbox_permissions"] == "require_escalated"
    assert heard[-1]["type"] == "response.completed"


async def test_responses_go_on_where_results_came_back(http: httpx.AsyncClient) -> None:
    output: JsonObject = {"type": "function_call_output", "call_id": "c", "output": "x"}
    heard = events(await http.post("/v1/responses", json=responses("RUN[ls] ;; TEXT<<seen>>", output)))
    assert "".join(text(event, "delta") for event in heard) == "seen"


async def test_a_gate_holds_the_answer_where_it_stands(model: Model, http: httpx.AsyncClient) -> None:
    gate = model.gate("mid")
    with anyio.fail_after(5):
        async with http.stream("POST", "/v1/messages", json=messages("SAY[1] GATE[mid] TEXT<<rest>>")) as response:
            chunks = response.aiter_text()
            assert "word0" in await anext(chunks)
            await gate.reached()
            gate.set()
            assert "rest" in "".join([chunk async for chunk in chunks])


async def test_a_title_request_is_answered_from_the_control(model: Model, http: httpx.AsyncClient) -> None:
    model.titles.answer("Title {n}")
    asked = messages("SAY[3]", tools=[], system="Write a title for this session", stream=False)
    answers = [(await http.post("/v1/messages", json=asked)).json() for _ in range(2)]
    titles = [json.loads(answer["content"][0]["text"])["title"] for answer in answers]
    assert titles == ["Title 1", "Title 2"]
    model.titles.fail(400)
    schema: JsonObject = {"format": {"schema": {"properties": {"title": {}}}}}
    assert (await http.post("/v1/responses", json=responses("x", text=schema))).status_code == 400
    assert model.titles.asked == 3
    assert model.prompts() == []


async def test_a_failure_is_a_status_before_the_first_word_and_a_cut_stream_after_it(http: httpx.AsyncClient) -> None:
    refused = await http.post("/v1/messages", json=messages("HOLD[0] FAIL[529]"))
    assert (refused.status_code, refused.json()["error"]["type"]) == (529, "overloaded_error")
    with pytest.raises(httpx.RemoteProtocolError):
        await http.post("/v1/messages", json=messages("SAY[1] FAIL[500]"))


async def test_a_hang_up_ends_the_answer_and_is_remembered(model: Model, http: httpx.AsyncClient) -> None:
    with anyio.fail_after(5):
        async with http.stream("POST", "/v1/messages", json=messages("SAY[1] GATE[never]")) as response:
            assert "word0" in await anext(response.aiter_text())
        assert (await http.post("/v1/messages", json=messages("SAY[1]"))).status_code == 200
        await model.requests[0].finished.wait()
    assert [request.state for request in model.requests] == ["dropped", "answered"]


async def test_what_is_not_served_is_not_found(http: httpx.AsyncClient) -> None:
    assert (await http.get("/v1/models?client_version=1")).json() == {"data": [], "models": []}
    assert (await http.get("/elsewhere")).status_code == 404
    assert (await http.post("/v1/messages", content=b"no json")).status_code == 400


async def test_a_burst_of_five_thousand_words_and_eight_streams_are_whole(http: httpx.AsyncClient) -> None:
    totals: list[int] = []

    async def count(words: int) -> None:
        heard = events(await http.post("/v1/responses", json=responses(f"SAY[{words}]")))
        totals.append(len([event for event in heard if "delta" in event]))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(count, 5000)
    assert totals == [5000] * 8


async def test_requests_are_logged_with_their_prompt(model: Model, http: httpx.AsyncClient) -> None:
    await http.post("/v1/messages", json=messages("SAY[1]"))
    assert model.prompts() == ["SAY[1]"]
    assert as_list(model.requests[0].body["tools"]) == TOOLS
