"""A session that a Claude Code process serves: its handshake, its turns, its end.

The process is started at once and shakes hands in the background; whatever needs the CLI waits for
that, `HANDSHAKE_LIMIT` at most. Lines are translated as they are read, in the reader's own call: no
queue and no task switch lies between the CLI and `SessionEvents.update`.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from acp_manifold.adapters.claude.carried import Carried
from acp_manifold.adapters.claude.control import Control, Pending
from acp_manifold.adapters.claude.life import Life
from acp_manifold.adapters.claude.live_title import NAME, LiveTitle
from acp_manifold.adapters.claude.lock import SessionLock
from acp_manifold.adapters.claude.options import SessionOptions
from acp_manifold.adapters.claude.program import login_hint
from acp_manifold.adapters.claude.questions import Questions
from acp_manifold.adapters.claude.servers import McpServers
from acp_manifold.adapters.claude.store import Store
from acp_manifold.bridge.backend import Host, SessionEvents, SessionSpec
from acp_manifold.bridge.errors import (
    BackendFault,
    BackendGone,
    BridgeError,
    InvalidRequest,
    LoginNeeded,
    SessionNotFound,
    TaskNotFound,
)
from acp_manifold.bridge.taps import taps
from acp_manifold.bridge.transport import Transport
from acp_manifold.translators.acp.prompts import typed_text
from acp_manifold.translators.claude.archive import visible
from acp_manifold.translators.claude.commands import commands
from acp_manifold.translators.claude.compaction import kept_messages
from acp_manifold.translators.claude.endings import Failure, failure_kind
from acp_manifold.translators.claude.frames import (
    CommandsChanged,
    ControlCancel,
    ControlRequest,
    ControlResponse,
    Init,
    Mode,
    PageDone,
    Reset,
    TitleChanged,
    parse,
)
from acp_manifold.translators.claude.input import greeting, user_message
from acp_manifold.translators.claude.titles import stored_form
from acp_manifold.translators.claude.turn import Conversation
from acp_manifold.translators.narrow import JsonObject, as_int, as_list, as_objects, as_str, text
from acp_manifold.translators.updates import (
    BackgroundTask,
    Command,
    ConfigOption,
    MessageChunk,
    Notice,
    Prompt,
    TaskOutput,
    Text,
    ToolEnd,
    TurnEnd,
)

logger = logging.getLogger(__name__)

HANDSHAKE_LIMIT: Final = 20.0
"""Seconds a new process has to answer `initialize`; Claude Code 2.1.332 needs 0.3 to 1."""

START_PATIENCE: Final = 5.0
"""Seconds that a prompt waits for a new process before that is told."""

BUSY_HANDSHAKE_LIMIT: Final = 60.0
"""Seconds it has on a machine with more to do than it has processors: there it may only be waiting for its turn."""

INTERRUPT_LIMIT: Final = 10.0
"""Seconds to wait for the receipt of an interrupt; the turn's own end is waited for elsewhere."""

TITLE_LIMIT: Final = 60.0
"""Seconds a model has to think of a title."""

REST_LIMIT: Final = 1.0
"""Seconds for a process whose turn is over to say that it is idle."""

MODELS_DELAY: Final = 1.0
"""Seconds after the handshake, or a turn, before an endpoint is asked for its models."""

TASK_LIMIT: Final = 10.0
"""Seconds to tell of a background task, or to end it; some milliseconds are usual."""

INTERRUPT: Final[JsonObject] = {"subtype": "interrupt", "spare_background_tasks": True}
"""Stops the turn alone; without the flag Claude Code 2.1.332 ends sub-agents in the background with it."""

_EXIT_WAIT: Final = 2.0
"""Seconds a process that closed its stdout has to end before it is killed."""

_TITLE_SOURCE: Final = 4000
"""Characters of the prompt that a title is made from."""

_LAST_WORDS: Final = 2000
"""Characters at the end of stderr that may tell why a process ended."""


def overloaded() -> bool:
    """Whether this machine has had more to do, in the last minute, than it has processors for."""
    return os.getloadavg()[0] > (os.cpu_count() or 1)


