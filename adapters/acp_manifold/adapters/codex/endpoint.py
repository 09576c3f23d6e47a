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

from .faults import PROVIDER


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
        from .config import read_config

        endpoint = configured(read_config(home) or {}, environ)
    if endpoint is None:
        return ()
    from acp_manifold.adapters.endpoints import LISTS

    return await LISTS.models(f"{endpoint.base_url}/models", endpoint.headers)
