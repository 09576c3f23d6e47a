"""A part of a recording: one session of it, or a stretch of time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from acp_manifold.translators.wire.reading import Reading, read

from .format import Entry
from .reader import Recording


def sessions(recording: Recording) -> list[str]:
    """The sessions of a recording, in the order in which they appear."""
    return list(dict.fromkeys(reading.session for reading in _readings(recording) if reading.session))


def cut(
    recording: Recording, session: str | None = None, begin: float = 0.0, end: float = math.inf
) -> tuple[Entry, ...]:
    """The entries of one session, or of a stretch of time, or of both; their times stay as they are.

    What belongs to no session, such as `initialize` and the notes on processes, goes with each: without it a session
    can't be replayed. A request that is in it has its answer in it, and an answer its request, wherever they lie.

    Args:
        recording: The whole.
        session: Its id, in full; None for all.
        begin: Seconds since the start.
        end: The same; what happens then is in it.
    """
    readings = _readings(recording)
    kept = {
        at
        for at, (entry, reading) in enumerate(zip(recording.entries, readings, strict=True))
        if begin <= entry.t <= end and (session is None or reading.session in ("", session))
    }
    kept |= {joined for at in kept if (joined := readings[at].joined) is not None}
    return tuple(entry for at, entry in enumerate(recording.entries) if at in kept)


def _readings(recording: Recording) -> Sequence[Reading]:
    return read([entry.to_wire() for entry in recording.entries], recording.header.backend or "").readings
