"""A thread of the app-server as a session: its turns, its questions, its end.

Everything the server tells comes in through `notified`, in the reader's task, and is on its way to
the client before the next line is read. The turn a line names decides whether it counts: what
belongs to an older turn is dropped, unless it ends a command that outlived its turn (case M02).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from acp_manifold.bridge.backend import SessionEvents, SessionSpec
from acp_manifold.bridge.errors import (
    BackendFault,
    BackendGone,
    BridgeError,
    InvalidParams,
    LoginNeeded,
    RemoteError,
    TaskNotFound,
)
from acp_manifold.bridge.taps import taps
from acp_manifold.translators.codex.failures import failure_of, stop_of
from acp_manifold.translators.codex.items import OF_AGENTS, Updates
from acp_manifold.translators.codex.prompts import INPUT_LIMIT, refused, text_size, to_input
from acp_manifold.translators.codex.turn import Stream, item_of
from acp_manifold.translators.narrow import JsonObject, as_str, obj, text
from acp_manifold.translators.updates import (
    BackgroundTask,
    ConfigOption,
    MessageChunk,
    Notice,
    OwnTurn,
    Prompt,
    TaskOutput,
    Text,
    TurnEnd,
    Unknown,
    Update,
    Usage,
)

from .asking import Asking
from .client import Asked, Client, NoAnswer, RequestId
from .config import thread_params
from .faults import NO_ROLLOUT, fault_of, is_turn_over, met_a_login
from .opening import open_thread
from .options import ThreadOptions
from .program import codex_home
from .running import Running, own_end
from .server import AppServer
from .servers import McpServers
from .shelf import Shelf
from .stubborn import unload
from .terminals import listed, stop, terminate

if TYPE_CHECKING:
    from .commands import SlashCommands
    from .open_questions import OpenQuestions
    from .subagents import Subagents

logger = logging.getLogger(__name__)

CLOSE_LIMIT = 2.0
"""Seconds for the end of a session; a few milliseconds are usual. The rest is Codex' to clear away."""

ENDPOINT_DELAY = 1.0
"""Seconds after the opening, or a turn, before an endpoint is asked for its models: nobody is to wait for that."""

HEED_LIMIT = 1.0
"""Seconds of them for a turn to stop when it is interrupted; some milliseconds are usual."""

_START_PATIENCE = 2.0
"""Seconds between the answer to `turn/start` and `turn/started`, before an interrupt is tried all the same."""


