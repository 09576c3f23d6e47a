"""Claude Code, replayed: its own adapter over processes that are recordings and a store that is private."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path, PurePosixPath

from acp_manifold.adapters.claude.backend import ClaudeBackend
from acp_manifold.adapters.claude.transcripts import folder_name
from acp_manifold.adapters.replay.claude_dialect import ClaudeDialect
from acp_manifold.adapters.replay.lane import Lane, append
from acp_manifold.adapters.replay.sessions import ALL, Recorded
from acp_manifold.adapters.replay.stage import Stage
from acp_manifold.adapters.replay.steps import Stored, Story, story
from acp_manifold.adapters.replay.transport import Replayed
from acp_manifold.bridge.backend import AuthMethod, Inspection, Login, Program
from acp_manifold.bridge.errors import BackendGone, InvalidRequest
from acp_manifold.bridge.forking import Started
from acp_manifold.bridge.taps import taps
from acp_manifold.translators.auth import AuthStatus
from acp_manifold.translators.narrow import JsonObject

NAME = "claude"


class _Session:
    """A recorded session, and how far it has been played."""

    def __init__(self, recorded: Recorded, speed: float | None) -> None:
        self.recorded = recorded
        self.told: Story = story(recorded.entries, ClaudeDialect())
        self.lane = Lane(recorded.where, recorded.id, self.told, ClaudeDialect(), speed, recorded.cut)
        self.opened = False

    def files(self) -> set[str]:
        """The names of its files."""
        return {step.file for step in self.told.steps if isinstance(step, Stored)}


class ReplayedClaude(ClaudeBackend):
    """The backend `claude` on a recording.

    Args:
        stage: The private world.
        sessions: What was recorded.
        speed: How many times as fast as it was; None: no time passes.
        version: Of the CLI that was recorded.
    """

    def __init__(self, stage: Stage, sessions: Sequence[Recorded], speed: float | None, version: str | None) -> None:
        super().__init__()
        self.stage = stage
        """The private world; whoever made this closes it."""
        self._speed = speed
        self._version = version
        self._sessions = {recorded.id: _Session(recorded, speed) for recorded in sessions if recorded.id != ALL}
        self.spawn = self._spawned
        for session in self._sessions.values():
            self._put_to_rest(session)

    def program(self) -> Program | None:
        """The recording; see `Backend.program`."""
        return Program((NAME,), "a recording", self._version or "unknown")

    @property
    def auth_methods(self) -> tuple[AuthMethod, ...]:
        """None that would be needed; see `Backend.auth_methods`."""
        return (AuthMethod("replay", "A recording", "Nothing is to be done: a recording needs no login."),)

    async def login(self) -> Login:
        """See `Backend.login`."""
        return "in"

    async def _has_no_login(self, cwd: str) -> bool:
        return False

    async def status(self) -> AuthStatus:
        """See `Backend.status`."""
        return AuthStatus("authenticated")

    async def authenticate(self, method: AuthMethod, key: str | None) -> None:
        """See `Backend.authenticate`."""

    async def logout(self) -> None:
        """See `Backend.logout`."""

    async def inspect(self) -> Inspection:
        """See `Backend.inspect`."""
        return Inspection(self._version, self.stage.claude, None)

    async def _free_id(self, wanted: str | None) -> str:
        """The id of the next session that was begun in the recording."""
        if wanted in self._sessions:
            return str(wanted)
        for session_id, session in self._sessions.items():
            if session.recorded.new and not session.opened:
                session.opened = True
                for file in session.files():
                    (self.stage.claude / file).unlink(missing_ok=True)
                return session_id
        begun = sum(session.recorded.new for session in self._sessions.values())
        raise InvalidRequest(f"The recording has no further session to begin: {begun} were begun in it")

    @asynccontextmanager
    async def _spawned(
        self,
        command: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        name: str,
        started: Started | None = None,
        guarded: bool = True,
        backend: str | None = None,
        session: str | None = None,
    ) -> AsyncGenerator[Replayed]:
        """Play a session; see `process.spawn`."""
        found = self._sessions.get(session or "")
        if found is None:
            raise BackendGone(f"Session {session} is in no recording")
        found.lane.maps(found.recorded.cwd, cwd)
        found.lane.path_of = self._writer(found, cwd)
        found.opened = True
        replayed = _Process(name, self._speed, found.lane)
        replayed.place = taps.open("backend", NAME, session, command)
        taps.note(replayed.place, {"note": "start"})
        try:
            yield replayed
        finally:
            asked = not replayed.exited
            replayed.end("was ended")
            taps.note(replayed.place, {"note": "exit", "how": replayed.describe_exit(), "asked": asked})

    def _put_to_rest(self, session: _Session) -> None:
        """Put the files of a session into the store as they were in the end."""
        for step in session.told.steps:
            if isinstance(step, Stored):
                append(self.stage.claude / step.file, step.record)

    def _writer(self, session: _Session, cwd: str) -> _Files:
        return _Files(self.stage.claude, session.recorded.id, cwd)


class _Files:
    """Where records go that appear while a session is played."""

    def __init__(self, root: Path, session_id: str, cwd: str) -> None:
        self._root = root
        self._folder = folder_name(cwd)

    def __call__(self, file: str) -> Path | None:
        parts = PurePosixPath(file).parts
        return self._root.joinpath("projects", self._folder, *parts[2:])


class _Process(Replayed):
    """One process of a session."""

    def __init__(self, name: str, speed: float | None, lane: Lane) -> None:
        super().__init__(name, speed)
        self._lane = lane
        self._dialect = ClaudeDialect()

    def heard(self, line: JsonObject) -> None:
        """See `Replayed.heard`."""
        said = self._dialect.said(line)
        if said.kind == "talk":
            self.say_all(self._lane.take(said))
        elif said.kind == "aside" and said.id is not None:
            aside = self._lane.aside(said)
            if aside is None:
                words = f"the recording holds no answer to {said.method}"
                self.say_all(list(self._dialect.refusal(said, words)))
            else:
                answer = self._dialect.named(self._lane.here(aside.answer), said.id)
                self.say_after(aside.seconds, answer)

    def _begin(self) -> None:
        self._tasks.start_soon(self._play)

    async def _play(self) -> None:
        await self._lane.play(self.say)
        how, self._lane.how = self._lane.how, None
        if how is not None:
            self.end(how)
