"""Older recordings, brought up to date one version at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from acp_manifold.translators.narrow import JsonObject

from .format import FORMAT


def migrate(header: JsonObject) -> JsonObject:
    """The header of a recording as the latest format has it; entries are alike in all formats there are.

    Args:
        header: That of a recording of any format up to `FORMAT`.
    """
    version = header.get("format")
    while isinstance(version, int) and version < FORMAT:
        step = _STEPS.get(version)
        if step is None:
            break
        header = step(header)
        version += 1
    return header


def _to_2(header: JsonObject) -> JsonObject:
    """Format 1 was made with one CLI, and named it in two keys."""
    cli, version = header.get("cli"), header.get("cli_version")
    rest = {key: value for key, value in header.items() if key not in ("cli", "cli_version")}
    clis = {cli: version} if isinstance(cli, str) else {}
    return {**rest, "format": 2, "clis": clis, "backend": cli}


_STEPS: Final[dict[int, Callable[[JsonObject], JsonObject]]] = {1: _to_2}
"""By version, what makes the next one of it."""
