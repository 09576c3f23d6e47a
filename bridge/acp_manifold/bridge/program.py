"""What a backend starts. Apart from `backend`, for a program may be started before much else is imported."""

from __future__ import annotations

from acp_manifold.translators.values import NamedTuple


class Program(NamedTuple):
    """An installed CLI."""

    command: tuple[str, ...]
    """What to start, without arguments of ours."""
    source: str
    """How it was found, for people: an environment variable's name, `PATH`, or a package's name."""
    version: str | None = None
    """Its version, where that is known without asking it."""
