"""The ways of a session of the soak test between its opening and its close, and what must come of each prompt."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio

from acp_manifold.translators.narrow import JsonObject, obj, text

from .inside import Client
from .scripted import ANSWERED, WORD

END, CANCELLED, FAILED, TAKEN_BACK = "end_turn", "cancelled", "-32603", "taken back"
"""Outcomes of a prompt."""

IDLE = 0.1
"""Seconds after which the bridge of the soak test lets an idle session's CLI go."""


@dataclass(slots=True)
class Ear:
    """What the client has heard of one session."""

    words: int = 0
    questions: int = 0
    news: anyio.Event = field(default_factory=anyio.Event)

    def hear(self, *, words: int = 0, questions: int = 0) -> None:
        """Count something."""
        self.words += words
        self.questions += questions
        news, self.news = self.news, anyio.Event()
        news.set()

    async def hears(self, wanted: Callable[[], bool]) -> None:
        """Wait until something holds of what was heard."""
        while not wanted():
            await self.news.wait()


class Ears:
    """What the client has heard of all sessions."""

    def __init__(self) -> None:
        self.words = 0
        """Updates so far, of all sessions, those of tool calls left out."""
        self._of: dict[str, Ear] = {}

    def of(self, session: str) -> Ear:
        """The ear for one session."""
        return self._of.setdefault(session, Ear())

    def forget(self, session: str) -> None:
        """The session is closed."""
        self._of.pop(session, None)

    def update(self, session: str, update: JsonObject) -> None:
        """Hear an update; several that were merged on their way count as what they were."""
        if update.get("sessionUpdate") == "agent_message_chunk":
            words = text(obj(update, "content"), "text").count(WORD)
            self.words += words
            self.of(session).hear(words=words)

    async def question(self, session: str, params: JsonObject) -> str | None:
        """Hear a question: yes to one kind, and to the other nothing, for as long as it is open."""
        self.of(session).hear(questions=1)
        if not text(obj(params, "toolCall"), "toolCallId").startswith(ANSWERED):
            await anyio.sleep_forever()
        return "yes"


class Life:
    """One session while it is open."""

    def __init__(self, client: Client, ears: Ears, session: str, words: int) -> None:
        self.client = client
        self.ear = ears.of(session)
        self.session = session
        self.say = f"say:{words}"
        self.closed = False
        self.expected: list[str] = []
        self.outcomes: list[str] = []

    async def turn(self, words: str, outcome: str = END) -> None:
        """Run a prompt to its end."""
        self.expected.append(outcome)
        self.outcomes.append(await self.client.prompt(self.session, words))

    @asynccontextmanager
    async def turns(self, *prompts: tuple[str, str]) -> AsyncGenerator[list[anyio.CancelScope]]:
        """Send prompts with the outcomes to be expected; they run to their end, or until their scope is cancelled."""
        scopes = [anyio.CancelScope() for _ in prompts]
        async with anyio.create_task_group() as tasks:
            for (words, outcome), scope in zip(prompts, scopes, strict=True):
                tasks.start_soon(self._turn, words, outcome, scope)
            yield scopes

    async def _turn(self, words: str, outcome: str, scope: anyio.CancelScope) -> None:
        with scope:
            await self.turn(words, outcome)
        if scope.cancelled_caught:
            self.outcomes.append(TAKEN_BACK)

    async def hears_words(self) -> None:
        """Wait until the running turn has said something."""
        before = self.ear.words
        await self.ear.hears(lambda: self.ear.words > before)

    async def hears_question(self) -> None:
        """Wait until the running turn has asked something."""
        before = self.ear.questions
        await self.ear.hears(lambda: self.ear.questions > before)

    def cancel(self) -> None:
        """Cancel all that runs and waits."""
        self.client.tell("session/cancel", {"sessionId": self.session})

    async def close(self) -> None:
        """Close the session, unless that is done."""
        if not self.closed:
            self.closed = True
            await self.client.ask("session/close", {"sessionId": self.session})


async def _plain(life: Life) -> None:
    await life.turn(f"{life.say} tool:3 {life.say}")


async def _queued(life: Life) -> None:
    async with life.turns((life.say, END), (life.say, END), (life.say, END)):
        pass


async def _cancelled(life: Life) -> None:
    async with life.turns((f"{life.say} hang", CANCELLED), (life.say, CANCELLED)):
        await life.hears_words()
        life.cancel()


async def _cancelled_at_once(life: Life) -> None:
    async with life.turns((f"{life.say} hang", CANCELLED)):
        await anyio.lowlevel.checkpoint()
        life.cancel()
    await life.turn(life.say)


async def _taken_back(life: Life) -> None:
    async with life.turns((f"{life.say} hang", TAKEN_BACK), (life.say, TAKEN_BACK), (life.say, END)) as scopes:
        await life.hears_words()
        scopes[1].cancel()
        scopes[0].cancel()


async def _asked(life: Life) -> None:
    await life.turn(f"{life.say} ask:2 {life.say}")


async def _withdrawn(life: Life) -> None:
    await life.turn(f"{life.say} withdraw:2 {life.say}")


async def _unanswered(life: Life) -> None:
    async with life.turns((f"{life.say} mute", CANCELLED)):
        await life.hears_question()
        life.cancel()


async def _crashed(life: Life) -> None:
    await life.turn(f"{life.say} crash", FAILED)
    await life.turn(life.say)


async def _crashed_asking(life: Life) -> None:
    await life.turn(f"{life.say} mute+crash", FAILED)
    await life.turn(life.say)


async def _left_alone(life: Life) -> None:
    await life.turn(life.say)
    await anyio.sleep(3 * IDLE)
    await life.turn(life.say)


async def _closed_asking(life: Life) -> None:
    async with life.turns((f"{life.say} mute", CANCELLED), (life.say, CANCELLED)):
        await life.hears_question()
        await life.close()


async def _closed_at_once(life: Life) -> None:
    await life.turn(life.say)
    async with life.turns((f"{life.say} hang", CANCELLED)):
        await anyio.lowlevel.checkpoint()
        await life.close()


LIVES: tuple[Callable[[Life], Awaitable[None]], ...] = (
    _plain,
    _queued,
    _cancelled,
    _cancelled_at_once,
    _taken_back,
    _asked,
    _withdrawn,
    _unanswered,
    _crashed,
    _crashed_asking,
    _left_alone,
    _closed_asking,
    _closed_at_once,
)


async def live(number: int, client: Client, ears: Ears, session: str, words: int) -> None:
    """Let a session live in one of the ways, and close it.

    Raises:
        AssertionError: A prompt had another outcome than it must.
    """
    life, way = Life(client, ears, session, words), LIVES[number % len(LIVES)]
    await way(life)
    await life.close()
    ears.forget(session)
    found = sorted(life.outcomes)
    assert found == sorted(life.expected), f"{way.__name__[1:]}: {found} instead of {sorted(life.expected)}"
