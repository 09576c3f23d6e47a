"""The records of a transcript as those of a copy that goes on by itself.

What Claude Code 2.1.332 writes with `--fork-session` at the first prompt, and `fork_session()` of
claude-agent-sdk 0.2.189 at once: the messages with what belongs to them, under the copy's id and in its
directory, and the titles. What tells of the life of the source (its queue, its cost, what was sent
to the model) stays behind, and so does what its sub-agents said.
"""

from __future__ import annotations

from typing import Final

from acp_manifold.translators.claude.archive import visible
from acp_manifold.translators.claude.records import is_message, is_sidechain
from acp_manifold.translators.narrow import JsonObject, as_str, text

_MESSAGES: Final = frozenset({"user", "assistant", "attachment", "system"})
_STATE: Final = frozenset({"custom-title", "ai-title", "agent-name", "tag", "mode"})
"""Records of which the last one of a kind counts."""
_TITLES: Final = {"custom-title": "customTitle", "agent-name": "agentName"}
_ONLY_OF_THE_SOURCE: Final = ("teamName", "agentName", "slug", "turnAttributionKey")


class Copying:
    """Turns the records of one transcript, in their order, into those of a copy.

    Args:
        source: The id of the session that is copied.
        copy: The id of the copy.
        cwd: Where the copy goes on.
        now: The time, as `YYYY-MM-DDTHH:MM:SS.mmmZ`: the copy's last message is told to be of that time, so that
            a list has it where something was just done.
    """

    def __init__(self, source: str, copy: str, cwd: str, now: str) -> None:
        self._source = source
        self._copy = copy
        self._cwd = cwd
        self._now = now
        self._state: dict[str, JsonObject] = {}
        self._held: list[JsonObject] = []
        """From the last message on: which is the last one is known at the end."""
        self.empty = True
        """Whether there was no message."""

    def feed(self, record: JsonObject) -> list[JsonObject]:
        """What of the copy is known with a further record of the source."""
        kind = as_str(record.get("type"))
        if kind in _STATE:
            self._state[kind] = self._stated(kind, record)
            return []
        if kind == "content-replacement":
            self._held.append({**record, "sessionId": self._copy})
            return []
        if kind not in _MESSAGES or not text(record, "uuid") or is_sidechain(record):
            return []
        told: list[JsonObject] = []
        if is_message(record):
            self.empty = False
            told, self._held = self._held, []
        self._held.append(self._moved(record))
        return told

    def finish(self) -> list[JsonObject]:
        """The rest of the copy."""
        held, self._held = self._held, []
        if not self.empty:
            held[0] = {**held[0], "timestamp": self._now}
        return held + list(self._state.values())

    def _moved(self, record: JsonObject) -> JsonObject:
        kept = {key: value for key, value in record.items() if key not in _ONLY_OF_THE_SOURCE}
        if "cwd" in kept:
            kept["cwd"] = self._cwd
        kept["sessionId"] = self._copy
        kept["forkedFrom"] = {"sessionId": self._source, "messageUuid": text(record, "uuid")}
        return kept

    def _stated(self, kind: str, record: JsonObject) -> JsonObject:
        """The copy of an archived session is not archived."""
        field = _TITLES.get(kind)
        title: JsonObject = {} if field is None else {field: visible(text(record, field))}
        return {**record, **title, "sessionId": self._copy}
