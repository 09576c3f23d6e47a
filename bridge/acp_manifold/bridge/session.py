"""One conversation: its task scope, its turns, its questions and the clients attached to it.

Everything of a session lives in the task group of `Session.run` and ends with it. Its tables
are changed synchronously; only then is anything awaited.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus

from acp_manifold.translators.acp.prompts import typed_text
from acp_manifold.translators.titles import normalise
from acp_manifold.translators.updates import (
    BackgroundTask,
    Commands,
    ConfigOption,
    Message,
    MessageChunk,
    Notice,
    OfSubagent,
    Options,
    OwnTurn,
    Prompt,
    Question,
    SessionInfo,
    SessionState,
    Subagent,
    TaskOutput,
    Text,
    ToolCallUpdate,
    Update,
    Usage,
)
from acp_manifold.translators.values import NamedTuple

from .backend import Backend, BackendSession, SessionRow, SessionSpec
from .client import Client
from .errors import (
    BackendGone,
    BridgeError,
    InvalidRequest,
    RestartNeeded,
    SessionEnded,
    SessionNotFound,
    TaskNotFound,
    find_bridge_error,
)
from .ledger import Key
from .options import backend_option
from .permissions import Questions
from .progress import Progress
from .recent import Recent
from .rest import Rest
from .slot import Slot
from .titles import NO_TITLE, TitleKeeper
from .turn import CANCELLED, Turn, TurnQueue

if TYPE_CHECKING:
    from acp_manifold.translators.auth import Endpoint
    from acp_manifold.translators.forms import Form, FormAnswer

logger = logging.getLogger(__name__)

T = TypeVar("T")

BEGUN_ANEW = "The conversation begins anew. What was said before stays in the list of sessions."
"""What clients are told when a conversation was cleared: the CLIs say nothing."""

LATER = "What the session was opened with anew (MCP servers, directories, instructions) counts from the next prompt on."
"""What clients are told when that can't be had at once, since something runs."""

State: TypeAlias = Literal["idle", "running", "requires_action", "error"]
"""What goes on in a session; `error`: nothing, and the last turn failed."""


class Bound(Protocol):
    """Whom a session tells what its backend calls it."""

    def __call__(self, session: Session, before: Key | None, *, left: Key | None) -> None:
        """
        Args:
            session: Its `key` is new.
            before: The one before; None if it is the first one, or the conversation is in the store now.
            left: What the conversation was called before it began anew: a session of its own once `before` is None.
        """
        ...


class _LeftTitle(NamedTuple):
    """A title that stands in two places."""

    key: Key
    """The session that was left behind."""
    before: str | None
    """What that was called, or at least shown as."""
    given: str
    """What stands there now."""


