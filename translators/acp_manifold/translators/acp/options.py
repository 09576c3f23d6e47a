"""The options of a session to and from ACP v1: `configOptions`, and `modes` for clients that know no others.

Shapes are those of SDK 2.4.0 (unstable schema). A switch is shown as a choice of two to clients that did not
say they take `session.configOptions.boolean`.
"""

from __future__ import annotations

from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.acp.requests import BadParams, required_text
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import Choice, ConfigOption

ON, OFF = "on", "off"
"""The two choices of a switch, where it has to be a choice."""

_SWITCH = (Choice(ON, "On"), Choice(OFF, "Off"))


def opened(options: tuple[ConfigOption, ...], can: ClientCapabilities) -> JsonObject:
    """What the answer to a request that opens a session says of its options."""
    result: JsonObject = {"configOptions": config_options(options, can)}
    mode = _mode(options)
    if mode is not None:
        modes = [_named("id", choice) for choice in mode.choices]
        result["modes"] = {"currentModeId": mode.value, "availableModes": modes}
    return result


def config_options(options: tuple[ConfigOption, ...], can: ClientCapabilities) -> list[JsonObject]:
    """The value of `configOptions`."""
    return [_option(option, can) for option in options]


def updates(options: tuple[ConfigOption, ...], can: ClientCapabilities, known_mode: str | None) -> list[JsonObject]:
    """The updates that tell the options: the mode once more by itself if it is not the one the client knows of."""
    told: list[JsonObject] = [
        {"sessionUpdate": "config_option_update", "configOptions": config_options(options, can)},
    ]
    mode = current_mode(options)
    if mode is not None and mode != known_mode:
        told.append({"sessionUpdate": "current_mode_update", "currentModeId": mode})
    return told


def current_mode(options: tuple[ConfigOption, ...]) -> str | None:
    """The mode that holds; None for a session that has none."""
    mode = _mode(options)
    return mode.value if mode is not None and isinstance(mode.value, str) else None


def mode_option(options: tuple[ConfigOption, ...]) -> str:
    """The id of the option that `session/set_mode` sets.

    Raises:
        BadParams: There is none.
    """
    mode = _mode(options)
    if mode is None:
        raise BadParams("modeId", "this session has no modes")
    return mode.id


def change(params: JsonObject) -> tuple[str, str | bool]:
    """Option and value of `session/set_config_option`.

    Raises:
        BadParams: One of them is missing or has the wrong shape.
    """
    option = required_text(params, "configId")
    if "value" not in params:
        raise BadParams("value", "is required")
    value = params["value"]
    if not isinstance(value, str | bool):
        raise BadParams("value", "must be a string, or true or false for a switch")
    if not isinstance(params.get("type", ""), str):
        raise BadParams("type", "must be a string")
    if params.get("type") == "boolean" and not isinstance(value, bool):
        raise BadParams("value", "must be true or false, since type is boolean")
    return option, value


def _mode(options: tuple[ConfigOption, ...]) -> ConfigOption | None:
    return next((option for option in options if option.category == "mode"), None)


def _option(option: ConfigOption, can: ClientCapabilities) -> JsonObject:
    wire: JsonObject = {"id": option.id, "name": option.name}
    if option.description is not None:
        wire["description"] = option.description
    if option.category is not None:
        wire["category"] = option.category
    if isinstance(option.value, bool) and can.boolean_options:
        return {**wire, "type": "boolean", "currentValue": option.value}
    value, choices = option.value, option.choices
    if isinstance(value, bool):
        value, choices = ON if value else OFF, _SWITCH
    return {
        **wire,
        "type": "select",
        "currentValue": value,
        "options": [_named("value", choice) for choice in choices],
    }


def _named(key: str, choice: Choice) -> JsonObject:
    wire: JsonObject = {key: choice.value, "name": choice.name}
    if choice.description is not None:
        wire["description"] = choice.description
    return wire
