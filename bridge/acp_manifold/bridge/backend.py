"""What the bridge asks of a backend, and what it offers one. Protocols and their data, no code.

A backend serves one CLI. The hub enters `Backend.running` once; every open session enters
`Backend.session` in its own task scope, perhaps several times in its life (a crash, an idle
unload). All callbacks into the bridge (`Host`, `SessionEvents.update`) are synchronous, cheap
and never raise.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from acp_manifold.translators.acp.requests import ArchiveFilter as ArchiveFilter
from acp_manifold.translators.instructions import SystemPrompt
from acp_manifold.translators.mcp import HttpServer as HttpServer
from acp_manifold.translators.mcp import McpServer as McpServer
from acp_manifold.translators.mcp import StdioServer as StdioServer
from acp_manifold.translators.values import NamedTuple

from .errors import BackendGone
from .program import Program as Program

if TYPE_CHECKING:
    # Not needed to find and start a CLI, which is done first.
    from acp_manifold.translators.auth import AuthStatus, Endpoint
    from acp_manifold.translators.forms import Form, FormAnswer
    from acp_manifold.translators.updates import (
        BackgroundTask,
        ConfigOption,
        Prompt,
        Question,
        TaskOutput,
        TurnEnd,
        Update,
    )
    from acp_manifold.translators.wishes import Wishes

Login: TypeAlias = Literal["in", "out", "unknown"]
"""`out` only when it is certain that the next prompt would fail for want of a login."""

StoreOrigin: TypeAlias = Literal["user", "generated"]
"""Who made a title, as far as the backend's own store can tell."""


class AuthMethod(NamedTuple):
    """A way to log in, as the client shows it."""

    id: str
    name: str
    description: str
    """What the person does, with the command to type."""
    command: tuple[str, ...] = ()
    """The CLI's own login, to be run in a terminal; empty for a way that is not taken there."""
    key_of: str | None = None
    """Whose API key it takes from a client that sends one; None: it takes none."""


class SessionSpec(NamedTuple):
    """What a session is opened with; the same again at every re-opening."""

    cwd: str
    """Absolute, and a directory at the time of the request."""
    mcp_servers: tuple[McpServer, ...] = ()
    additional_directories: tuple[str, ...] = ()
    """Absolute."""
    title: str | None = None
    """A title a client set that the CLI's store may not hold yet: to be written with the first turn."""
    id: str | None = None
    """For a new session that was let go before its first turn: the id it had, to be kept if the CLI lets us choose."""
    endpoint: Endpoint | None = None
    """Where its model requests go; it counts as a login. None: the CLI's own configuration counts."""
    system_prompt: SystemPrompt | None = None
    """What the model is told ahead of the conversation, behind the CLI's own instructions or in their place."""
    wishes: Wishes | None = None
    """What a client asked for that was written for another agent of the CLI."""
    unnamed: bool = False
    """Whether no model is to name it: a CLI that would have it named by itself is kept from that."""


class SessionRow(NamedTuple):
    """One session as a backend's store tells it."""

    id: str
    """The backend's own id."""
    cwd: str
    """Absolute."""
    updated_at: str
    """Time of the last message of the user or the agent, as `YYYY-MM-DDTHH:MM:SS.mmmZ`: text order is time order."""
    title: str | None = None
    """The title in the store or, without one, the first thing a person typed; not normalised."""
    title_origin: StoreOrigin | None = None
    """None when `title` is no title but the first prompt, or missing."""
    additional_directories: tuple[str, ...] = ()
    archived: bool = False
    """Whether the store has it in its archive, or the query says that it is in ours."""
    model: str | None = None
    """The model it ran with last, where the store's list tells it."""
    cost_usd: float | None = None
    """What it has cost in US dollars, where the store tells it."""
    forked_from: str | None = None
    """The backend's id of the session it is a copy of, where the store tells it."""


class ListQuery(NamedTuple):
    """Which rows of a backend's list are wanted."""

    limit: int
    """At most so many."""
    cwd: str | None = None
    """Only sessions of this directory (absolute; links resolved by the backend as its CLI does)."""
    before: tuple[str, str] | None = None
    """Only rows whose (updated_at, id) sorts before this pair."""
    archived: ArchiveFilter = "exclude"
    in_our_archive: frozenset[str] = frozenset()
    """Sessions that count as archived, whatever the store says: for a backend without an archive."""


class Held(NamedTuple):
    """A session that a live process has open."""

    session_id: str
    """The backend's own id."""
    pid: int
    by: str
    """What that process is, for people; never its arguments, which may hold secrets."""


