"""What the model's two APIs have in common: a request as read, and a reply as it is written.

An API module reads a request body into an `Asked` and makes a `Reply`; the player (`play`) drives
the reply without knowing which API it writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol

from acp_manifold.translators.narrow import JsonObject

from .script import Call


@dataclass(frozen=True, slots=True)
class Asked:
    """A model request, as far as the script needs it."""

    prompt: str
    """The text that holds the script."""
    results: int
    """Tool results that came back since the prompt."""
    title: bool
    """Whether the CLI asks for a session title."""
    tools: bool
    """Whether it offers tools; without them none is called."""
    stream: bool
    model: str


class Reply(Protocol):
    """One answer in one API: each method gives the bytes to send for it, perhaps none."""

    content_type: str

    def begin(self) -> bytes:
        """The answer starts."""
        ...

    def text(self, piece: str) -> bytes:
        """The next piece of what the model says."""
        ...

    def reason(self, text: str) -> bytes:
        """A whole thought."""
        ...

    def call(self, call: Call) -> bytes:
        """A tool call."""
        ...

    def piece(self, piece: JsonObject) -> bytes:
        """A content block or an output item, as it is."""
        ...

    def end(self, stop: str | None, tokens: int | None) -> bytes:
        """The answer is complete, for this reason, and so many tokens went in; None for the usual."""
        ...


class Ids:
    """Ids for messages and calls: unique among all models of all processes on one store."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._count = 0

    def new(self, prefix: str) -> str:
        """A fresh id such as `msg_1f2e0a7`."""
        self._count += 1
        return f"{prefix}_{self._seed}{self._count:x}"


def event(kind: str, **fields: object) -> bytes:
    """One server-sent event; both APIs repeat its name as `type` in the data."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
