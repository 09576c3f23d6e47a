"""Plays one session: what the CLI said then is said again, as soon as we have said what we said then.

What we say is looked for among what is still to be said, by method and meaning: it may come earlier than it did, and
beside other things, but not otherwise. What differs is refused at once; what does not come, while somebody waits for
the CLI, is missed after `PATIENCE`. Either way the message names the entry, what it expects and what was given.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import anyio
from anyio.lowlevel import checkpoint

from acp_manifold.adapters.replay.compare import Substitution, difference
from acp_manifold.adapters.replay.dialect import Dialect, Id, Said
from acp_manifold.adapters.replay.steps import Aside, Ended, Heard, Spoken, Stored, Story
from acp_manifold.translators.narrow import JsonObject, as_object

PATIENCE: Final = 1.5
"""Seconds beyond its time for which a line of ours is waited for, while somebody waits for the CLI."""

BREATH: Final = 64
"""Lines after which others have their turn, where no time passes."""


class _Given:
    """A line of ours that has not found its place yet."""

    __slots__ = ("meaning", "said")

    def __init__(self, said: Said, meaning: object) -> None:
        self.said = said
        self.meaning = meaning
        """With what was recorded in the place of what is now."""


class _Clock:
    """When it is time for what was recorded at some time."""

    def __init__(self, speed: float | None) -> None:
        self._speed = speed
        self._then: float | None = None
        self._now = 0.0

    def set(self, t: float) -> None:
        """It is this time of the recording now."""
        self._then, self._now = t, anyio.current_time()

    def moment(self, t: float) -> float:
        """When it is that time of the recording."""
        if self._then is None:
            self.set(t)
        if self._speed is None or self._then is None:
            return anyio.current_time()
        return self._now + max(0.0, t - self._then) / self._speed

    async def until(self, t: float) -> None:
        """Wait for that time of the recording."""
        if self._speed is not None:
            await anyio.sleep_until(self.moment(t))


class Lane:
    """One session that is replayed.

    Args:
        where: The recording, for messages.
        session: The id of the session.
        story: What happened in it.
        dialect: In which language.
        speed: How many times as fast as it was; None: no time passes.
        cut: What the end of the recording lacks, in words.
    """

    def __init__(
        self, where: str, session: str, story: Story, dialect: Dialect, speed: float | None, cut: str | None = None
    ) -> None:
        self.session = session
        self.story = story
        self.at = 0
        """The step that is next."""
        self.ended: Ended | None = None
        """How the CLI has ended by itself; who starts it again takes that off."""
        self.path_of: Callable[[str], Path | None] = _nowhere
        """The file for one that was recorded; None: nothing is to be written."""
        self._where = where
        self._dialect = dialect
        self._cut = cut
        self._speed = speed
        self._clock = _Clock(speed)
        self._now = Substitution()
        self._then = Substitution()
        self._unanswered: dict[Id, Said] = {}
        """By the id that a request of ours had then, the one that was made now."""
        self._given: list[_Given] = []
        self._woken = anyio.Event()
        self._broken: str | None = None
        self.running = False
        """Whether a turn runs."""
        self._past: set[int] = set()
        """Ends of the CLI that have come already."""
        self._turn = ""
        self._open = 0
        """Questions that wait for a person."""
        self._written: set[int] = set()
        self._asides = list(story.asides)

    def maps(self, recorded: str | None, folder: str) -> None:
        """The session works in another folder than it did."""
        if recorded is not None:
            self._now.folder(recorded, folder)
            self._then.folder(folder, recorded)

    def goes_by(self, session: str) -> None:
        """The session has another id than it had."""
        self._now.name(self.session, session)
        self._then.name(session, self.session)

    def here(self, line: JsonObject) -> JsonObject:
        """A line of the CLI, with what is now in the place of what was recorded."""
        return as_object(self._now.value(line))

    def aside(self, said: Said) -> Aside | None:
        """The answer to a question that may come at any time: that to the same one, else to the next of its kind."""
        alike = [aside for aside in self._asides if aside.said.method == said.method]
        meaning = self._then.value(said.meaning)
        same = [aside for aside in alike if difference(aside.said.meaning, meaning) is None]
        found = next(iter(same or alike), None)
        if found is not None and len(same or alike) > 1:
            self._asides.remove(found)
        return found

    @property
    def goes_on(self) -> bool:
        """Whether there is more to say or to hear."""
        return any(isinstance(step, Spoken | Heard) for step in self.story.steps[self.at :])

    def is_past(self, ended: Ended) -> None:
        """The CLI has ended so, wherever the session was: no turn runs, and it does not end so again."""
        self._past.add(ended.number)
        self.ended = None
        self.running = False
        self._open = 0
        self._unanswered.clear()

    @property
    def asking(self) -> bool:
        """Whether a question waits for a person."""
        return self._open > 0

    def expects(self, said: Said) -> bool:
        """Whether a line of ours is still to come."""
        given = _Given(said, self._then.value(said.meaning))
        return any(_is(given, step) for step in self._ahead())

    def take(self, said: Said) -> list[JsonObject]:
        """Take a line of ours; gives what the CLI says to one that was not said then."""
        if self._broken is not None:
            return list(self._dialect.refusal(said, self._broken))
        if self.expects(said):
            self._given.append(_Given(said, self._then.value(said.meaning)))
            self._woken.set()
            return []
        words = self._differs(said)
        if said.id is None:
            # The answer to a question: nothing can be said to it, but the turn comes to nothing.
            return self._break(words)
        return list(self._dialect.refusal(said, words))

    async def play(self, say: Callable[[bytes], None]) -> None:
        """Go on, up to the end of what was recorded, or to where the CLI ended by itself.

        Args:
            say: Takes each line of the CLI.
        """
        told = 0
        while self._broken is None and self.at < len(self.story.steps):
            step = self.story.steps[self.at]
            if isinstance(step, Spoken):
                if not await self._spoken(step, say):
                    return
                self.at += 1
                continue
            if isinstance(step, Heard | Ended):
                if self._speed is not None:
                    await self._clock.until(step.t)
                told += 1
                if told % BREATH == 0:
                    await checkpoint()
            self.at += 1
            if isinstance(step, Ended):
                if step.number in self._past:
                    continue
                self.ended = step
                return
            if isinstance(step, Stored):
                self._store(self.at - 1, step)
            else:
                self._heard(step, say)
        if self.running and self._broken is None:
            why = self._cut or "nothing more was recorded, though the turn was not over"
            self._say(self._break(f"the recording {self._where} ends here: {why}"), say)

    def _heard(self, step: Heard, say: Callable[[bytes], None]) -> None:
        if step.ends:
            self.running = False
        elif step.asks:
            self._open += 1
        self._turn = step.turn or self._turn
        asked = self._unanswered.pop(step.answers, None) if step.answers is not None else None
        if asked is None or asked.id is None or asked.id == step.answers:
            say(self._now.line(step.raw))
        else:
            self._say([self._dialect.named(self.here(step.line), asked.id)], say)

    async def _spoken(self, step: Spoken, say: Callable[[bytes], None]) -> bool:
        """Wait until we say what we said then; False if that is not to be waited for any longer."""
        given = await self._waited_for(step)
        if given is None:
            first = self._given[0].said.method if self._given else "nothing"
            words = f"entry {step.number} expects {step.said.method}, given was {first}"
            self._say(self._break(f"the recording {self._where} differs: {words}"), say)
            return False
        self._clock.set(step.t)
        then, now = step.said.id, given.said.id
        if then is not None and now is not None:
            if isinstance(then, str) and isinstance(now, str) and step.said.method == "prompt":
                self._now.name(then, now)
            self._unanswered[then] = given.said
        if step.said.method == "answer":
            self._open = max(0, self._open - 1)
        if self._dialect.begins(step.said):
            self.running = True
            self._turn = str(now)
        self._store_with(step.said)
        return True

    async def _waited_for(self, step: Spoken) -> _Given | None:
        deadline: float | None = None
        while self._broken is None:
            for given in self._given:
                if _is(given, step):
                    self._given.remove(given)
                    return given
            if not self._given and (self._open or not self.running):
                deadline = None
            elif deadline is None:
                deadline = self._clock.moment(step.t) + PATIENCE
            self._woken = anyio.Event()
            with anyio.CancelScope(deadline=float("inf") if deadline is None else deadline) as scope:
                await self._woken.wait()
            if scope.cancelled_caught:
                return None
        return None

    def _differs(self, said: Said) -> str:
        same = next((step for step in self._ahead() if step.said.method == said.method), None)
        step = same or next(self._ahead(), None)
        if step is None:
            words = f"nothing more is expected of session {self.session}, given was {said.method}"
        elif same is None:
            words = f"entry {step.number} expects {step.said.method}, given was {said.method}"
        else:
            found = difference(step.said.meaning, self._then.value(said.meaning))
            words = f"entry {step.number}, {step.said.method}: {found}"
        ends = f"; the recording ends there, {self._cut}" if step is None and self._cut else ""
        return f"the recording {self._where} differs: {words}{ends}"

    def _break(self, words: str) -> list[JsonObject]:
        """Nothing can be played any more: gives what the CLI says to whoever waits; whoever asks later is told why."""
        if self._broken is not None:
            return []
        self._broken = words
        given, self._given = self._given, []
        asked = [said for said in self._unanswered.values() if said.method != "prompt"]
        said = [
            line for each in (*asked, *(each.said for each in given)) for line in self._dialect.refusal(each, words)
        ]
        if self.running:
            said += self.failure(words)
        self.running = False
        self._woken.set()
        return said

    def failure(self, words: str) -> list[JsonObject]:
        """What the CLI says when the running turn comes to nothing."""
        return [self.here(line) for line in self._dialect.failure(self.session, self._turn, words)]

    def _ahead(self) -> Iterator[Spoken]:
        return (step for step in self.story.steps[self.at :] if isinstance(step, Spoken))

    def _store_with(self, said: Said) -> None:
        """Write at once what the CLI had written when it answered, whenever it was seen there."""
        places = [
            place
            for place, step in enumerate(self.story.steps)
            if isinstance(step, Stored) and self._dialect.stored_with(said, step.record)
        ]
        ahead = next((place for place in places if place not in self._written), None)
        if ahead is None:
            # Seen too early, or written by an earlier life of the session.
            self._written.difference_update(places[-1:])
        for place in range(ahead + 1 if ahead is not None else 0):
            self._store_at(place)
        for place in places[-1:] if ahead is None else ():
            self._store_at(place)

    def _store_at(self, place: int) -> None:
        step = self.story.steps[place]
        if isinstance(step, Stored):
            self._store(place, step)

    def _store(self, place: int, step: Stored) -> None:
        if place in self._written:
            return
        self._written.add(place)
        path = self.path_of(step.file)
        if path is not None:
            append(path, self.here(step.record))

    @staticmethod
    def _say(lines: list[JsonObject], say: Callable[[bytes], None]) -> None:
        for line in lines:
            say(json.dumps(line, separators=(",", ":")).encode())


def append(path: Path, record: JsonObject) -> None:
    """Put a record at the end of a file of the private store."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(descriptor, json.dumps(record, ensure_ascii=True, separators=(",", ":")).encode() + b"\n")
    finally:
        os.close(descriptor)


def _is(given: _Given, step: Spoken) -> bool:
    return step.said.method == given.said.method and difference(step.said.meaning, given.meaning) is None


def _nowhere(file: str) -> None:
    return None