class Session:
    """A session of the hub. `id` is what clients call it, `key` what its backend does."""

    def __init__(
        self,
        backend: Backend,
        spec: SessionSpec,
        keeper: TitleKeeper,
        bound: Bound,
        *,
        grace: float,
        idle: float,
        name_it: bool = True,
        known: tuple[str, str] | None = None,
        choices: Sequence[Backend] = (),
    ) -> None:
        """
        Args:
            backend: Who serves it.
            spec: Where and with what.
            keeper: The titles of the hub.
            bound: Told whenever the backend's name of the session changes.
            grace: Seconds a backend has to heed an interrupt.
            idle: Seconds without any event after which the backend is let go until the next prompt; 0: never.
            name_it: Whether it is asked for a generated title while it has none.
            known: Our id and the backend's, for a session that is in a store.
            choices: Who could serve it, as long as it has had no prompt.
        """
        self.backend = backend
        """Who is to serve it."""
        self._serving = backend
        """Who does, or did last."""
        self.spec = spec
        self.id = known[0] if known else ""
        self.key: Key | None = Key(backend.name, known[1]) if known else None
        self.clients: list[Client] = []
        self.turns = TurnQueue()
        self.questions = Questions(self.id)
        self.changed: Callable[[], None] = _nobody_listens
        """Called when what a list tells of the session may have changed."""
        self.last_prompt_at: float | None = None
        self.last_turn_ended_at: float | None = None
        """Both of this life of the session, in seconds since 1970."""
        self.cost_usd: float | None = None
        """What the conversation has cost in US dollars, as the backend told it last."""
        self.failed = False
        """Whether the last turn failed."""
        self.prompted = known is not None
        """Whether a turn ever began, so that the backend's store has the session."""
        self._keeper = keeper
        self._bound = bound
        self._grace = grace
        self._name_it = name_it
        self.recent = Recent()
        """What the store may not have yet of what was said."""
        self.progress = Progress(self._background, self._tell_state)
        """What goes on, as clients are told it."""
        self._rest = Rest(idle, self._may_rest, self._let_go)
        self._busy = 0
        """How many requests of ours, other than turns, the backend works on."""
        self._commands: Commands | None = None
        """The slash commands told last: a session that comes back tells them again."""
        self._choices = choices
        self._options: tuple[ConfigOption, ...] = ()
        """Those of the backend that serves."""
        self._told: tuple[ConfigOption, ...] = ()
        self._setting = anyio.Lock()
        """Held while an option changes: the changes are made in the order they were asked for."""
        self._own_over: anyio.Event | None = None
        """Set when the backend has stopped what it does of its own accord, once that was asked for."""
        self._slot = Slot(self, self._opening, self._opened)
        self._at_rest = anyio.Lock()
        """Held while the store is looked at or written with no CLI on the session."""
        self._outdated = False
        """Whether the CLI that serves was opened with something else than it is to have now."""
        self._ending = False
        self._muted = False
        """Whether the live CLI is being ended for not heeding an interrupt: its turn has its outcome."""
        self._driver: Client | None = None
        self._tasks: TaskGroup | None = None
        self._follows = ExitStack()
        self._following: Key | None = None
        self._from_store = known is not None
        self._early: list[Update] = []
        """What a backend has told before our id is known: told as soon as it is."""
        self._left: Key | None = None
        """What the session was before its conversation began anew, as long as nothing was said since."""
        self._left_title: _LeftTitle | None = None
        """That of what was before, if a title given since stands there too."""
        self._over = anyio.Event()

    # -- life ---------------------------------------------------------------------------------

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Live until `end`; nothing of the session is left afterwards."""
        try:
            async with anyio.create_task_group() as self._tasks:
                self._tasks.start_soon(self._slot.run)
                self._tasks.start_soon(self._work)
                self._tasks.start_soon(self._rest.run)
                task_status.started()
        finally:
            self._settle_all()
            self._follows.close()
            self._over.set()

    async def open(self) -> None:
        """Have the backend serve the session.

        Raises:
            BridgeError: It can't.
        """
        await self._slot.get()

    async def end(self) -> None:
        """Settle what is outstanding, free everything, and wait until that is done.

        Attached clients hear the end of whatever is open, in the background too; nothing comes after it.
        """
        if self._slot.live is not None and not self._ending:
            self._abandon(self._slot.live)
        self._ending = True
        self._settle_all()
        if self._tasks is not None:
            self._tasks.cancel_scope.cancel()
            await self._over.wait()

    def _settle_all(self) -> None:
        self.cancel()
        running = self.turns.running
        if running is not None:
            running.settle(CANCELLED)

    def attach(self, client: Client) -> None:
        """Let a client hear of the session; one that comes later is told which slash commands there are."""
        if client not in self.clients:
            self.clients.append(client)
            self.introduce(client)

    def introduce(self, client: Client) -> None:
        """Tell a client what there is to know of the session beside its history."""
        if self._commands is not None:
            client.deliver(self.id, self._commands)

    def detach(self, client: Client) -> bool:
        """Take a client away with its prompts and questions; True if nobody is left."""
        if client in self.clients:
            self.clients.remove(client)
        if self._driver is client:
            self._driver = None
        self.cancel_for(client)
        return not self.clients

    def cancel_for(self, client: Client) -> None:
        """End what a client has asked for here: its prompts, and the questions put to it."""
        for turn in [t for t in self.turns.all() if t.client is client]:
            if turn.state == "waiting":
                self.turns.withdraw(turn, CANCELLED)
            else:
                self.cancel_turn(turn)
        self.questions.withdraw(client)

    def switch(self, backend: Backend, endpoint: Endpoint | None = None) -> Awaitable[None]:
        """Have another backend serve the session, which has had no prompt yet: decided at once, done when awaited.

        Args:
            backend: Which.
            endpoint: Where its model requests go; None: as the CLI is configured.

        Raises:
            InvalidRequest: It has had one.
            BridgeError: (awaited) The other backend can't; the one before serves it on.
        """
        if self.prompted or not self.turns.idle:
            raise InvalidRequest("the backend of a session is fixed with its first prompt")
        before, self.backend = (self.backend, self.spec.endpoint), backend
        self.spec = self.spec._replace(endpoint=endpoint)
        if backend is not before[0]:
            self._options = ()

        async def done() -> None:
            try:
                await self._served()
            except BridgeError:
                if self.backend is backend and not self.prompted:
                    self.backend = before[0]
                    self.spec = self.spec._replace(endpoint=before[1])
                raise

        return done()

    async def refit(self, spec: SessionSpec) -> None:
        """Take over what a client opens the session with while it is open: at once, or with the next prompt.

        A list that is empty takes nothing away, since other clients may use what it names. What runs
        now goes on: MCP servers, directories and instructions reach a CLI when it is started.

        Args:
            spec: What the client gave; its directory is not looked at.
        """
        wanted = self.spec._replace(
            mcp_servers=spec.mcp_servers or self.spec.mcp_servers,
            additional_directories=spec.additional_directories or self.spec.additional_directories,
            system_prompt=spec.system_prompt or self.spec.system_prompt,
            wishes=spec.wishes or self.spec.wishes,
        )
        if wanted == self.spec:
            return
        self.spec, self._outdated = wanted, True
        if self._slot.live is None or self._may_rest():
            await self._renew()
        else:
            self.update(Notice("info", LATER))

    async def _renew(self) -> None:
        """Have a CLI that was opened with something else let go, unless something of it still runs."""
        live = self._slot.live
        if self._outdated and (live is None or live.resting):
            self._outdated = False
            await self._slot.release()

    async def _served(self) -> BackendSession:
        """The live session of the backend that is wanted now."""
        while True:
            live = await self._slot.get()
            if self._serving is self.backend:
                return live
            await self._slot.release()

    # -- options --------------------------------------------------------------------------------

    @property
    def commands(self) -> Commands | None:
        """All slash commands, as told last; None before they are known."""
        return self._commands

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        """What can be set, with what holds: the backend first, then what its CLI offers."""
        fixed = self.prompted or not self.turns.idle or not self._choices
        return (backend_option(self.backend, (self.backend,) if fixed else self._choices), *self._options)

    async def set_option(self, option_id: str, value: str | bool) -> None:
        """Set an option of the backend's; a prompt that comes later runs with it.

        Raises:
            BridgeError: What `BackendSession.set_option` raises, or the backend can't serve the session.
        """
        async with self._setting:
            with self._working():
                live = await self._served()
                try:
                    await live.set_option(option_id, value)
                    return
                except RestartNeeded:
                    await self._slot.release()
                except BackendGone as exc:
                    logger.info("session %s: %s is set again: %s", self.id, option_id, exc.message)
                await (await self._served()).set_option(option_id, value)

    def _tell_options(self) -> None:
        if self.options != self._told:
            self._told = self.options
            for client in self.clients:
                client.deliver(self.id, Options(self._told))

    # -- what the backend tells -----------------------------------------------------------------

    def update(self, update: Update) -> None:
        """An event of the backend: to every attached client."""
        if self._ending or (self._muted and not isinstance(update, SessionInfo | OwnTurn)):
            return  # A title is told by us.
        if not self.id:
            self._early.append(update)
            return
        self._rest.stir()
        if isinstance(update, Commands):
            if update == self._commands:
                return
            self._commands = update
        if isinstance(update, Options | OwnTurn):
            self._changes(update)
            return
        turn = self.turns.running
        if turn is not None and turn.message_id is None and self.progress.takes_in(turn, update):
            self._take_in(turn, update)
        self.recent.add(update)
        if turn is not None and isinstance(update, MessageChunk) and update.role == "user":
            self._tell_typed(turn, update)
        else:
            for client in self.clients:
                client.deliver(self.id, update)
        if isinstance(update, MessageChunk):
            return
        if isinstance(update, ToolCallUpdate | Subagent) or (
            isinstance(update, OfSubagent) and isinstance(update.update, Subagent)
        ):
            self.progress.look()
        elif isinstance(update, Usage) and update.cost_usd is not None:
            self.cost_usd = update.cost_usd

    def _tell_typed(self, turn: Turn, update: MessageChunk) -> None:
        """What was typed: to who typed it as an echo."""
        if turn.goes_on(update) and turn.message_id is not None:
            for client in self.clients:
                client.deliver(self.id, Message("user", turn.prompt, turn.message_id))
        for client in self.clients:
            if client is not turn.client:
                client.deliver(self.id, update)
            elif not turn.said_already(update):
                client.echo(self.id, update)

    def _take_in(self, turn: Turn, update: Update | None = None) -> None:
        """The conversation has the prompt now, as the first update that comes of it shows."""
        named = update.message_id if isinstance(update, MessageChunk) and update.role == "user" else None
        message_id = named or new_id()
        turn.insert(message_id, unnamed=named is None)
        for client in self.clients:
            client.deliver(self.id, Message("user", turn.prompt, message_id))
        self.progress.runs()

    def _changes(self, update: Options | OwnTurn) -> None:
        """What clients are told otherwise: the options with the backend among them, what the CLI does as the state."""
        if isinstance(update, Options):
            if self._serving is self.backend:
                self._options = update.options
                self._tell_options()
            return
        if update.failure is not None:
            self.update(Notice("error", update.failure))
        self.progress.works(update)
        if not update.running and self._own_over is not None:
            self._own_over.set()
            self._own_over = None
        self.changed()

    def _tell_state(self, state: SessionState) -> None:
        for client in self.clients:
            client.deliver(self.id, state)

    def _background(self) -> tuple[BackgroundTask, ...]:
        live = self._slot.live
        return live.background if live is not None and not live.lost else ()

    def moved(self, session_id: str) -> None:
        """The conversation goes on under another name of the backend's; see `SessionEvents.moved`."""
        self.recent.clear()
        self._from_store = False
        self.cost_usd = None
        self._left = self._left or self.key
        self._name(Key(self._serving.name, session_id))
        self.update(MessageChunk("agent", Text(BEGUN_ANEW)))

    async def room(self) -> None:
        """Wait while a client is too far behind to be told more; see `SessionEvents.room`."""
        for client in list(self.clients):
            await client.room(self.id)

    async def ask(self, question: Question) -> str | None:
        """A question of the backend: to the client whose prompt runs, else to the one that prompted last."""
        client = self._asked()
        with self._asking(client):
            return await self.questions.ask(question, client)

    async def ask_form(self, form: Form) -> FormAnswer:
        """A form of the backend: to the client that a question would go to."""
        client = self._asked()
        with self._asking(client):
            return await self.questions.ask_form(form, client)

    @contextmanager
    def _asking(self, client: Client | None) -> Generator[None]:
        """Clients, and who follows the list, hear that something is asked, and that it is no more."""
        turn = self.turns.running
        taken = turn is not None and turn.taken and not self.progress.own
        if client is not None and turn is not None and taken and turn.message_id is None:
            self._take_in(turn)
        self.changed()
        if client is not None:
            self.progress.asks()
        try:
            yield
        finally:
            if client is not None:
                self.progress.answered()
            self.changed()

    def form_done(self, form_id: str) -> None:
        """The page of a form has done its work; see `SessionEvents.form_done`."""
        self.questions.form_done(form_id)

    def _asked(self) -> Client | None:
        """Who answers what is asked now; nobody for a turn that is being cancelled."""
        running = self.turns.running
        if running is None:
            return self._driver
        return running.client if running.state == "running" else None

    async def _opening(self) -> tuple[Backend, SessionSpec, str | None]:
        """How to have it served now: resumed, or as a new one while the store has nothing of it."""
        self._serving = self.backend
        async with self._at_rest:
            row = await self._stored()
        title = self._keeper.current(self.key) if self.key is not None else NO_TITLE
        # A client's title that the store doesn't show was not written yet when its CLI ended.
        missing = title.origin == "client" and (row is None or row.title_origin != "user")
        known = self.key.id if self.key is not None else None
        resumed = row is not None or self._from_store
        own = known if self.key is not None and self.key.backend == self._serving.name else None
        spec = self.spec._replace(title=title.text if missing else self.spec.title, id=None if resumed else own)
        return self._serving, spec, known if resumed else None

    async def _stored(self) -> SessionRow | None:
        """The session in the store of the backend that serves it, if it can be resumed and titled there."""
        key = self.key
        return await self._serving.find(key.id) if key is not None and key.backend == self._serving.name else None

    def _opened(self, live: BackendSession) -> None:
        self._rest.stir()
        self._muted = False
        if not self.id:
            self.id = live.id
            self.questions = Questions(self.id)
        self._name(Key(self._serving.name, live.id))
        if self._serving is self.backend:
            self._options = live.options
            self._tell_options()
        early, self._early = self._early, []
        for update in early:
            self.update(update)

    def _name(self, key: Key) -> None:
        """What the backend calls the session now."""
        before, self.key = self.key, key
        if self._following != key:
            self._following = key
            self._follows.close()
            self._follows.enter_context(self._serving.follow(key.id, self.spec.cwd))
            self._bound(self, before, left=self._left)

    @property
    def left(self) -> Key | None:
        """What the session was before its conversation began anew, as long as nothing was said since."""
        return self._left

    def part(self) -> None:
        """The new conversation is in the store: from now on, the one before is a session of its own."""
        left, self._left = self._left, None
        if left is not None:
            self._bound(self, None, left=left)

    async def _leave_behind(self) -> None:
        if self._left is not None and await self._stored() is not None:
            self.part()
        if self._left is None and self._left_title is not None:
            left, self._left_title = self._left_title, None
            try:
                await self._title_of_its_own(left)
            except BridgeError as exc:
                logger.warning("what session %s left behind keeps its later title: %s", self.id, exc.message)

    # -- turns ----------------------------------------------------------------------------------

    def prompt(self, prompt: Prompt, client: Client, failed: Callable[[BridgeError], None] | None = None) -> Turn:
        """Accept a prompt; it runs when those before it have ended.

        Args:
            prompt: What the person says.
            client: Who asks.
            failed: Told the turn's failure, for a turn whose outcome nobody waits for.

        Raises:
            InvalidRequest: Too many wait already.
        """
        turn = Turn(prompt, client, failed)
        self.turns.add(turn)
        self._tell_options()
        return turn

    async def steer(self, prompt: Prompt) -> bool:
        """Add a message to the turn that runs; see `BackendSession.steer`, also for what is raised."""
        turn = self.turns.current
        if turn is None or turn.state not in ("waiting", "running"):
            return False
        if not turn.taken:
            turn.prompt = (*turn.prompt, *prompt)
            return True
        live = self._slot.live
        if live is None:
            return False
        with self._working():
            added = await live.steer(prompt)
        if added:
            turn.added = (*turn.added, *prompt)
        return added

    def cancel(self) -> None:
        """Cancel what runs, prompted or of the CLI's own accord, and everything that waits; starts nothing."""
        for turn in self.turns.drain():
            turn.settle(CANCELLED)
        live = self._slot.live
        if self.turns.running is not None:
            self.cancel_turn(self.turns.running)
        elif self.progress.own and live is not None and self._tasks is not None:
            self._own_over = self._own_over or anyio.Event()
            self._tasks.start_soon(self._stop_own, live, self._own_over)
            self.questions.withdraw()

    def cancel_turn(self, turn: Turn) -> None:
        """Cancel one turn: a waiting one ends at once, the running one as soon as its backend has heeded."""
        if self.turns.withdraw(turn) or turn.state != "running":
            return
        turn.state = "cancelling"
        if self._slot.live is None or self._tasks is None:
            turn.scope.cancel()
        else:
            self._tasks.start_soon(self._interrupt, turn, self._slot.live)
        # Behind the interrupt, for a CLI goes on with a turn whose question is refused.
        self.questions.withdraw()

    async def _stop_own(self, live: BackendSession, over: anyio.Event) -> None:
        """Have the backend stop what it does of its own accord: prompts wait until it has, or for the grace time."""
        with anyio.move_on_after(self._grace):
            try:
                await live.interrupt()
                await over.wait()
            except BridgeError as exc:
                logger.warning("session %s: the interrupt failed: %s", self.id, exc.message)
        over.set()

    async def _interrupt(self, turn: Turn, live: BackendSession) -> None:
        """Have the backend stop; one that doesn't within the grace time is ended, and resumed by the next prompt."""
        with anyio.move_on_after(self._grace) as patience:
            try:
                await live.interrupt()
            except BridgeError as exc:
                logger.warning("session %s: the interrupt failed: %s", self.id, exc.message)
            await turn.ended()
        if patience.cancelled_caught:
            logger.warning("session %s: %s ignored the interrupt for %g s", self.id, self.backend.label, self._grace)
            turn.scope.cancel()
            if self._slot.live is live:
                live.abandon()
                self._muted = True
                await self._slot.release()

    async def _work(self) -> None:
        while True:
            turn = await self.turns.next()
            self._driver = turn.client
            self.last_prompt_at, self.failed = time.time(), False
            self.changed()
            try:
                await self._run_turn(turn)
            finally:
                turn.settle(CANCELLED)
                self.turns.running = None
                self.last_turn_ended_at, self.failed = time.time(), turn.failed
                self.progress.ended(turn)
                self.changed()
                self._rest.stir()

    async def _run_turn(self, turn: Turn) -> None:
        try:
            with turn.scope:
                try:
                    await self._prompt(turn)
                except BackendGone as exc:
                    if not exc.untaken:
                        raise
                    # It ended while it was idle, and nobody had noticed yet.
                    logger.info("session %s: prompted again: %s", self.id, exc.message)
                    turn.prompt, turn.added = (*turn.prompt, *turn.added), ()
                    await self._prompt(turn)
        except Exception as exc:
            error = find_bridge_error(exc)
            if error is None:
                logger.exception("session %s: a turn broke", self.id)
                error = BridgeError(f"Internal error ({type(exc).__name__}); details are on the agent's stderr")
            self._note_failure(error)
            turn.settle(error)

    async def _prompt(self, turn: Turn) -> None:
        if self._own_over is not None:
            await self._own_over.wait()
        if self._setting.locked():
            async with self._setting:
                pass
        await self._renew()
        live = await self._served()
        if turn.state == "running":
            self._ask_for_title(turn, live)
            self.prompted = turn.taken = True
            outcome = await live.prompt(turn.prompt)
            if turn.message_id is None and outcome.stop_reason != "cancelled":
                self._take_in(turn)
            await self._leave_behind()
            turn.settle(outcome)

    def _note_failure(self, error: BridgeError) -> None:
        if isinstance(error, BackendGone | SessionNotFound):
            self.questions.withdraw()

    # -- rest -----------------------------------------------------------------------------------

    def _may_rest(self) -> bool:
        live = self._slot.live
        return live is not None and live.resting and self.turns.idle and not self._busy and not len(self.questions)

    async def _let_go(self) -> None:
        logger.info("session %s: nothing happens; %s is let go until the next prompt", self.id, self.backend.label)
        # Should the store lose it meanwhile, that is told, and not a conversation begun that knows nothing.
        self._from_store = self._from_store or await self._stored() is not None
        if self._may_rest():
            await self._slot.release()
            self.recent.clear()

    @contextmanager
    def _working(self) -> Generator[None]:
        """The backend is not let go meanwhile."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._rest.stir()

    async def end_by(self, act: Callable[[], Awaitable[T]]) -> T:
        """End what runs, do something to the session in the store that ends it, and end it.

        If that is refused, the session stays open, at rest: the next prompt has it resumed.

        Args:
            act: Done while no CLI is on the session; what it raises is raised, what it gives is given.
        """
        self._stop()
        while True:
            await self._slot.release()
            async with self._at_rest:
                if not self._slot.empty:
                    continue  # Somebody has asked for it meanwhile.
                result = await act()
                await self.end()
                return result

    def _stop(self) -> None:
        """As with the end of the session, all turns and the CLI's end are told at once."""
        running, live = self.turns.running, self._slot.live
        self.cancel()
        if live is not None:
            self._abandon(live)
            self._muted = True
        if running is not None:
            running.scope.cancel()

    def _abandon(self, live: BackendSession) -> None:
        """Have the end of all that is open told: it is ended by us."""
        live.abandon()
        self.progress.works(OwnTurn(False, CANCELLED))

    # -- background work ------------------------------------------------------------------------

    async def tasks(self) -> tuple[BackgroundTask, ...]:
        """What goes on in the background of this session; nothing does while no CLI serves it."""
        with self._working():
            live = await self._slot.current()
            return await live.tasks() if live is not None else ()

    async def task_output(self, task_id: str) -> TaskOutput:
        """What a background task of this session has printed; raises what `BackendSession.task_output` raises."""
        with self._working():
            return await (await self._serving_task(task_id)).task_output(task_id)

    async def stop_task(self, task_id: str) -> None:
        """End a background task of this session; raises what `BackendSession.stop_task` raises."""
        with self._working():
            await (await self._serving_task(task_id)).stop_task(task_id)

    def stop_agent(self, agent: str) -> None:
        """Have a sub-agent that works in the background stop, if there is one of this id; see `Subagent`."""
        task = next((task for task in self._background() if task.agent == agent), None)
        if task is not None and self._tasks is not None and not self._ending:
            self._tasks.start_soon(self._stop_agent, task.id)

    async def _stop_agent(self, task_id: str) -> None:
        try:
            await self.stop_task(task_id)
        except BridgeError as exc:
            logger.info("session %s: a sub-agent was not stopped: %s", self.id, exc.message)

    async def _serving_task(self, task_id: str) -> BackendSession:
        live = await self._slot.current()
        if live is None:
            raise TaskNotFound(self.id, task_id)
        return live

    # -- titles ---------------------------------------------------------------------------------

    async def rename(self, title: str) -> str:
        """Store a title where the session is right now, and give back what was stored.

        Raises:
            SessionEnded: The session ended meanwhile: it is at rest now, or gone.
            BridgeError: It can't be stored.
        """
        while (live := await self._slot.current()) is not None:
            try:
                with self._working():
                    return await live.rename(title)
            except BackendGone:
                # What its process still writes comes before what we write at rest.
                await self._slot.release()
        async with self._at_rest:
            if self._ending:
                raise SessionEnded(self.id)
            row = await self._stored()
            if row is not None:
                return await self._serving.rename(row.id, title)
            if self._from_store:
                raise SessionNotFound(self.id)
            return title

    async def title_left(self, title: str) -> None:
        """Give a title to what was before the conversation began anew too, as long as nothing was said since.

        Should the agent end before that, the conversation is what it was, by our id, and has to be called so.
        """
        left = self._left
        if left is None:
            return
        try:
            row = await self._serving.find(left.id)
            if row is None:
                return  # Nothing was said there either, or it is gone for good.
            own = self._keeper.current(left).text or row.title
            before = self._left_title.before if self._left_title is not None else own
            self._left_title = _LeftTitle(left, before, await self._title_at_rest(left, title))
        except BridgeError as exc:
            logger.warning("session %s would lose its title if it ended now: %s", self.id, exc.message)

    async def _title_of_its_own(self, left: _LeftTitle) -> None:
        """What was left behind is called as it was before, unless somebody has renamed it since."""
        row = await self._serving.find(left.key.id)
        if left.before is not None and row is not None and normalise(row.title or "") == left.given:
            await self._title_at_rest(left.key, left.before)

    async def _title_at_rest(self, key: Key, title: str) -> str:
        try:
            return await self._keeper.set(key, title, lambda text: self._serving.rename(key.id, text))
        finally:
            self._keeper.let_go(key)

    def tell_title(self, title: str) -> None:
        """Tell every attached client the session's title."""
        self.update(SessionInfo(title=title))
        self.changed()

    def _ask_for_title(self, turn: Turn, live: BackendSession) -> None:
        if not self._name_it or self._tasks is None or self.key is None:
            return
        if self._keeper.current(self.key).origin != "none":
            return
        text = typed_text(turn.prompt)
        if text:
            self._tasks.start_soon(self._generate_title, live, self.key, text)

    async def _generate_title(self, live: BackendSession, key: Key, text: str) -> None:
        """Have the session named; what a client or a person set meanwhile stays."""
        version = self._keeper.version(key)
        try:
            with self._working():
                title = await live.generate_title(text)
            if title is None or self._keeper.version(key) != version or self.key != key:
                return
            if self._keeper.heard(key, title, "generated") == "news":
                self.tell_title(self._keeper.current(key).text)
                await live.keep_generated(self._keeper.current(key).text)
        except BridgeError as exc:
            logger.info("session %s stays unnamed: %s", self.id, exc.message)

    @property
    def state(self) -> State:
        """What goes on."""
        if len(self.questions):
            return "requires_action"
        if not self.turns.idle or self.progress.own:
            return "running"
        return "error" if self.failed else "idle"

    def __repr__(self) -> str:
        return f"<Session {self.id} {self.backend.name} {self.turns!r} questions={len(self.questions)}>"


def new_id() -> str:
    """The name of a message that its CLI has none for."""
    # Imported with the first: most CLIs name what they take in.
    from uuid import uuid4

    return str(uuid4())


def _nobody_listens() -> None:
    """No list is followed."""
