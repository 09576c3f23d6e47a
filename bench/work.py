"""The work: one start of one contestant, and what each step of it took."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import anyio

from acp_manifold.adapters.demo.editor import Editor, start
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .contestants import Contestant
from .processes import cpu_seconds, descendants, pss_mb, total_pss_mb

T = TypeVar("T")

TITLES = 40
"""How often a title is set."""

REST = 1.0
"""Seconds between a long turn and the first title: what a CLI still does for the turn is not the title's cost."""

MANY = 8
"""Sessions at once in the tests of memory and of streaming."""

STREAMED = 400
"""Words that each of them streams at a time."""

TIMES = 3
"""How often they do so in one start; the median counts."""

_LIMIT = 120.0
"""Seconds after which a start is given up."""


@dataclass(slots=True)
class Figures:
    """What one start showed; None where the contestant can't do it or it was not asked for. Times in seconds."""

    initialize: float = 0.0
    """From the start of the process to the answer."""
    new: float = 0.0
    first_token: float = 0.0
    """From the start of the process to the first chunk of the first answer."""
    short_prompt: float = 0.0
    """A whole turn of five words, in a session that has had one."""
    cpu_per_word: float = 0.0
    """Of the agent's process alone."""
    pss_one: float = 0.0
    """MB, of the agent's process alone, one session that has had all of the work."""
    set_title: float | None = None
    set_title_at_rest: float | None = None
    pss_many: float | None = None
    """The same with `MANY` sessions."""
    pss_many_tree: float | None = None
    """The CLIs included."""
    stream_many: float | None = None
    """From the first of `MANY` prompts at once to the end of the last turn, each of `STREAMED` words."""
    cpu_many: float | None = None
    """What the agent's process alone needed for that."""


@dataclass(slots=True)
class _Ears:
    """What has been heard, session by session."""

    first: dict[str, float] = field(default_factory=lambda: dict[str, float]())
    """When the session's first words came."""
    words: dict[str, int] = field(default_factory=lambda: dict[str, int]())

    def hear(self, session: str, update: JsonObject) -> None:
        if update.get("sessionUpdate") != "agent_message_chunk":
            return
        said = text(obj(update, "content"), "text")
        if "word" in said:
            self.first.setdefault(session, time.perf_counter())
        self.words[session] = self.words.get(session, 0) + said.count("word")


async def allow(_session: str, params: JsonObject) -> str | None:
    """Say yes to whatever is asked."""
    options = as_objects(params.get("options"))
    return next((text(option, "optionId") for option in options if option.get("kind") == "allow_once"), None)


async def run_once(
    contestant: Contestant, env: Mapping[str, str], cwd: Path, log: Path, *, words: int, many: bool
) -> Figures:
    """Start the contestant, let it do all of the work, end it.

    Args:
        contestant: Who.
        env: Its whole environment.
        cwd: Where its sessions work.
        log: Takes its stderr.
        words: How many are streamed for the CPU figure.
        many: Whether to do the tests with many sessions too.

    Raises:
        BridgeError: It answered with an error or went away.
        TimeoutError: It took too long.
        AssertionError: Words were lost.
    """
    ears = _Ears()
    figures = Figures()
    with anyio.fail_after(_LIMIT):
        begun = time.perf_counter()
        async with start(contestant.command, env, log, ears.hear, allow) as editor:
            await editor.initialize()
            figures.initialize = time.perf_counter() - begun
            session, figures.new = await _timed(lambda: editor.new_session(str(cwd), contestant.backend))
            await editor.prompt(session, "Say a few words SAY[5]")
            figures.first_token = ears.first[session] - begun
            _, figures.short_prompt = await _timed(lambda: editor.prompt(session, "And a few more SAY[5]"))
            figures.cpu_per_word = await _stream(editor, ears, session, words)
            if contestant.renames:
                await anyio.sleep(REST)
                figures.set_title = await titles(editor, session)
            figures.pss_one = pss_mb(editor.pid)
            if contestant.renames and contestant.ours:
                await editor.ask("session/close", {"sessionId": session})
                figures.set_title_at_rest = await titles(editor, session)
                await editor.ask("session/resume", {"sessionId": session, "cwd": str(cwd), "mcpServers": []})
            if many:
                await _many(editor, ears, [session, *await _more(editor, contestant, cwd)], figures)
    return figures


async def cpu_per_word(contestant: Contestant, env: Mapping[str, str], cwd: Path, log: Path, *, words: int) -> float:
    """Seconds of CPU that the agent's process takes for each of so many words of a turn; else as `run_once`."""
    ears = _Ears()
    with anyio.fail_after(_LIMIT):
        async with start(contestant.command, env, log, ears.hear, allow) as editor:
            await editor.initialize()
            session = await editor.new_session(str(cwd), contestant.backend)
            await editor.prompt(session, "Say a few words SAY[5]")
            return await _stream(editor, ears, session, words)


async def _stream(editor: Editor, ears: _Ears, session: str, words: int) -> float:
    heard, before = ears.words[session], cpu_seconds(editor.pid)
    await editor.prompt(session, f"Say a lot SAY[{words}]")
    cpu = (cpu_seconds(editor.pid) - before) / words
    heard = ears.words[session] - heard
    assert heard == words, f"{words} words were streamed and {heard} heard"
    return cpu


async def titles(editor: Editor, session: str) -> float:
    """Set `TITLES` titles, and give the median of what it took."""
    taken: list[float] = []
    for count in range(TITLES):
        params: JsonObject = {"sessionId": session, "title": f"Bench title {count}"}
        begun = time.perf_counter()
        await editor.ask("session/set_title", params)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


async def _more(editor: Editor, contestant: Contestant, cwd: Path) -> list[str]:
    """Open as many sessions as are missing, and let each have a turn."""
    sessions = [await editor.new_session(str(cwd), contestant.backend) for _ in range(MANY - 1)]
    await _together(editor, sessions, 5)
    return sessions


async def _many(editor: Editor, ears: _Ears, sessions: list[str], figures: Figures) -> None:
    figures.pss_many = pss_mb(editor.pid)
    figures.pss_many_tree = figures.pss_many + total_pss_mb(descendants(editor.pid))
    taken: list[float] = []
    cpu = cpu_seconds(editor.pid)
    for _ in range(TIMES):
        before = {session: ears.words[session] for session in sessions}
        _, seconds = await _timed(lambda: _together(editor, sessions, STREAMED))
        taken.append(seconds)
        for session in sessions:
            heard = ears.words[session] - before[session]
            assert heard == STREAMED, f"{STREAMED} words were streamed in a session and {heard} heard"
    figures.cpu_many = (cpu_seconds(editor.pid) - cpu) / TIMES
    figures.stream_many = statistics.median(taken)


async def _together(editor: Editor, sessions: list[str], words: int) -> None:
    """A turn of so many words in every session, all at once."""
    async with anyio.create_task_group() as turns:
        for session in sessions:
            turns.start_soon(editor.prompt, session, f"Say some words SAY[{words}]")


async def _timed(what: Callable[[], Awaitable[T]]) -> tuple[T, float]:
    begun = time.perf_counter()
    return await what(), time.perf_counter() - begun
