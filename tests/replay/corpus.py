"""The corpus as tests see it: each recording with its scenario."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from acp_manifold.bridge.recording.format import FORMAT
from acp_manifold.bridge.recording.reader import Recording, read
from acp_manifold.translators.narrow import JsonObject, obj, text
from tests.corpus.scenarios import Scenario, of

RECORDINGS = Path(__file__).parents[2] / "recordings"
HEARD = Path(__file__).parents[1] / "corpus" / "heard"


class Case(NamedTuple):
    """A recording and what happens in it."""

    path: Path
    scenario: Scenario

    @property
    def backend(self) -> str:
        return self.path.parts[-3]

    @property
    def name(self) -> str:
        return "-".join((*self.path.parts[-3:-1], self.scenario.name))


def cases() -> list[Case]:
    """All there are, but for those older ones that hold no more than one leg."""
    found: list[Case] = []
    for folder in sorted(RECORDINGS.glob("*/*/")):
        for scenario in of(folder.parent.name):
            path = folder / f"{scenario.name}.jsonl"
            if path.is_file() and f'"format":{FORMAT},' in path.read_text(encoding="utf-8").partition("\n")[0]:
                found.append(Case(path, scenario))
    return found


def case(backend: str, scenario: str) -> Case:
    """The one of this name, of the newest CLI."""
    return [each for each in cases() if each.backend == backend and each.scenario.name == scenario][-1]


def last_line(path: Path) -> int:
    """The number of the last entry."""
    return read(path).entries[-1].number


def heard_then(recording: Recording) -> list[JsonObject]:
    """What the client heard when it was recorded, as `Client.heard` has it."""
    asked: dict[object, JsonObject] = {}
    heard: list[JsonObject] = []
    for entry in recording.entries:
        line = entry.line or {}
        if entry.leg != "client":
            continue
        if entry.dir == "in" and "method" in line:
            asked[line.get("id")] = line
        elif entry.dir == "out" and "method" in line:
            heard.append({"method": line["method"], "params": line.get("params")})
        elif entry.dir == "out":
            request = asked[line.get("id")]
            session = text(obj(request, "params"), "sessionId")
            answer: JsonObject = {key: line[key] for key in ("result", "error") if key in line}
            heard.append({"answer": request["method"], **({"session": session} if session else {}), **answer})
    return heard
