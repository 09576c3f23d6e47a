"""The options of a session to and from ACP v2: the mode is one of them, a switch may be one."""

from __future__ import annotations

from acp_manifold.translators.acp import options
from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.acp.requests import BadParams, required_text
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import ConfigOption

_ALL = ClientCapabilities(boolean_options=True)


def config_options(held: tuple[ConfigOption, ...]) -> list[JsonObject]:
    """The value of `configOptions`."""
    return [{"configId": wire.pop("id"), **wire} for wire in options.config_options(held, _ALL)]


def change(params: JsonObject) -> tuple[str, str | bool]:
    """Option and value of `session/set_config_option`.

    Raises:
        BadParams: One of them, or the type of the value, is missing or has the wrong shape.
    """
    option, kind = required_text(params, "configId"), required_text(params, "type")
    if kind not in ("id", "boolean"):
        raise BadParams("type", f"{kind[:40]!r} is no type of value that this agent takes: id or boolean")
    value = params.get("value")
    if kind == "boolean":
        if not isinstance(value, bool):
            raise BadParams("value", "must be true or false, since type is boolean")
        return option, value
    return option, required_text(params, "value")
