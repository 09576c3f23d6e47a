"""The OpenAI Responses API, as far as codex-cli 0.163.0 uses it."""

from __future__ import annotations

import json

from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, obj, text

from .reply import Asked, Ids, Reply, event
from .script import Call, Shell, choose

TOOL_SEARCH = "tool_search"
"""The tool by which the model finds others."""

_OF_AGENTS = ("multi_agent_v1", "collaboration")
"""The namespaces of the tools for sub-agents: without, and with the feature `multi_agent_v2` (codex-cli 0.163.0)."""

_BACKGROUND_YIELD_MS = 300
"""How long Codex looks at a command before it lets it run on by itself."""


def read(body: JsonObject) -> Asked:
    """What a `POST /v1/responses` asks for."""
    prompt, results = "", 0
    for item in as_objects(body.get("input")):
        if item.get("type") == "message" and item.get("role") == "user":
            said = choose([text(part, "text") for part in as_objects(item.get("content")) if "text" in part])
            if said is not None:
                prompt, results = said, 0
        elif text(item, "type").endswith("_output"):
            results += 1
    schema = obj(obj(obj(body, "text"), "format"), "schema")
    return Asked(
        prompt=prompt,
        results=results,
        title="title" in obj(schema, "properties"),
        # Newer models have theirs in the input (codex-cli 0.163.0).
        tools=any(as_list(found.get("tools")) for found in (body, *as_objects(body.get("input")))),
        stream=True,
        model=text(body, "model"),
    )


def reply(asked: Asked, ids: Ids) -> Reply:
    """The reply to write; Codex always streams."""
    return _Streamed(ids)


def failure(status: int) -> JsonObject:
    """The body of an error answer."""
    return {"error": {"type": "scripted", "message": "scripted failure", "code": f"scripted_{status}"}}


def _item(call: Call) -> JsonObject:
    """A call as an output item, without its ids.

    Codex offers the tools of MCP servers through `tool_search` alone, and takes a call of one by its namespace and
    its name, whether or not it was searched for; so it is with those for sub-agents (codex-cli 0.163.0).
    """
    name, arguments = _tool(call)
    if name == TOOL_SEARCH:
        return {"type": "tool_search_call", "execution": "client", "arguments": arguments}
    server, separator, tool = name.rpartition("__")
    spaced = separator and (server.startswith("mcp__") or server in _OF_AGENTS)
    place = {"namespace": server} if spaced else {}
    return {"type": "function_call", "name": tool if place else name, **place, "arguments": json.dumps(arguments)}


def _tool(call: Call) -> tuple[str, JsonObject]:
    if not isinstance(call, Shell):
        return call.name, call.input
    arguments: JsonObject = {"cmd": call.command}
    if call.background:
        arguments["yield_time_ms"] = _BACKGROUND_YIELD_MS
    if call.escalated:
        arguments |= {"sandbox_permissions": "require_escalated", "justification": "scripted"}
    return "exec_command", arguments


class _Streamed:
    """A reply as server-sent events: numbered output items, each added and then done."""

    content_type = "text/event-stream"

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._response = ids.new("resp")
        self._index = 0
        self._message: str | None = None
        self._said: list[str] = []

    def begin(self) -> bytes:
        return event("response.created", response={"id": self._response})

    def text(self, piece: str) -> bytes:
        opening = b""
        if self._message is None:
            self._message = self._ids.new("msg")
            opening = self._added(_message_item(self._message, None))
        self._said.append(piece)
        return opening + event(
            "response.output_text.delta",
            item_id=self._message,
            output_index=self._index,
            content_index=0,
            delta=piece,
        )

    def reason(self, text: str) -> bytes:
        item = self._ids.new("rs")
        place: JsonObject = {"item_id": item, "output_index": self._index, "summary_index": 0}
        summary = {"type": "summary_text", "text": text}
        return b"".join(
            [
                self._hush(),
                self._added({"type": "reasoning", "id": item, "summary": []}),
                event("response.reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""}),
                event("response.reasoning_summary_text.delta", **place, delta=text),
                self._done({"type": "reasoning", "id": item, "summary": [summary], "encrypted_content": "scripted"}),
            ]
        )

    def call(self, call: Call) -> bytes:
        item: JsonObject = {**_item(call), "id": self._ids.new("fc"), "call_id": self._ids.new("call")}
        return self._hush() + self._added(item) + self._done(item)

    def piece(self, piece: JsonObject) -> bytes:
        return self._hush() + self._added(piece) + self._done(piece)

    def end(self, stop: str | None, tokens: int | None) -> bytes:
        read = 10 if tokens is None else tokens
        usage = {
            "input_tokens": read,
            "input_tokens_details": None,
            "output_tokens": 5,
            "output_tokens_details": None,
            "total_tokens": read + 5,
        }
        response: JsonObject = {"id": self._response, "usage": usage}
        if stop is not None:
            response["incomplete_details"] = {"reason": stop}
            return self._hush() + event("response.incomplete", response=response)
        return self._hush() + event("response.completed", response=response)

    def _added(self, item: JsonObject) -> bytes:
        return event("response.output_item.added", output_index=self._index, item=item)

    def _done(self, item: JsonObject) -> bytes:
        index, self._index = self._index, self._index + 1
        return event("response.output_item.done", output_index=index, item=item)

    def _hush(self) -> bytes:
        """Finish the message if one is open."""
        if self._message is None:
            return b""
        item = _message_item(self._message, "".join(self._said))
        self._message, self._said = None, []
        return self._done(item)


def _message_item(item_id: str, said: str | None) -> JsonObject:
    content = [] if said is None else [{"type": "output_text", "text": said}]
    return {"type": "message", "id": item_id, "role": "assistant", "content": content}
