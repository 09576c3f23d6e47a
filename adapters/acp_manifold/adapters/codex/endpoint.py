"""Where Codex sends its model requests: as it is configured, or as a client has set it.

A client's endpoint is a model provider of the one thread, given with `thread/start` and `thread/resume` over stdin.
codex-cli 0.163.0 keeps the provider's name with the thread and nothing else of it, so no secret is on disk.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from acp_manifold.translators.auth import Endpoint
from acp_manifold.translators.narrow import JsonObject, as_str, obj, text

from .config import read_config, usual_provider
from .faults import PROVIDER
from .program import codex_home


def thread_options(endpoint: Endpoint) -> JsonObject:
    """What leads a thread to a client's endpoint: `modelProvider`, and `config`, to be joined with any other."""
    provider: JsonObject = {
        "name": "Endpoint set by the client",
        "base_url": endpoint.base_url,
        "wire_api": "responses",
        "http_headers": dict(endpoint.headers),
        "requires_openai_auth": False,
    }
    return {"modelProvider": PROVIDER, "config": {"model_providers": {PROVIDER: provider}}}


def at_its_provider(params: JsonObject) -> JsonObject:
    """How to ask for a thread that was refused since it was begun at a client's endpoint, and none is set.

    The provider's name stays with the thread, and stands for what the person has configured: codex-cli 0.171.0 changes
    no provider of a thread. The other way round that is no way: what a request says of a configured provider is joined
    with what the person has configured, so their key would go to the client's endpoint.

    Args:
        params: Those that were refused, of `thread/resume` or `thread/fork`.
    """
    means = _usual()
    if means is None:
        # One that Codex brings itself: up to 0.163.0 a thread takes its name.
        return {**params, "modelProvider": usual_provider()}
    return {**params, "config": {**obj(params, "config"), "model_providers": {PROVIDER: means}}}


def _usual() -> JsonObject | None:
    """What the person's configuration says of the provider it chooses; None if that is one of Codex' own."""
    config = read_config(codex_home()) or {}
    name = as_str(config.get("model_provider")) or "openai"
    if name != "openai":
        return obj(obj(config, "model_providers"), name) or None
    # As Codex has it itself: without an address, the login decides between the API and ChatGPT.
    provider: JsonObject = {"name": "OpenAI", "wire_api": "responses", "requires_openai_auth": True}
    url = as_str(config.get("openai_base_url"))
    return {**provider, "base_url": url} if url else provider


def configured(config: JsonObject, environ: Mapping[str, str] = os.environ) -> Endpoint | None:
    """The endpoint of the person's configuration; None if it is OpenAI's own, or one that Codex brings itself."""
    name = as_str(config.get("model_provider")) or "openai"
    provider = obj(obj(config, "model_providers"), name)
    url = as_str(provider.get("base_url")) or (as_str(config.get("openai_base_url")) if name == "openai" else None)
    if not url:
        return None
    headers = {key: value for key, value in obj(provider, "http_headers").items() if isinstance(value, str)}
    for key, variable in obj(provider, "env_http_headers").items():
        value = environ.get(variable, "") if isinstance(variable, str) else ""
        if value.strip():
            headers[key] = value
    token = environ.get(text(provider, "env_key"), "") or text(provider, "experimental_bearer_token")
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return Endpoint("openai", url.rstrip("/"), headers)


def shown(config: JsonObject) -> str | None:
    """The endpoint that is configured, as it can be shown to people: without credentials and query."""
    endpoint = configured(config, {})
    if endpoint is None:
        return None
    try:
        parts = urlsplit(endpoint.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        return "one that is no URL"


async def models(endpoint: Endpoint | None, home: Path, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The ids of an endpoint's models; empty if it is the maker's own, or can't tell: the CLI's list counts then.

    Args:
        endpoint: The one a client has set; None: the configured one.
        home: Codex' own directory.
        environ: The environment that Codex is started in.
    """
    if endpoint is None:
        endpoint = configured(read_config(home) or {}, environ)
    if endpoint is None:
        return ()
    from acp_manifold.adapters.endpoints import LISTS

    return await LISTS.models(f"{endpoint.base_url}/models", endpoint.headers)
