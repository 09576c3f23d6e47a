"""What can be set in a Codex thread: from the app-server's words to canonical options, from a choice to its params.

Measured with codex-cli 0.163.0 (issue 5). `thread/settings/update` sets everything, also without a turn, and
`thread/settings/updated` tells all that holds then. The thread keeps model, effort, approvals, permission profile
and collaboration mode; it keeps neither the service tier nor a sandbox that is no profile. An effort is cleared
through `collaborationMode` alone. Model and effort are not validated: what can't be is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence

from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, as_str, flag, obj, text
from acp_manifold.translators.updates import Choice, ConfigOption
from acp_manifold.translators.values import NamedTuple

MODE, MODEL, EFFORT, FAST, COLLABORATION = "mode", "model", "effort", "fast", "collaboration_mode"
"""The ids of the options."""

CONFIGURED = "config"
"""The mode that is what the person's configuration says, where that is none of the others."""

PROFILE = "permission-profile:"
"""A mode that is a permission profile of the person's: its id stands behind this."""

_FAST_TIERS = ("fast", "priority")


class Mode(NamedTuple):
    """Permissions that have a name."""

    choice: Choice
    approval: str
    reviewer: str
    sandbox: str
    profile: str
    """Codex' own permission profile, which it keeps with the thread."""


_MODES = (
    Mode(
        Choice("read-only", "Read only", "Asks before it edits files, runs what isn't trusted or uses the network"),
        "on-request",
        "user",
        "readOnly",
        ":read-only",
    ),
    Mode(
        Choice("workspace-write", "Workspace write", "Edits and runs in the workspace; asks for more"),
        "on-request",
        "user",
        "workspaceWrite",
        ":workspace",
    ),
    Mode(
        Choice("agent", "Auto review", "Edits and runs in the workspace; a reviewing model decides about more"),
        "on-request",
        "auto_review",
        "workspaceWrite",
        ":workspace",
    ),
    Mode(
        Choice("agent-full-access", "Full access", "Edits everywhere, runs everything, uses the network; never asks"),
        "never",
        "user",
        "dangerFullAccess",
        ":danger-full-access",
    ),
)

_COLLABORATION = (
    Choice("default", "Default", "Does what it is asked for"),
    Choice("plan", "Plan", "Talks the plan over first, and changes nothing"),
)


class Model(NamedTuple):
    """A model that Codex lists."""

    id: str
    name: str
    description: str | None
    efforts: tuple[Choice, ...]
    effort: str | None
    """The one that holds while none was chosen."""
    fast: bool
    hidden: bool


class Profile(NamedTuple):
    """A permission profile that the person has configured, and may choose."""

    id: str
    description: str | None = None


class Settings(NamedTuple):
    """What holds in a thread."""

    model: str
    effort: str | None
    approval: object
    """A word, or an object of several."""
    reviewer: str
    sandbox: JsonObject
    profile: str | None
    """The permission profile that is behind `sandbox`."""
    tier: str | None
    collaboration: str = "default"


def opened(result: JsonObject) -> Settings:
    """What holds, by the answer to `thread/start` or `thread/resume`."""
    return _settings(result, "sandbox", "reasoningEffort")


def updated(params: JsonObject) -> Settings:
    """What holds, by `thread/settings/updated`."""
    return _settings(obj(params, "threadSettings"), "sandboxPolicy", "effort")


def _settings(said: JsonObject, sandbox: str, effort: str) -> Settings:
    return Settings(
        model=text(said, "model"),
        effort=as_str(said.get(effort)),
        approval=said.get("approvalPolicy"),
        reviewer=text(said, "approvalsReviewer") or "user",
        sandbox=obj(said, sandbox),
        profile=as_str(obj(said, "activePermissionProfile").get("id")),
        tier=as_str(said.get("serviceTier")),
        collaboration=text(obj(said, "collaborationMode"), "mode") or "default",
    )


def models(result: JsonObject) -> tuple[Model, ...]:
    """The answer to `model/list`."""
    return tuple(_model(entry) for entry in as_objects(result.get("data")) if text(entry, "id"))


def _model(entry: JsonObject) -> Model:
    efforts = tuple(
        Choice(name, name.capitalize(), text(level, "description") or None)
        for level in as_objects(entry.get("supportedReasoningEfforts"))
        if (name := text(level, "reasoningEffort"))
    )
    return Model(
        text(entry, "id"),
        text(entry, "displayName") or text(entry, "id"),
        text(entry, "description") or None,
        efforts,
        as_str(entry.get("defaultReasoningEffort")),
        any(tier in _FAST_TIERS for tier in as_list(entry.get("additionalSpeedTiers"))),
        flag(entry, "hidden"),
    )


def profiles(result: JsonObject) -> tuple[Profile, ...]:
    """The answer to `permissionProfile/list` without Codex' own, which `:` begins, and those that may not be chosen."""
    return tuple(
        Profile(name, as_str(entry.get("description")))
        for entry in as_objects(result.get("data"))
        if (name := text(entry, "id")) and not name.startswith(":") and entry.get("allowed") is not False
    )


