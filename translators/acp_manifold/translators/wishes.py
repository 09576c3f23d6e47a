"""What a client written for another agent of a CLI asks of a session in `_meta`, in no protocol's spelling."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from acp_manifold.translators.values import NamedTuple

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Wishes(NamedTuple):
    """What only the CLI that it was written for can take; the others pass it over."""

    options: Mapping[str, str] = _NOTHING
    """Option id -> its value to begin with; a choice made for the session since counts more."""
    only_tools: tuple[str, ...] | None = None
    """The CLI's own tools that there are; None: all."""
    denied_tools: tuple[str, ...] = ()
    """Tools, or rules for their use, that are refused."""
