"""The options of a session that the bridge itself knows of: which backend serves it, and whether a choice is one."""

from __future__ import annotations

from collections.abc import Sequence

from acp_manifold.translators.updates import Choice, ConfigOption

from .backend import Backend
from .errors import InvalidParams

BACKEND = "backend"
"""The option that says which backend serves the session."""

_SHOWN = 100
"""Characters of what was sent that a refusal repeats."""


def backend_option(current: Backend, choices: Sequence[Backend]) -> ConfigOption:
    """Which backend serves the session, and which others could."""
    return ConfigOption(
        BACKEND,
        "Backend",
        current.name,
        tuple(Choice(backend.name, backend.label) for backend in choices),
        description="The coding CLI that serves this session; fixed with the first prompt",
    )


def checked(options: Sequence[ConfigOption], option_id: str, value: str | bool) -> str | bool:
    """The value to set an option to: one of its choices or, of a switch, whether it is to be on.

    Args:
        options: What there is.
        option_id: Which of them.
        value: What is wanted; `on` and `off` are values of a switch too.

    Raises:
        InvalidParams: There is no such option, or no such value; the text names what there is.
    """
    option = next((option for option in options if option.id == option_id), None)
    if option is None:
        ids = [BACKEND, *(option.id for option in options if option.id != BACKEND)]
        raise InvalidParams(
            f"configId: {option_id[:_SHOWN]!r} is no option of this session; there is: {', '.join(ids)}",
            {"field": "configId", "choices": ids},
        )
    if isinstance(option.value, bool):
        switched = {"on": True, "off": False}.get(value) if isinstance(value, str) else value
        if switched is None:
            raise InvalidParams(f"value: {option.id} is a switch: true or false, on or off", {"field": "value"})
        return switched
    values = [choice.value for choice in option.choices]
    if value not in values:
        shown = repr(value[:_SHOWN]) if isinstance(value, str) else value
        raise InvalidParams(
            f"value: {shown} is no choice of {option.id}; there is: {', '.join(values)}",
            {"field": "value", "choices": values},
        )
    return value
