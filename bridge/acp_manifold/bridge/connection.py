"""One client: its negotiated version, what it asks for, and the sessions attached to it.

Requests are taken in the order they arrive: whatever a later one may depend on (a prompt that
is then cancelled) is decided before the next line is looked at. Speaks ACP v1.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeAlias

import anyio

from acp_manifold.translators.acp import options, prompts, requests, v1
from acp_manifold.translators.acp.capabilities import ClientCapabilities, client_capabilities
from acp_manifold.translators.acp.output import ToolOutputs
from acp_manifold.translators.acp.plainer import plainer
from acp_manifold.translators.acp.requests import TITLE_METHODS, BadParams
from acp_manifold.translators.narrow import JsonObject, as_int
from acp_manifold.translators.titles import normalise
from acp_manifold.translators.updates import MessageChunk, Options, Question, Text, Update
from acp_manifold.translators.values import NamedTuple

from .client import Replay
from .errors import InvalidRequest, MethodNotFound, PeerGone, RemoteError
from .logins import auth_methods
from .messages import encode
from .outbound import Outbound
from .peer import Call, Peer, Receive
from .version import __version__

if TYPE_CHECKING:
    from acp_manifold.translators.forms import Form, FormAnswer

    from .auth_news import AuthNews
    from .hub import Hub
    from .live_list import LiveLists
    from .session import Session

logger = logging.getLogger(__name__)

Serve: TypeAlias = Callable[[JsonObject, Call], "JsonObject | Awaitable[JsonObject]"]
Method: TypeAlias = "Callable[[Connection, JsonObject, Call], JsonObject | Awaitable[JsonObject]]"
"""A method that stands in a module of its own; it may raise what `Handler.request` may."""

METHODS: dict[str, str] = {
    **dict.fromkeys(("authenticate", "logout", "auth/status"), "auth"),
    **dict.fromkeys(("providers/list", "providers/set", "providers/disable"), "providers"),
    **dict.fromkeys(TITLE_METHODS, "titles"),
    "_acp-manifold/background/list": "background",
    "_acp-manifold/background/output": "background",
    "_acp-manifold/background/stop": "background",
    "_session/async_task/stop": "background",
    **dict.fromkeys(("session/fork", "session/archive", "session/unarchive", "session/status"), "lifecycle"),
    "_session/steering": "steering",
    **dict.fromkeys(("_session/batch_get", "_session/archive", "_session/unarchive"), "index"),
    **dict.fromkeys(("_session/list/subscribe", "_session/list/unsubscribe"), "index"),
    "session/set_config_option": "config",
    "session/set_mode": "config",
    "session/set_model": "config",
}
"""In which module of `methods` a method stands, in its table `TABLE`: nobody pays for one that is not used."""


class _Attached:
    """What the connection keeps for one session it hears of."""

    __slots__ = ("chunk_key", "chunk_render", "mode", "outputs")

    def __init__(self, outputs: _Outputs) -> None:
        self.outputs = outputs
        self.chunk_key: tuple[str, str, str | None] | None = None
        """Of the last text chunk, so that `chunk_render` can be used again."""
        self.chunk_render: Callable[[str], bytes] | None = None
        self.mode: str | None = None
        """The mode that the client knows of."""


class _Outputs(Protocol):
    """What renders the updates of one session, with what commands print."""

    def render(self, session_id: str, update: Update) -> JsonObject | None: ...


class _Loading(NamedTuple):
    """A history that is being told."""

    before: _Attached | None
    """What was kept for the session, if the client heard of it before."""
    answered: anyio.Event


class Connection:
    """A client's link to the hub. Satisfies `Handler` for its peer and `Client` for its sessions."""

    def __init__(self, hub: Hub, outbound: Outbound) -> None:
        self.hub = hub
        self.can = ClientCapabilities()
        """What the client has said it takes."""
        self.auth_news: AuthNews | None = None
        """For a client that has asked whether there is a login."""
        self._outbound = outbound
        self._peer = Peer(self, outbound)
        self._initialized = False
        self._attached: dict[str, _Attached] = {}
        self._opening: dict[str, list[Update]] = {}
        """Updates of sessions whose opening is not answered yet: they come right behind the answer."""
        self._live_lists: LiveLists | None = None
        self._loading: dict[str, _Loading] = {}
        """Sessions whose history is being told."""
        self._methods: dict[str, Serve] = {
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/list": self._list,
            "session/prompt": self._prompt,
            "session/close": self._close,
            "session/delete": self._delete,
        }

    async def run(self, receive: Receive) -> None:
        """Serve the client until it is gone."""
        await self._peer.run(receive)

    # -- Handler ----------------------------------------------------------------------------------

    def request(self, method: str, params: JsonObject, call: Call) -> object:
        """Serve one request; see `Handler.request`."""
        logger.debug("request %r: %s %s", call.id, method[:100], params.get("sessionId", ""))
        if method == "initialize":
            return self._initialize(params)
        if not self._initialized:
            raise InvalidRequest(f"{method[:100]}: send initialize first")
        serve = self._methods.get(method) or self._imported(method)
        return serve(params, call)

    def _imported(self, method: str) -> Serve:
        """A method whose code is imported when it is first asked for.

        Raises:
            MethodNotFound: There is none of that name.
        """
        module = METHODS.get(method)
        if module is None:
            raise MethodNotFound(f"Method not found: {method[:200]}", {"method": method[:200]})
        table: dict[str, Method] = import_module(f"{__package__}.methods.{module}").TABLE
        serve = self._methods[method] = partial(table[method], self)
        return serve

    def notification(self, method: str, params: JsonObject) -> None:
        """Take one notification; unknown ones are ignored, as are all before `initialize`."""
        if self._initialized and method == "session/cancel":
            session_id = params.get("sessionId")
            session = self.hub.find(session_id, self) if isinstance(session_id, str) else None
            if session is not None:
                session.cancel()

    def closed(self) -> None:
        """The client is gone."""
        if self.auth_news is not None:
            self.auth_news.close()
        self.hub.leave(self)
        if self._live_lists is not None:
            self._live_lists.close()

    def notify(self, method: str, params: JsonObject) -> None:
        """Tell the client of something that belongs to no session."""
        self._peer.notify(method, params)

    # -- Client -----------------------------------------------------------------------------------

    def deliver(self, session_id: str, update: Update) -> None:
        """Tell the client of an update; see `Client.deliver`."""
        attached = self._attached.get(session_id)
        if attached is None:
            self._opening.setdefault(session_id, []).append(update)
        else:
            self._send(session_id, attached, update)

    async def room(self, session_id: str) -> None:
        """Wait while the client is behind; see `Client.room`."""
        await self._outbound.room(session_id)

    async def ask(self, session_id: str, question: Question) -> str | None:
        """Put a question to the client; see `Client.ask`."""
        params = v1.permission_params(session_id, question)
        return v1.chosen_option(await self.put(session_id, "session/request_permission", params))

    async def ask_form(self, session_id: str, form: Form) -> FormAnswer:
        """Put a form to the client; see `Client.ask_form`."""
        from .forms import put_form

        return await put_form(self, session_id, form)

    def form_done(self, session_id: str, form_id: str) -> None:
        """Tell that a page has done its work; see `Client.form_done`."""
        if self.can.elicitation_url:
            from acp_manifold.translators.acp.forms import elicitation_id

            self._peer.notify("elicitation/complete", {"elicitationId": elicitation_id(session_id, form_id)})

    async def put(self, session_id: str, method: str, params: JsonObject) -> object:
        """The client's answer to a question about a session; None if it is an error, or the client is gone."""
        try:
            return await self._peer.request(method, params)
        except RemoteError as exc:
            logger.warning("session %s: the client answered a question with an error: %s", session_id, exc.message)
        except PeerGone:
            logger.debug("session %s: the client went with a question open", session_id)
        return None

    def tell(self, session_id: str, update: Update) -> None:
        """Tell this client alone, if it still hears of the session."""
        attached = self._attached.get(session_id)
        if attached is not None:
            self._send(session_id, attached, update)

    def _listener(self) -> _Attached:
        if not self.can.terminal_output:
            return _Attached(ToolOutputs())
        # Few clients take terminals.
        from acp_manifold.translators.acp.terminals import Terminals

        return _Attached(Terminals())

    def _send(self, session_id: str, attached: _Attached, update: Update) -> None:
        if isinstance(update, MessageChunk) and isinstance(update.content, Text):
            key = (session_id, update.role, update.message_id)
            render = attached.chunk_render
            if render is None or key != attached.chunk_key:
                render = attached.chunk_render = partial(_render_chunk, session_id, update)
                attached.chunk_key = key
            self._outbound.send_text(session_id, key, update.content.text, render)
            return
        if isinstance(update, Options):
            for body in options.updates(update.options, self.can, attached.mode):
                self._notify(session_id, body)
            attached.mode = options.current_mode(update.options)
            return
        taken = plainer(update, self.can)
        if isinstance(taken, MessageChunk) and taken is not update:
            self._send(session_id, attached, taken)
            return
        params = attached.outputs.render(session_id, taken) if taken is not None else None
        if params is not None:
            self._outbound.send({"jsonrpc": "2.0", "method": "session/update", "params": params}, session_id)

    def _notify(self, session_id: str, body: JsonObject) -> None:
        params: JsonObject = {"sessionId": session_id, "update": body}
        self._outbound.send({"jsonrpc": "2.0", "method": "session/update", "params": params}, session_id)

    # -- requests ---------------------------------------------------------------------------------

    def _initialize(self, params: JsonObject) -> JsonObject:
        asked = as_int(params.get("protocolVersion"))
        if asked is None:
            raise BadParams("protocolVersion", "is required and must be an integer")
        first, self._initialized = not self._initialized, True
        self.can = client_capabilities(params)
        if first:
            self.hub.warm_up()
        backends = self.hub.backends.values()
        sse = any(backend.mcp_sse for backend in backends)
        return v1.initialize_result(__version__, auth_methods(backends, self.can), self.can, sse=sse)

    async def _new(self, params: JsonObject, call: Call) -> JsonObject:
        session = await self.hub.new(requests.session_setup(params), self)
        return {"sessionId": session.id, **self.opened(session, call)}

    def _load(self, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
        return self._open(params, call, replay=True)

    def _resume(self, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
        return self._open(params, call, replay=False)

    async def _open(self, params: JsonObject, call: Call, *, replay: bool) -> JsonObject:
        session_id = requests.session_id(params)
        setup = requests.session_setup(params)
        attached = self._listener()
        begin, emit = partial(self._hold_back, session_id), partial(self._send, session_id, attached)
        history = Replay(begin, emit, partial(self.room, session_id)) if replay else None
        try:
            session = await self.hub.open(session_id, setup, self, history)
        except BaseException:
            waited = self._opening.pop(session_id, [])
            loading = self._loading.get(session_id)
            if loading is not None and loading.before is not None:
                self._let_through(session_id, loading.before, waited)
            self._end_loading(session_id)
            raise
        return self.opened(session, call, attached)

    def _hold_back(self, session_id: str) -> None:
        """A history is told from now on, with all that was said so far: what is said comes behind the answer."""
        from .recent import is_said

        self._loading[session_id] = _Loading(self._attached.pop(session_id, None), anyio.Event())
        self._opening[session_id] = [told for told in self._opening.get(session_id, []) if not is_said(told)]

    def _end_loading(self, session_id: str) -> None:
        loading = self._loading.pop(session_id, None)
        if loading is not None:
            loading.answered.set()

    def opened(self, session: Session, call: Call, attached: _Attached | None = None) -> JsonObject:
        """What is said of a session in the answer to the request that opened it; its updates go out right behind."""
        held = session.options
        self._attach(session.id, options.current_mode(held), call, attached or self._listener())
        return options.opened(held, self.can)

    def _attach(self, session_id: str, mode: str | None, call: Call, attached: _Attached) -> None:
        if session_id in self._attached:
            self._attached[session_id].mode = mode
            return
        # The answer says it as well, and better.
        self._opening[session_id] = [u for u in self._opening.get(session_id, []) if not isinstance(u, Options)]

        def answered() -> None:
            attached.mode = mode
            self._let_through(session_id, attached, self._opening.pop(session_id, []))

        call.on_answered = answered

    def _let_through(self, session_id: str, attached: _Attached, waited: list[Update]) -> None:
        self._attached[session_id] = attached
        for update in waited:
            self._send(session_id, attached, update)
        self._end_loading(session_id)

    def forget_ended(self, session_id: str) -> None:
        """Keep nothing more for a session that may have been ended."""
        if self.hub.find(session_id, self) is None:
            self._attached.pop(session_id, None)

    @property
    def live_lists(self) -> LiveLists:
        """The session lists that the client follows."""
        if self._live_lists is None:
            from .live_list import LiveLists

            self._live_lists = LiveLists(self.hub, partial(self._peer.notify, "_session/list/changes"))
        return self._live_lists

    async def archive(self, session_id: str, archived: bool) -> None:
        """Put a session into the archive, or take it out; see `Hub.archive`. Told for one that was open here."""
        was_open = self.hub.find(session_id, self) is not None
        try:
            await self.hub.archive(session_id, archived)
        finally:
            self.forget_ended(session_id)
        if was_open and self.can.air:
            self._peer.notify("session/update", v1.archived_params(session_id, archived))

    async def _list(self, params: JsonObject, call: Call) -> JsonObject:
        if "sessionIndex" in self.can.air:
            from .methods.index import listed

            return await listed(self, params)
        from .cursors import decode_cursor, encode_cursor

        wanted, cursor = requests.list_filter(params)
        after = decode_cursor(cursor, wanted) if cursor is not None else None
        page = await self.hub.page(wanted, after)
        rows = [
            v1.session_row(
                session_id, row.cwd, row.updated_at, title, row.additional_directories, name, archived=row.archived
            )
            for session_id, name, row, title in self.hub.describe(page)
        ]
        result: JsonObject = {"sessions": rows}
        if page.next is not None:
            result["nextCursor"] = encode_cursor(page.next, wanted)
        return result

    def _prompt(self, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
        session = self.hub.session(requests.session_id(params), self)
        prompt = prompts.prompt(params)
        title = prompts.rename_command(prompt)
        if title is not None:
            return self.rename_by_prompt(session, title)
        turn = session.prompt(prompt, self)
        call.on_cancel = partial(session.cancel_turn, turn)

        async def outcome() -> JsonObject:
            try:
                return v1.prompt_result(await turn.outcome())
            finally:
                # What was said last waits behind a history that is being told.
                while (loading := self._loading.get(session.id)) is not None:
                    await loading.answered.wait()

        return outcome()

    async def rename_by_prompt(self, session: Session, title: str) -> JsonObject:
        """`/rename X` as a prompt, at once, also in mid-turn: no model is asked; the answer says what is stored."""
        from uuid import uuid4

        if normalise(title):
            said = f"Session renamed to: {await self.hub.set_title(session.id, title)}"
        else:
            said = "Type the new title behind it: /rename TITLE"
        # A message of its own: a turn that runs goes on with another.
        self.deliver(session.id, MessageChunk("agent", Text(said), str(uuid4())))
        return {"stopReason": "end_turn"}

    async def _close(self, params: JsonObject, call: Call) -> JsonObject:
        session_id = requests.session_id(params)
        await self.hub.close(session_id, self)
        self._attached.pop(session_id, None)
        return {}

    async def _delete(self, params: JsonObject, call: Call) -> JsonObject:
        session_id = requests.session_id(params)
        try:
            await self.hub.delete(session_id)
        finally:
            self.forget_ended(session_id)
        return {}


def _render_chunk(session_id: str, update: MessageChunk, text: str) -> bytes:
    chunk = MessageChunk(update.role, Text(text), update.message_id)
    params = v1.update_params(session_id, chunk)
    return encode({"jsonrpc": "2.0", "method": "session/update", "params": params})
