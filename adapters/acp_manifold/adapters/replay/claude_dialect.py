"""The language of Claude Code's stream-json, as far as replaying needs it (2.1.332)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from acp_manifold.adapters.replay.dialect import Id, Said
from acp_manifold.translators.narrow import JsonObject, as_object, as_str, obj, text

_TALK: Final = frozenset({"interrupt", "rename_session", "set_model", "set_permission_mode", "apply_flag_settings"})
"""Requests that have their place in the conversation."""

_APART: Final = ("subtype", "session_id", "message_uuid", "spare_background_tasks")
"""Members of a request that are no part of what it means: ids, and a flag that older recordings lack."""


class ClaudeDialect:
    """See `Dialect`."""

    label = "Claude Code"

    def said(self, line: JsonObject) -> Said:
        """See `Dialect.said`."""
        kind = line.get("type")
        if kind == "user":
            return Said("prompt", "talk", obj(line, "message").get("content"), as_str(line.get("uuid")))
        if kind == "control_request":
            request = obj(line, "request")
            subtype = text(request, "subtype")
            meaning: JsonObject = {key: value for key, value in request.items() if key not in _APART}
            return Said(subtype, "talk" if subtype in _TALK else "aside", meaning, as_str(line.get("request_id")))
        if kind == "control_response":
            return Said("answer", "talk", obj(line, "response"), None)
        return Said(text(line, "type", "a line"), "notice", line, None)

    def answered(self, line: JsonObject) -> Id | None:
        """See `Dialect.answered`."""
        return as_str(obj(line, "response").get("request_id")) if line.get("type") == "control_response" else None

    def named(self, line: JsonObject, id: Id) -> JsonObject:
        """See `Dialect.named`."""
        return {**line, "response": {**obj(line, "response"), "request_id": id}}

    def asks(self, line: JsonObject) -> bool:
        """See `Dialect.asks`."""
        return line.get("type") == "control_request"

    def begins(self, said: Said) -> bool:
        """See `Dialect.begins`."""
        return said.method == "prompt"

    def ends(self, line: JsonObject) -> bool:
        """See `Dialect.ends`."""
        return line.get("type") == "result"

    def stored_with(self, said: Said, record: JsonObject) -> bool:
        """See `Dialect.stored_with`."""
        if said.method != "rename_session" or record.get("type") != "custom-title":
            return False
        return record.get("customTitle") == as_object(said.meaning).get("title")

    def refusal(self, said: Said, words: str) -> Sequence[JsonObject]:
        """See `Dialect.refusal`."""
        if said.id is None:
            return ()
        if said.method == "prompt":
            return self.failure("", str(said.id), words)
        response: JsonObject = {"subtype": "error", "request_id": said.id, "error": words}
        return ({"type": "control_response", "response": response},)

    def failure(self, session: str, turn: str, words: str) -> Sequence[JsonObject]:
        """See `Dialect.failure`."""
        result: JsonObject = {
            "type": "result",
            "subtype": "success",
            "is_error": True,
            "result": words,
            "session_id": session,
            "uuid": f"replay-{turn}",
        }
        return (result,)

    def turn_in(self, line: JsonObject) -> str | None:
        """See `Dialect.turn_in`."""
        return None
