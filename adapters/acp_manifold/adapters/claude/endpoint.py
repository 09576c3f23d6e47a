"""Where Claude Code sends its model requests: as it is configured, or as a client has set it.

A client's endpoint is given to a process twice: in its environment, and as settings over stdin, since the `env` of a
person's settings beats the environment (Claude Code 2.1.332), and would send the person's login there, or the client's
requests elsewhere. Neither is on disk or on a command line.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from acp_manifold.adapters.claude.login import LOGIN_VARIABLES, settings_environment
from acp_manifold.translators.auth import Endpoint
from acp_manifold.translators.narrow import JsonObject

PLACEHOLDER = "acp-manifold"
"""The token for an endpoint whose headers bring none: without one Claude Code asks for a login, or sends its own."""

_ROUTING = (
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "ANTHROPIC_VERTEX_BASE_URL",
    "AWS_BEARER_TOKEN_BEDROCK",
)

_ANTHROPIC_VERSION = "2023-06-01"


def variables(endpoint: Endpoint) -> dict[str, str]:
    """Every variable that says where requests go and with what login; those that are not to count are empty.

    `Authorization: Bearer` becomes the token itself: with a token of its own Claude Code replaces the header
    (2.1.332). Another scheme is left to the headers, and wins where there is no token.
    """
    found = dict.fromkeys((*LOGIN_VARIABLES, *_ROUTING), "")
    scheme, _, token = (endpoint.header("authorization") or "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    dropped = {"authorization"} if bearer else set[str]()
    if endpoint.api_type == "bedrock":
        found["CLAUDE_CODE_USE_BEDROCK"] = "1"
        found["ANTHROPIC_BEDROCK_BASE_URL"] = endpoint.base_url
        found["AWS_BEARER_TOKEN_BEDROCK"] = bearer or PLACEHOLDER
    else:
        found["ANTHROPIC_BASE_URL"] = endpoint.base_url
        key = endpoint.header("x-api-key")
        if key and not bearer:
            found["ANTHROPIC_API_KEY"] = key
            dropped.add("x-api-key")
        elif bearer or not scheme:
            found["ANTHROPIC_AUTH_TOKEN"] = bearer or PLACEHOLDER
    kept = (f"{name}: {value}" for name, value in endpoint.headers.items() if name.lower() not in dropped)
    found["ANTHROPIC_CUSTOM_HEADERS"] = "\n".join(kept)
    return found


def environment(env: Mapping[str, str], endpoint: Endpoint) -> dict[str, str]:
    """The environment of a process whose requests go to a client's endpoint, made from that of any other."""
    ours = variables(endpoint)
    kept = {name: value for name, value in env.items() if name not in ours}
    if endpoint.api_type == "bedrock":
        kept.setdefault("AWS_REGION", "us-east-1")
    return {**kept, **{name: value for name, value in ours.items() if value}}


def settings_request(endpoint: Endpoint) -> JsonObject:
    """The control request that holds the same against the person's settings, a key helper among them."""
    settings: JsonObject = {"env": dict(variables(endpoint)), "apiKeyHelper": ""}
    return {"subtype": "apply_flag_settings", "settings": settings}


def configured(environ: Mapping[str, str]) -> Endpoint | None:
    """The endpoint of the Anthropic API that the person has configured; None without one."""
    seen = {**environ, **settings_environment(environ)}
    url = seen.get("ANTHROPIC_BASE_URL", "").strip()
    if not url or any(_on(seen.get(name, "")) for name in LOGIN_VARIABLES if name.startswith("CLAUDE_CODE_USE_")):
        return None
    headers = dict(_split(line) for line in seen.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines() if ":" in line)
    token, key = seen.get("ANTHROPIC_AUTH_TOKEN", "").strip(), seen.get("ANTHROPIC_API_KEY", "").strip()
    if token:
        headers["Authorization"] = f"Bearer {token}"
    if key:
        headers["X-Api-Key"] = key
    return Endpoint("anthropic", url.rstrip("/"), headers)


def shown(environ: Mapping[str, str]) -> str | None:
    """The endpoint that is configured, as it can be shown to people: without credentials and query."""
    endpoint = configured(environ)
    if endpoint is None:
        return None
    try:
        parts = urlsplit(endpoint.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    except ValueError:
        return "ANTHROPIC_BASE_URL, which is no URL"


async def models(endpoint: Endpoint | None, environ: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """The ids of an endpoint's models; empty if it is the maker's own, or can't tell: the CLI's list counts then.

    Args:
        endpoint: The one a client has set; None: the configured one.
        environ: The environment that the CLI is started in.
    """
    endpoint = endpoint or configured(environ)
    if endpoint is None or endpoint.api_type != "anthropic":
        return ()
    from acp_manifold.adapters.endpoints import LISTS

    headers = dict(endpoint.headers)
    if endpoint.header("authorization") is None and endpoint.header("x-api-key") is None:
        headers["Authorization"] = f"Bearer {PLACEHOLDER}"
    headers.setdefault("anthropic-version", _ANTHROPIC_VERSION)
    return await LISTS.models(f"{endpoint.base_url}/v1/models?limit=1000", headers)


def _on(value: str) -> bool:
    return value.strip().lower() not in ("", "0", "false", "no", "off")


def _split(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()
