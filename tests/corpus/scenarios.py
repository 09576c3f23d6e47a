"""The scenarios of the corpus, read from `scenarios.txt`."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).with_name("scenarios.txt")


class Scenario(NamedTuple):
    """What happens in one recording."""

    name: str
    steps: tuple[str, ...]
    only: str | None = None
    """The one backend it is for."""


def scenarios() -> list[Scenario]:
    """All of them, in the order in which they are made."""
    found: list[Scenario] = []
    for line in FILE.read_text(encoding="utf-8").split("\n"):
        if line.startswith("["):
            *only, name = line.strip("[]").split(" ")
            found.append(Scenario(name, (), only[0] if only else None))
        elif line and not line.startswith("#"):
            found[-1] = found[-1]._replace(steps=(*found[-1].steps, line))
    return found


def of(backend: str) -> list[Scenario]:
    """Those of one backend."""
    return [scenario for scenario in scenarios() if scenario.only in (None, backend)]
