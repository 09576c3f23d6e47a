"""What can be set in a Claude Code session: from its answers to canonical options, from a choice to its requests.

Measured with Claude Code 2.1.332 (issue 5). The answer to `initialize` lists models with their effort levels, output
styles and agents, and tells the permission mode; the answer to `get_settings` tells which model and effort run. The
CLI takes any model name, and an effort or a style that there is none of changes nothing: what can't be is refused here.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, as_str, flag, obj, text
from acp_manifold.translators.updates import Choice, ConfigOption
from acp_manifold.translators.values import NamedTuple

MODE, MODEL, EFFORT, FAST, ULTRACODE, STYLE, AGENT = (
    "mode",
    "model",
    "effort",
    "fast",
    "ultracode",
    "output_style",
    "agent",
)
"""The ids of the options."""

BYPASS = "bypassPermissions"
AUTO = "auto"

_MODES = (
    Choice("default", "Default", "Asks before what may change something"),
    Choice("acceptEdits", "Accept edits", "Edits files without asking"),
    Choice("plan", "Plan", "Reads and plans, changes nothing"),
    Choice(AUTO, "Auto", "A safety check decides instead of asking"),
    Choice("dontAsk", "Don't ask", "Refuses what is not allowed already"),
    Choice(BYPASS, "Bypass permissions", "Runs everything without asking"),
)

DEFAULT = "default"
"""As an effort: that of the person's settings again, or else of the model."""

_DEFAULT_MODEL = "default"
_NO_AGENT = Choice("default", "Default", "Claude Code itself")

_DEFAULT_EFFORT = Choice(DEFAULT, "Default", "The effort of your settings, or else of the model, again")

_SUBAGENTS = frozenset({"claude", "Explore", "general-purpose", "Plan", "statusline-setup"})
"""Agents of the CLI's own, which work for the main one and are none a person would talk to."""

_FAST_UNAVAILABLE = {
    "free": "not part of this plan",
    "extra_usage_disabled": "needs extra usage to be enabled for this account",
    "model_not_allowed": "not there for this model",
    "not_first_party": "not there with this API provider",
    "disabled_by_env": "disabled by the environment",
    "network_error": "whether it may be used could not be found out",
}
"""Why fast mode stays off, as the CLI says it -> for people; what else it says is no obstacle."""


class Model(NamedTuple):
    """A model that the CLI offers."""

    id: str
    name: str
    description: str | None
    runs: str
    """What a request to the model then names."""
    efforts: tuple[str, ...]
    fast: bool
    auto: bool
    """Whether the mode `auto` is there with it."""


class Menu(NamedTuple):
    """What the CLI offers."""

    models: tuple[Model, ...] = ()
    styles: tuple[str, ...] = ()
    agents: tuple[Choice, ...] = ()


class Held(NamedTuple):
    """What holds in a process; None where that is not known."""

    mode: str = "default"
    model: str | None = None
    """What the requests to the model name."""
    named: str | None = None
    """The model as settings, or the client, name it."""
    effort: str | None = None
    fast: bool = False
    fast_obstacle: str | None = None
    ultracode: bool | None = None
    """None where it can't be had."""
    output_style: str | None = None
    agent: str | None = None
    no_bypass: bool = False
    """Whether settings forbid the mode that bypasses permissions."""


def menu(answer: JsonObject) -> Menu:
    """What the answer to `initialize` offers."""
    models = [_model(entry) for entry in as_objects(answer.get("models")) if text(entry, "value")]
    agents = [
        Choice(text(entry, "name"), text(entry, "name"), text(entry, "description") or None)
        for entry in as_objects(answer.get("agents"))
        if text(entry, "name") not in _SUBAGENTS | {"", _NO_AGENT.value}
    ]
    return Menu(tuple(models), _texts(answer.get("available_output_styles")), tuple(agents))


def _model(entry: JsonObject) -> Model:
    name = text(entry, "value")
    return Model(
        name,
        text(entry, "displayName") or name,
        text(entry, "description") or None,
        text(entry, "resolvedModel") or name,
        _texts(entry.get("supportedEffortLevels")) if flag(entry, "supportsEffort") else (),
        flag(entry, "supportsFastMode"),
        flag(entry, "supportsAutoMode"),
    )


def greeted(held: Held, answer: JsonObject) -> Held:
    """What holds, by the answer to `initialize`."""
    return running(held, answer)._replace(
        mode=text(answer, "current_permission_mode") or held.mode,
        output_style=as_str(answer.get("output_style")) or held.output_style,
    )


def running(held: Held, frame: JsonObject) -> Held:
    """What holds, by a frame that tells the state of fast mode."""
    state = as_str(frame.get("fast_mode_state"))
    if state is None:
        return held
    return held._replace(
        fast=state != "off", fast_obstacle=_FAST_UNAVAILABLE.get(text(frame, "fast_mode_disabled_reason"))
    )


def applied(held: Held, answer: JsonObject) -> Held:
    """What holds, by the answer to `get_settings`."""
    now, settings = obj(answer, "applied"), obj(answer, "effective")
    return held._replace(
        model=as_str(now.get("model")) or held.model,
        named=as_str(settings.get("model")),
        effort=as_str(now.get("effort")),
        ultracode=flag(now, "ultracodeRequested") if flag(now, "ultracodeAvailable") else None,
        output_style=as_str(settings.get("outputStyle")) or "default",
        agent=as_str(settings.get("agent")),
        no_bypass=text(obj(settings, "permissions"), "disableBypassPermissionsMode") == "disable",
    )


