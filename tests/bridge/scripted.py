"""A backend whose CLI is the test: it says what the session does, and sees what the bridge asked for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from acp_manifold.bridge.backend import (
    AuthMethod,
    BackendSession,
    Held,
    Host,
    Inspection,
    ListQuery,
    Login,
    Program,
    SessionEvents,
    SessionRow,
    SessionSpec,
    StoreOrigin,
    no_wait,
)
from acp_manifold.bridge.errors import BackendGone, BridgeError, LoginNeeded, SessionNotFound, TaskNotFound
from acp_manifold.bridge.options import checked
from acp_manifold.translators.auth import Account, AuthStatus, LoginState
from acp_manifold.translators.updates import (
    BackgroundTask,
    Choice,
    ConfigOption,
    MessageChunk,
    Option,
    Options,
    Prompt,
    Question,
    StopReason,
    Subagent,
    TaskOutput,
    Text,
    ToolCall,
    ToolCallUpdate,
    TurnEnd,
    Update,
)

TICK = "2026-01-01T00:00:{:02d}.000Z"

QUESTION = Question(
    ToolCallUpdate("tool-1", title="rm -r build", kind="execute"),
    (
        Option("yes", "Allow once", "allow_once"),
        Option("no", "Refuse", "reject_once"),
    ),
)


MODES = (Choice("ask", "Ask"), Choice("plan", "Plan", "Changes nothing"), Choice("all", "All"))
OPTIONS = (
    ConfigOption("mode", "Mode", "ask", MODES, "mode"),
    ConfigOption("model", "Model", "small", (Choice("small", "Small"), Choice("big", "Big")), "model"),
    ConfigOption("fast", "Fast mode", False, (), "model_config"),
)


@dataclass(eq=False)
class ScriptedSession:
    """A session as its CLI sees it."""

    backend: ScriptedBackend
    id: str
    spec: SessionSpec
    events: SessionEvents
    resumed: bool
    prompts: list[Prompt] = field(default_factory=list[Prompt])
    steered: list[Prompt] = field(default_factory=list[Prompt])
    """What was added to running turns."""
    interrupts: int = 0
    heeds: bool = True
    """Whether an interrupt ends the turn."""
    open: bool = True
    behind: dict[str, BackgroundTask] = field(default_factory=dict[str, BackgroundTask])
    """What goes on in the background, and by what call it began."""
    calls: list[str] = field(default_factory=list[str])
    """Tool calls that are open."""
    sets: list[tuple[str, str | bool]] = field(default_factory=list[tuple[str, str | bool]])
    """The options the bridge set, in order."""
    holds_up: anyio.Event | None = None
    """What the setting of an option waits for."""
    refuses_options: list[BridgeError] = field(default_factory=list[BridgeError])
    """What the next ones raise."""

    def __post_init__(self) -> None:
        self._prompted = anyio.Event()
        self._interrupted = anyio.Event()
        self._ended = anyio.Event()
        self._end: TurnEnd | BridgeError = TurnEnd("end_turn")
        self._gone = anyio.Event()
        self._why = BackendGone("scripted end")
        self._closed = anyio.Event()
        self.title_asked = anyio.Event()
        self._title: str | None = None
        self._titled = anyio.Event()

    # what the test does

    async def prompted(self) -> Prompt:
        """Wait for a prompt that was not looked at yet."""
        await self._prompted.wait()
        self._prompted = anyio.Event()
        return self.prompts[-1]

    async def interrupted(self) -> None:
        await self._interrupted.wait()

    async def let_go(self) -> None:
        """Wait until the bridge has closed it."""
        await self._closed.wait()

    def closed(self) -> None:
        self.open = False
        self._closed.set()

    def say(self, text: str, message_id: str = "m") -> None:
        self.events.update(MessageChunk("agent", Text(text), message_id))

    def finish(self, stop_reason: StopReason = "end_turn") -> None:
        self._end = TurnEnd(stop_reason)
        self._ended.set()

    def fail(self, error: BridgeError) -> None:
        self._end = error
        self._ended.set()

    def die(self, why: str) -> None:
        self._why = BackendGone(why)
        self.fail(self._why)
        self._gone.set()

    def move(self, session_id: str) -> None:
        """Begin the conversation anew under another id; what was stays in the store."""
        self.id = session_id
        self.events.moved(session_id)

    def change(self, option_id: str, value: str | bool) -> None:
        """The CLI, or whoever set it, has changed an option."""
        known = self.backend.options
        self.backend.options = tuple(o._replace(value=value) if o.id == option_id else o for o in known)
        self.events.update(Options(self.backend.options))

    def call(self, call_id: str) -> None:
        """Begin a tool call."""
        self.calls.append(call_id)
        self.events.update(ToolCall(call_id, "sleep", "execute", "in_progress"))

    def go_on_behind(self, task_id: str, call_id: str, *, command: bool = False) -> None:
        """A tool call goes on in the background."""
        self.call(call_id)
        self.behind[task_id] = BackgroundTask(task_id, "sleep 9", call_id, command)

    def agent_works(self, task_id: str, call_id: str) -> None:
        """A sub-agent works in the background."""
        self.behind[task_id] = BackgroundTask(task_id, "Look around", agent=call_id)
        self.events.update(Subagent(call_id, "running", "Look around", prompt="Look"))

    def end_behind(self, task_id: str) -> None:
        """A background task comes to its end."""
        call_id = self.behind.pop(task_id).tool_call_id or ""
        self.calls.remove(call_id)
        self.events.update(ToolCallUpdate(call_id, status="completed"))

    def name_it(self, title: str | None) -> None:
        """Answer the bridge's request for a generated title."""
        self._title = title
        self._titled.set()

    # what the bridge does

    @property
    def lost(self) -> bool:
        return self._gone.is_set()

    @property
    def resting(self) -> bool:
        return self.backend.lets_rest and not self.behind

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        return self.backend.options

    async def set_option(self, option_id: str, value: str | bool) -> None:
        self.sets.append((option_id, value))
        if self.holds_up is not None:
            await self.holds_up.wait()
        if self.refuses_options:
            raise self.refuses_options.pop(0)
        self.change(option_id, checked(self.options, option_id, value))

    def abandon(self) -> None:
        for call_id in self.calls:
            self.events.update(ToolCallUpdate(call_id, status="failed"))
        self.calls.clear()

    @property
    def background(self) -> tuple[BackgroundTask, ...]:
        return tuple(self.behind.values())

    async def tasks(self) -> tuple[BackgroundTask, ...]:
        return tuple(self.behind.values())

    async def task_output(self, task_id: str) -> TaskOutput:
        if task_id not in self.behind:
            raise TaskNotFound(self.id, task_id)
        return TaskOutput("ticks", 5)

    async def stop_task(self, task_id: str) -> None:
        if task_id not in self.behind:
            raise TaskNotFound(self.id, task_id)
        task = self.behind.pop(task_id)
        if task.agent is not None:
            self.events.update(Subagent(task.agent, "idle"))
        else:
            self.calls.remove(task.tool_call_id or "")

    async def prompt(self, prompt: Prompt) -> TurnEnd:
        self.prompts.append(prompt)
        self.backend.stored.setdefault(self.id, SessionRow(self.id, self.spec.cwd, self.backend.tick()))
        if self.spec.title is not None and len(self.prompts) == 1:
            self.backend.store_title(self.id, self.spec.title, "user")
        self._ended = anyio.Event()
        self._interrupted = anyio.Event()
        self._prompted.set()
        await self._ended.wait()
        if isinstance(self._end, BridgeError):
            raise self._end
        return self._end

    async def steer(self, prompt: Prompt) -> bool:
        if self.backend.refuses_steering is not None:
            raise self.backend.refuses_steering
        if self._ended.is_set():
            return False
        self.steered.append(prompt)
        return True

    async def interrupt(self) -> None:
        self.interrupts += 1
        self._interrupted.set()
        if self.heeds:
            self.finish("cancelled")

    async def rename(self, title: str) -> str:
        if self.backend.refuses_titles is not None:
            raise self.backend.refuses_titles
        if self.id in self.backend.stored:
            self.backend.store_title(self.id, title, "user")
        else:
            self.spec = self.spec._replace(title=title)
        return title

    async def generate_title(self, prompt_text: str) -> str | None:
        self.title_asked.set()
        await self._titled.wait()
        return self._title

    async def keep_generated(self, title: str) -> None:
        self.backend.store_title(self.id, title, "generated")

    async def gone(self) -> BackendGone:
        await self._gone.wait()
        return self._why


