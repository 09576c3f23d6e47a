"""A transcript read from disk, piece by piece, and told as updates."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from anyio import lowlevel, to_thread

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.translators.claude.records import decode_line
from acp_manifold.translators.claude.tools import AGENT_TOOLS
from acp_manifold.translators.claude.transcript import History
from acp_manifold.translators.narrow import text
from acp_manifold.translators.updates import OfSubagent, ToolCall, Update
from acp_manifold.translators.values import NamedTuple

logger = logging.getLogger(__name__)

_FIRST: Final = 16 * 1024
"""Bytes of the first piece: what is in it is on its way before the second is read."""

_PIECE: Final = 256 * 1024
"""Bytes read, and at most about so many translated, before others get their turn."""


async def replay(path: Path, emit: Callable[[Update], None], room: Callable[[], Awaitable[None]]) -> None:
    """Tell the history in a transcript; the file is never held as a whole.

    What a sub-agent did comes behind the call that began it.

    Args:
        path: The transcript.
        emit: Takes the updates.
        room: Waits while whoever takes them is behind.

    Raises:
        OSError: It can't be read.
    """
    await _replay(path, History(), emit, room, _Agents(path.with_suffix("") / "subagents"))


async def _replay(
    path: Path,
    history: History,
    emit: Callable[[Update], None],
    room: Callable[[], Awaitable[None]],
    agents: _Agents,
) -> None:
    file = await to_thread.run_sync(open_to_read, path)
    try:
        rest: list[bytes] = []
        size = _FIRST
        while piece := await to_thread.run_sync(file.read, size):
            size = min(_PIECE, 2 * size)
            whole, newline, tail = piece.rpartition(b"\n")
            if not newline:
                rest.append(piece)
                continue
            for line in b"".join([*rest, whole]).split(b"\n"):
                for began in _tell(history, line, emit, path):
                    await _replay_agent(began, emit, room, agents)
            rest = [tail] if tail else []
            await room()
            await lowlevel.checkpoint()
        for began in _tell(history, b"".join(rest), emit, path):
            await _replay_agent(began, emit, room, agents)
        for update in history.finish():
            emit(update)
    finally:
        file.close()


class _Began(NamedTuple):
    """A call that set a sub-agent to work."""

    call: ToolCall
    parent: str
    """The call that began the sub-agent which made this one; empty for the main one."""


class _Agents:
    """The transcripts of a session's sub-agents, by the call that began each; looked for with the first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[str, Path] | None = None

    async def take(self, call_id: str) -> Path | None:
        """The transcript of one of them, once; None if there is none."""
        if self._paths is None:
            self._paths = await to_thread.run_sync(self._look)
        return self._paths.pop(call_id, None)

    def _look(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        try:
            for about in self._folder.glob("agent-*.meta.json"):
                with open_to_read(about) as file:
                    records, _ = decode_line(file.read(_ABOUT))
                name = about.name.removesuffix(".meta.json")
                found |= {text(record, "toolUseId"): about.with_name(f"{name}.jsonl") for record in records}
        except OSError as exc:
            logger.info("%s can't be read: %s", self._folder, exc.strerror)
        return found


async def _replay_agent(
    began: _Began,
    emit: Callable[[Update], None],
    room: Callable[[], Awaitable[None]],
    agents: _Agents,
) -> None:
    """Tell what the sub-agent did that a call began, if the store has it."""
    # Imported with the first sub-agent: few histories have any.
    from acp_manifold.translators.claude.agent_history import AgentHistory

    inner = AgentHistory(*began)
    path = await agents.take(inner.call_id)
    if path is None:
        return
    for update in inner.begun():
        emit(update)
    try:
        await _replay(path, inner, emit, room, agents)
    except OSError as exc:
        logger.info("%s can't be read: %s", path, exc.strerror)
    for update in inner.ended():
        emit(update)


def _is_whole(line: bytes) -> bool:
    return line.startswith(b"{") and line.endswith(b"}") and b"}{" not in line


_ABOUT: Final = 64 * 1024
"""Bytes read of what the store says about a sub-agent; a few hundred are usual (Claude Code 2.1.332)."""

_TOLD: Final = (b'"assistant"', b'"user"', b'"queued_command"', b'"compact_boundary"', b'"local_command"')
"""What every line holds of which `History` makes anything."""


def _may_be_said(line: bytes) -> bool:
    """Whether a line may be a message: most of a transcript is what went to the model, and need not be parsed."""
    return any(mark in line for mark in _TOLD)


def _tell(history: History, line: bytes, emit: Callable[[Update], None], path: Path) -> Sequence[_Began]:
    """Tell what is in a line; gives the calls in it that began sub-agents."""
    if not line.strip() or (_is_whole(line) and not _may_be_said(line)):
        return ()
    records, clean = decode_line(line)
    if not clean:
        logger.warning("%s: a line could not be read and is left out", path)
    began: list[_Began] = []
    for record in records:
        for update in history.feed(record):
            emit(update)
            call = update.update if type(update) is OfSubagent else update
            if type(call) is ToolCall and call.name in AGENT_TOOLS:
                began.append(_Began(call, update.id if type(update) is OfSubagent else ""))
    return began
