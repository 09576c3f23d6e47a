"""The person's configuration, and what a session is opened with, as parameters of `thread/start` and `thread/resume`.

Only what the client gave goes in: model, approval policy, sandbox and all else stay as the person
configured them. Codex does not keep `config` with a thread, so a resume passes the same again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from acp_manifold.bridge.backend import HttpServer, McpServer, SessionSpec
from acp_manifold.bridge.errors import InvalidParams
from acp_manifold.translators.instructions import SystemPrompt
from acp_manifold.translators.narrow import JsonObject, as_object, obj, text

from .program import codex_home

_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_:@/.-]")
"""codex-cli 0.163.0 starts no MCP server whose name has another character, or none."""


def thread_params(spec: SessionSpec, names: Mapping[str, str]) -> JsonObject:
    """Directory, further roots, MCP servers and endpoint.

    Args:
        spec: What the session is opened with.
        names: From `names_of`; empty without servers.
    """
    params: JsonObject = {"cwd": spec.cwd}
    if spec.additional_directories:
        params["runtimeWorkspaceRoots"] = [spec.cwd, *spec.additional_directories]
    if spec.system_prompt is not None:
        params |= _instructions(spec.system_prompt)
    config: JsonObject = {}
    if spec.mcp_servers:
        servers: JsonObject = {names[server.name]: _server(server) for server in spec.mcp_servers}
        replaced = {given: {"enabled": False} for given, used in names.items() if given != used and _is_name(given)}
        config["mcp_servers"] = {**replaced, **servers}
    if spec.endpoint is not None:
        from .endpoint import thread_options

        led = thread_options(spec.endpoint)
        params["modelProvider"] = led["modelProvider"]
        config |= obj(led, "config")
    if config:
        params["config"] = config
    return params


def _instructions(prompt: SystemPrompt) -> JsonObject:
    """A client's instructions: behind those that the person has configured, or in place of Codex' own."""
    if prompt.mode == "override":
        return {"baseInstructions": prompt.text}
    own = text(read_config(codex_home()) or {}, "developer_instructions")
    return {"developerInstructions": f"{own}\n\n{prompt.text}" if own.strip() else prompt.text}


def read_config(home: Path) -> JsonObject | None:
    """The person's configuration; None if it can't be read, so that nothing is known."""
    import tomllib

    try:
        return as_object(tomllib.loads((home / "config.toml").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None


def usual_provider() -> str:
    """The name of the model provider that the person's configuration chooses."""
    return text(read_config(codex_home()) or {}, "model_provider") or "openai"


def names_of(servers: Sequence[McpServer], configured: Collection[str]) -> dict[str, str]:
    """The client's name of each server -> the name that Codex is given.

    Codex would join a server with one of that name in the person's configuration, its environment included, and
    refuse the session if one is stdio and the other HTTP. So the client's gets a name of its own, and takes the
    place of the person's in this session.

    Args:
        servers: Those of the client; no two have one name.
        configured: The names in the person's configuration.
    """
    names: dict[str, str] = {}
    for server in servers:
        base = name = _NOT_IN_A_NAME.sub("_", server.name)
        count = 1
        while name in configured or name in names.values():
            count += 1
            name = f"{base}_{count}"
        names[server.name] = name
    return names


def _is_name(given: str) -> bool:
    return _NOT_IN_A_NAME.search(given) is None


def refuse_what_is_not_taken(servers: Sequence[McpServer]) -> None:
    """Refuse servers of a kind that Codex does not speak to.

    Raises:
        InvalidParams: There is one.
    """
    for server in servers:
        if isinstance(server, HttpServer) and server.sse:
            raise InvalidParams(
                f"MCP server {server.name!r}: Codex does not speak to SSE servers, only to stdio and HTTP ones",
                {"reason": "mcp_transport", "server": server.name},
            )


def _server(server: McpServer) -> JsonObject:
    if isinstance(server, HttpServer):
        return {"url": server.url, "http_headers": dict(server.headers)}
    return {"command": server.command, "args": list(server.args), "env": dict(server.env)}
