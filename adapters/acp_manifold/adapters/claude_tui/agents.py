"""The sub-agents of one program, as their transcripts tell them: each has a file of its own beside that of the session.

Claude Code 2.1.332 writes `<session>/subagents/agent-ID.meta.json`, which names the call that began the agent, and the
records of what it does into `agent-ID.jsonl`, all before it tells the session that the agent has ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from acp_manifold.adapters.claude.regular import open_to_read
from acp_manifold.adapters.claude_tui.transcript import Follower
from acp_manifold.translators.claude.records import decode_line
from acp_manifold.translators.narrow import JsonObject, text

logger = logging.getLogger(__name__)

_ABOUT: Final = ".meta.json"

_SIZE: Final = 64 * 1024
"""Bytes read of what is said about an agent; a few hundred are usual (2.1.332)."""


class Agents:
    """Follows all of them from now on. One for each conversation, made before its first agent begins."""

    def __init__(
        self, folder: Path, take: Callable[[str, str, JsonObject], None], begun: Callable[[str], bool]
    ) -> None:
        """
        Args:
            folder: Where their transcripts are; it need not be there yet. Agents of before are not followed.
            take: Gets each record, with the id of the agent and the call that began it.
            begun: Whether a call was told: what its agent does is, from then on.
        """
        self._folder = folder
        self._take = take
        self._begun = begun
        self._known = set(self._names())
        self._followed: list[Follower] = []

    def read(self) -> None:
        """Hand on every record that was completed since the last time."""
        for name in self._names():
            if name not in self._known and self._begun(call_id := self._call_of(name)):
                self._known.add(name)
                take = partial(self._take, name.removeprefix("agent-"), call_id)
                self._followed.append(Follower(self._folder / f"{name}.jsonl", take, begun=True))
        for follower in self._followed:
            follower.read()

    def _names(self) -> list[str]:
        return sorted(path.name.removesuffix(_ABOUT) for path in self._folder.glob(f"agent-*{_ABOUT}"))

    def _call_of(self, name: str) -> str:
        """The call that began an agent; empty while that is not written yet."""
        try:
            with open_to_read(self._folder / f"{name}{_ABOUT}") as file:
                records, _ = decode_line(file.read(_SIZE))
        except OSError as exc:
            logger.info("claude-tui: what %s is can't be read: %s", name, exc.strerror)
            return ""
        return next((call_id for record in records if (call_id := text(record, "toolUseId"))), "")
