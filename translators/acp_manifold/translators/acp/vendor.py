"""What clients of claude-agent-acp ask of a session in `_meta`: `claudeCode.options` and the keys beside it.

Those of codex-acp ask for `customInstructions` alone, as clients of both do (read in version 2.6.0).

Taken is what shapes the session and gives away nothing: a title, instructions, directories, MCP servers, fewer tools,
the model to begin with. Passed over is what would give permissions, start programs, or set the CLI's environment and
settings. Nothing of it is required to make sense: what has the wrong shape is passed over too. The keys and what
they do were read from, and tried on, claude-agent-acp 0.101.0.
"""

from __future__ import annotations

from collections.abc import Iterable

from acp_manifold.translators.instructions import SystemPrompt
from acp_manifold.translators.mcp import HttpServer, McpServer, StdioServer
from acp_manifold.translators.narrow import JsonObject, as_list, as_object, as_str, flag, is_list, obj, text
from acp_manifold.translators.values import NamedTuple
from acp_manifold.translators.wishes import Wishes

_OPTIONS = ("model", "effort", "agent")
"""Those of the vendor's options that are options of a session here, by the same id."""


class VendorSetup(NamedTuple):
    """What was asked for, beside what the protocol has a place for."""

    title: str | None
    system_prompt: SystemPrompt | None
    custom_instructions: str
    """Behind the system prompt, whoever it is from; empty for none."""
    mcp_servers: tuple[McpServer, ...]
    directories: tuple[str, ...]
    """Absolute; not checked to be there."""
    wishes: Wishes | None


def vendor_setup(meta: JsonObject) -> VendorSetup:
    """Read the `_meta` of a request that opens a session."""
    options = obj(obj(meta, "claudeCode"), "options")
    folders = [*as_list(options.get("additionalDirectories")), *as_list(meta.get("additionalRoots"))]
    wishes = Wishes(
        {name: value for name in _OPTIONS if (value := text(options, name).strip())},
        _only_tools(options, meta),
        tuple(_texts(options.get("disallowedTools"))),
    )
    return VendorSetup(
        as_str(options.get("title")),
        _instructions(options.get("systemPrompt")) or _instructions(meta.get("systemPrompt")),
        text(obj(obj(meta, "jetbrains"), "air"), "customInstructions").strip(),
        tuple(_servers(obj(options, "mcpServers"))),
        tuple(dict.fromkeys(folder for folder in _texts(folders) if folder.startswith("/") and "\0" not in folder)),
        None if wishes == Wishes() else wishes,
    )


def _only_tools(options: JsonObject, meta: JsonObject) -> tuple[str, ...] | None:
    tools = options.get("tools")
    if is_list(tools):
        return tuple(_texts(tools))
    return () if tools is None and flag(meta, "disableBuiltInTools") else None


def _instructions(said: object) -> SystemPrompt | None:
    """A text takes the place of the CLI's own instructions, one under `append` comes behind them."""
    if isinstance(said, str):
        return SystemPrompt("override", said) if said.strip() else None
    behind = text(as_object(said), "append")
    return SystemPrompt("append", behind) if behind.strip() else None


def _servers(named: JsonObject) -> Iterable[McpServer]:
    for name, said in named.items():
        server = as_object(said)
        kind = text(server, "type", "stdio")
        if kind == "stdio" and name.strip() and (command := text(server, "command")):
            yield StdioServer(name, command, tuple(_texts(server.get("args"))), _pairs(obj(server, "env")))
        elif kind in ("http", "sse") and name.strip() and (url := text(server, "url")):
            yield HttpServer(name, url, _pairs(obj(server, "headers")), sse=kind == "sse")


def _pairs(said: JsonObject) -> dict[str, str]:
    return {name: value for name, value in said.items() if isinstance(value, str)}


def _texts(said: object) -> list[str]:
    return [item for item in as_list(said) if isinstance(item, str) and item.strip()]
