"""Providers in ACP v1 JSON: the endpoints that clients set.

A provider here is the endpoint that a client sets for one backend, under the backend's name. While none is set the
provider is disabled (`current` is left out), and the CLI's own configuration counts (SDK 2.4.0, unstable schema;
RFD "Configurable LLM Providers").
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from acp_manifold.translators.acp.requests import BadParams, required_text
from acp_manifold.translators.auth import Endpoint
from acp_manifold.translators.narrow import JsonObject, as_object, is_object

_URL = re.compile(r"[\x21-\x7e]+")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


def providers_result(supported: Mapping[str, Sequence[str]], current: Mapping[str, Endpoint]) -> JsonObject:
    """The answer to `providers/list`.

    Args:
        supported: By provider, the APIs that it may speak.
        current: By provider, the endpoint that is set.
    """
    providers: list[JsonObject] = []
    for name, types in supported.items():
        provider: JsonObject = {"providerId": name, "supported": list(types), "required": False}
        if name in current:
            provider["current"] = {"apiType": current[name].api_type, "baseUrl": current[name].base_url}
        providers.append(provider)
    return {"providers": providers}


def provider_setting(params: JsonObject, supported: Mapping[str, Sequence[str]]) -> tuple[str, Endpoint]:
    """Provider and endpoint of `providers/set`.

    Args:
        params: As they came.
        supported: By provider, the APIs that it may speak.

    Raises:
        BadParams: The provider is unknown, or something can't be sent as it is; no header's value is repeated.
    """
    name = required_text(params, "providerId")
    if name not in supported:
        raise BadParams("providerId", f"{name[:100]!r} is none of this agent's providers: {', '.join(supported)}")
    api_type = required_text(params, "apiType")
    if api_type not in supported[name]:
        known = ", ".join(supported[name])
        raise BadParams("apiType", f"{api_type[:100]!r} is none that {name} speaks: {known}")
    return name, Endpoint(api_type, _base_url(required_text(params, "baseUrl")), _headers(params.get("headers")))


def _base_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        absolute = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise BadParams("baseUrl", "is no URL") from None
    if not absolute or not _URL.fullmatch(url):
        raise BadParams("baseUrl", "must be an absolute http or https URL")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadParams("baseUrl", "must hold no credentials, query or fragment: put secrets into headers")
    return url.rstrip("/")


def _headers(value: object) -> dict[str, str]:
    if value is None:
        return {}
    if not is_object(value):
        raise BadParams("headers", "must be an object of names and values")
    headers: dict[str, str] = {}
    for name, content in as_object(value).items():
        if not _HEADER_NAME.fullmatch(name):
            raise BadParams("headers", f"{name[:100]!r} is no name of a header")
        if not isinstance(content, str) or not _HEADER_VALUE.fullmatch(content):
            raise BadParams(f"headers.{name}", "must be a string of printable ASCII characters, on one line")
        headers[name] = content
    return headers
