"""Recorded lines of the real app-server, as the translators' tests read them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from acp_manifold.translators.codex.items import Updates
from acp_manifold.translators.codex.turn import Stream
from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, obj, text
from acp_manifold.translators.updates import MessageChunk, Text, Unknown

FOLDER = Path(__file__).parents[3] / "recordings" / "codex" / "0.163.0"
SCENARIOS = sorted(path.stem for path in FOLDER.glob("*.jsonl"))


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording."""

    header: JsonObject
    lines: list[JsonObject]
    """What the app-server wrote, in order."""
    sent: list[JsonObject]
    """What it was sent, in order."""

    def notifications(self, thread: str | None = None) -> list[tuple[str, JsonObject]]:
        """Method and params of each notification, of one thread or of all."""
        found = [(text(line, "method"), obj(line, "params")) for line in self.lines if "id" not in line]
        return [(method, params) for method, params in found if method and thread in (None, params.get("threadId"))]

    def requests(self, method: str) -> list[JsonObject]:
        """The params of the server's requests of one method."""
        return [obj(line, "params") for line in self.lines if "id" in line and line.get("method") == method]

    def result(self, method: str) -> JsonObject:
        """The result the last request of ours of one method got."""
        ids = [line["id"] for line in self.sent if line.get("method") == method]
        return next(obj(line, "result") for line in self.lines if line.get("id") == ids[-1] and "result" in line)


def recorded(scenario: str) -> Recorded:
    """The recording of one scenario."""
    rows = [as_object(json.loads(row)) for row in (FOLDER / f"{scenario}.jsonl").read_bytes().split(b"\n") if row]
    of_codex = [row for row in rows[1:] if row.get("leg") == "backend" and "line" in row]
    lines = [obj(row, "line") for row in of_codex if row["dir"] == "in"]
    return Recorded(rows[0], lines, [obj(row, "line") for row in of_codex if row["dir"] == "out"])


def translated(scenario: str, thread: str | None = None) -> list[Updates]:
    """The updates of each notification of a recording that an adapter would translate, line by line."""
    stream = Stream()
    told = recorded(scenario).notifications(thread)
    return [stream.translate(method, params) for method, params in told if "turnId" in params]


def flat(updates: list[Updates]) -> list[object]:
    """All updates in order; none may be unknown."""
    found = [update for some in updates for update in some]
    assert not [update for update in found if isinstance(update, Unknown)]
    return list(found)


def said(updates: list[object], role: str = "agent") -> str:
    """All that one role said."""
    chunks = [update for update in updates if isinstance(update, MessageChunk) and update.role == role]
    return "".join(chunk.content.text for chunk in chunks if isinstance(chunk.content, Text))


def items(result: JsonObject) -> list[JsonObject]:
    """The items of a `thread/items/list` result."""
    return [obj(entry, "item") for entry in as_objects(result.get("data"))]
