"""A client that speaks ACP v2, a draft: what it is told, and the life of its prompts. Imported with the first one.

A prompt is answered when the conversation has taken it in; what becomes of it the session's state tells.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar
from uuid import uuid4

from acp_manifold.translators.acp import prompts, requests, v1, v2, v2_options, v2_requests
from acp_manifold.translators.acp.requests import SessionSetup
from acp_manifold.translators.acp.v2_telling import Telling
from acp_manifold.translators.narrow import JsonObject, as_int
from acp_manifold.translators.updates import (
    Commands,
    ConfigOption,
    Message,
    MessageChunk,
    Options,
    PlanChunk,
    Question,
    Role,
    SessionInfo,
    Text,
    TurnEnd,
    Update,
)

from .errors import BridgeError, InvalidRequest, RequestCancelled, SessionNotFound
from .link import METHODS, Link
from .logins import auth_methods
from .messages import encode
from .outbound import Outbound
from .peer import Call, Peer
from .version import __version__

if TYPE_CHECKING:
    from .hub import Hub
    from .session import Session
    from .turn import Turn


class ListenerV2:
    """What the client hears of one session."""

    answers: tuple[type, ...] = (Options, Commands)

    def __init__(self, session_id: str, outbound: Outbound, *, history: bool) -> None:
        self._session_id = session_id
        self._outbound = outbound
        self._telling = Telling(uuid4().hex[:12], history=history)
        self._chunk_key: tuple[str, Role, str] | None = None
        """Of the last text chunk, so that `_chunk_render` can be used again."""
        self._chunk_render: Callable[[str], bytes] | None = None

    def history_told(self) -> None:
        """What comes from now on is said now."""
        self._telling.history = False

    def tell(self, update: Update) -> None:
        """Render an update and queue it; see `Listener.tell`."""
        if isinstance(update, MessageChunk) and isinstance(update.content, Text):
            self._say(update, update.content.text)
        elif not isinstance(update, PlanChunk):
            # The pieces of a plan in words are told at its end, as the whole that it is.
            self._send(self._telling.updates(self._session_id, update))

    def _say(self, update: MessageChunk, text: str) -> None:
        identity = self._telling.message_id(update)
        if identity is None:
            return
        emptied = self._telling.emptied(update.role, identity)
        if emptied is not None:
            self._send([{"sessionId": self._session_id, "update": emptied}])
        key = (self._session_id, update.role, identity)
        render = self._chunk_render
        if render is None or key != self._chunk_key:
            self._chunk_key = key
            render = self._chunk_render = partial(_render_chunk, *key)
        self._outbound.send_text(self._session_id, key, text, render)

    def _send(self, told: list[JsonObject]) -> None:
        for params in told:
            self._outbound.send({"jsonrpc": "2.0", "method": "session/update", "params": params}, self._session_id)

    def opened(self, held: tuple[ConfigOption, ...], commands: Commands | None) -> JsonObject:
        """What the answer says of the options and the commands; see `Listener.opened`."""
        answer: JsonObject = {"configOptions": v2_options.config_options(held)}
        if commands is not None:
            answer["availableCommands"] = v2.commands(commands)
        return answer


class LinkV2(Link):
    """A client of ACP v2."""

    methods: ClassVar[dict[str, str]] = {
        **METHODS,
        **dict.fromkeys(("auth/login", "auth/logout"), "auth"),
        "session/set_config_option": "v2",
        "session/status": "v2",
        "tool_call/cancel": "v2",
        "terminal/cancel": "v2",
    }

    def __init__(self, hub: Hub, outbound: Outbound, peer: Peer) -> None:
        super().__init__(hub, outbound, peer)
        self._asked = False
        """Whether anything but `initialize` was asked for."""
        self._methods["initialize"] = self._again
        self._methods["session/resume"] = self._resume

    def request(self, method: str, params: JsonObject, call: Call) -> object:
        """Serve one request; see `Handler.request`. In v2 its id is never null."""
        if call.id is None:
            raise InvalidRequest("Invalid request: the id of a request must be a string or an integer in ACP v2")
        self._asked = self._asked or method != "initialize"
        return super().request(method, params, call)

    def initialize(self, params: JsonObject, requested: int) -> JsonObject:
        """Take in what the client takes; see `Link.initialize`."""
        self.can = v2_requests.client(params, newer=requested > v2.VERSION)
        methods = auth_methods(self.hub.backends.values(), self.can)
        return v2_requests.initialize_result(__version__, methods, self.can)

    def notification(self, method: str, params: JsonObject) -> None:
        """Take one notification; the session that a cancel names may be that of a sub-agent."""
        named = params.get("sessionId")
        if method == "session/cancel" and isinstance(named, str) and (of := v1.subagent_of(named)) is not None:
            session = self.hub.find(of[0], self)
            if session is not None:
                session.stop_agent(of[1])
                return
        super().notification(method, params)

    def _again(self, params: JsonObject, call: Call) -> JsonObject:
        """A second `initialize`: only ahead of everything else, and never for another version."""
        requested = as_int(params.get("protocolVersion"))
        if requested is None:
            raise requests.BadParams("protocolVersion", "is required and must be an integer")
        if self._asked or requested < v2.VERSION:
            raise InvalidRequest(f"This connection speaks ACP v{v2.VERSION}, and is initialized")
        return self.initialize(params, requested)

    def listener(self, session_id: str, *, history: bool = False) -> ListenerV2:
        """See `Link.listener`."""
        return ListenerV2(session_id, self.outbound, history=history)

    def session_setup(self, params: JsonObject) -> SessionSetup:
        """See `Link.session_setup`."""
        return v2_requests.session_setup(params)

    async def ask(self, session_id: str, question: Question) -> str | None:
        """Put a question to the client; see `Client.ask`."""
        params = v2.permission_params(session_id, question)
        return v1.chosen_option(await self.put(session_id, "session/request_permission", params))

    def echo(self, session_id: str, update: Update) -> None:
        """What was typed is told to who typed it as well, under its id; see `Client.echo`."""
        self.deliver(session_id, update)

    async def _resume(self, params: JsonObject, call: Call) -> JsonObject:
        session_id, history = requests.session_id(params), v2_requests.wants_history(params)
        listener = self.listener(session_id, history=history)
        session = await self.open(params, listener, replay=history)
        listener.history_told()
        row = await self._row(session_id)
        answer = self.opened(session, call, listener)
        if call.on_answered is not None:
            # In v2 what is known of the session comes before the answer.
            call.on_answered = None
            self.let_through(session_id, listener)
        self.tell(session_id, row)
        self.tell(session_id, session.progress.now)
        return answer

    async def _row(self, session_id: str) -> SessionInfo:
        """What a list would show of the session."""
        try:
            told = await self.hub.tell(session_id, None)
        except SessionNotFound:
            # Nothing was said in it yet.
            return SessionInfo()
        return SessionInfo(told.title.text or None, told.row.updated_at)

    def prompt(self, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
        """Serve `session/prompt`: answered when the conversation has taken the prompt in."""
        session = self.hub.session(requests.session_id(params), self)
        prompt = prompts.prompt(params)
        title = prompts.rename_command(prompt)
        if title is not None:
            return self._renamed(session, title, Message("user", prompt, str(uuid4())))
        turn = session.prompt(prompt, self)
        call.on_cancel = partial(session.cancel_turn, turn)
        turn.on_inserted = partial(self._inserted, call)
        return self._taken(turn)

    def _inserted(self, call: Call, message_id: str) -> None:
        self.peer.answer(call, {"messageId": message_id})

    async def _taken(self, turn: Turn) -> JsonObject:
        """What a prompt that was never taken in comes to; another one has its answer by now."""
        await turn.ended()
        if turn.message_id is None:
            raise turn.result if isinstance(turn.result, BridgeError) else RequestCancelled()
        return {}

    async def _renamed(self, session: Session, title: str, typed: Message) -> JsonObject:
        """`/rename X`, at once: a turn of its own, unless another one runs."""
        idle = session.turns.idle
        self.deliver(session.id, typed)
        if idle:
            self.deliver(session.id, session.progress.now._replace(state="running"))
        try:
            await self.rename_by_prompt(session, title)
        finally:
            if idle and session.turns.idle:
                self.deliver(session.id, session.progress.now._replace(end=TurnEnd("end_turn")))
        return {"messageId": typed.message_id}


def _render_chunk(session_id: str, role: Role, identity: str, text: str) -> bytes:
    body = v2.chunk(role, identity, {"type": "text", "text": text})
    return encode({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session_id, "update": body}})
