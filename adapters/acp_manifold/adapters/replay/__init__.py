"""Recordings as backends: `--backend replay:FILE`, an agent for any client with no CLI installed.

What was recorded of a CLI goes through that CLI's own adapter, over a transport that plays and a store that is
private: `lane` plays one session, the dialects know what its lines mean, `claude` and `codex` put them in the place of
the real processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acp_manifold.bridge.backend import Backend


def replay(argument: str) -> Sequence[Backend]:
    """The backends of a recording, or of a folder of them, by what stands behind `replay:`; see `argument.parse`.

    The process is the replay's from here on: its environment leads to a private world.

    Raises:
        NoBackend: There is nothing that could be replayed; the message says why.
    """
    from acp_manifold.adapters.replay.opening import opened

    return opened(argument)


def close(backends: Sequence[Backend]) -> None:
    """Take away the private world of backends that `replay` made; a process that ends does so by itself."""
    from acp_manifold.adapters.replay.opening import stage_of

    for backend in backends:
        stage_of(backend).close()
