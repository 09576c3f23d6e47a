"""CPU to render the same updates for a client of ACP v1 and for one of v2, in turn, in this process.

What a session tells in its life, text pieces above all, goes from `Listener.tell` to bytes that nobody reads.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from acp_manifold.bridge.hub import Hub
from acp_manifold.bridge.ledger import Ledger
from acp_manifold.bridge.link import Link
from acp_manifold.bridge.link_v1 import LinkV1
from acp_manifold.bridge.link_v2 import LinkV2
from acp_manifold.bridge.outbound import Outbound
from acp_manifold.bridge.peer import Call, Peer
from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import (
    Diff,
    MessageChunk,
    Plan,
    PlanEntry,
    SessionState,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
    Update,
    Usage,
)

from .scripted import PlayedBackend

ROUNDS = 9
"""How often each has its turn; the fastest of all counts."""

TURNS = 60


@dataclass(frozen=True, slots=True)
class Rendering:
    """Seconds of CPU per update."""

    v1: float
    v2: float


class _Nobody:
    def request(self, method: str, params: JsonObject, call: Call) -> object:
        return {}

    def notification(self, method: str, params: JsonObject) -> None: ...

    def closed(self) -> None: ...


def measure() -> Rendering:
    """Render `TURNS` turns again and again for both."""
    told = [update for turn in range(TURNS) for update in _turn(turn)]
    hub = Hub([PlayedBackend()], Ledger(None), grace=1.0)
    best = {1: float("inf"), 2: float("inf")}
    for _ in range(ROUNDS):
        for version, kind in ((1, LinkV1), (2, LinkV2)):
            best[version] = min(best[version], _seconds(kind, hub, told) / len(told))
    return Rendering(best[1], best[2])


def _seconds(kind: type[LinkV1] | type[LinkV2], hub: Hub, told: list[Update]) -> float:
    outbound = Outbound(_drop)
    link: Link = kind(hub, outbound, Peer(_Nobody(), outbound))
    # What a client of v2 takes by itself.
    link.can = ClientCapabilities(
        plan=True, subagents=True, notices=True, compaction=True, boolean_options=True, terminal_output=True
    )
    listener = link.listener("11111111-2222-4333-8444-555555555555")
    began = time.process_time()
    for update in told:
        listener.tell(update)
    outbound.close()
    _run(outbound)
    return time.process_time() - began


def _run(outbound: Outbound) -> None:
    """Have the queue rendered and written: nothing of that waits for anybody."""
    work = outbound.run()
    try:
        work.send(None)
    except StopIteration:
        return
    raise AssertionError("the writer waits for something")


async def _drop(data: bytes) -> None:
    """Where the bytes go."""


def _turn(number: int) -> list[Update]:
    """One turn: a thought, a command that prints, an edit, and an answer of fifty pieces."""
    run, edit = f"run-{number}", f"edit-{number}"
    before = "".join(f"line {n}\n" for n in range(60))
    diff = Diff("/project/src/main.py", before, before.replace("line 30\n", "line thirty\n"))
    return [
        SessionState("running"),
        *(MessageChunk("thought", Text("thinking "), f"thought-{number}") for _ in range(10)),
        ToolCall(run, "make test", "execute", "pending", raw_input={"command": "make test"}, runs_in="/project"),
        ToolCallUpdate(run, status="in_progress"),
        *(ToolOutput(run, f"{n} tests passed\n") for n in range(20)),
        ToolCallUpdate(run, status="completed", exit_code=0),
        Plan((PlanEntry("look", "completed"), PlanEntry("edit", "in_progress"), PlanEntry("test", "pending"))),
        ToolCall(edit, "Edit main.py", "edit", "pending", content=(diff,)),
        ToolCallUpdate(edit, status="completed", content=(diff,)),
        *(MessageChunk("agent", Text("word "), f"message-{number}") for _ in range(50)),
        Usage(1000 + number, 200_000),
        SessionState("idle"),
    ]
