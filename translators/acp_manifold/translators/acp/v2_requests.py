"""What is asked in ACP v2 otherwise than in v1 (SDK 2.4.0, `experimental/v2`: a draft), and `initialize`."""

from __future__ import annotations

from acp_manifold.translators.acp import requests, v1, v2
from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.acp.requests import META_KEY, BadParams, SessionSetup, required_text
from acp_manifold.translators.narrow import JsonObject, as_int, as_list, as_object, is_object, obj


def client(params: JsonObject, *, newer: bool) -> ClientCapabilities:
    """What a client takes, from the params of its `initialize`.

    Most of what a v1 client declares every v2 client takes. What is malformed counts as not there.

    Args:
        params: As sent.
        newer: Whether they are those of a version we don't speak: then what does not parse is passed over.

    Raises:
        BadParams: There is no `info` of the client.
    """
    if not newer:
        info = params.get("info")
        if not is_object(info):
            raise BadParams("info", "is required and must be an object")
        required_text(info, "name", "info.")
        required_text(info, "version", "info.")
    said = obj(params, "capabilities")
    elicitation, meta = obj(said, "elicitation"), obj(said, "_meta")
    air = obj(obj(meta, "jetbrains"), "air")
    asked = as_list(air.get("capabilities")) if (as_int(air.get("version")) or 0) >= 1 else []
    return ClientCapabilities(
        elicitation_form=is_object(elicitation.get("form")),
        elicitation_url=is_object(elicitation.get("url")),
        plan=True,
        subagents=True,
        notices=True,
        compaction=True,
        boolean_options=True,
        terminal_login=is_object(obj(said, "auth").get("terminal")),
        terminal_output=True,
        air=frozenset(name for name in asked if isinstance(name, str)),
        terminal_login_command=meta.get("terminal-auth") is True,
    )


def client_in_v1(params: JsonObject) -> ClientCapabilities:
    """What a client takes that has asked for v2, or newer, and is served v1: what that has words for.

    As the SDK's router has it (2.4.0): switches among the options and plans in words are a matter of course.
    """
    can = client(params, newer=True)
    terminals = obj(obj(params, "capabilities"), "_meta").get("terminal_output") is True
    return can._replace(subagents=False, notices=False, compaction=False, terminal_output=terminals)


def initialize_result(version: str, auth_methods: list[JsonObject], can: ClientCapabilities) -> JsonObject:
    """The answer to `initialize`: what is advertised here is what the connection serves.

    Args:
        version: Ours.
        auth_methods: How to log in, as v1 has it.
        can: What the client takes.
    """
    meta: JsonObject = {"steering": {"supported": True}}
    extensions = list(v1.air_extensions(can))
    if extensions:
        meta["jetbrains"] = {"air": {"version": 1, "capabilities": extensions}}
    return {
        "protocolVersion": v2.VERSION,
        "info": {"name": "acp-manifold", "title": "acp-manifold", "version": version},
        "capabilities": {
            "session": {
                "prompt": {"image": {}, "embeddedContext": {}},
                "mcp": {"stdio": {}, "http": {}},
                "delete": {},
                "additionalDirectories": {},
                "systemPrompt": {"mode": {"override": {}}},
                "fork": {},
                "archive": {},
                "status": {},
                "title": {},
                "setTitle": {},
            },
            "auth": {"status": {}},
            "providers": {},
            "_meta": {META_KEY: {"background": True, "record": True}},
        },
        "authMethods": [_auth_method(method) for method in auth_methods],
        "_meta": meta,
    }


def _auth_method(method: JsonObject) -> JsonObject:
    rest = {key: value for key, value in method.items() if key not in ("id", "type")}
    return {"type": method.get("type", "agent"), "methodId": method["id"], **rest}


def session_setup(params: JsonObject) -> SessionSetup:
    """Params that open a session: as in v1, but every MCP server says its type, and none speaks SSE.

    Raises:
        BadParams: Something has the wrong shape.
    """
    setup = requests.session_setup(params)
    for index, server in enumerate(as_list(params.get("mcpServers"))):
        said, path = as_object(server), f"mcpServers[{index}]."
        kind = required_text(said, "type", path)
        if kind == "sse":
            raise BadParams(path + "type", "must be stdio or http: ACP v2 has no sse")
        if kind == "stdio":
            requests.absolute_path(path + "command", required_text(said, "command", path))
    return setup


def wants_history(params: JsonObject) -> bool:
    """Whether a `session/resume` asks for the history.

    Raises:
        BadParams: It asks for it from somewhere else than its start.
    """
    place = params.get("replayFrom")
    if place is None:
        return False
    if not is_object(place):
        raise BadParams("replayFrom", "must be an object")
    kind = required_text(place, "type", "replayFrom.")
    if kind != "start":
        raise BadParams("replayFrom.type", f"{kind[:40]!r} is no place this agent can replay from: start")
    return True
