"""Setting options of a session: the backend, the mode, the model and what else its CLI offers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from acp_manifold.bridge.errors import InvalidParams
from acp_manifold.bridge.options import BACKEND
from acp_manifold.translators.acp import options, requests
from acp_manifold.translators.narrow import JsonObject

if TYPE_CHECKING:
    from acp_manifold.bridge.link import Link, Method
    from acp_manifold.bridge.peer import Call
    from acp_manifold.bridge.session import Session

SPELLINGS = {
    "fast-mode": "fast",
    "fast_mode": "fast",
    "reasoning_effort": "effort",
    "thought_level": "effort",
}
"""What other agents call an option -> its id here."""


def _set_config_option(link: Link, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
    session = link.hub.session(requests.session_id(params), link)
    option, value = options.change(params)
    changed = change(link, session, option, value)

    async def answer() -> JsonObject:
        await changed
        return {"configOptions": options.config_options(session.options, link.can)}

    return answer()


def _set_mode(link: Link, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
    session = link.hub.session(requests.session_id(params), link)
    mode = requests.required_text(params, "modeId")
    return _empty(session.set_option(options.mode_option(session.options), mode))


def _set_model(link: Link, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
    """The spelling of clients from before there were options; not advertised."""
    session = link.hub.session(requests.session_id(params), link)
    return _empty(session.set_option("model", requests.required_text(params, "modelId")))


def change(link: Link, session: Session, option: str, value: str | bool) -> Awaitable[None]:
    """Set an option, the backend among them: decided at once, done when awaited.

    Args:
        link: Whose wish it is.
        session: Of which session.
        option: Its id, in any spelling.
        value: What it is to be.

    Raises:
        InvalidParams: There is no such option or value; also when awaited.
        BridgeError: (awaited) It can't be set.
    """
    option = SPELLINGS.get(option, option)
    if option != BACKEND:
        return session.set_option(option, value)
    if not isinstance(value, str):
        raise InvalidParams(f"value: must be one of {', '.join(link.hub.backends)}", {"field": "value"})
    backend = link.hub.choose(value)
    return session.switch(backend, link.hub.endpoints.get(backend.name))


async def _empty(changed: Awaitable[None]) -> JsonObject:
    await changed
    return {}


TABLE: dict[str, Method] = {
    "session/set_config_option": _set_config_option,
    "session/set_mode": _set_mode,
    "session/set_model": _set_model,
}