class CodexSession:
    """A thread that is open here; also the `Route` of its lines."""

    def __init__(
        self,
        server: AppServer,
        spec: SessionSpec,
        names: Mapping[str, str],
        events: SessionEvents,
        tasks: TaskGroup,
        generated: Callable[[str, str], None],
        shelf: Shelf,
        *,
        new: bool,
    ) -> None:
        """
        Args:
            server: Who serves it.
            spec: What it is opened with.
            names: What its MCP servers are called there; see `config.names_of`.
            events: Whom to tell.
            tasks: The session's task group.
            generated: Told the thread and the title when a generated one is about to be stored.
            shelf: What the threads share of their options.
            new: Whether the thread is made here.
        """
        self._server = server
        self._client = server.client
        self._spec = spec
        self.servers = McpServers(names, server.told_faults, events)
        """Its MCP servers."""
        self._events = events
        self._tasks = tasks
        self._asking = Asking(server.client, events, tasks)
        self._generated = generated
        self._stream = Stream()
        self._id = ""
        self._options = ThreadOptions(server.client, spec.cwd, shelf, events.update)
        self._active: str | None = None
        self._own: str | None = None
        """The turn that Codex has begun itself, as long as nothing of ours was added to it."""
        self._running: Running | None = None
        self._had_turn = not new
        self._title = spec.title
        self._generated_title: str | None = None
        self.settings: JsonObject = {}
        """Model, permissions and the like, as Codex told them last."""
        self._commands: SlashCommands | None = None
        self._agents: Subagents | None = None
        self._open_questions: OpenQuestions | None = None
        self._skills_known = False
        self._offering = False
        self._closed = False
        self._stuck = False
        """Whether a turn may begin here that nobody waits for."""
        self._turn_over = anyio.Event()
        self._gone: BackendGone | None = None
        self._gone_event = anyio.Event()

    @property
    def id(self) -> str:
        """The thread's id."""
        return self._id

    @property
    def lost(self) -> bool:
        """Whether Codex no longer serves the thread; see `BackendSession.lost`."""
        return self._gone is not None or not self._server.alive

    @property
    def resting(self) -> bool:
        """Whether nothing goes on; see `BackendSession.resting`. A thread without a turn could not be resumed."""
        idle = self._running is None and self._active is None and not self._stuck
        idle = idle and not (self._agents is not None and self._agents.running)
        return idle and self._had_turn and not self._stream.open

    def abandon(self) -> None:
        """Tell the end of all that is open; see `BackendSession.abandon`."""
        if self._agents is not None:
            self._agents.abandon()
        self._tell(self._stream.end_open("cancelled"))

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        """What can be set; see `BackendSession.options`."""
        return self._options.options

    async def set_option(self, option_id: str, value: str | bool) -> None:
        """Set an option, for the turns that come; see `BackendSession.set_option`."""
        await self._options.set(option_id, value)

    async def learn(self) -> None:
        """Find out, in the background, which models there are. For `open_session` only."""
        from .endpoint import models

        await self._options.learn()
        await anyio.sleep(ENDPOINT_DELAY)
        while self._running is not None:
            await self._running.ended.wait()
            await anyio.sleep(ENDPOINT_DELAY)
        self._options.served(await models(self._spec.endpoint, codex_home()))

    async def room(self) -> None:
        """Wait while the session's clients are behind; see `SessionEvents.room`."""
        await self._events.room()

    # -- background work ------------------------------------------------------------------------

    @property
    def background(self) -> tuple[BackgroundTask, ...]:
        """Commands that outlived their turn, and sub-agents that work; see `BackendSession.background`."""
        agents = self._agents.tasks() if self._agents is not None else ()
        return (*agents, *self._stream.outlived(turn_runs=self._active is not None))

    async def tasks(self) -> tuple[BackgroundTask, ...]:
        """What goes on in the background; see `BackendSession.tasks`. The id of a task is that of its item."""
        running = self._stream.commands() if self._active is not None else ()
        agents = self._agents.tasks() if self._agents is not None else ()
        return (*agents, *(task for task in await listed(self._client, self._id) if task.id not in running))

    async def task_output(self, task_id: str) -> TaskOutput:
        """What a task has printed, as far as it was told here; see `BackendSession.task_output`."""
        if all(task.id != task_id for task in await self.tasks()):
            raise TaskNotFound(self._id, task_id)
        words = self._agents.output(task_id) if self._agents is not None else None
        if words is not None:
            return words
        return self._stream.printed_so_far(task_id)

    async def stop_task(self, task_id: str) -> None:
        """End a task; see `BackendSession.stop_task`."""
        if self._agents is not None and self._agents.stop(task_id):
            return
        running = self._active is not None and task_id in self._stream.commands()
        if not running:
            self._stream.ending(task_id)
        if running or not await stop(self._client, self._id, task_id):
            raise TaskNotFound(self._id, task_id)

    # -- open and close -------------------------------------------------------------------------

    async def _set_name(self, title: str) -> str:
        # Imported with the first title: a new session's answer waits for every import there is.
        from .store import set_name

        return await set_name(self._server, self._id, title)

    async def start(self, asked: Asked) -> None:
        """Make a new thread, for which Codex was asked just now."""
        asked.taken = self._opened
        try:
            try:
                await self._client.result(asked)
            except RemoteError as exc:
                if not met_a_login(exc):
                    raise
                params = thread_params(self._spec, self.servers.names)
                await self._client.request("thread/start", params, taken=self._opened, limit=self._server.limits.slow)
        except RemoteError as exc:
            raise fault_of(exc, "", "start a session") from exc
        if self._spec.id is not None:
            await self._options.restore(self._spec.id)
        await self._write_title()

    async def resume(self, thread_id: str) -> None:
        """Open a thread of the store."""
        self._server.claim(thread_id, self)
        self._server.early_servers.pop(thread_id, None)
        self._id = thread_id
        await self._server.freed(thread_id)
        if self._server.led.get(thread_id, self._spec.endpoint) != self._spec.endpoint:
            # It was not unloaded when it was let go, and a thread that is loaded takes no other provider.
            await unload(self._client, thread_id, "its endpoint is another one now")
        params: JsonObject = {
            "threadId": thread_id,
            "excludeTurns": True,
            **thread_params(self._spec, self.servers.names),
        }
        limit = self._server.limits.slow
        try:
            result = await open_thread(self._client, "thread/resume", params, taken=self._opened, limit=limit)
        except RemoteError as exc:
            raise fault_of(exc, thread_id, "resume the session") from exc
        if obj(result, "thread").get("name"):
            self._title = None
        await self._instruct()
        await self._options.restore(self._id)
        await self._write_title()

    async def _instruct(self) -> None:
        """Say a client's further instructions in a thread that was begun without them.

        codex-cli 0.163.0 heeds those of a resume for a thread in which nothing was said, or that it compacts.
        """
        prompt = self._spec.system_prompt
        if prompt is None or prompt.mode != "append" or self._server.instructed.get(self._id) == prompt.text:
            return
        said = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": prompt.text}]}
        try:
            await self._client.request("thread/inject_items", {"threadId": self._id, "items": [said]})
        except RemoteError as exc:
            raise fault_of(exc, self._id, "take the client's system prompt") from exc
        self._server.instructed[self._id] = prompt.text

    def _opened(self, result: JsonObject) -> None:
        thread = obj(result, "thread")
        before, self._id = self._id, text(thread, "id")
        if self._spec.system_prompt is not None and before != self._id:
            # A new thread: it was begun with them.
            self._server.instructed[self._id] = self._spec.system_prompt.text
        self.settings = result
        self._server.led[self._id] = self._spec.endpoint
        if not self._closed:
            self._options.opened(self._id, result)
            self._server.claim(self._id, self)
            self._server.follow(self._id, self)
            self._server.welcome(self)
        elif not self._server.is_held(self._id):
            if self._had_turn:
                self._server.release(self._id)
            else:
                self._client.post("thread/delete", {"threadId": self._id})

    async def _write_title(self) -> None:
        """Store the title the session was opened with; it is kept for the first turn if that fails."""
        if self._title is None:
            return
        try:
            await self._set_name(self._title)
        except BridgeError as exc:
            logger.warning("codex session %s: its title could not be stored yet: %s", self._id, exc.message)
            return
        self._title = None

    async def close(self) -> None:
        """Stop what runs and let the thread go, within `CLOSE_LIMIT` seconds."""
        self._closed = True
        self._options.close()
        if self._server.routes.get(self._id) is self:
            with anyio.move_on_after(CLOSE_LIMIT, shield=True) as patience:
                await self._leave()
            if patience.cancelled_caught:
                self._server.doubted = True
        self._server.let_go(self._id, self)

    async def _leave(self) -> None:
        if self._agents is not None:
            self._agents.leave()
        if not await self._stops():
            self._server.release(self._id, stubborn=True)
            await self._server.freed(self._id)
            return
        if not self._had_turn:
            # No list of Codex' would ever show it, though it would stay in the store if it has a title.
            await self._delete()
            return
        self._server.release(self._id)
        await self._server.freed(self._id)

    async def _stops(self) -> bool:
        """Whether no turn runs any more, after an interrupt if need be."""
        if self._stuck:
            return False
        with anyio.move_on_after(HEED_LIMIT):
            await self.interrupt()
            if self._running is not None:
                await self._running.ended.wait()
            if self._active is not None:
                await self._turn_over.wait()
            return True
        return not self._server.alive

    async def _delete(self) -> None:
        try:
            await self._client.request("thread/delete", {"threadId": self._id})
        except BridgeError as exc:
            logger.debug("codex session %s: it could not be deleted when it was closed: %s", self._id, exc.message)

    async def gone(self) -> BackendGone:
        """Wait until the thread is no longer served."""
        await self._gone_event.wait()
        return self._gone or BackendGone("Codex no longer serves this session")

    # -- turns ----------------------------------------------------------------------------------

    async def prompt(self, prompt: Prompt) -> TurnEnd:
        """Run one turn."""
        if isinstance(prompt[0], Text) and prompt[0].text.startswith("/"):
            end = await self._run_command(prompt)
            if end is not None:
                return end
        _check(prompt)
        return await self.run_turn("turn/start", {"input": to_input(prompt)})

    async def run_turn(self, method: str, params: JsonObject) -> TurnEnd:
        """Run the turn that a request begins, which names it in its answer or has it begin at once."""
        run = self._running = Running()
        self._had_turn = True
        try:
            await self._start_turn(run, method, params)
        except BridgeError as exc:
            if isinstance(exc, BackendGone):
                exc.untaken = run.id is None
            run.end()
            raise
        # Cancelled from here on, the turn stays known as running, so that the end of the session interrupts it.
        await run.ended.wait()
        await terminate(self._client, self._id, run.left)
        self._running = None
        if self._title is not None and self._server.alive:
            await self._write_title()
        return run.result(self._stream)

    async def _start_turn(self, run: Running, method: str, params: JsonObject) -> None:
        def taken(result: JsonObject) -> None:
            turn_id = text(obj(result, "turn"), "id")
            if not turn_id:
                run.unnamed = True
                return
            run.identify(turn_id)
            if self._active == turn_id:  # our words were added to a turn that runs already
                self._own = None
                run.started.set()
            else:
                self._begin(turn_id)

        # The app-server ends with its stdin, the commands of a turn do not.
        self._server.child.be_guarded()
        asked: JsonObject = {"threadId": self._id, **params}
        try:
            await self._client.request(method, asked, taken=taken, limit=self._server.limits.slow)
        except RemoteError as exc:
            raise fault_of(exc, self._id, "take the prompt") from exc
        except NoAnswer as exc:
            # It may begin at any moment: nothing of the thread can be relied on before it is opened anew.
            self._stuck = True
            self.server_gone(BackendGone(exc.message))
            raise

    async def steer(self, prompt: Prompt) -> bool:
        """Add a message to the turn; see `BackendSession.steer`. codex-cli 0.163.0 cuts a streaming answer short."""
        _check(prompt)
        run = self._running
        if run is None:
            return False
        with anyio.move_on_after(_START_PATIENCE):
            await run.started.wait()
        if run.id is None or run.cancelling or run.ended.is_set():
            return False
        params: JsonObject = {"threadId": self._id, "expectedTurnId": run.id, "input": to_input(prompt)}
        try:
            await self._client.request("turn/steer", params)
        except RemoteError as exc:
            if is_turn_over(exc) or run.ended.is_set():
                return False
            raise fault_of(exc, self._id, "add to the turn") from exc
        return True

    def _begin(self, turn_id: str) -> None:
        self._active = turn_id
        self._had_turn = True
        self._turn_over = anyio.Event()
        self._stream.turn_begins()

    async def interrupt(self) -> None:
        """Have Codex stop the running turn; its questions are taken back first."""
        run = self._running
        if self._agents is not None:
            self._agents.interrupt()
        if run is None and self._commands is not None:
            self._commands.interrupt()
        if run is None and self._active is None:
            return
        if run is not None:
            run.cancelling = True
        self._stream.stopping = self._active is not None
        self._asking.abort(but=self._agents.behind if self._agents is not None else ())
        self._take_back_open()
        if run is None:
            await self._interrupt(self._active or "")
            return
        await run.identified.wait()
        with anyio.move_on_after(_START_PATIENCE):
            await run.started.wait()
        if run.id is None or run.ended.is_set():
            return
        if not await self._interrupt(run.inner or run.id) and not run.started.is_set():
            await run.started.wait()
            if not run.ended.is_set():
                await self._interrupt(run.inner or run.id)

    async def _interrupt(self, turn_id: str) -> bool:
        try:
            await self._client.request("turn/interrupt", {"threadId": self._id, "turnId": turn_id})
        except BridgeError as exc:
            # It has just ended, or not begun yet.
            logger.debug("codex session %s: interrupt refused: %s", self._id, exc.message)
            return False
        return True

    # -- titles ---------------------------------------------------------------------------------

    async def rename(self, title: str) -> str:
        """Store a title; one that can't be stored before the first turn is kept for it."""
        try:
            stored = await self._set_name(title)
        except BridgeError as exc:
            if self._had_turn or not isinstance(exc.__cause__, RemoteError):
                raise
            if not exc.__cause__.message.startswith(NO_ROLLOUT):
                raise
            self._title = title
            return title
        self._title = None
        return stored

    async def generate_title(self, prompt_text: str) -> str | None:
        """Have the thread's own model name it, in a thread of its own that is never stored."""
        if prompt_text.startswith("/"):
            from .commands import names_nothing

            if names_nothing(prompt_text):
                return None
        from .title import generate_title

        idle, endpoint = self.servers.of_the_person, self._spec.endpoint
        return await generate_title(self._server, self._spec.cwd, self._options.model, idle, prompt_text, endpoint)

    async def keep_generated(self, title: str) -> None:
        """Store a generated title."""
        self._generated(self._id, title)
        self._generated_title = title
        await self._set_name(title)

    # -- slash commands -------------------------------------------------------------------------

    @property
    def client(self) -> Client:
        """The link to the app-server."""
        return self._client

    @property
    def cwd(self) -> str:
        """The session's directory."""
        return self._spec.cwd

    @property
    def usage(self) -> Usage | None:
        """How full the context is, as told last."""
        return self._stream.usage

    def say(self, words: str) -> None:
        """Tell the person something, in the agent's name."""
        self._events.update(MessageChunk("agent", Text(words)))

    def _slash_commands(self) -> SlashCommands:
        # Imported with the first use: a new session's answer waits for every import there is.
        from .commands import SlashCommands

        if self._commands is None:
            self._commands = SlashCommands(self)
        return self._commands

    async def _run_command(self, prompt: Prompt) -> TurnEnd | None:
        from acp_manifold.translators.slash import slash_of

        command = slash_of(prompt)
        return await self._slash_commands().serve(command) if command is not None else None

    async def offer_commands(self) -> None:
        """Tell the slash commands, and again as long as Codex says meanwhile that its skills have changed."""
        self._offering = True
        while not self._skills_known:
            self._skills_known = True
            try:
                skills = await self._client.request("skills/list", {"cwds": [self._spec.cwd]})
            except BridgeError as exc:
                logger.info("codex session %s: its skills are not known: %s", self._id, exc.message)
                skills = {}
            self.offer(skills)
        self._offering = False

    def offer(self, skills: JsonObject) -> None:
        """Tell the commands that there are with these skills, the answer to `skills/list`."""
        self._events.update(self._slash_commands().offered(skills))

    def skills_changed(self, params: JsonObject) -> None:
        """Codex has other skills than it had."""
        self._skills_known = False
        if not self._offering and not self._closed:
            self._tasks.start_soon(self.offer_commands)

    async def begin_anew(self) -> bool:
        """Go on in a new thread, and leave the one before to the store; False if nothing was said in it yet.

        Raises:
            BackendFault: A turn that Codex began itself does not stop, or it makes no new thread.
            BackendGone: It is gone.
        """
        if not self._had_turn:
            return False
        if not await self._stops():
            raise BackendFault("Codex still works in this session and does not stop; try again when it has ended")
        before = self._id

        def taken(result: JsonObject) -> None:
            # What runs in the background belongs to the conversation that is left.
            self._tell(self._stream.end_open("cancelled"))
            if self._agents is not None:
                self._agents.leave()
            self._stream, self._had_turn = Stream(), False
            self._server.let_go(before, self)
            self._opened(result)
            self._server.release(before)
            if not self._closed:
                self._events.moved(self._id)

        try:
            thread = obj(await self._client.request("thread/read", {"threadId": before}), "thread")
            params = thread_params(self._spec, self.servers.names)
            await self._client.request("thread/start", params, taken=taken, limit=self._server.limits.slow)
        except RemoteError as exc:
            raise fault_of(exc, before, "begin anew") from exc
        await self._options.restore(self._id)
        name = as_str(thread.get("name"))
        if name and name != self._generated_title:
            self._title = name
        return True

    # -- what the server tells ------------------------------------------------------------------

    def notified(self, method: str, params: JsonObject) -> None:
        """A notification about the thread."""
        turn_id = params.get("turnId")
        if turn_id is not None and turn_id == self._active:
            self._tell(self._stream.translate(method, params))
            if method == "item/completed":
                self._completed(obj(params, "item"))
            return
        handler = OF_THREAD.get(method)
        if handler is not None:
            handler(self, params)
        elif turn_id is not None and item_of(params) in self._stream.open:
            self._tell(self._stream.translate(method, params))
        else:
            logger.debug("codex session %s: dropped %s of turn %s", self._id, method, turn_id)
            taps.dropped(
                "codex", self._id, method, f"turn {turn_id} does not run" if turn_id else "of no use to a client"
            )

    def _completed(self, item: JsonObject) -> None:
        """See to what an item of the turn means beyond what is told of it."""
        if item.get("type") in OF_AGENTS:
            self._subagents().spoken_of(item)
        elif item.get("questions") and not (self._running is not None and self._running.cancelling):
            # Imported with the first: few turns ask anything.
            from .open_questions import OpenQuestions

            if self._open_questions is None:
                self._open_questions = OpenQuestions(self._events, self._tasks, self.steer)
            self._open_questions.put(item)

    def _subagents(self) -> Subagents:
        # Imported with the first sub-agent: few sessions have any.
        from .subagents import Subagents

        if self._agents is None:
            self._agents = Subagents(self._server, self, self._asking)
        return self._agents

    @property
    def turn(self) -> str | None:
        """The turn that runs; see `Owner`."""
        return self._active

    def tell(self, update: Update) -> None:
        """Tell the clients; of a sub-agent."""
        self._events.update(update)

    def hears_questions(self) -> bool:
        """Whether a sub-agent may ask; see `Owner`."""
        return not self._closed and not (self._running is not None and self._running.cancelling)

    def _tell(self, updates: Updates) -> None:
        for update in updates:
            if isinstance(update, Unknown):
                logger.debug("codex session %s: nobody knows %s", self._id, update.raw)
                taps.dropped(
                    "codex", self._id, text(update.raw, "method") or text(update.raw, "type"), "not known here"
                )
            else:
                self._events.update(update)

    def asked(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """A request about the thread: to the person, unless its turn is over or being cancelled."""
        turn_id = params.get("turnId")
        cancelling = self._running is not None and self._running.cancelling
        inner = self._running.inner if self._running is not None else None
        if self._closed or cancelling or (turn_id is not None and turn_id not in (self._active, inner)):
            self._asking.refuse(request_id, method, params, self._stream.items)
        else:
            self._asking.ask(request_id, method, params, self._stream.items)

    def noticed(self, notice: Notice) -> None:
        """The server has something to say that is about no thread."""
        self._tell(self._stream.once(notice))

    def server_gone(self, reason: BackendGone) -> None:
        """The server ended: the turn fails, its tool calls too, and questions are taken back."""
        self._asking.drop()
        self._take_back_open()
        self._tell(self._stream.end_open("failed"))
        self._active = None
        self._turn_over.set()
        self._own_turn_over()
        if self._running is not None:
            self._running.end(gone=reason)
        self._gone = reason
        self._gone_event.set()

    def turn_started(self, params: JsonObject) -> None:
        """A turn has begun, ours or one that Codex began itself."""
        turn = obj(params, "turn")
        turn_id, run = text(turn, "id"), self._running
        if run is not None and run.ended.is_set():
            # Whoever waits for its end has not come to clear it away yet.
            run = None
        if run is not None and run.id is not None and turn_id != run.id == turn.get("rootTurnId"):
            run.inner = turn_id
            run.started.set()
            return
        if run is not None and run.unnamed and run.id is None:
            run.identify(turn_id)
        if self._active != turn_id:
            self._begin(turn_id)
            if run is None:
                self._own = turn_id
                self._events.update(OwnTurn(running=True))
        if run is not None and run.id == turn_id:
            run.started.set()

    def turn_completed(self, params: JsonObject) -> None:
        """A turn is over; all of its items came before."""
        turn = obj(params, "turn")
        turn_id = text(turn, "id")
        run = self._running
        if turn_id == self._active:
            self._active = None
            self._turn_over.set()
            self._asking.turn_over()
            self._take_back_open()
            interrupted = text(turn, "status") == "interrupted"
            commands = self._stream.commands()
            self._tell(self._stream.end_turn(interrupted=interrupted))
            if interrupted and run is not None:
                run.left = commands
        if run is not None and run.id == turn_id:
            if (error := obj(turn, "error")) and stop_of(error) is not None:
                # How the turn stopped is no error to a client; why, it reads here.
                self._tell((MessageChunk("agent", Text(failure_of(error).text), f"{turn_id}-end"),))
            run.end(turn)
        if turn_id == self._own:
            self._own_turn_over(turn)

    def _own_turn_over(self, turn: JsonObject | None = None) -> None:
        if self._own is not None:
            self._own = None
            self._events.update(own_end(turn, self._stream) if turn is not None else OwnTurn(running=False))

    def _take_back_open(self) -> None:
        if self._open_questions is not None:
            self._open_questions.take_back()

    def request_resolved(self, params: JsonObject) -> None:
        """Codex wants no answer to a question any more."""
        self._asking.resolved(params.get("requestId"))

    def mcp_server_status(self, params: JsonObject) -> None:
        """An MCP server of the thread starts, is ready, or failed."""
        self.servers.changed(self._id, params)

    def warned(self, params: JsonObject) -> None:
        """Codex has something to say about the thread."""
        self._tell(self._stream.translate("warning", params))

    def thread_ended(self, params: JsonObject) -> None:
        """The thread was unloaded, archived or deleted by somebody else."""
        if not self._closed:
            self.server_gone(BackendGone(f"Codex has let go of session {self._id}"))

    def settings_updated(self, params: JsonObject) -> None:
        """What the thread runs with has changed."""
        self.settings = {**self.settings, **obj(params, "threadSettings")}
        self._options.settings_updated(params)

    def ignore(self, params: JsonObject) -> None:
        """Nothing of the session changes."""


def _check(prompt: Prompt) -> None:
    """Raises `InvalidParams` for what Codex would not take."""
    size = text_size(prompt)
    if size > INPUT_LIMIT:
        raise InvalidParams(
            f"The prompt has {size:,} characters; Codex takes {INPUT_LIMIT:,} at most",
            {"reason": "input_too_large"},
        )
    if (wrong := refused(prompt)) is not None:
        raise InvalidParams(f"prompt[{wrong[0]}]: {wrong[1]}")


OF_THREAD: dict[str, Callable[[CodexSession, JsonObject], None]] = {
    "turn/started": CodexSession.turn_started,
    "turn/completed": CodexSession.turn_completed,
    "serverRequest/resolved": CodexSession.request_resolved,
    "mcpServer/startupStatus/updated": CodexSession.mcp_server_status,
    "skills/changed": CodexSession.skills_changed,
    "thread/closed": CodexSession.thread_ended,
    "thread/archived": CodexSession.thread_ended,
    "thread/deleted": CodexSession.thread_ended,
    "thread/settings/updated": CodexSession.settings_updated,
    "thread/name/updated": CodexSession.ignore,
    "warning": CodexSession.warned,
    "guardianWarning": CodexSession.warned,
}
"""Notifications that name no turn, or name it inside."""


@asynccontextmanager
async def open_session(
    server: AppServer,
    spec: SessionSpec,
    names: Mapping[str, str],
    events: SessionEvents,
    generated: Callable[[str, str], None],
    thread: Asked | str,
    no_login: Callable[[], Awaitable[LoginNeeded | None]],
    shelf: Shelf,
) -> AsyncGenerator[CodexSession]:
    """Serve a thread for as long as the context is open. See `Backend.session`.

    Args:
        server: Who serves it.
        spec: What it is opened with.
        names: What its MCP servers are called there; see `config.names_of`.
        events: Whom to tell.
        generated: Told the thread and the title when a generated one is about to be stored.
        thread: The id of the one to resume, or the `thread/start` that was sent just now.
        shelf: What the threads share of their options.
        no_login: Tells what is wanting. That is looked up while Codex makes the new thread, which takes longer.
    """
    failure: Exception | None = None
    looked = anyio.Event()
    wanting: LoginNeeded | None = None

    async def look() -> None:
        nonlocal wanting
        wanting = await no_login()
        looked.set()

    async with anyio.create_task_group() as tasks:
        session = CodexSession(server, spec, names, events, tasks, generated, shelf, new=not isinstance(thread, str))
        try:
            if isinstance(thread, str):
                await session.resume(thread)
            else:
                tasks.start_soon(look)
                await session.start(thread)
                await looked.wait()
                if wanting is not None:
                    raise wanting
            tasks.start_soon(session.learn)
            tasks.start_soon(session.offer_commands)
            yield session
        except Exception as exc:
            # Carried past the task group, which would wrap it: the caller is to see it as it was raised.
            failure = exc
        finally:
            await session.close()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