def options(
    held: Settings,
    configured: Settings,
    known: Sequence[Model],
    served: Sequence[str] | None = None,
    own: Sequence[Profile] = (),
) -> tuple[ConfigOption, ...]:
    """All options, with what holds.

    Args:
        held: What holds.
        configured: What held when the thread was opened.
        known: The models that Codex lists; empty as long as that is not known.
        served: What an endpoint serves, in place of them.
        own: The person's permission profiles.
    """
    model = next((model for model in known if model.id == held.model), None)
    found = [_mode(held, configured, own), _collaboration(held)]
    choices = [Choice(m.id, m.name, m.description) for m in known if not m.hidden or m.id == held.model]
    if served is not None:
        names = {m.id: m for m in known}
        choices = [Choice(s, names[s].name, names[s].description) if s in names else Choice(s, s) for s in served]
    if all(choice.value != held.model for choice in choices):
        choices.append(Choice(held.model, held.model))
    found.append(ConfigOption(MODEL, "Model", held.model, tuple(choices), "model"))
    effort = held.effort or (model.effort if model is not None else None)
    if effort is not None:
        levels = model.efforts if model is not None else ()
        if all(level.value != effort for level in levels):
            levels = (*levels, Choice(effort, effort.capitalize()))
        found.append(ConfigOption(EFFORT, "Reasoning effort", effort, levels, "thought_level"))
    fast = held.tier in _FAST_TIERS
    if fast or (model is not None and model.fast):
        words = "Faster answers, at a higher price"
        found.append(ConfigOption(FAST, "Fast mode", fast, (), "model_config", words))
    return tuple(found)


def _mode(held: Settings, configured: Settings, own: Sequence[Profile]) -> ConfigOption:
    choices = [mode.choice for mode in _MODES]
    asks = f"approval policy {_policy(_asking(configured)[0])}"
    choices += [
        Choice(PROFILE + profile.id, profile.id, f"{profile.description}; {asks}" if profile.description else asks)
        for profile in own
    ]
    plain = next((it for it in (configured, held) if mode_of(it, configured, own) == CONFIGURED), None)
    if plain is not None:
        choices.append(Choice(CONFIGURED, "As configured", _permissions(plain)))
    words = "What is done without asking, and what is asked first"
    return ConfigOption(MODE, "Mode", mode_of(held, configured, own), tuple(choices), "mode", words)


def mode_of(held: Settings, configured: Settings, own: Sequence[Profile] = ()) -> str:
    """The id of the mode that holds; see `options` for the arguments."""
    if held.profile is not None and not held.profile.startswith(":"):
        # What it allows is not all in the sandbox that is told with it.
        listed = any(profile.id == held.profile for profile in own)
        as_chosen = listed and _asking(configured) == (held.approval, held.reviewer)
        return PROFILE + held.profile if as_chosen else CONFIGURED
    return _named_mode(held) or CONFIGURED


def _asking(configured: Settings) -> tuple[object, str]:
    """Approval policy and reviewer of a profile: those of the person, unless they are part of another mode."""
    own = configured.profile is not None and not configured.profile.startswith(":")
    if own or _named_mode(configured) is None:
        return configured.approval, configured.reviewer
    return "on-request", "user"


def _named_mode(held: Settings) -> str | None:
    for mode in _MODES:
        exact = not held.sandbox.get("writableRoots") and not flag(held.sandbox, "networkAccess")
        same = (mode.approval, mode.reviewer, mode.sandbox) == (
            held.approval,
            held.reviewer,
            text(held.sandbox, "type"),
        )
        if same and (exact or mode.sandbox == "dangerFullAccess"):
            return mode.choice.value
    return None


def _policy(approval: object) -> str:
    return approval if isinstance(approval, str) else "granular"


def _permissions(held: Settings) -> str:
    network = ", network" if flag(held.sandbox, "networkAccess") else ""
    return f"approval policy {_policy(held.approval)}, sandbox {held.profile or text(held.sandbox, 'type')}{network}"


def _collaboration(held: Settings) -> ConfigOption:
    choices: tuple[Choice, ...] = _COLLABORATION
    if all(choice.value != held.collaboration for choice in choices):
        choices = (*choices, Choice(held.collaboration, held.collaboration))
    return ConfigOption(COLLABORATION, "Collaboration", held.collaboration, choices, None, "How a turn is worked on")


def change(
    option_id: str,
    value: str | bool,
    held: Settings,
    configured: Settings,
    known: Sequence[Model],
    own: Sequence[Profile] = (),
) -> JsonObject:
    """What `thread/settings/update` is to be sent, beside the thread, to set an option to a value that was checked."""
    if option_id == MODE:
        return _mode_params(str(value), held, configured, own)
    if option_id == COLLABORATION:
        settings: JsonObject = {
            "model": held.model,
            "reasoning_effort": held.effort,
            "developer_instructions": None,
        }
        return {"collaborationMode": {"mode": value, "settings": settings}}
    if option_id == FAST:
        return {"serviceTier": "fast" if value else None}
    if option_id == EFFORT:
        return {"effort": value}
    model = next((model for model in known if model.id == value), None)
    params: JsonObject = {"model": value}
    if held.effort is not None and model is not None and all(level.value != held.effort for level in model.efforts):
        params["effort"] = model.effort
    return params


def _mode_params(value: str, held: Settings, configured: Settings, own: Sequence[Profile]) -> JsonObject:
    for mode in _MODES:
        if mode.choice.value == value:
            return {
                "approvalPolicy": mode.approval,
                "approvalsReviewer": mode.reviewer,
                "permissions": mode.profile,
            }
    if value.startswith(PROFILE):
        approval, reviewer = _asking(configured)
        return {
            "approvalPolicy": approval,
            "approvalsReviewer": reviewer,
            "permissions": value.removeprefix(PROFILE),
        }
    plain = configured if mode_of(configured, configured, own) == CONFIGURED else held
    params: JsonObject = {"approvalPolicy": plain.approval, "approvalsReviewer": plain.reviewer}
    if plain.profile is not None:
        return {**params, "permissions": plain.profile}
    return {**params, "sandboxPolicy": plain.sandbox}
