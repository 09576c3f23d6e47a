"""What Claude Code offers and holds, as canonical options."""

from __future__ import annotations

from acp_manifold.translators.claude import options as wire
from acp_manifold.translators.claude.options import Held, Menu, menu
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import ConfigOption

EFFORTS = ["low", "medium", "high"]
ANSWER: JsonObject = {
    "models": [
        {"value": "default", "resolvedModel": "opus-5", "displayName": "Default", "supportsFastMode": True}
        | {"supportsEffort": True, "supportedEffortLevels": EFFORTS, "supportsAutoMode": True},
        {"value": "opus", "resolvedModel": "opus-5", "displayName": "Opus", "supportsEffort": True}
        | {"supportedEffortLevels": EFFORTS, "supportsFastMode": True, "supportsAutoMode": True},
        {"value": "haiku", "resolvedModel": "haiku-5", "displayName": "Haiku"},
    ],
    "agents": [{"name": "Explore", "description": "x"}, {"name": "reviewer", "description": "Reviews"}],
    "output_style": "default",
    "available_output_styles": ["default", "Concise"],
    "current_permission_mode": "plan",
    "fast_mode_state": "off",
    "fast_mode_disabled_reason": "free",
}
APPLIED: JsonObject = {
    "applied": {"model": "opus-5", "effort": "medium", "ultracodeAvailable": True, "ultracodeRequested": False},
    "effective": {},
}


def by_id(found: tuple[ConfigOption, ...]) -> dict[str, ConfigOption]:
    return {option.id: option for option in found}


def values(option: ConfigOption) -> list[str]:
    return [choice.value for choice in option.choices]


def test_what_the_handshake_and_the_settings_tell_is_offered() -> None:
    held = wire.applied(wire.greeted(Held(), ANSWER), APPLIED)
    found = by_id(wire.options(menu(ANSWER), held, bypass=False))
    assert list(found) == ["mode", "model", "effort", "fast", "ultracode", "output_style", "agent"]
    assert found["mode"].value == "plan" and "bypassPermissions" not in values(found["mode"])
    assert found["model"].value == "default" and values(found["model"]) == ["default", "opus", "haiku"]
    assert found["effort"].value == "medium" and values(found["effort"]) == [*EFFORTS, "default"]
    assert found["fast"].value is False and "plan" in (found["fast"].description or "")
    assert values(found["agent"]) == ["default", "reviewer"]


def test_a_model_that_can_less_offers_less() -> None:
    held = wire.applied(Held(), {"applied": {"model": "haiku-5"}, "effective": {}})
    found = by_id(wire.options(menu(ANSWER), held, bypass=True))
    assert found["model"].value == "haiku" and {"effort", "fast", "ultracode"}.isdisjoint(found)
    assert "auto" not in values(found["mode"]) and "bypassPermissions" in values(found["mode"])


def test_the_model_is_told_by_the_name_it_was_given() -> None:
    named = wire.applied(Held(), APPLIED | {"effective": {"model": "opus"}})
    assert by_id(wire.options(menu(ANSWER), named, bypass=False))["model"].value == "opus"
    odd = wire.applied(Held(), {"applied": {"model": "mine-1"}, "effective": {"model": "opus"}})
    assert by_id(wire.options(menu(ANSWER), odd, bypass=False))["model"].value == "opus"
    alone = wire.applied(Held(), {"applied": {"model": "mine-1"}, "effective": {}})
    option = by_id(wire.options(menu(ANSWER), alone, bypass=False))["model"]
    assert option.value == "mine-1" and values(option)[-1] == "mine-1"


def test_what_an_endpoint_serves_takes_the_place_of_the_list() -> None:
    held = wire.applied(Held(), APPLIED)
    option = by_id(wire.options(menu(ANSWER), held, bypass=False, models=("opus-5", "local-7b")))["model"]
    assert option.value == "opus-5" and values(option) == ["opus-5", "local-7b"]


def test_before_anything_is_known_there_are_modes() -> None:
    assert list(by_id(wire.options(Menu(), Held(), bypass=False))) == ["mode"]


def test_settings_can_forbid_the_bypass() -> None:
    forbidden: JsonObject = {"permissions": {"disableBypassPermissionsMode": "disable"}}
    held = wire.applied(Held(), APPLIED | {"effective": forbidden})
    assert "bypassPermissions" not in values(by_id(wire.options(menu(ANSWER), held, bypass=True))["mode"])


def test_a_change_of_the_effort_keeps_ultracode() -> None:
    assert wire.request("effort", "high", Held(ultracode=True))["settings"] == {
        "effortLevel": "high",
        "ultracode": True,
    }
    assert wire.request("agent", "default", Held())["settings"] == {"agent": None}