class _Turn:
    """The prompt that runs."""

    __slots__ = ("added", "ended", "go", "interrupted", "lookup", "sent", "uuid")

    def __init__(self) -> None:
        self.uuid = str(uuid4())
        self.go = anyio.Event()
        """Set when there is nothing left to wait for before the prompt is sent, or no sense in sending it."""
        self.ended = anyio.Event()
        self.added: Prompt = ()
        """What was added before the prompt was sent."""
        self.sent = False
        self.interrupted = False
        self.lookup: anyio.CancelScope | None = None
        """Around a command that is served here: nothing is sent for it."""


class ClaudeSession:
    """One process, one conversation. Made by `serve`, which owns the process."""

    def __init__(
        self,
        session_id: str,
        child: Transport,
        tasks: TaskGroup,
        spec: SessionSpec,
        events: SessionEvents,
        host: Host,
        store: Store,
        resumed: bool,
        life: Life,
        carried: Carried,
        lock: SessionLock,
        mark: str,
    ) -> None:
        self._id = session_id
        self._cwd = spec.cwd
        self._child = child
        self._tasks = tasks
        self._events = events
        self._host = host
        self._store = store
        self._resumed = resumed
        self._conversation = Conversation(spec.cwd)
        self._control = Control(self._send)
        own = frozenset(server.name for server in spec.mcp_servers)
        self._servers = McpServers(own, carried.told_faults, self._control, tasks, events, child.name)
        talk = self._conversation
        self._questions = Questions(
            tasks, self._send, events, spec.cwd, child.name, carried.remember, talk.only_call, talk.placed
        )
        self._title = LiveTitle(
            session_id,
            spec,
            host,
            store,
            self._control,
            tasks,
            self.ready,
            stored=resumed,
            name=child.name,
        )
        self._options = SessionOptions(
            self._control,
            carried,
            life.shelf,
            mark,
            spec.cwd,
            events.update,
            self._rests,
            child.name,
        )
        self._ready = anyio.Event()
        self._capabilities: JsonObject = {}
        self._life = life
        self._carried = carried
        self._lock = lock
        self._endpoint = spec.endpoint
        self._system_prompt = spec.system_prompt
        self._wishes = spec.wishes
        self._resetting = False
        """Whether the conversation was cleared, and no frame has told its new id."""
        self._stirred: anyio.Event | None = None
        """Set by the next frame, while somebody waits for the process to come to rest."""
        self._kept: frozenset[str] = frozenset()
        """Frames that a compaction has kept, by uuid: told already, they come once more."""
        self._offered: tuple[Command, ...] | None = None
        self._turn: _Turn | None = None
        self._gone: BackendGone | None = None
        self._gone_event = anyio.Event()

    @property
    def id(self) -> str:
        """The CLI's own session id."""
        return self._id

    @property
    def lost(self) -> bool:
        """Whether the process is gone; see `BackendSession.lost`."""
        return self._gone is not None

    @property
    def resting(self) -> bool:
        """Whether nothing goes on; see `BackendSession.resting`."""
        talk = self._conversation
        return self._ready.is_set() and self._turn is None and talk.idle and not talk.tasks.all()

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        """What can be set; see `BackendSession.options`."""
        return self._options.options

    async def set_option(self, option_id: str, value: str | bool) -> None:
        """Set an option, as soon as the process is up; see `BackendSession.set_option`."""
        try:
            await self.ready()
        except BackendGone:
            # Perhaps because of it: the next process is to come up.
            self._carried.bypass = False
            raise
        await self._options.set(option_id, value)

    async def _rests(self) -> bool:
        """Whether nothing goes on. The CLI says so some milliseconds after the result of a turn."""
        with anyio.move_on_after(REST_LIMIT):
            while not self.resting and self._turn is None and self._gone is None:
                self._stirred = anyio.Event()
                await self._stirred.wait()
        return self.resting

    def abandon(self) -> None:
        """Tell the end of all that is open; see `BackendSession.abandon`."""
        self._tell_end("cancelled")

    def _tell_end(self, status: ToolEnd) -> None:
        for update in self._conversation.abandon(status):
            self._events.update(update)

    @property
    def background(self) -> tuple[BackgroundTask, ...]:
        """What goes on in the background; see `BackendSession.background`."""
        return self._conversation.tasks.all()

    async def tasks(self) -> tuple[BackgroundTask, ...]:
        """What goes on in the background; see `BackendSession.tasks`."""
        return self._conversation.tasks.all()

    async def task_output(self, task_id: str) -> TaskOutput:
        """What a task has printed; see `BackendSession.task_output`."""
        answer = await self._of_task("get_task_output", task_id)
        printed = text(answer, "output")
        return TaskOutput(printed, as_int(answer.get("total_bytes")) or len(printed.encode()))

    async def stop_task(self, task_id: str) -> None:
        """End a task; see `BackendSession.stop_task`."""
        self._conversation.tasks.stopping(task_id)
        await self._of_task("stop_task", task_id)

    async def _of_task(self, subtype: str, task_id: str) -> JsonObject:
        # Claude Code 2.1.332 calls it a success to stop, or to read, a task that is another session's, or nobody's.
        if all(task.id != task_id for task in self._conversation.tasks.all()):
            raise TaskNotFound(self._id, task_id)
        return await self._control.request({"subtype": subtype, "task_id": task_id}, TASK_LIMIT)

    async def prompt(self, prompt: Prompt) -> TurnEnd:
        """Run one turn; see `BackendSession.prompt`."""
        turn = self._turn = _Turn()
        try:
            if not self._ready.is_set() and self._gone is None:
                with anyio.move_on_after(START_PATIENCE):
                    await turn.go.wait()
                if not turn.go.is_set():
                    words = f"The prompt waits for it, and fails if it does not answer in {HANDSHAKE_LIMIT:g} s."
                    self._events.update(Notice("info", "Claude Code is slow to start", words))
                    await turn.go.wait()
            await self._title.settled()
            if self._gone is not None:
                raise self._end()
            if turn.interrupted:
                return TurnEnd("cancelled")
            if isinstance(prompt[0], Text) and prompt[0].text.startswith("/"):
                end = await self._serve_command(prompt, turn)
                if end is not None:
                    return end
            self._title.write_first()
            said = (*prompt, *turn.added)
            self._conversation.begin(turn.uuid, said)
            turn.sent = True
            self._child.unused = False
            command = self._command(prompt) if not turn.added else None
            self._send(user_message(command or said, turn.uuid, is_command=command is not None))
            if self._options.stale:
                # Not asked before: the first prompt does not wait for it.
                self._options.refresh()
            self._servers.prompted(turn.ended.is_set)
            await turn.ended.wait()
            if typed_text(prompt).startswith("/"):
                self._options.refresh(typed=True)
            return await self._settled(turn)
        finally:
            self._turn = None

    async def _serve_command(self, prompt: Prompt, turn: _Turn) -> TurnEnd | None:
        """Answer a command that the CLI has on its own screen alone; None for one that it is to have."""
        # Imported with the first: a new session's answer waits for every import there is.
        from acp_manifold.adapters.claude.commands import served

        answer = served(prompt)
        if answer is None:
            return None
        with anyio.CancelScope() as turn.lookup:
            words = await answer(self._control, self._carried.current_mode)
            self._events.update(MessageChunk("agent", Text(words)))
        return TurnEnd("cancelled" if turn.lookup.cancelled_caught else "end_turn")

    def _command(self, prompt: Prompt) -> Prompt | None:
        """What a prompt says that begins with a command of this session; None for any other."""
        if not (isinstance(prompt[0], Text) and prompt[0].text.startswith("/")):
            return None
        from acp_manifold.adapters.claude.commands import passed_on

        return passed_on(prompt, self._offered or ())

    async def steer(self, prompt: Prompt) -> bool:
        """Add a message to the running turn; see `BackendSession.steer`."""
        turn = self._turn
        if turn is None or turn.interrupted or turn.ended.is_set() or self._gone is not None:
            return False
        if turn.lookup is not None:
            return False
        if not turn.sent:
            turn.added = (*turn.added, *prompt)
            return True
        message = str(uuid4())
        self._send(user_message(prompt, message, self._conversation.steer(message, prompt)))
        return True

    async def interrupt(self) -> None:
        """Stop the running turn; see `BackendSession.interrupt`."""
        turn = self._turn
        if turn is None and self._conversation.own:
            self._conversation.interrupt()
            await self._control.settle(self._control.post(INTERRUPT), INTERRUPT_LIMIT)
        if turn is None or turn.ended.is_set():
            return
        turn.interrupted = True
        if not turn.sent:
            turn.go.set()
            if turn.lookup is not None:
                turn.lookup.cancel()
            return
        self._conversation.interrupt()
        # Behind a turn of the CLI's own, the prompt itself is what is queued.
        queued_prompt = (turn.uuid,) if self._conversation.own else ()
        for message in (*queued_prompt, *self._conversation.steered.open):
            # An interrupt leaves what is queued, which Claude Code 2.1.332 would then begin.
            self._control.post({"subtype": "cancel_async_message", "message_uuid": message})

        def answered(answer: JsonObject) -> None:
            if self._turn is turn:
                queued = [uuid for uuid in as_list(answer.get("still_queued")) if isinstance(uuid, str)]
                self._conversation.interrupt_answered(queued)

        await self._control.settle(self._control.post(INTERRUPT, answered), INTERRUPT_LIMIT)

    async def rename(self, title: str) -> str:
        """Store a title; see `BackendSession.rename`."""
        return await self._title.rename(title)

    def title_appended(self, title: str) -> bool:
        """A title was appended to the transcript, by the process or by another program; True if it is out of date."""
        return self._title.appended(title)

    async def generate_title(self, prompt_text: str) -> str | None:
        """Have a model name the session; it is in the transcript then, as `ai-title`, and beats no custom title."""
        if prompt_text.startswith("/"):
            from acp_manifold.adapters.claude.commands import names_nothing

            if names_nothing(prompt_text):
                return None
        await self.ready()
        request: JsonObject = {
            "subtype": "generate_session_title",
            "description": prompt_text[:_TITLE_SOURCE],
            "persist": True,
        }
        try:
            answer = await self._control.request(request, TITLE_LIMIT)
        except BackendGone:
            raise
        except BackendFault as exc:
            logger.info("%s: no title was generated: %s", self._child.name, exc.message)
            return None
        return stored_form(as_str(answer.get("title")) or "") or None

    async def keep_generated(self, title: str) -> None:
        """Nothing to do: `generate_title` had the CLI store it."""

    async def gone(self) -> BackendGone:
        """Wait until the process is gone and tell why."""
        await self._gone_event.wait()
        return self._gone or BackendGone("Claude Code is gone")

    async def run(self) -> None:
        """Read the process until it ends. For `serve` only."""
        self._tasks.start_soon(self._shake_hands)
        await self._child.read(self._on_line, room=self._events.room)
        with anyio.move_on_after(_EXIT_WAIT):
            await self._child.wait()
        await self._child.kill()
        self._set_gone(f"Claude Code {self._child.describe_exit()}")

    def close(self) -> None:
        """The session is let go: whatever waits for the process ends now, not when its time is up. For `serve` only."""
        self._set_gone("the session was closed")

    async def _shake_hands(self) -> None:
        greeted = self._control.post(greeting(self._system_prompt), self._introduced)
        # Behind the greeting and before any prompt, without waiting in between.
        routing = self._route()
        self._options.restore()
        try:
            await self._in_time(greeted)
            if routing is not None:
                await self._in_time(routing)
        except BackendGone:
            return
        except BackendFault as exc:
            self._set_gone(
                f"Claude Code did not come up: {exc.message}. The next prompt starts it anew. Run it in a terminal, in "
                f"the same directory, or `acp-manifold doctor`, to see what it waits for{self._child.last_words()}"
            )
            await self._child.kill()
            return
        if self._resumed and not await self._has_it_alone():
            return
        self._options.greeted(self._capabilities)
        if self._wishes is not None:
            self._options.begin_with(self._wishes.options)
        self._tell_commands()
        self._ready.set()
        if self._turn is not None:
            self._turn.go.set()
        else:
            self._options.refresh()
        self._tasks.start_soon(self._learn_models)

    def _introduced(self, answer: JsonObject) -> None:
        # As it is read: the next line may tell commands that are newer, those of an MCP server that came up.
        self._capabilities = answer

    async def _in_time(self, pending: Pending) -> JsonObject:
        """The answer of a process that comes up; raises what `Control.settle` raises."""
        limit = HANDSHAKE_LIMIT
        with anyio.move_on_after(limit):
            await pending.done.wait()
        if not pending.done.is_set() and overloaded():
            limit = max(limit, BUSY_HANDSHAKE_LIMIT)
            with anyio.move_on_after(limit - HANDSHAKE_LIMIT):
                await pending.done.wait()
        if not pending.done.is_set():
            raise BackendFault(f"it gave no answer to {pending.subtype} within {limit:g} s")
        return await self._control.settle(pending, limit)

    async def _learn_models(self) -> None:
        """Find out what an endpoint that is not the maker's own serves, when nobody waits for anything."""
        from acp_manifold.adapters.claude import endpoint

        await anyio.sleep(MODELS_DELAY)
        while self._turn is not None:
            await self._turn.ended.wait()
            await anyio.sleep(MODELS_DELAY)
        self._options.served(await endpoint.models(self._endpoint))

    def _route(self) -> Pending | None:
        """Have the client's endpoint hold against the person's settings."""
        if self._endpoint is None:
            return None
        from acp_manifold.adapters.claude.endpoint import settings_request

        return self._control.post(settings_request(self._endpoint))

    async def _has_it_alone(self) -> bool:
        """Look once more, now that whoever began at the same moment is in the registry; our process gives way."""
        try:
            await self._life.refuse_if_held(self._id)
        except InvalidRequest as exc:
            self._set_gone(exc.message)
            await self._child.kill()
        return self._gone is None

    async def ready(self) -> None:
        """Wait for the handshake. For `serve`, and for titles.

        Raises:
            BackendGone: The process ended first.
        """
        if not self._ready.is_set() and self._gone is None:
            async with anyio.create_task_group() as race:

                async def first(event: anyio.Event) -> None:
                    await event.wait()
                    race.cancel_scope.cancel()

                race.start_soon(first, self._ready)
                race.start_soon(first, self._gone_event)
        if self._gone is not None:
            raise BackendGone(self._gone.message)

    def _on_line(self, line: bytes) -> None:
        try:
            decoded: object = json.loads(line)
        except (ValueError, RecursionError):
            decoded = None
        raw = next(iter(as_objects([decoded])), None)
        if raw is None:
            logger.warning("%s: skipped a line that is no JSON object: %.200r", self._child.name, line[:200])
            return
        try:
            self._on_frame(raw)
        except Exception:
            # Boundary: a frame that breaks us costs itself, not the session.
            logger.exception("%s: a line could not be handled", self._child.name)

    def _on_frame(self, raw: JsonObject) -> None:
        if raw.get("type") == "system" and raw.get("subtype") == "compact_boundary":
            self._kept = kept_messages(raw)
        elif self._kept and raw.get("type") == "assistant" and raw.get("uuid") in self._kept:
            return
        frame = parse(raw)
        if self._resetting and (session_id := as_str(raw.get("session_id"))) not in (None, self._id):
            self._move(session_id)
        for update in self._conversation.feed(frame):
            self._events.update(update)
        handler = _HANDLERS.get(type(frame))
        if handler is not None:
            handler(self, frame)
        elif self._conversation.unknown is not None:
            logger.debug("%s: unknown line %s/%s", self._child.name, raw.get("type"), raw.get("subtype"))
            name = " ".join(filter(None, (text(raw, "type"), text(raw, "subtype"))))
            taps.dropped("claude", self._id, name, "not known here")
        if self._stirred is not None:
            self._stirred.set()
            self._stirred = None
        if self._turn is not None and self._turn.sent and self._conversation.outcome is not None:
            self._turn.ended.set()

    def _on_reset(self, frame: Reset) -> None:
        self._resetting = True

    def _move(self, session_id: str) -> None:
        """`/clear`: the conversation begins anew, under an id that the frame behind the reset is the first to bear."""
        self._resetting = False
        self._id = session_id
        self._lock.take(session_id)
        self._title.moved(session_id)
        self._child.belongs(session_id)
        taps.keep(NAME, session_id, self._store.root, lambda: self._store.expected_path(session_id, self._cwd))
        self._life.moved(self, self._carried)
        self._events.moved(session_id)

    def _on_answer(self, frame: ControlResponse) -> None:
        if not self._control.answered(frame):
            logger.debug("%s: an answer to nothing that waits: %s", self._child.name, frame.id)

    def _on_request(self, frame: ControlRequest) -> None:
        self._questions.asked(frame)

    def _on_withdrawal(self, frame: ControlCancel) -> None:
        self._questions.withdrawn(frame.id)

    def _on_page(self, frame: PageDone) -> None:
        self._questions.page_done(frame)

    def _on_title(self, frame: TitleChanged) -> None:
        if frame.title:
            told = self._title.told(frame.title)
            if told:
                self._host.title_heard(NAME, self._id, visible(frame.title), "user")

    def _on_init(self, frame: Init) -> None:
        self._servers.turn_began(frame)
        self._options.head(frame.raw)
        if frame.terminal_commands != self._carried.hidden:
            self._carried.hidden = frame.terminal_commands
            self._tell_commands()

    def _on_commands(self, frame: CommandsChanged) -> None:
        self._capabilities = {**self._capabilities, "commands": frame.raw.get("commands")}
        self._tell_commands()

    def _on_mode(self, frame: Mode) -> None:
        self._options.in_mode(frame.permission_mode)

    def _tell_commands(self) -> None:
        offered = commands(self._capabilities, self._carried.hidden)
        if offered.commands != self._offered:
            self._offered = offered.commands
            self._events.update(offered)

    def _send(self, message: JsonObject) -> None:
        self._child.send(json.dumps(message, separators=(",", ":")).encode())

    async def _settled(self, turn: _Turn) -> TurnEnd:
        outcome = self._conversation.outcome
        if outcome is None:
            end = self._end()
            if isinstance(end, BackendGone) and not self._conversation.stirred:
                # Claude Code 2.1.332 tells at once that it has taken a prompt; one that does not may have stored it.
                end.untaken = not await to_thread.run_sync(self._store.ends_with, self._id, turn.uuid)
            raise end
        if not isinstance(outcome, Failure):
            return outcome
        if outcome.kind == "login":
            raise LoginNeeded(f"{outcome.text} ({self._login_hint})")
        if outcome.kind == "not_found":
            raise SessionNotFound(self._id)
        raise BackendFault(outcome.text)

    def _end(self) -> BridgeError:
        """What a prompt raises that found, or lost, no process."""
        kind = failure_kind(self._child.stderr_tail[-_LAST_WORDS:])
        if kind == "not_found" and self._resumed:
            return SessionNotFound(self._id)
        message = self._gone.message if self._gone is not None else "Claude Code is gone"
        return LoginNeeded(f"{message} ({self._login_hint})") if kind == "login" else BackendGone(message)

    @property
    def _login_hint(self) -> str:
        if self._endpoint is not None:
            return f"the client has set the endpoint {self._endpoint.base_url}: set it anew with headers that it takes"
        return login_hint(os.environ)

    def _set_gone(self, reason: str) -> None:
        if self._gone is not None:
            return
        self._gone = BackendGone(reason)
        self._tell_end("failed")
        self._control.close(reason)
        self._title.close(reason)
        self._gone_event.set()
        if self._turn is not None:
            self._turn.go.set()
            self._turn.ended.set()


# Each function takes the one class it stands under; no type can say that of a table.
_HANDLERS: dict[type, Callable[[ClaudeSession, Any], None]] = {
    ControlResponse: ClaudeSession._on_answer,  # pyright: ignore[reportPrivateUsage]
    ControlRequest: ClaudeSession._on_request,  # pyright: ignore[reportPrivateUsage]
    ControlCancel: ClaudeSession._on_withdrawal,  # pyright: ignore[reportPrivateUsage]
    PageDone: ClaudeSession._on_page,  # pyright: ignore[reportPrivateUsage]
    TitleChanged: ClaudeSession._on_title,  # pyright: ignore[reportPrivateUsage]
    CommandsChanged: ClaudeSession._on_commands,  # pyright: ignore[reportPrivateUsage]
    Init: ClaudeSession._on_init,  # pyright: ignore[reportPrivateUsage]
    Reset: ClaudeSession._on_reset,  # pyright: ignore[reportPrivateUsage]
    Mode: ClaudeSession._on_mode,  # pyright: ignore[reportPrivateUsage]
}
