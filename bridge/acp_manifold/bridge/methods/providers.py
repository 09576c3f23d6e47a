"""Endpoints that a client sets for backends: for sessions opened from then on, in memory, while the agent runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_manifold.translators.acp import providers, requests
from acp_manifold.translators.narrow import JsonObject

if TYPE_CHECKING:
    from acp_manifold.bridge.link import Link, Method
    from acp_manifold.bridge.peer import Call


def _supported(link: Link) -> dict[str, tuple[str, ...]]:
    return {b.name: b.endpoint_types for b in link.hub.backends.values() if b.endpoint_types}


def _list(link: Link, params: JsonObject, call: Call) -> JsonObject:
    return providers.providers_result(_supported(link), link.hub.endpoints)


def _set(link: Link, params: JsonObject, call: Call) -> JsonObject:
    name, endpoint = providers.provider_setting(params, _supported(link))
    link.hub.endpoints[name] = endpoint
    link.hub.login_changed()
    return {}


def _disable(link: Link, params: JsonObject, call: Call) -> JsonObject:
    """One that is unknown or was never set is disabled already."""
    if link.hub.endpoints.pop(requests.required_text(params, "providerId"), None) is not None:
        link.hub.login_changed()
    return {}


TABLE: dict[str, Method] = {"providers/list": _list, "providers/set": _set, "providers/disable": _disable}
