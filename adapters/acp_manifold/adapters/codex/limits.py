"""How long the app-server may take: the limits of all waits for it that have no natural end."""

from __future__ import annotations

from acp_manifold.translators.values import NamedTuple


class Limits(NamedTuple):
    """Seconds. What is usual was measured with codex-cli 0.163.0."""

    start: float = 20.0
    """For the answer to the handshake; 0.05 s are usual, 0.3 s in a fresh home."""
    answer: float = 20.0
    """For the answer to a request; some milliseconds are usual, 1.6 s were needed for a title of 64 MiB.

    When it is over, the server is asked for a sign of life."""
    slow: float = 120.0
    """For the answer to a request that may have much to load or to start: `thread/resume`, `turn/start`."""
    probe: float = 5.0
    """For a sign of life of a server that left a request without an answer; 1 to 3 ms are usual, 0.6 s behind a
    title of 64 MiB. Without one it counts as frozen."""
