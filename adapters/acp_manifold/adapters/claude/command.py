"""The command line of one session's process, and the private file that keeps its MCP servers off it."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from acp_manifold.adapters.claude.carried import Carried
from acp_manifold.bridge.backend import HttpServer, McpServer, SessionSpec, StdioServer
from acp_manifold.bridge.guard import guard
from acp_manifold.translators.narrow import JsonObject

STREAM_JSON = (
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
    "--verbose",
    "--include-partial-messages",
    "--permission-prompt-tool",
    "stdio",
)
"""What makes Claude Code 2.1.332 speak lines both ways and ask its host for permissions.

No setting is among them: user, project and local settings, MCP servers and instructions load as they
do in the terminal, and the trust a folder was given there decides about project permissions.
"""


def arguments(
    session_id: str, *, resume: bool, spec: SessionSpec, mcp_config: Path | None, carried: Carried | None = None
) -> tuple[str, ...]:
    """All arguments of a session's process.

    Each value stands in one word with its option, so that none is taken for an option itself.
    """
    words: list[str] = [*STREAM_JSON, f"--resume={session_id}" if resume else f"--session-id={session_id}"]
    if carried is not None:
        if carried.bypass:
            words.append("--allow-dangerously-skip-permissions")
        if carried.mode is not None:
            words.append(f"--permission-mode={carried.mode}")
    return (*words, *places(spec, mcp_config, carried or Carried()))


def places(spec: SessionSpec, mcp_config: Path | None, carried: Carried) -> tuple[str, ...]:
    """The arguments that say what a session has: its MCP servers, its directories, what the person has allowed."""
    words = [f"--mcp-config={mcp_config}"] if mcp_config is not None else []
    words += [f"--allowedTools={rule}" for rule in carried.rules]
    if spec.wishes is not None:
        if spec.wishes.only_tools is not None:
            words.append(f"--tools={','.join(spec.wishes.only_tools)}")
        words += [f"--disallowedTools={rule}" for rule in spec.wishes.denied_tools]
    return (*words, *(f"--add-dir={folder}" for folder in (*spec.additional_directories, *carried.folders)))


@contextmanager
def mcp_config_file(servers: Sequence[McpServer]) -> Generator[Path | None, None, None]:
    """A file with the MCP servers that only we can read, for as long as the context is open; None without servers."""
    if not servers:
        yield None
        return
    with guard.private_folder() as folder:
        path = folder / "mcp.json"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"mcpServers": {server.name: _server(server) for server in servers}}, file)
        yield path


def _server(server: McpServer) -> JsonObject:
    match server:
        case StdioServer():
            return {"type": "stdio", "command": server.command, "args": list(server.args), "env": dict(server.env)}
        case HttpServer():
            return {"type": "sse" if server.sse else "http", "url": server.url, "headers": dict(server.headers)}
