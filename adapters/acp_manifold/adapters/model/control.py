"""What a test holds in its hands: gates that stop the model, the next generated titles, the log of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import anyio

from acp_manifold.translators.narrow import JsonObject

from .reply import Asked


class Gate:
    """A place in a script where the model waits; open for good once `set`."""

    def __init__(self) -> None:
        self._open = anyio.Event()
        self._arrived = anyio.Event()
        self.arrivals = 0
        """How many requests have come to this gate so far."""

    def set(self) -> None:
        """Let everything through that waits here or comes later."""
        self._open.set()

    async def reached(self, times: int = 1) -> None:
        """Wait until so many requests have come to this gate, counted from the start."""
        while self.arrivals < times:
            await self._arrived.wait()

    async def cross(self) -> None:
        """Arrive, and wait until the gate is open."""
        self.arrivals += 1
        arrived, self._arrived = self._arrived, anyio.Event()
        arrived.set()
        await self._open.wait()


class Titles:
    """What the model answers when a CLI asks it to name a session."""

    def __init__(self) -> None:
        self.asked = 0
        """How many title requests have come so far."""
        self._script = ""
        self.answer("Generated title {n}")

    def answer(self, title: str, *, delay: float = 0.0, gate: str | None = None) -> None:
        """Give this title from now on; `{n}` counts the requests. Wait `delay` seconds, or at a gate, before."""
        self._set(json.dumps({"title": title}), delay, gate)

    def garbage(self, text: str = "no JSON here", *, gate: str | None = None) -> None:
        """Give this text, which is no title object, from now on."""
        self._set(text, 0.0, gate)

    def fail(self, status: int = 400, *, gate: str | None = None) -> None:
        """Answer title requests with this HTTP status from now on."""
        self._script = _wait(0.0, gate) + f"FAIL[{status}]"

    def next_script(self) -> str:
        """The script that answers the title request which has just come."""
        self.asked += 1
        return self._script.replace("{n}", str(self.asked))

    def _set(self, text: str, delay: float, gate: str | None) -> None:
        self._script = _wait(delay, gate) + f"TEXT<<{text}>>"


def _wait(delay: float, gate: str | None) -> str:
    return (f"HOLD[{delay}] " if delay else "") + (f"GATE[{gate}] " if gate else "")


@dataclass(slots=True)
class Request:
    """One model request and how it ended."""

    path: str
    body: JsonObject = field(repr=False)
    asked: Asked
    state: Literal["open", "answered", "failed", "dropped"] = "open"
    """`dropped`: the CLI hung up before the answer was complete."""
    finished: anyio.Event = field(default_factory=anyio.Event, repr=False)
    """Set once `state` is final."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """By name in small letters."""
