"""The language of `codex app-server`, as far as replaying needs it (codex-cli 0.163.0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from acp_manifold.adapters.replay.dialect import Id, Said
from acp_manifold.translators.narrow import JsonObject, as_str, obj

_TALK: Final = {
    "turn/start": ("input",),
    "turn/steer": ("input",),
    "turn/interrupt": (),
    "thread/name/set": ("name",),
    "thread/compact/start": (),
    "thread/settings/update": None,
    "review/start": None,
}
"""Requests that have their place in a thread, with those of their members that count; None: all."""

_IDS: Final = ("threadId", "turnId", "expectedTurnId")


class CodexDialect:
    """See `Dialect`."""

    label = "Codex"

    def said(self, line: JsonObject) -> Said:
        """See `Dialect.said`."""
        method, number = as_str(line.get("method")), _id(line)
        if method is None:
            return Said("answer", "talk", line, None)
        if number is None:
            return Said(method, "notice", line, None)
        params = obj(line, "params")
        counted = _TALK.get(method)
        if counted is not None:
            return Said(method, "talk", {key: params.get(key) for key in counted}, number)
        meaning: JsonObject = {key: value for key, value in params.items() if key not in _IDS}
        return Said(method, "talk" if method in _TALK else "aside", meaning, number)

    def answered(self, line: JsonObject) -> Id | None:
        """See `Dialect.answered`."""
        return None if "method" in line else _id(line)

    def named(self, line: JsonObject, id: Id) -> JsonObject:
        """See `Dialect.named`."""
        return {**line, "id": id}

    def asks(self, line: JsonObject) -> bool:
        """See `Dialect.asks`."""
        return "method" in line and _id(line) is not None

    def begins(self, said: Said) -> bool:
        """See `Dialect.begins`."""
        return said.method in ("turn/start", "review/start", "thread/compact/start")

    def ends(self, line: JsonObject) -> bool:
        """See `Dialect.ends`."""
        return line.get("method") == "turn/completed" or "error" in line

    def stored_with(self, said: Said, record: JsonObject) -> bool:
        """Nothing: Codex' store is read through its app-server."""
        return False

    def refusal(self, said: Said, words: str) -> Sequence[JsonObject]:
        """See `Dialect.refusal`."""
        return ({"id": said.id, "error": {"code": -32600, "message": words}},) if said.id is not None else ()

    def failure(self, session: str, turn: str, words: str) -> Sequence[JsonObject]:
        """See `Dialect.failure`."""
        failed: JsonObject = {"id": turn, "items": [], "status": "failed", "error": {"message": words}}
        return ({"method": "turn/completed", "params": {"threadId": session, "turn": failed}},)

    def turn_in(self, line: JsonObject) -> str | None:
        """See `Dialect.turn_in`."""
        told = obj(line, "params") if line.get("method") == "turn/started" else obj(line, "result")
        return as_str(obj(told, "turn").get("id"))


def _id(line: JsonObject) -> Id | None:
    number = line.get("id")
    return number if isinstance(number, str | int) else None
