"""The person's configuration, and what a session is opened with, as parameters of `thread/start` and `thread/resume`.

Only what the client gave goes in: model, approval policy, sandbox and all else stay as the person
configured them. Codex does not keep `config` with a thread, so a resume passes the same again.
"""

from __future__ import annotations

from pathlib import Path

from acp_manifold.bridge.backend import HttpServer, McpServer, SessionSpec
from acp_manifold.bridge.errors import InvalidParams
from acp_manifold.translators.narrow import JsonObject, as_object, obj, text

from .program import codex_home


def thread_params(spec: SessionSpec) -> JsonObject:
    """Directory, further roots, MCP servers and endpoint.

    Raises:
        InvalidParams: An MCP server of a kind that Codex does not speak to.
    """
    params: JsonObject = {"cwd": spec.cwd}
    if spec.additional_directories:
        params["runtimeWorkspaceRoots"] = [spec.cwd, *spec.additional_directories]
    config: JsonObject = {}
    if spec.mcp_servers:
        config["mcp_servers"] = {server.name: _server(server) for server in spec.mcp_servers}
    if spec.endpoint is not None:
        from .endpoint import thread_options

        led = thread_options(spec.endpoint)
        params["modelProvider"] = led["modelProvider"]
        config |= obj(led, "config")
    if config:
        params["config"] = config
    return params


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


def _server(server: McpServer) -> JsonObject:
    if isinstance(server, HttpServer):
        if server.sse:
            raise InvalidParams(f"MCP server {server.name!r}: Codex does not speak to SSE servers, only stdio and HTTP")
        return {"url": server.url, "http_headers": dict(server.headers)}
    return {"command": server.command, "args": list(server.args), "env": dict(server.env)}
