"""What recording costs a session, and how quick a replay is: scripted CLIs and recordings, in this process."""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import anyio

from acp_manifold.adapters.replay.agent import connected
from acp_manifold.adapters.replay.client import Prompted
from acp_manifold.bridge.ledger import Ledger
from acp_manifold.bridge.hub import Hub
from acp_manifold.bridge.recording.feed import Feed
from acp_manifold.bridge.recording.format import Entry, Header
from acp_manifold.bridge.recording.writer import write
from acp_manifold.bridge.taps import taps
from acp_manifold.translators.narrow import JsonObject, text

from .inside import Client, joined
from .scripted import PlayedBackend

UPDATES = 10_000
ROUNDS = 5
"""How often each has its turn; the fastest of all counts."""


@dataclass(frozen=True, slots=True)
class Recording:
    """Seconds."""

    plain: float
    """CPU of this process per update, without a recording."""
    recorded: float
    """The same with one, the recorder's own process aside."""
    live: float
    """From prompt to answer, the updates read from a process' pipe."""
    replayed: float
    """The same, of a recording that is played as fast as it goes."""
