"""What holds in a Codex thread, as canonical options, and what sets it."""

from __future__ import annotations

import pytest

from acp_manifold.translators.codex import options as wire
from acp_manifold.translators.codex.options import Settings
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import ConfigOption

STARTED: JsonObject = {
    "model": "m-1",
    "reasoningEffort": None,
    "approvalPolicy": "on-request",
    "approvalsReviewer": "user",
    "sandbox": {"type": "readOnly", "networkAccess": False},
    "activePermissionProfile": {"id": ":read-only", "extends": None},
    "serviceTier": None,
}


def listed(name: str, *efforts: str, fast: bool = False, hidden: bool = False) -> JsonObject:
    return {
        "id": name,
        "displayName": name.upper(),
        "supportedReasoningEfforts": [{"reasoningEffort": effort} for effort in efforts],
        "defaultReasoningEffort": efforts[0],
        "additionalSpeedTiers": ["fast"] if fast else [],
        "hidden": hidden,
    }


MODELS = wire.models(
    {"data": [listed("m-1", "medium", "high", fast=True), listed("m-2", "low"), listed("old", "low", hidden=True)]}
)
HELD = wire.opened(STARTED)


OWN = wire.profiles(
    {
        "data": [
            {"id": ":workspace", "allowed": True},
            {"id": "dev", "description": "For development", "allowed": True},
            {"id": "mine", "description": None, "allowed": True},
            {"id": "forbidden", "allowed": False},
        ]
    }
)


def by_id(
    held: Settings,
    configured: Settings = HELD,
    served: tuple[str, ...] | None = None,
    own: tuple[wire.Profile, ...] = (),
) -> dict[str, ConfigOption]:
    return {option.id: option for option in wire.options(held, configured, MODELS, served, own)}


def values(option: ConfigOption) -> list[str]:
    return [choice.value for choice in option.choices]


def test_what_the_thread_starts_with_is_what_is_told() -> None:
    found = by_id(HELD)
    assert {name: option.value for name, option in found.items()} == {
        "mode": "read-only",
        "collaboration_mode": "default",
        "model": "m-1",
        "effort": "medium",
        "fast": False,
    }
    assert values(found["mode"]) == ["read-only", "workspace-write", "agent", "agent-full-access"]
    assert values(found["model"]) == ["m-1", "m-2"]


@pytest.mark.parametrize(
    "own",
    [
        {"approval": "untrusted"},
        {"approval": {"granular": {"rules": True}}},
        {"sandbox": {"type": "workspaceWrite", "networkAccess": True}, "profile": None},
        {"sandbox": {"type": "workspaceWrite", "writableRoots": ["/srv"]}, "profile": "mine"},
    ],
)
def test_what_no_mode_says_is_a_mode_of_its_own_and_one_can_go_back_to_it(own: JsonObject) -> None:
    configured = Settings(**{**HELD._asdict(), **own})  # pyright: ignore[reportArgumentType]
    assert by_id(configured, configured)["mode"].value == "config"
    later = HELD
    assert values(by_id(later, configured)["mode"])[-1] == "config"
    params = wire.change("mode", "config", later, configured, MODELS)
    assert params["approvalPolicy"] == configured.approval
    assert params.get("permissions") == configured.profile
    if configured.profile is None:
        assert params["sandboxPolicy"] == configured.sandbox


def test_profiles_of_the_person_are_modes_that_ask_as_the_person_has_configured() -> None:
    option = by_id(HELD, own=OWN)["mode"]
    assert values(option)[4:] == ["permission-profile:dev", "permission-profile:mine"]
    assert [choice.description for choice in option.choices[4:]] == [
        "For development; approval policy on-request",
        "approval policy on-request",
    ]
    for configured, asks in (
        (HELD, ("on-request", "user")),
        (HELD._replace(approval="never", sandbox={"type": "dangerFullAccess"}), ("on-request", "user")),
        (HELD._replace(approval="untrusted"), ("untrusted", "user")),
        (HELD._replace(approval="never", profile="mine"), ("never", "user")),
    ):
        params = wire.change("mode", "permission-profile:dev", HELD, configured, MODELS)
        assert (params["approvalPolicy"], params["approvalsReviewer"]) == asks
        assert params["permissions"] == "dev"
        held = HELD._replace(approval=asks[0], profile="dev", sandbox={"type": "workspaceWrite"})
        assert by_id(held, configured, own=OWN)["mode"].value == "permission-profile:dev"
        # As long as it is not known to be one, and where it asks otherwise, it is what is configured.
        assert by_id(held, configured)["mode"].value == "config"
        assert by_id(held._replace(reviewer="auto_review"), configured, own=OWN)["mode"].value == "config"


def test_a_mode_is_set_by_its_profile_which_codex_keeps() -> None:
    assert wire.change("mode", "agent", HELD, HELD, MODELS) == {
        "approvalPolicy": "on-request",
        "approvalsReviewer": "auto_review",
        "permissions": ":workspace",
    }


def test_an_effort_the_next_model_has_not_gives_way_to_its_own() -> None:
    held = HELD._replace(effort="high")
    assert wire.change("model", "m-2", held, HELD, MODELS) == {"model": "m-2", "effort": "low"}
    assert wire.change("model", "m-2", HELD, HELD, MODELS) == {"model": "m-2"}


def test_planning_keeps_model_and_effort() -> None:
    change = wire.change("collaboration_mode", "plan", HELD._replace(effort="high"), HELD, MODELS)
    assert change["collaborationMode"] == {
        "mode": "plan",
        "settings": {"model": "m-1", "reasoning_effort": "high", "developer_instructions": None},
    }


def test_an_endpoint_model_is_offered_and_a_model_unknown_to_codex_has_no_effort() -> None:
    found = by_id(HELD._replace(model="local"), served=("local", "m-1"))
    assert values(found["model"]) == ["local", "m-1"] and {"effort", "fast"}.isdisjoint(found)


def test_the_fast_tier_has_two_names() -> None:
    assert by_id(HELD._replace(tier="priority"))["fast"].value is True
    assert by_id(HELD._replace(tier="default"))["fast"].value is False
