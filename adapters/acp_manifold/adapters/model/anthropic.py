"""The Anthropic Messages API, as far as Claude Code 2.1.332 uses it."""

from __future__ import annotations

import json

from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, obj, text

from .reply import Asked, Ids, Reply, event
from .script import Call, Shell, choose, has_script

_NOTIFICATION = "<task-notification"
"""How Claude Code opens the user text it writes itself when a background task ends."""

_NOTED = "TEXT<<Noted.>>"


def read(body: JsonObject) -> Asked:
    """What a `POST /v1/messages` asks for."""
    prompt, results = "", 0
    for message in as_objects(body.get("messages")):
        if message.get("role") != "user":
            continue
        blocks = _blocks(message)
        results += sum(block.get("type") == "tool_result" for block in blocks)
        said = _prompt(blocks)
        if said is not None:
            prompt, results = said, 0
    tools = bool(as_list(body.get("tools")))
    return Asked(
        prompt=prompt,
        results=results,
        title=not tools and "title" in json.dumps([body.get("system"), body.get("output_config")]).lower(),
        tools=tools,
        stream=body.get("stream") is True,
        model=text(body, "model"),
    )


def reply(asked: Asked, ids: Ids) -> Reply:
    """The reply to write for `asked`."""
    return _Streamed(asked.model, ids) if asked.stream else _Whole(asked.model, ids)


def failure(status: int) -> JsonObject:
    """The body of an error answer."""
    kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": "scripted failure"}}


def _blocks(message: JsonObject) -> list[JsonObject]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else as_objects(content)


def _prompt(blocks: list[JsonObject]) -> str | None:
    """The prompt in a user message, or None in one that only brings results and reminders.

    Claude Code 2.1.332 puts the prompt that follows an interrupted tool call behind that call's result, into one
    message with it: only a script counts there, since what else it adds to results is its own.
    """
    last_result = max((at for at, block in enumerate(blocks) if block.get("type") == "tool_result"), default=-1)
    texts = [text(block, "text") for block in blocks[last_result + 1 :] if block.get("type") == "text"]
    if last_result >= 0:
        return choose([typed for typed in texts if has_script(typed)])
    if texts and texts[-1].lstrip().startswith(_NOTIFICATION):
        return _NOTED
    return choose(texts)


def _tool(call: Call) -> tuple[str, JsonObject]:
    if not isinstance(call, Shell):
        return call.name, call.input
    background: JsonObject = {"run_in_background": True} if call.background else {}
    return "Bash", {"command": call.command, "description": "scripted", **background}


def _message(model: str, ids: Ids) -> JsonObject:
    return {
        "id": ids.new("msg"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 20,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


class _Streamed:
    """A reply as server-sent events: numbered content blocks, opened and closed in turn."""

    content_type = "text/event-stream"

    def __init__(self, model: str, ids: Ids) -> None:
        self._model = model
        self._ids = ids
        self._index = 0
        self._talking = False
        self._called = False

    def begin(self) -> bytes:
        return event("message_start", message=_message(self._model, self._ids))

    def text(self, piece: str) -> bytes:
        opening = b"" if self._talking else self._start({"type": "text", "text": ""})
        self._talking = True
        return opening + self._delta({"type": "text_delta", "text": piece})

    def reason(self, text: str) -> bytes:
        return b"".join(
            [
                self._hush(),
                self._start({"type": "thinking", "thinking": "", "signature": ""}),
                self._delta({"type": "thinking_delta", "thinking": text}),
                self._delta({"type": "signature_delta", "signature": "scripted"}),
                self._stop(),
            ]
        )

    def call(self, call: Call) -> bytes:
        self._called = True
        name, arguments = _tool(call)
        return b"".join(
            [
                self._hush(),
                self._start({"type": "tool_use", "id": self._ids.new("toolu"), "name": name, "input": {}}),
                self._delta({"type": "input_json_delta", "partial_json": json.dumps(arguments)}),
                self._stop(),
            ]
        )

    def piece(self, piece: JsonObject) -> bytes:
        return b"".join([self._hush(), self._start(piece), self._stop()])

    def end(self, stop: str | None, tokens: int | None) -> bytes:
        reason = stop or ("tool_use" if self._called else "end_turn")
        usage: JsonObject = {"output_tokens": 20} if tokens is None else {"output_tokens": 20, "input_tokens": tokens}
        closing = event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage)
        return self._hush() + closing + event("message_stop")

    def _start(self, block: JsonObject) -> bytes:
        return event("content_block_start", index=self._index, content_block=block)

    def _delta(self, delta: JsonObject) -> bytes:
        return event("content_block_delta", index=self._index, delta=delta)

    def _stop(self) -> bytes:
        index, self._index = self._index, self._index + 1
        return event("content_block_stop", index=index)

    def _hush(self) -> bytes:
        """Close the text block if one is open."""
        if not self._talking:
            return b""
        self._talking = False
        return self._stop()


class _Whole:
    """A reply as one JSON object, for requests that don't stream."""

    content_type = "application/json"

    def __init__(self, model: str, ids: Ids) -> None:
        self._ids = ids
        self._message = _message(model, ids)
        self._said: list[str] = []
        self._calls: list[JsonObject] = []

    def begin(self) -> bytes:
        return b""

    def text(self, piece: str) -> bytes:
        self._said.append(piece)
        return b""

    def reason(self, text: str) -> bytes:
        return b""

    def call(self, call: Call) -> bytes:
        name, arguments = _tool(call)
        self._calls.append({"type": "tool_use", "id": self._ids.new("toolu"), "name": name, "input": arguments})
        return b""

    def piece(self, piece: JsonObject) -> bytes:
        return b""

    def end(self, stop: str | None, tokens: int | None) -> bytes:
        said: list[JsonObject] = [{"type": "text", "text": "".join(self._said)}] if self._said else []
        content = said + self._calls
        reason = stop or ("tool_use" if self._calls else "end_turn")
        usage = obj(self._message, "usage")
        return json.dumps({**self._message, "content": content, "stop_reason": reason, "usage": usage}).encode()
