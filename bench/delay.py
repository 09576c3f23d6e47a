"""How much later one session's updates arrive because seven others stream: scripted CLIs, real pipes, this process."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import anyio

from acp_manifold.bridge.backend import SessionEvents
from acp_manifold.bridge.hub import Hub
from acp_manifold.bridge.ledger import Ledger
from acp_manifold.translators.narrow import JsonObject, obj, text
from acp_manifold.translators.updates import MessageChunk, Text

from .inside import Client, joined
from .scripted import WORD, PlayedBackend

OTHERS = 7
RATE = 2000
"""Updates a second of the others, all of them together."""

PROBE_RATE = 50
"""Updates a second of the session that is watched."""

SECONDS = 10.0

_ARRIVAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds from the CLI's update to its arrival at the client."""

    median: float
    p99: float


@dataclass(slots=True)
class _Probe:
    """The updates of the session that is watched: on their way, and arrived."""

    client: Client | None = None
    session: str = ""
    sent: dict[str, float] = field(default_factory=lambda: dict[str, float]())
    """The text of an update -> when it was handed to the bridge."""
    taken: list[float] = field(default_factory=lambda: list[float]())
    _heard: anyio.Event = field(default_factory=anyio.Event)

    def say(self, events: SessionEvents, number: int) -> None:
        word = f"probe{number}"
        self.sent[word] = time.perf_counter()
        events.update(MessageChunk("agent", Text(f"{word} "), "probe"))

    def hear(self, session: str, update: JsonObject) -> None:
        """Look for them in an update; several may have been merged into one."""
        if session == self.session and update.get("sessionUpdate") == "agent_message_chunk":
            assert self.client is not None
            for word in text(obj(update, "content"), "text").split():
                self.taken.append(self.client.arrived - self.sent.pop(word))
            self._heard.set()

    async def emptied(self) -> None:
        """Wait until all have arrived."""
        while self.sent:
            self._heard = anyio.Event()
            await self._heard.wait()


async def measure(seconds: float = SECONDS) -> Delays:
    """Measure for so many seconds, after a tenth of that which doesn't count.

    Raises:
        BridgeError: The bridge refused something.
        TimeoutError: Updates were lost.
    """
    backend, probe = PlayedBackend(), _Probe()
    with tempfile.TemporaryDirectory(prefix="acp-manifold-delay-") as folder:
        hub = Hub([backend], Ledger(Path(folder) / "ledger.sqlite3"), grace=10.0)
        async with hub.running(), joined(hub, probe.hear, _refuse) as client, anyio.create_task_group() as tasks:
            sessions = [await client.new_session(folder) for _ in range(OTHERS + 1)]
            probe.client, probe.session = client, sessions[0]
            for session in sessions:
                tasks.start_soon(client.prompt, session, "hang")
            await _stream(backend, sessions, probe, seconds / 10)
            probe.taken.clear()
            await _stream(backend, sessions, probe, seconds)
            tasks.cancel_scope.cancel()
    return Delays(statistics.median(probe.taken), statistics.quantiles(probe.taken, n=100)[-1])


async def _stream(backend: PlayedBackend, sessions: list[str], probe: _Probe, seconds: float) -> None:
    """Let all of them stream, and wait until what the first one said has arrived."""
    watched, *others = [backend.live[session].events for session in sessions]
    async with anyio.create_task_group() as tasks:
        for events in others:
            tasks.start_soon(_at_pace, RATE / OTHERS, seconds, partial(_chat, events))
        tasks.start_soon(_at_pace, PROBE_RATE, seconds, partial(probe.say, watched))
    with anyio.fail_after(_ARRIVAL_SECONDS):
        await probe.emptied()


def _chat(events: SessionEvents, number: int) -> None:
    events.update(MessageChunk("agent", Text(WORD), "chat"))


async def _at_pace(rate: float, seconds: float, say: Callable[[int], None]) -> None:
    begun = anyio.current_time()
    for number in range(int(rate * seconds)):
        await anyio.sleep_until(begun + number / rate)
        say(number)


async def _refuse(_session: str, _params: JsonObject) -> str | None:
    return None
