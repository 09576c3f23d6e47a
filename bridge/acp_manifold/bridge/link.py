"""One client: what it asks for, and the sessions attached to it. What is the same in every protocol version.

Requests are taken in the order they arrive: whatever a later one may depend on (a prompt that
is then cancelled) is decided before the next line is looked at. A version is a subclass, with a
`Listener` that renders the updates of one session.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeAlias

import anyio

from acp_manifold.translators.acp import requests, v1
from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.acp.requests import TITLE_METHODS, SessionSetup
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.titles import normalise
from acp_manifold.translators.updates import Commands, ConfigOption, MessageChunk, Question, Text, Update
from acp_manifold.translators.values import NamedTuple

from .client import Replay
from .errors import MethodNotFound, PeerGone, RemoteError
from .outbound import Outbound
from .peer import Call, Peer

if TYPE_CHECKING:
    from acp_manifold.translators.forms import Form, FormAnswer

    from .auth_news import AuthNews
    from .hub import Hub
    from .live_list import LiveLists
    from .session import Session

logger = logging.getLogger(__name__)

Serve: TypeAlias = Callable[[JsonObject, Call], "JsonObject | Awaitable[JsonObject]"]
Method: TypeAlias = "Callable[[Link, JsonObject, Call], JsonObject | Awaitable[JsonObject]]"
"""A method that stands in a module of its own; it may raise what `Handler.request` may."""

METHODS: dict[str, str] = {
    "auth/status": "auth",
    **dict.fromkeys(("providers/list", "providers/set", "providers/disable"), "providers"),
    **dict.fromkeys(TITLE_METHODS, "titles"),
    "_acp-manifold/background/list": "background",
    "_acp-manifold/background/output": "background",
    "_acp-manifold/background/stop": "background",
    "_session/async_task/stop": "background",
    "_acp-manifold/record": "recording",
    **dict.fromkeys(("session/fork", "session/archive", "session/unarchive"), "lifecycle"),
    "_session/steering": "steering",
    **dict.fromkeys(("_session/batch_get", "_session/archive", "_session/unarchive"), "index"),
    **dict.fromkeys(("_session/list/subscribe", "_session/list/unsubscribe"), "index"),
}
"""In which module of `methods` a method of every version stands, in its table `TABLE`: nobody pays for one that is
not used."""


class Listener(Protocol):
    """What the client hears of one session, in its version."""

    def tell(self, update: Update) -> None:
        """Render an update and queue it."""
        ...

    answers: tuple[type, ...]
    """What the answer to the request that opens the session says itself, of what a client is told of one."""

    def opened(self, held: tuple[ConfigOption, ...], commands: Commands | None) -> JsonObject:
        """What that answer says of the options, and of the slash commands if they are known."""
        ...


class _Loading(NamedTuple):
    """A history that is being told."""

    before: Listener | None
    """Who heard of the session before, if the client did."""
    answered: anyio.Event


class Link(ABC):
    """A client's link to the hub. Satisfies `Handler` for its peer and `Client` for its sessions."""

    methods: ClassVar[dict[str, str]]
    """As `METHODS`, of this version."""

    def __init__(self, hub: Hub, outbound: Outbound, peer: Peer) -> None:
        self.hub = hub
        self.can = ClientCapabilities()
        """What the client has said it takes."""
        self.auth_news: AuthNews | None = None
        """For a client that has asked whether there is a login."""
        self.outbound = outbound
        self.peer = peer
        self._attached: dict[str, Listener] = {}
        self._opening: dict[str, list[Update]] = {}
        """Updates of sessions whose opening is not answered yet: they come right behind the answer."""
        self._live_lists: LiveLists | None = None
        self._loading: dict[str, _Loading] = {}
        """Sessions whose history is being told."""
        self._methods: dict[str, Serve] = {
            "session/new": self._new,
            "session/list": self._list,
            "session/prompt": self.prompt,
            "session/close": self._close,
            "session/delete": self._delete,
        }

    # -- what a version is ----------------------------------------------------------------------------

    @abstractmethod
    def initialize(self, params: JsonObject, requested: int) -> JsonObject:
        """Take in what the client is, and the answer to that.

        Args:
            params: As sent.
            requested: The version it asked for; ours may be a lower one.

        Raises:
            BadParams: They are wrong.
        """

    @abstractmethod
    def listener(self, session_id: str, *, history: bool = False) -> Listener:
        """Somebody to hear of a session, whose history is told first or not."""

    @abstractmethod
    def session_setup(self, params: JsonObject) -> SessionSetup:
        """Params that open a session; raises `BadParams`."""

    @abstractmethod
    def prompt(self, params: JsonObject, call: Call) -> Awaitable[JsonObject]:
        """Serve `session/prompt`."""

    @abstractmethod
    async def ask(self, session_id: str, question: Question) -> str | None:
        """Put a question to the client; see `Client.ask`."""

    @abstractmethod
    def echo(self, session_id: str, update: Update) -> None:
        """Tell the client what was typed in it; see `Client.echo`."""

    # -- Handler ----------------------------------------------------------------------------------

    def request(self, method: str, params: JsonObject, call: Call) -> object:
        """Serve one request; see `Handler.request`."""
        logger.debug("request %r: %s %s", call.id, method[:100], params.get("sessionId", ""))
        serve = self._methods.get(method) or self._imported(method)
        return serve(params, call)

    def _imported(self, method: str) -> Serve:
        """A method whose code is imported when it is first asked for.

        Raises:
            MethodNotFound: There is none of that name.
        """
        module = self.methods.get(method)
        if module is None:
            raise MethodNotFound(f"Method not found: {method[:200]}", {"method": method[:200]})
        table: dict[str, Method] = import_module(f"{__package__}.methods.{module}").TABLE
        serve = self._methods[method] = partial(table[method], self)
        return serve

    def notification(self, method: str, params: JsonObject) -> None:
        """Take one notification; unknown ones are ignored."""
        if method == "session/cancel":
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
        self.peer.notify(method, params)

    # -- Client -----------------------------------------------------------------------------------

    def deliver(self, session_id: str, update: Update) -> None:
        """Tell the client of an update; see `Client.deliver`."""
        attached = self._attached.get(session_id)
        if attached is None:
            self._opening.setdefault(session_id, []).append(update)
        else:
            attached.tell(update)

    async def room(self, session_id: str) -> None:
        """Wait while the client is behind; see `Client.room`."""
        await self.outbound.room(session_id)

    async def ask_form(self, session_id: str, form: Form) -> FormAnswer:
        """Put a form to the client; see `Client.ask_form`."""
        from .forms import put_form

        return await put_form(self, session_id, form)

    def form_done(self, session_id: str, form_id: str) -> None:
        """Tell that a page has done its work; see `Client.form_done`."""
        if self.can.elicitation_url:
            from acp_manifold.translators.acp.forms import elicitation_id

            self.peer.notify("elicitation/complete", {"elicitationId": elicitation_id(session_id, form_id)})

    async def put(self, session_id: str, method: str, params: JsonObject) -> object:
        """The client's answer to a question about a session; None if it is an error, or the client is gone."""
        try:
            return await self.peer.request(method, params)
        except RemoteError as exc:
            logger.warning("session %s: the client answered a question with an error: %s", session_id, exc.message)
        except PeerGone:
            logger.debug("session %s: the client went with a question open", session_id)
        return None

    def tell(self, session_id: str, update: Update) -> None:
        """Tell this client alone, if it still hears of the session."""
        attached = self._attached.get(session_id)
        if attached is not None:
            attached.tell(update)

    # -- requests ---------------------------------------------------------------------------------

    async def _new(self, params: JsonObject, call: Call) -> JsonObject:
        session = await self.hub.new(self.session_setup(params), self)
        return {"sessionId": session.id, **self.opened(session, call)}

    async def open(self, params: JsonObject, listener: Listener, *, replay: bool) -> Session:
        """Have a session of a store opened, or one that is open joined; its history goes to the listener."""
        session_id = requests.session_id(params)
        setup = self.session_setup(params)
        begin = partial(self._hold_back, session_id)
        history = Replay(begin, listener.tell, partial(self.room, session_id)) if replay else None
        try:
            return await self.hub.open(session_id, setup, self, history)
        except BaseException:
            waited = self._opening.pop(session_id, [])
            loading = self._loading.get(session_id)
            if loading is not None and loading.before is not None:
                self._let_through(session_id, loading.before, waited)
            self._end_loading(session_id)
            raise

    def _hold_back(self, session_id: str) -> None:
        """A history is told from now on, with all that was said so far: what is said comes behind the answer."""
        from .recent import is_said

        self._loading[session_id] = _Loading(self._attached.pop(session_id, None), anyio.Event())
        self._opening[session_id] = [told for told in self._opening.get(session_id, []) if not is_said(told)]

    def _end_loading(self, session_id: str) -> None:
        loading = self._loading.pop(session_id, None)
        if loading is not None:
            loading.answered.set()

    async def told(self, session_id: str) -> None:
        """Wait for the end of a history that is being told: what was said last waits behind it."""
        while (loading := self._loading.get(session_id)) is not None:
            await loading.answered.wait()

    def opened(self, session: Session, call: Call, listener: Listener | None = None) -> JsonObject:
        """What is said of a session in the answer to the request that opened it; its updates go out right behind."""
        known = self._attached.get(session.id)
        if known is not None:
            return known.opened(session.options, session.commands)
        heard = listener or self.listener(session.id)
        answer = heard.opened(session.options, session.commands)
        # The answer says it as well, and better.
        self._opening[session.id] = [u for u in self._opening.get(session.id, []) if not isinstance(u, heard.answers)]
        call.on_answered = partial(self.let_through, session.id, heard)
        return answer

    def let_through(self, session_id: str, listener: Listener) -> None:
        """From now on the client hears of the session; first of all what has waited for that."""
        self._let_through(session_id, listener, self._opening.pop(session_id, []))

    def _let_through(self, session_id: str, listener: Listener, waited: list[Update]) -> None:
        self._attached[session_id] = listener
        for update in waited:
            listener.tell(update)
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

            self._live_lists = LiveLists(self.hub, partial(self.peer.notify, "_session/list/changes"))
        return self._live_lists

    async def archive(self, session_id: str, archived: bool) -> None:
        """Put a session into the archive, or take it out; see `Hub.archive`. Told for one that was open here."""
        was_open = self.hub.find(session_id, self) is not None
        try:
            await self.hub.archive(session_id, archived)
        finally:
            self.forget_ended(session_id)
        if was_open and self.can.air:
            self.peer.notify("session/update", v1.archived_params(session_id, archived))

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

    async def rename_by_prompt(self, session: Session, title: str) -> None:
        """`/rename X` as a prompt, at once, also in mid-turn: no model is asked; a message says what is stored."""
        from uuid import uuid4

        if normalise(title):
            said = f"Session renamed to: {await self.hub.set_title(session.id, title)}"
        else:
            said = "Type the new title behind it: /rename TITLE"
        # A message of its own: a turn that runs goes on with another.
        self.deliver(session.id, MessageChunk("agent", Text(said), str(uuid4())))

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
