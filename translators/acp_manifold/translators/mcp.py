"""MCP servers as a client names them for a session, in no protocol's spelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class StdioServer:
    """An MCP server that the CLI starts as a child process."""

    name: str
    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=lambda: {})


@dataclass(frozen=True, slots=True)
class HttpServer:
    """An MCP server that the CLI reaches over HTTP."""

    name: str
    url: str
    headers: Mapping[str, str] = field(default_factory=lambda: {})
    sse: bool = False
    """Whether it speaks the older SSE transport."""


McpServer: TypeAlias = StdioServer | HttpServer
