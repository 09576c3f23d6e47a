"""One client on one link: which protocol version it is, and who serves it from then on.

The client names the newest version it speaks in `initialize`, and gets the highest of ours at or below it, as the
SDK's own router has it (2.4.0). Until then nothing else is served. What speaks a version is its `Link`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from acp_manifold.translators.acp.requests import BadParams
from acp_manifold.translators.narrow import JsonObject, as_int

from .errors import InvalidRequest, UnsupportedVersion
from .link_v1 import LinkV1
from .outbound import Outbound
from .peer import Call, Peer, Receive
from .taps import taps

if TYPE_CHECKING:
    from .hub import Hub
    from .link import Link

Protocol: TypeAlias = Literal["auto", "v1", "v2"]
"""Which versions are served: both, or one."""

_SERVED: dict[Protocol, tuple[int, ...]] = {"auto": (1, 2), "v1": (1,), "v2": (2,)}

_HIGHEST = 0xFFFF


class Connection:
    """A client's link to the hub. The handler of its peer until the version is agreed on."""

    def __init__(self, hub: Hub, outbound: Outbound, protocol: Protocol = "auto") -> None:
        """
        Args:
            hub: Whose sessions are served.
            outbound: The way to the client.
            protocol: Which versions may be agreed on.
        """
        self._hub = hub
        self._outbound = outbound
        self._protocol: Protocol = protocol
        self._peer = Peer(self, outbound)

    async def run(self, receive: Receive) -> None:
        """Serve the client until it is gone."""
        self._peer.place = self._outbound.place = taps.open("client")
        await self._peer.run(receive)

    def request(self, method: str, params: JsonObject, call: Call) -> object:
        """Agree on a version, which is the only thing to ask for; see `Handler.request`."""
        if method != "initialize":
            raise InvalidRequest(f"{method[:100]}: send initialize first")
        requested = _requested(params)
        link = self._link(self._version(requested), call)
        answer = link.initialize(params, requested)
        self._peer.handler = link
        self._hub.warm_up()
        return answer

    def notification(self, method: str, params: JsonObject) -> None:
        """Nothing before `initialize` is of interest."""

    def closed(self) -> None:
        """The client went before a version was agreed on: nothing is kept of it."""

    def _version(self, requested: int) -> int:
        served = _SERVED[self._protocol]
        if served == (1,):
            # An agent of v1 alone answers so to any number; the client decides whether it can do with it.
            return 1
        known = [version for version in served if version <= requested]
        if not known:
            raise UnsupportedVersion(requested, served)
        return known[-1]

    def _link(self, version: int, call: Call) -> Link:
        if version == 1:
            return LinkV1(self._hub, self._outbound, self._peer)
        if call.id is None:
            raise InvalidRequest("Invalid request: the id of a request must be a string or an integer in ACP v2")
        from .link_v2 import LinkV2

        return LinkV2(self._hub, self._outbound, self._peer)


def _requested(params: JsonObject) -> int:
    requested = as_int(params.get("protocolVersion"))
    if requested is None or not 0 <= requested <= _HIGHEST:
        raise BadParams("protocolVersion", f"is required and must be an integer from 0 to {_HIGHEST}")
    return requested
