"""What a session is opened with, as parameters of `thread/start` and `thread/resume`.

Only what the client gave goes in: model, approval policy, sandbox and all else stay as the person
configured them. Codex does not keep `config` with a thread, so a resume passes the same again.
"""

from __future__ import annotations

from acp_manifold.bridge.backend import HttpServer, McpServer, SessionSpec
from acp_manifold.bridge.errors import InvalidParams
from acp_manifold.translators.narrow import JsonObject


def thread_params(spec: SessionSpec) -> JsonObject:
    """Directory, further roots and MCP servers.

    Raises:
        InvalidParams: An MCP server of a kind that Codex does not speak to.
    """
    params: JsonObject = {"cwd": spec.cwd}
    if spec.additional_directories:
        params["runtimeWorkspaceRoots"] = [spec.cwd, *spec.additional_directories]
    if spec.mcp_servers:
        servers: JsonObject = {server.name: _server(server) for server in spec.mcp_servers}
        params["config"] = {"mcp_servers": servers}
    return params


def _server(server: McpServer) -> JsonObject:
    if isinstance(server, HttpServer):
        if server.sse:
            raise InvalidParams(f"MCP server {server.name!r}: Codex does not speak to SSE servers, only stdio and HTTP")
        return {"url": server.url, "http_headers": dict(server.headers)}
    return {"command": server.command, "args": list(server.args), "env": dict(server.env)}