def options(
    offered: Menu, held: Held, *, bypass: bool, models: Sequence[str] | None = None
) -> tuple[ConfigOption, ...]:
    """All options, with what holds.

    Args:
        offered: What the CLI offers; empty as long as that is not known.
        held: What holds.
        bypass: Whether the CLI would take the mode that bypasses permissions.
        models: What an endpoint serves, in place of what the CLI lists.
    """
    model = current_model(offered, held)
    found = [_mode(held, model, bypass=bypass and not held.no_bypass)]
    choices = [Choice(m.id, m.name, m.description) for m in offered.models]
    if models is not None:
        choices = [Choice(name, name) for name in models]
    shown = held.model if models is not None and held.model in models else model.id if model else held.model
    if shown is not None and (choices or offered.models):
        if all(choice.value != shown for choice in choices):
            choices.append(Choice(shown, model.name if model else shown))
        found.append(ConfigOption(MODEL, "Model", shown, tuple(choices), "model"))
    efforts = model.efforts if model is not None else ()
    if held.effort is not None and efforts:
        names = efforts if held.effort in efforts else (*efforts, held.effort)
        levels = (*(Choice(name, name.capitalize()) for name in names), _DEFAULT_EFFORT)
        found.append(ConfigOption(EFFORT, "Effort", held.effort, levels, "thought_level"))
    if model is not None and model.fast:
        found.append(ConfigOption(FAST, "Fast mode", held.fast, (), "model_config", _fast_words(held)))
    if held.ultracode is not None:
        words = "Works in dynamic workflows, at any effort"
        found.append(ConfigOption(ULTRACODE, "Ultracode", held.ultracode, (), "model_config", words))
    if held.output_style is not None and offered.styles:
        names = offered.styles if held.output_style in offered.styles else (*offered.styles, held.output_style)
        styles = tuple(Choice(name, name[:1].upper() + name[1:]) for name in names)
        found.append(ConfigOption(STYLE, "Output style", held.output_style, styles))
    if offered.agents:
        agent = held.agent or _NO_AGENT.value
        agents = (_NO_AGENT, *offered.agents)
        if all(choice.value != agent for choice in agents):
            agents = (*agents, Choice(agent, agent))
        found.append(ConfigOption(AGENT, "Agent", agent, agents, None, "Who you talk to"))
    return tuple(found)


def current_model(offered: Menu, held: Held) -> Model | None:
    """The model that runs, as the CLI lists it: under the name it was given, else under the first that means it."""
    if held.model is None:
        return next((model for model in offered.models if model.id == _DEFAULT_MODEL), None)
    known = [model for model in offered.models if model.runs == held.model]
    named = [model for model in offered.models if model.id == held.named]
    if held.named is not None and named and (named[0] in known or not known):
        return named[0]
    if known:
        return known[0]
    return None


def _mode(held: Held, model: Model | None, *, bypass: bool) -> ConfigOption:
    absent = {BYPASS} if not bypass else set[str]()
    if model is not None and not model.auto:
        absent.add(AUTO)
    return mode_option(held.mode, [mode.value for mode in _MODES if mode.value not in absent])


def mode_option(current: str, offered: Collection[str]) -> ConfigOption:
    """The option for the permission mode, of those offered; the one that holds is always among them."""
    choices = tuple(mode for mode in _MODES if mode.value in offered or mode.value == current)
    if all(mode.value != current for mode in choices):
        choices = (*choices, Choice(current, current))
    return ConfigOption(MODE, "Mode", current, choices, "mode", "What is asked before it is done")


def _fast_words(held: Held) -> str:
    words = "Faster answers, at a higher price"
    return words if held.fast or held.fast_obstacle is None else f"{words}; {held.fast_obstacle}"


def wished(menu: Menu, option_id: str, value: str) -> str | None:
    """What to set an option to that a client names as the CLI does; None for what is not offered.

    Any model is taken; which efforts there are hangs on the model, of which the CLI takes care.
    """
    if option_id == MODEL:
        return next((known.id for known in menu.models if value in (known.id, known.runs)), value)
    if option_id == EFFORT:
        return value if any(value in known.efforts for known in menu.models) else None
    return value if option_id == AGENT and any(value == agent.value for agent in menu.agents) else None


def request(option_id: str, value: str | bool, held: Held) -> JsonObject:
    """The control request that sets an option to a value that was checked."""
    if option_id == MODE:
        return {"subtype": "set_permission_mode", "mode": value}
    if option_id == MODEL:
        return {"subtype": "set_model", "model": value}
    settings: JsonObject = {_KEYS[option_id]: value}
    if option_id == EFFORT and held.ultracode:
        # A change of the effort alone turns it off (Claude Code 2.1.284 and later).
        settings["ultracode"] = True
    if option_id == EFFORT and value == DEFAULT:
        settings[_KEYS[EFFORT]] = None
    if option_id == AGENT and value == _NO_AGENT.value:
        settings = {_KEYS[AGENT]: None}
    return {"subtype": "apply_flag_settings", "settings": settings}


_KEYS = {
    EFFORT: "effortLevel",
    FAST: "fastMode",
    ULTRACODE: "ultracode",
    STYLE: "outputStyle",
    AGENT: "agent",
}
"""Option -> the setting it stands for."""

ORDER = (MODEL, EFFORT, FAST, ULTRACODE, STYLE, AGENT)
"""In which order what was chosen is set again in a new process; the mode stands on its command line."""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in as_list(value) if isinstance(item, str) and item)