class Inspection(NamedTuple):
    """How a backend finds its CLI and its store, for people who look for a fault. Holds no secrets."""

    version: str | None
    """The CLI's version as it tells it; None if it could not be asked."""
    store: Path
    """Where its sessions are kept, whether or not there are any yet."""
    held: tuple[Held, ...] | None
    """Who has which session open; None if that can't be told here."""
    problems: tuple[str, ...] = ()
    """What is wrong, each a sentence with what to do about it."""


async def no_wait() -> None:
    """There is always room."""


class Host(Protocol):
    """What the hub offers a running backend."""

    def title_heard(self, backend: str, session_id: str, title: str, origin: StoreOrigin) -> None:
        """A title appeared in the backend's store or stream, whoever wrote it, also as an echo of our own write."""
        ...

    def watch(self, path: Path, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` soon after the file at `path` appeared, grew or went, in the hub's event loop.

        `path` need not exist yet. Gives back the function that ends it.
        """
        ...

    def watch_folder(self, folder: Path, changed: Callable[[Path | None], None]) -> Callable[[], None]:
        """Call `changed` soon after a file right in `folder` appeared, changed or went, in the hub's event loop.

        It is called with the file, or with None when anything may have changed. `folder` need not exist yet.
        Gives back the function that ends it.
        """
        ...


class SessionEvents(Protocol):
    """Where a backend session delivers; it belongs to exactly one session."""

    def update(self, update: Update) -> None:
        """Something happened in the conversation; order of calls is order of events."""
        ...

    def moved(self, session_id: str) -> None:
        """The conversation begins anew under another id of the CLI's; what was is a session of its own from now on."""
        ...

    async def room(self) -> None:
        """Wait while the clients are too far behind to be told more.

        To be awaited between two reads from the CLI, so that a flood waits in the CLI's pipe and not in our memory.
        """
        ...

    async def ask(self, question: Question) -> str | None:
        """Put a question to the person.

        Gives the id of the chosen option, always one of those offered, or None for anything
        else: refused, dismissed, turn cancelled, nobody there. Cancelling the call withdraws
        the question.
        """
        ...

    async def ask_form(self, form: Form) -> FormAnswer:
        """Put a form, or a page to open, to the person.

        What is accepted fits the form. Anything else is a refusal of this one question: declined,
        dismissed, turn cancelled, nobody there, a client that can't show it. Cancelling the call
        withdraws the question.
        """
        ...

    def form_done(self, form_id: str) -> None:
        """What the page of a form was opened for is done; one that nobody has open is no error."""
        ...


class BackendSession(Protocol):
    """A session that a CLI serves right now."""

    @property
    def id(self) -> str:
        """The backend's own session id."""
        ...

    @property
    def lost(self) -> bool:
        """Whether the CLI no longer serves this session; known before any call on it fails with `BackendGone`."""
        ...

    @property
    def resting(self) -> bool:
        """Whether it can be let go and resumed with nothing lost.

        So: no turn runs, none that the CLI began itself either, nothing goes on in the background, and the
        session can be opened again by its id, or has nothing in it yet that would be missed.
        """
        ...

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        """What can be set, as far as it is known now, with what holds; later news are told as an `Options` update.

        Known as soon as the session is live; where only the CLI can tell, what it told last is taken until it does.
        """
        ...

    async def set_option(self, option_id: str, value: str | bool) -> None:
        """Set one of `options`, now, or for the next request to the model if a turn runs.

        Returns when it holds, after the `Options` update that says so. It holds for whatever CLI serves the session
        from then on, for as long as `Backend.follow` is entered.

        Raises:
            InvalidParams: No such option or value; the text names what there is.
            InvalidRequest: The CLI refuses, in its words.
            RestartNeeded: The session, which is `resting`, is to be let go, opened again and asked once more.
            BackendGone: The process ended meanwhile.
        """
        ...

    def abandon(self) -> None:
        """Tell the end of every call that is open, in the background too; nothing is told afterwards."""
        ...

    @property
    def background(self) -> tuple[BackgroundTask, ...]:
        """What goes on in the background, as far as it is known without asking; see `tasks`.

        A change of it comes no later than the next update of the tool call that is concerned.
        """
        ...

    async def tasks(self) -> tuple[BackgroundTask, ...]:
        """What goes on in the background of this session, the oldest first.

        Raises:
            BackendGone: The process ended meanwhile.
        """
        ...

    async def task_output(self, task_id: str) -> TaskOutput:
        """What one of `tasks` has printed.

        Raises:
            TaskNotFound: It is none of this session's.
            BackendFault: The CLI can't tell.
        """
        ...

    async def stop_task(self, task_id: str) -> None:
        """End one of `tasks`; its tool call is told as failed.

        Raises:
            TaskNotFound: It is none of this session's.
            BackendFault: The CLI can't end it.
        """
        ...

    async def prompt(self, prompt: Prompt) -> TurnEnd:
        """Run one turn. Called for one turn at a time.

        Returns after the last update of the turn was delivered. A turn that ended after
        `interrupt` may return any stop reason, or raise: the caller knows it was cancelled.

        Raises:
            InvalidParams: The prompt can't be sent (too long, a kind of content the CLI doesn't take).
            LoginNeeded: The CLI wants a login.
            BackendGone: The process ended or didn't come up; open tool calls were reported as failed.
            BackendFault: The turn failed, in the CLI's words.
        """
        ...

    async def steer(self, prompt: Prompt) -> bool:
        """Add a message to the turn that runs; `prompt` then returns when that is answered too.

        The model sees it with its next request, for which an answer that streams may be cut short; tool
        calls and questions go on. What an interrupt of the turn finds unseen is dropped.

        Returns:
            False if no turn runs (any more), or one that is being stopped: then nothing is kept of the message.

        Raises:
            InvalidParams: The message can't be sent; see `prompt`.
            BackendGone: The process ended.
            BackendFault: The CLI refused it, in its words.
        """
        ...

    async def interrupt(self) -> None:
        """Ask the CLI to stop the running turn; `prompt` then comes to its end.

        May come at any moment of a turn, also before the CLI has heard of it. Stops what the CLI does of its own
        accord (`OwnTurn`), too. Does nothing when no turn runs.
        """
        ...

    async def rename(self, title: str) -> str:
        """Store a title and give back what was stored.

        While the CLI has no store for the session, the title is kept here, written with the
        first turn, and given back as it is.

        Raises:
            BackendFault: It can't be stored, with the reason.
            BackendGone: The process ended meanwhile.
        """
        ...

    async def generate_title(self, prompt_text: str) -> str | None:
        """Have a model name the session after what the person typed; None when it could not.

        Called while the first turn runs. Nothing is stored that would beat a title set meanwhile.
        The caller decides whether the result counts, and stores it with `rename` if `keep_generated` says so.
        """
        ...

    async def keep_generated(self, title: str) -> None:
        """Store a generated title as far as `generate_title` has not done so itself."""
        ...

    async def gone(self) -> BackendGone:
        """Wait until the CLI no longer serves this session and tell why; forever while it does."""
        ...


class Backend(Protocol):
    """An adapter for one CLI. Made once per process, without arguments, before anything heavy is imported."""

    name: str
    """The word for it in flags, metadata and messages."""
    label: str
    """The CLI's own name."""
    install_hint: str
    """One line: how to install the CLI."""
    store_of: str
    """Whose store of sessions it has: two backends with one store are never served at once."""
    mcp_sse: bool
    """Whether it takes MCP servers that speak SSE; one that doesn't refuses the session (`InvalidParams`)."""
    has_archive: bool
    """Whether the store has an archive of its own; without one the bridge remembers what is archived."""

    endpoint_types: tuple[str, ...]
    """The APIs an endpoint set by a client may speak, in the protocol's words (`anthropic`, `openai`); empty: none."""

    @property
    def auth(self) -> AuthMethod:
        """How a person logs in: the first of `auth_methods`."""
        ...

    @property
    def auth_methods(self) -> tuple[AuthMethod, ...]:
        """Every way to log in. Cheap, as `program` is."""
        ...

    def login_environment(self) -> dict[str, str]:
        """The whole environment that `AuthMethod.command` is to run in."""
        ...

    def program(self) -> Program | None:
        """The CLI to start, or None if none is installed. Cheap: looks at the environment and the disk."""
        ...

    def running(self, host: Host) -> AbstractAsyncContextManager[None]:
        """The backend's life in the hub: what all its sessions share exists inside it."""
        ...

    async def warm_up(self) -> None:
        """Start what would otherwise delay the first request; errors are kept for that request."""
        ...

    async def login(self) -> Login:
        """Whether the CLI has a login. Never starts a session, never goes to the network."""
        ...

    async def status(self) -> AuthStatus:
        """The login and its accounts, as exactly as can be told without the network; changes nothing.

        May start the CLI to ask it, where `login` leaves the question open.
        """
        ...

    async def authenticate(self, method: AuthMethod, key: str | None) -> None:
        """Log in by one of `auth_methods`, as far as no person is needed for it. Ends well if there is a login then.

        Args:
            method: Which.
            key: The API key that the client sent along, for a method that takes one.

        Raises:
            LoginNeeded: There is no login; the message says what to do.
            BackendFault: The CLI refuses the key.
        """
        ...

    async def logout(self) -> None:
        """Have the CLI forget the login that it has stored, and nothing else; none is no error.

        A login that comes from the environment or from the person's settings stays.

        Raises:
            BackendFault: It could not.
        """
        ...

    def login_files(self) -> tuple[Path, ...]:
        """Files whose change may be one of `status`."""
        ...

    async def inspect(self) -> Inspection:
        """Look at the installed CLI and its store, and change neither; what is wrong is told, not raised."""
        ...

    def session(
        self, spec: SessionSpec, events: SessionEvents, *, resume: str | None = None
    ) -> AbstractAsyncContextManager[BackendSession]:
        """Serve a session by the CLI for as long as the context is open; its end frees everything of it.

        Args:
            spec: Where and with what.
            events: Whom to tell.
            resume: The id of a session in the store, or None for a new one.

        Raises:
            SessionNotFound: `resume` names nothing.
            InvalidRequest: Another process has it (`data.reason` is `thread_active_writer`): there is never a
                second writer.
            BackendGone: The CLI can't be started.
            LoginNeeded: The session is new, and it is certain that the CLI has no login.
        """
        ...

    def follow(self, session_id: str, cwd: str) -> AbstractContextManager[None]:
        """Report titles that others give this session to `Host.title_heard`, for as long as the context is open."""
        ...

    def follow_list(self, cwd: str, changed: Callable[[str | None], None]) -> AbstractContextManager[None]:
        """Report changes of the list of a directory's sessions, whoever made them, for as long as the context is open.

        Args:
            cwd: The directory.
            changed: Told the id of a session whose row may be another now, or be gone; None: any row may. Too many
                calls do no harm, and those for sessions of other directories neither.
        """
        ...

    async def list(self, query: ListQuery) -> list[SessionRow]:
        """Sessions of the store, newest first: ordered by (updated_at, id), descending."""
        ...

    async def find(self, session_id: str) -> SessionRow | None:
        """The row of one session, or None. An id is never used as a path."""
        ...

    async def replay(
        self, session_id: str, emit: Callable[[Update], None], room: Callable[[], Awaitable[None]] = no_wait
    ) -> None:
        """Tell the whole history: what was said and done, each item once, in order, as it is read.

        The updates of an item name it as they did when it was said: by message or tool call. Works on a
        session that somebody has open, too, and then tells what the store has of it.

        Args:
            session_id: The session.
            emit: Takes the updates.
            room: Waits while whoever takes them is behind; awaited between pieces of the history.

        Raises:
            SessionNotFound: No such session in the store.
        """
        ...

    async def refuse_if_held(self, session_id: str) -> None:
        """Look whether another process has a session of the store; `session` looks for itself.

        Raises:
            InvalidRequest: One has, or the store will not let it be opened, as far as can be told beforehand.
        """
        ...

    async def fork(self, session_id: str, spec: SessionSpec) -> str:
        """Make a copy of a session in the store, which whoever has the session open does not notice.

        The copy has the history up to now and the title, can be found at once, and is served by
        `session` with the same `spec` next.

        Args:
            session_id: The session to copy; it may be open anywhere.
            spec: Where the copy goes on, and with what.

        Returns:
            The copy's id.

        Raises:
            SessionNotFound: No such session in the store.
            InvalidRequest: The store refuses, with `data.reason`.
        """
        ...

    async def archive(self, session_id: str, archived: bool) -> None:
        """Put a session into the store's archive, or take it out; no error if that is so already.

        A backend whose store has no archive (`has_archive`) only sees to it that its store does not say otherwise.

        Args:
            session_id: A session of the store; to be archived it must not be served here.
            archived: Which of the two.

        Raises:
            SessionNotFound: No such session in the store.
            InvalidRequest: Another process has it; see `session`.
        """
        ...

    async def rename(self, session_id: str, title: str) -> str:
        """Title a session that no `session` context of ours serves, and give back what the store now holds.

        Raises:
            SessionNotFound: No such session in the store.
            InvalidRequest: The store refuses, with `data.reason`.
        """
        ...

    async def delete(self, session_id: str) -> bool:
        """Remove a session for good. One that is not there is no error.

        Returns:
            Whether it is gone. False: copies of it are built on it, so that the store keeps it, out of sight as far
            as it can, until they are gone; to be asked for again then.

        Raises:
            InvalidRequest: Another process has it; see `session`.
            BackendFault: It can't be removed, and is what it was.
        """
        ...

    def lab(self, folder: Path, model_url: str) -> dict[str, str]:
        """Make a private store in `folder` whose CLI talks to a scripted model on loopback.

        Args:
            folder: An empty directory of the caller's.
            model_url: `http://127.0.0.1:PORT`.

        Returns:
            The environment variables that make this backend use it. Nothing outside `folder` is touched.
        """
        ...
