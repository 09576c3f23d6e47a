"""Client requests: from untyped params to named tuples, or a `BadParams` that names the field.

Written by hand and free of imports on purpose: this is on the way from a client's first line to
its first token. Shapes are those of ACP v1 (SDK 2.4.0, unstable schema).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from acp_manifold.translators.instructions import SystemPrompt
from acp_manifold.translators.mcp import HttpServer, McpServer, StdioServer
from acp_manifold.translators.narrow import (
    JsonObject,
    as_object,
    as_str,
    is_list,
    is_object,
    is_text,
    obj,
)
from acp_manifold.translators.values import NamedTuple

if TYPE_CHECKING:
    from acp_manifold.translators.wishes import Wishes

META_KEY = "acp-manifold"
"""Our key in `_meta`."""

VENDOR_KEYS = ("claudeCode", "jetbrains", "systemPrompt", "additionalRoots", "disableBuiltInTools")
"""Keys of `_meta` by which clients of other agents ask for something; see `vendor`."""


class BadParams(ValueError):
    """A parameter is missing or wrong."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        """Path of the parameter, such as `mcpServers[0].command`."""


class SessionSetup(NamedTuple):
    """Params of `session/new`, and of load and resume beside their session id."""

    cwd: str
    """As sent: not checked to be absolute or there."""
    mcp_servers: tuple[McpServer, ...]
    additional_directories: tuple[str, ...]
    backend: str | None
    """The backend asked for in `_meta`."""
    title: str | None
    """The title asked for in `_meta`; a wrong type or a blank one counts as none (R01)."""
    system_prompt: SystemPrompt | None = None
    """What the client has to say to the model ahead of the conversation."""
    more_directories: tuple[str, ...] = ()
    """Directories asked for in `_meta`: absolute, and passed over where there are none."""
    wishes: Wishes | None = None
    """What else is asked for in `_meta`."""


def required_text(params: JsonObject, field: str, path: str = "") -> str:
    """The string under `field`.

    Raises:
        BadParams: It is missing or not a string.
    """
    value = params.get(field)
    if value is None:
        raise BadParams(path + field, "is required and must be a string")
    if not isinstance(value, str):
        raise BadParams(path + field, f"must be a string, not {_kind(value)}")
    return value


def session_id(params: JsonObject) -> str:
    """The session a request is about.

    Raises:
        BadParams: `sessionId` is missing or not a string.
    """
    return required_text(params, "sessionId")


def session_setup(params: JsonObject) -> SessionSetup:
    """Params that open a session.

    Raises:
        BadParams: `cwd`, `mcpServers`, `additionalDirectories` or `systemPrompt` has the wrong shape.
    """
    meta = obj(params, "_meta")
    ours = obj(meta, META_KEY)
    backend = ours.get("backend")
    if backend is not None and not isinstance(backend, str):
        raise BadParams(f"_meta.{META_KEY}.backend", f"must be a string, not {_kind(backend)}")
    setup = SessionSetup(
        cwd=required_text(params, "cwd"),
        mcp_servers=_mcp_servers(params.get("mcpServers")),
        additional_directories=_texts(params.get("additionalDirectories"), "additionalDirectories"),
        backend=backend,
        title=as_str(ours.get("title")),
        system_prompt=_system_prompt(params.get("systemPrompt")),
    )
    return _with_vendors(setup, meta) if any(key in meta for key in VENDOR_KEYS) else setup


def _with_vendors(setup: SessionSetup, meta: JsonObject) -> SessionSetup:
    # Imported with the first: few clients ask for anything so.
    from .vendor import vendor_setup

    asked = vendor_setup(meta)
    names = {server.name for server in setup.mcp_servers}
    prompt = setup.system_prompt or asked.system_prompt
    if asked.custom_instructions:
        before = prompt or SystemPrompt("append", "")
        prompt = before._replace(text=f"{before.text}\n\n{asked.custom_instructions}".lstrip())
    return setup._replace(
        mcp_servers=(*setup.mcp_servers, *(server for server in asked.mcp_servers if server.name not in names)),
        title=setup.title or asked.title,
        system_prompt=prompt,
        more_directories=asked.directories,
        wishes=asked.wishes,
    )


def _system_prompt(value: object) -> SystemPrompt | None:
    """Client-provided instructions (SDK 2.4.0, unstable schema): those that can't be applied are refused."""
    if value is None:
        return None
    if not is_object(value):
        raise BadParams("systemPrompt", f"must be an object, not {_kind(value)}")
    mode = value.get("mode")
    if mode not in ("append", "override"):
        raise BadParams("systemPrompt.mode", "must be append or override: no other is known to this agent")
    texts: list[str] = []
    for index, block in enumerate(_array(value.get("content"), "systemPrompt.content")):
        said = as_object(block)
        if said.get("type") != "text":
            raise BadParams(f"systemPrompt.content[{index}]", "must be a text block: no other kind is taken here")
        texts.append(required_text(said, "text", f"systemPrompt.content[{index}]."))
    text = "\n\n".join(texts)
    if not text.strip():
        raise BadParams("systemPrompt.content", "says nothing")
    return SystemPrompt(mode, text)


