"""Claude Code, replayed: its own adapter over processes that are recordings and a store that is private."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from acp_manifold.adapters.claude.backend import ClaudeBackend
from acp_manifold.adapters.claude.transcripts import folder_name
from acp_manifold.adapters.replay.backend import ReplayedBackend
from acp_manifold.adapters.replay.claude_dialect import ClaudeDialect
from acp_manifold.adapters.replay.lane import Lane, append
from acp_manifold.adapters.replay.sessions import ALL, Recorded
from acp_manifold.adapters.replay.stage import Stage
from acp_manifold.adapters.replay.steps import Stored, Story, story
from acp_manifold.adapters.replay.transport import Replayed
from acp_manifold.bridge.errors import BackendGone, InvalidRequest
from acp_manifold.bridge.starting import Launch
from acp_manifold.translators.narrow import JsonObject


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


class ReplayedClaude(ReplayedBackend, ClaudeBackend):
    """The backend `claude` on a recording.

    Args:
        stage: The private world.
        sessions: What was recorded.
        speed: How many times as fast as it was; None: no time passes.
        version: Of the CLI that was recorded.
    """

    def __init__(self, stage: Stage, sessions: Sequence[Recorded], speed: float | None, version: str | None) -> None:
        super().__init__(stage, stage.claude, version)
        self._speed = speed
        self._sessions = {recorded.id: _Session(recorded, speed) for recorded in sessions if recorded.id != ALL}
        for session in self._sessions.values():
            self._put_to_rest(session)

    async def _has_no_login(self, cwd: str) -> bool:
        return False

    async def _free_id(self, wanted: str | None) -> str:
        """The id of the next session that was begun in the recording; the one it had, where there is more of that."""
        had = self._sessions.get(wanted or "")
        if had is not None and had.lane.goes_on:
            return had.recorded.id
        fresh = [each for each in self._sessions.values() if each.recorded.new and not each.opened]
        # Behind one whose process ended before anything was in its file there is another, of which no client knows.
        fresh.sort(key=lambda each: each.recorded.known == (had is not None))
        for session in fresh:
            session.opened = True
            for file in session.files():
                (self.stage.claude / file).unlink(missing_ok=True)
            return session.recorded.id
        begun = sum(session.recorded.new for session in self._sessions.values())
        raise InvalidRequest(f"The recording has no further session to begin: {begun} were begun in it")

    def transport(self, launch: Launch) -> Replayed:
        """See `ReplayedBackend.transport`."""
        found = self._sessions.get(launch.session or "")
        if found is None:
            raise BackendGone(f"Session {launch.session} is in no recording")
        found.lane.maps(found.recorded.cwd, launch.cwd)
        found.lane.path_of = self._writer(found, launch.cwd)
        found.opened = True
        return _Process(launch.name, self._speed, found.lane)

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
        ended = self._lane.ended
        if ended is not None:
            self._lane.is_past(ended)
            self.end(ended)