class ScriptedBackend:
    """A backend with a store in memory."""

    def __init__(self, name: str = "alpha") -> None:
        self.name = name
        self.label = name.capitalize()
        self.install_hint = f"install {name}"
        self.store_of = name
        self.mcp_sse = False
        self.has_archive = False
        self.archived: set[str] = set()
        """What is in the store's own archive, if it has one."""
        self.copies: dict[str, set[str]] = {}
        """By session, the copies that are built on it: the store does not remove it while there is one."""
        self.refuses_archive: BridgeError | None = None
        self.replayed = 0
        """Updates of histories that were told."""
        self.replaying: anyio.Event | None = None
        """Set to let a replay that is under way go on; None lets it run."""
        self.endpoint_types: tuple[str, ...] = ("openai",)
        self.auth = AuthMethod(
            f"{name}-login", f"Log in to {name}", f"Run `{name} login` in a terminal.", (name, "login")
        )
        self.auth_methods: tuple[AuthMethod, ...] = (
            self.auth,
            AuthMethod(f"{name}-other", f"Log in to {name} otherwise", "Otherwise.", (name, "login", "--other")),
            AuthMethod(f"{name}-key", f"A key for {name}", "Send a key.", key_of="maker"),
        )
        self.keys: list[str] = []
        """API keys that clients have sent."""
        self.logouts = 0
        self.refuses_logout: BridgeError | None = None
        self.login_file = Path("/nowhere") / name / "login"
        self.stored: dict[str, SessionRow] = {}
        self.history: dict[str, list[Update]] = {}
        self.sessions: list[ScriptedSession] = []
        self.login_state: Login = "in"
        self.problems: tuple[str, ...] = ()
        self.version: str | None = "1.0"
        self.held: tuple[Held, ...] | None = ()
        self.refuses: BridgeError | None = None
        """What opening a session raises."""
        self.refuses_titles: BridgeError | None = None
        self.refuses_steering: BridgeError | None = None
        self.refuses_delete: BridgeError | None = None
        self.lets_rest = True
        """Whether a session that does nothing can be let go."""
        self.options: tuple[ConfigOption, ...] = ()
        """The options of all its sessions."""
        self.followed: list[str] = []
        self.followers: list[Callable[[str | None], None]] = []
        """Who follows the list."""
        self._host: Host | None = None
        self._ticks = 0
        self._opened = anyio.Event()

    # what the test does

    def tick(self) -> str:
        self._ticks += 1
        return TICK.format(self._ticks)

    def store_title(self, session_id: str, title: str, origin: StoreOrigin) -> None:
        if session_id in self.stored:
            self.stored[session_id] = self.stored[session_id]._replace(title=title, title_origin=origin)

    def hear(self, session_id: str, title: str, origin: StoreOrigin) -> None:
        """Another program titled a session."""
        self.store_title(session_id, title, origin)
        assert self._host is not None
        self._host.title_heard(self.name, session_id, title, origin)

    async def opened(self) -> ScriptedSession:
        """Wait for a session to be opened that was not looked at yet."""
        await self._opened.wait()
        self._opened = anyio.Event()
        return self.sessions[-1]

    # what the bridge does

    def program(self) -> Program | None:
        return Program(("true",), "test")

    @asynccontextmanager
    async def running(self, host: Host) -> AsyncGenerator[None]:
        self._host = host
        yield

    async def warm_up(self) -> None:
        pass

    async def login(self) -> Login:
        return self.login_state

    async def status(self) -> AuthStatus:
        state: dict[Login, LoginState] = {"in": "authenticated", "out": "unauthenticated", "unknown": "unknown"}
        accounts = (Account(f"{self.label} account", email="me@example.org"),) if self.login_state == "in" else ()
        return AuthStatus(state[self.login_state], accounts)

    async def authenticate(self, method: AuthMethod, key: str | None) -> None:
        if method.key_of is not None and key is not None:
            self.keys.append(key)
            self.login_state = "in"
        if self.login_state == "out":
            raise LoginNeeded(f"{self.label} has no login yet. {method.description}")

    async def logout(self) -> None:
        if self.refuses_logout is not None:
            raise self.refuses_logout
        self.logouts += 1
        self.login_state = "out"

    def login_files(self) -> tuple[Path, ...]:
        return (self.login_file,)

    def login_environment(self) -> dict[str, str]:
        return {}

    async def inspect(self) -> Inspection:
        return Inspection(self.version, Path("/nowhere") / self.name, self.held, self.problems)

    @asynccontextmanager
    async def session(
        self, spec: SessionSpec, events: SessionEvents, *, resume: str | None = None
    ) -> AsyncGenerator[BackendSession]:
        await anyio.lowlevel.checkpoint()
        if self.refuses is not None:
            raise self.refuses
        if resume is None and self.login_state == "out" and spec.endpoint is None:
            raise LoginNeeded.at_start(self.label, self.auth.description)
        if resume is not None and resume not in self.stored:
            raise SessionNotFound(resume)
        session_id = resume or spec.id or f"{self.name}-{len(self.sessions) + 1}"
        session = ScriptedSession(self, session_id, spec, events, resume is not None)
        self.sessions.append(session)
        self._opened.set()
        try:
            yield session
        finally:
            session.closed()

    @contextmanager
    def follow(self, session_id: str, cwd: str) -> Generator[None]:
        self.followed.append(session_id)
        try:
            yield
        finally:
            self.followed.remove(session_id)

    @contextmanager
    def follow_list(self, cwd: str, changed: Callable[[str | None], None]) -> Generator[None]:
        self.followers.append(changed)
        try:
            yield
        finally:
            self.followers.remove(changed)

    def touched(self, session_id: str | None) -> None:
        """Another program changed a session, or nobody knows which."""
        for changed in list(self.followers):
            changed(session_id)

    async def list(self, query: ListQuery) -> list[SessionRow]:
        rows = sorted(self.stored.values(), key=lambda row: (row.updated_at, row.id), reverse=True)
        in_archive = query.in_our_archive | self.archived
        rows = [row._replace(archived=row.id in in_archive) for row in rows]
        wanted = [row for row in rows if query.cwd in (None, row.cwd)]
        if query.archived != "include":
            wanted = [row for row in wanted if row.archived == (query.archived == "only")]
        if query.before is not None:
            wanted = [row for row in wanted if (row.updated_at, row.id) < query.before]
        return wanted[: query.limit]

    async def find(self, session_id: str) -> SessionRow | None:
        row = self.stored.get(session_id)
        return row._replace(archived=True) if row is not None and session_id in self.archived else row

    async def replay(
        self, session_id: str, emit: Callable[[Update], None], room: Callable[[], Awaitable[None]] = no_wait
    ) -> None:
        for update in list(self.history.get(session_id, [])):
            emit(update)
            self.replayed += 1
            await room()
        if self.replaying is not None:
            await self.replaying.wait()

    async def refuse_if_held(self, session_id: str) -> None:
        if self.refuses is not None:
            raise self.refuses

    async def fork(self, session_id: str, spec: SessionSpec) -> str:
        copy = f"{session_id}-fork-{len(self.stored)}"
        self.stored[copy] = self.stored[session_id]._replace(id=copy, cwd=spec.cwd, updated_at=self.tick())
        self.history[copy] = list(self.history.get(session_id, []))
        return copy

    async def archive(self, session_id: str, archived: bool) -> None:
        if self.refuses_archive is not None:
            raise self.refuses_archive
        if self.has_archive:
            (self.archived.add if archived else self.archived.discard)(session_id)

    async def rename(self, session_id: str, title: str) -> str:
        if self.refuses_titles is not None:
            raise self.refuses_titles
        self.store_title(session_id, title, "user")
        return title

    async def delete(self, session_id: str) -> bool:
        if self.refuses_delete is not None:
            raise self.refuses_delete
        if self.copies.get(session_id, set()) & self.stored.keys():
            self.archived.add(session_id)
            return False
        self.stored.pop(session_id, None)
        return True

    def lab(self, folder: Path, model_url: str) -> dict[str, str]:
        return {}