def _mcp_servers(value: object) -> tuple[McpServer, ...]:
    servers: dict[str, McpServer] = {}
    for index, item in enumerate(_array(value, "mcpServers")):
        path = f"mcpServers[{index}]."
        server = _mcp_server(item, path)
        if not server.name.strip():
            raise BadParams(path + "name", "is empty")
        if server.name in servers:
            raise BadParams(path + "name", f"{server.name[:100]!r} is the name of another server of this session")
        servers[server.name] = server
    return tuple(servers.values())


def _mcp_server(value: object, path: str) -> McpServer:
    if not is_object(value):
        raise BadParams(path.rstrip("."), f"must be an object, not {_kind(value)}")
    name = required_text(value, "name", path)
    kind = value.get("type", "stdio")
    if kind == "stdio":
        return StdioServer(
            name,
            required_text(value, "command", path),
            _texts(value.get("args"), path + "args"),
            _pairs(value.get("env"), path + "env"),
        )
    if kind in ("http", "sse"):
        url = required_text(value, "url", path)
        return HttpServer(name, url, _pairs(value.get("headers"), path + "headers"), sse=kind == "sse")
    raise BadParams(path + "type", "must be stdio, http or sse: what else there is, this agent doesn't take")


def _pairs(value: object, path: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for index, item in enumerate(_array(value, path)):
        entry, where = as_object(item), f"{path}[{index}]."
        name = required_text(entry, "name", where)
        pairs[name] = required_text(entry, "value", where)
    return pairs


def _texts(value: object, path: str) -> tuple[str, ...]:
    items = _array(value, path)
    for index, item in enumerate(items):
        if not isinstance(item, str):
            raise BadParams(f"{path}[{index}]", f"must be a string, not {_kind(item)}")
    return tuple(item for item in items if isinstance(item, str))


def _array(value: object, path: str) -> list[object]:
    if value is None:
        return []
    if not is_list(value):
        raise BadParams(path, f"must be an array, not {_kind(value)}")
    return value


_KINDS: dict[type, str] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


def _kind(value: object) -> str:
    return _KINDS.get(type(value), "that")


TitleKey: TypeAlias = str

TITLE_METHODS: dict[str, TitleKey] = {
    "session/set_title": "title",
    "session/setTitle": "title",
    "_session/rename": "title",
    "_session/set_title": "title",
    "_acpmux/rename": "newName",
}
"""Every method by which a client sets a title, and the param that holds it."""


def title_request(method: str, params: JsonObject) -> tuple[str, str]:
    """Session id and title, as sent, of any of `TITLE_METHODS`.

    Raises:
        BadParams: One of them is missing or not a string.
    """
    return session_id(params), required_text(params, TITLE_METHODS[method])


def title_answer(method: str, session: str, stored: str) -> JsonObject:
    """The result of a title request, in the shape its method has; with the stored title where there is room."""
    if method == "session/set_title":
        return {"title": stored}
    if method == "_acpmux/rename":
        return {"sessionId": session, "name": stored, "title": stored}
    return {}


ArchiveFilter: TypeAlias = Literal["exclude", "include", "only"]
"""Which sessions a list has, by whether they are archived."""


class ListFilter(NamedTuple):
    """Which sessions a list is of."""

    cwd: str | None = None
    """Absolute; None for every directory."""
    archived: ArchiveFilter = "exclude"


def list_filter(params: JsonObject) -> tuple[ListFilter, str | None]:
    """The filter of `session/list`, and its `cursor`, None when not sent.

    Raises:
        BadParams: A string is none, `cwd` is no absolute path, or `archived` is no filter there is.
    """
    cwd = _optional(params, "cwd")
    wanted = _optional(params, "archived")
    wanted = "exclude" if wanted is None else wanted
    for known in get_args(ArchiveFilter):
        if known == wanted:
            found = ListFilter(cwd if cwd is None else absolute_path("cwd", cwd), known)
            return found, _optional(params, "cursor")
    raise BadParams("archived", f"{wanted[:40]!r} is no filter of this agent: exclude, include or only")


def absolute_path(field: str, path: str) -> str:
    """The path, if it can name something whatever directory one is in.

    Raises:
        BadParams: It is relative, or holds what no path can.
    """
    if not path.startswith("/"):
        raise BadParams(field, f"must be an absolute path, got {path[:200]!r}")
    if "\0" in path or not is_text(path):
        raise BadParams(field, f"is no path: {path[:200]!r}")
    return path


def _optional(params: JsonObject, field: str) -> str | None:
    return None if params.get(field) is None else required_text(params, field)
