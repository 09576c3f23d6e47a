"""A client that speaks ACP v1: what it is told, and what it asks for in the words of that version alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Protocol

from acp_manifold.translators.acp import options, prompts, requests, v1
from acp_manifold.translators.acp.capabilities import client_capabilities
from acp_manifold.translators.acp.output import ToolOutputs
from acp_manifold.translators.acp.plainer import plainer
from acp_manifold.translators.acp.requests import SessionSetup
from acp_manifold.translators.narrow import JsonObject, as_int
from acp_manifold.translators.updates import Commands, ConfigOption, MessageChunk, Options, Question, Text, Update

from .link import METHODS, Link, Listener
from .logins import auth_methods
from .messages import encode
from .outbound import Outbound
from .peer import Call, Peer
from .version import __version__

if TYPE_CHECKING:
    from .hub import Hub
    from .session import Session


class _Outputs(Protocol):
    """What renders the updates of one session, with what commands print."""

    def render(self, session_id: str, update: Update) -> JsonObject | None: ...


class ListenerV1:
    """What the client hears of one session."""

    answers: tuple[type, ...] = (Options,)

    def __init__(self, session_id: str, link: Link, outputs: _Outputs) -> None:
        self._session_id = session_id
        self._link = link
        self._outbound = link.outbound
        self._outputs = outputs
        self._mode: str | None = None
        """The mode that the client knows of."""
        self._chunk_key: tuple[str, str, str | None] | None = None
        """Of the last text chunk, so that `_chunk_render` can be used again."""
        self._chunk_render: Callable[[str], bytes] | None = None

    def tell(self, update: Update) -> None:
        """Render an update and queue it; see `Listener.tell`."""
        session_id = self._session_id
        if isinstance(update, MessageChunk) and isinstance(update.content, Text):
            key = (session_id, update.role, update.message_id)
            render = self._chunk_render
            if render is None or key != self._chunk_key:
                render = self._chunk_render = partial(_render_chunk, session_id, update)
                self._chunk_key = key
            self._outbound.send_text(session_id, key, update.content.text, render)
            return
        if isinstance(update, Options):
            for body in options.updates(update.options, self._link.can, self._mode):
                self._notify({"sessionId": session_id, "update": body})
            self._mode = options.current_mode(update.options)
            return
        taken = plainer(update, self._link.can)
        if isinstance(taken, MessageChunk) and taken is not update:
            self.tell(taken)
            return
        params = self._outputs.render(session_id, taken) if taken is not None else None
        if params is not None:
            self._notify(params)

    def _notify(self, params: JsonObject) -> None:
        self._outbound.send({"jsonrpc": "2.0", "method": "session/update", "params": params}, self._session_id)

    def opened(self, held: tuple[ConfigOption, ...], commands: Commands | None) -> JsonObject:
        """What the answer says of the options; see `Listener.opened`. It has no place for commands."""
        self._mode = options.current_mode(held)
        return options.opened(held, self._link.can)


class LinkV1(Link):
    """A client of ACP v1."""

    methods: ClassVar[dict[str, str]] = {
        **METHODS,
        **dict.fromkeys(("authenticate", "logout"), "auth"),
        "session/status": "lifecycle",
        **dict.fromkeys(("session/set_config_option", "session/set_mode", "session/set_model"), "config"),
    }

    def __init__(self, hub: Hub, outbound: Outbound, peer: Peer) -> None:
        super().__init__(hub, outbound, peer)
        self._methods["initialize"] = self._again
        self._methods["session/load"] = self._load
        self._methods["session/resume"] = self._resume

    def initialize(self, params: JsonObject, requested: int) -> JsonObject:
        """Take in what the client takes; see `Link.initialize`."""
        if requested > v1.VERSION and "clientCapabilities" not in params:
            # A client of a newer version that is served by this one; nobody else needs what reads it.
            from acp_manifold.translators.acp.v2_requests import client_in_v1

            self.can = client_in_v1(params)
        else:
            self.can = client_capabilities(params)
        backends = self.hub.backends.values()
        sse = any(backend.mcp_sse for backend in backends)
        return v1.initialize_result(__version__, auth_methods(backends, self.can), self.can, sse=sse)

    def _again(self, params: JsonObject, call: Call) -> JsonObject:
        """A second `initialize`, as agents of v1 take it."""
        requested = as_int(params.get("protocolVersion"))
        if requested is None:
            raise requests.BadParams("protocolVersion", "is required and must be an integer")
        return self.initialize(params, requested)

    def listener(self, session_id: str, *, history: bool = False) -> Listener:
        """See `Link.listener`."""
        if not self.can.terminal_output:
            return ListenerV1(session_id, self, ToolOutputs())
        # Few clients take terminals.
        from acp_manifold.translators.acp.terminals import Terminals

        return ListenerV1(session_id, self, Terminals())

    def session_setup(self, params: JsonObject) -> SessionSetup:
        """See `Link.session_setup`."""
        return requests.session_setup(params)

    async def ask(self, session_id: str, question: Question) -> str | None:
        """Put a question to the client; see `Client.ask`."""
        params = v1.permission_params(session_id, question)
        return v1.chosen_option(await self.put(session_id, "session/request_permission", params))

    def echo(self, session_id: str, update: Update) -> None:
        """Who typed it has it on the screen; see `Client.echo`."""

    def _load(self, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
        return self._open(params, call, replay=True)

    def _resume(self, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
        return self._open(params, call, replay=False)

    async def _open(self, params: JsonObject, call: Call, *, replay: bool) -> JsonObject:
        listener = self.listener(requests.session_id(params), history=replay)
        session = await self.open(params, listener, replay=replay)
        return self.opened(session, call, listener)

    def prompt(self, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
        """Serve `session/prompt`: answered when the turn is over."""
        session = self.hub.session(requests.session_id(params), self)
        prompt = prompts.prompt(params)
        title = prompts.rename_command(prompt)
        if title is not None:
            return self._renamed(session, title)
        turn = session.prompt(prompt, self)
        call.on_cancel = partial(session.cancel_turn, turn)

        async def outcome() -> JsonObject:
            try:
                return v1.prompt_result(await turn.outcome())
            finally:
                await self.told(session.id)

        return outcome()

    async def _renamed(self, session: Session, title: str) -> JsonObject:
        await self.rename_by_prompt(session, title)
        return {"stopReason": "end_turn"}


def _render_chunk(session_id: str, update: MessageChunk, text: str) -> bytes:
    chunk = MessageChunk(update.role, Text(text), update.message_id)
    params = v1.update_params(session_id, chunk)
    return encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
