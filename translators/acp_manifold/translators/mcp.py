"""MCP servers as a client names them for a session, in no protocol's spelling."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TypeAlias

from acp_manifold.translators.values import NamedTuple

_NOTHING: Mapping[str, str] = MappingProxyType({})


class StdioServer(NamedTuple):
    """An MCP server that the CLI starts as a child process."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = _NOTHING


class HttpServer(NamedTuple):
    """An MCP server that the CLI reaches over HTTP."""

    name: str
    url: str
    headers: Mapping[str, str] = _NOTHING
    sse: bool = False
    """Whether it speaks the older SSE transport."""


McpServer: TypeAlias = StdioServer | HttpServer
