"""The slash commands of one thread: Codex' app-server has none, so they are offered and served here.

A command is an ordinary turn to whoever asked: it waits its turn, can be cancelled, and has one outcome. Some are
turns of Codex' too; the others only look something up and say it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import anyio

from acp_manifold.translators.codex import reports
from acp_manifold.translators.codex.prompts import to_input
from acp_manifold.translators.codex.slash import INIT, NAMELESS, Skill, offered, review_target, skill_alone, skills_of
from acp_manifold.translators.narrow import JsonObject, as_str
from acp_manifold.translators.slash import Slash, slash_of
from acp_manifold.translators.updates import Commands, Text, TurnEnd, Usage

from .client import Client
from .servers import McpServers

_DONE = TurnEnd("end_turn")

_SERVERS = 100
"""MCP servers a page; more than anybody has."""


class Thread(Protocol):
    """What a command may do with the thread it is typed into."""

    @property
    def id(self) -> str:
        """Codex' id of it."""
        ...

    @property
    def client(self) -> Client:
        """The link to the app-server."""
        ...

    @property
    def cwd(self) -> str:
        """The session's directory."""
        ...

    @property
    def settings(self) -> JsonObject:
        """Model, permissions and the like, as Codex told them last."""
        ...

    @property
    def usage(self) -> Usage | None:
        """How full the context is."""
        ...

    @property
    def servers(self) -> McpServers:
        """Its MCP servers."""
        ...

    def offer(self, skills: JsonObject) -> None:
        """Tell the commands that there are with these skills."""
        ...

    def say(self, words: str) -> None:
        """Tell the person something, in the agent's name."""
        ...

    async def run_turn(self, method: str, params: JsonObject) -> TurnEnd:
        """Have Codex run a turn that this request begins."""
        ...

    async def begin_anew(self) -> bool:
        """Go on in a new thread; False if there is nothing to leave behind."""
        ...


class SlashCommands:
    """The commands of one thread, and the skills that are among them."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        self._skills: tuple[Skill, ...] = ()
        self._lookup: anyio.CancelScope | None = None

    def offered(self, skills: JsonObject) -> Commands:
        """What to offer from now on.

        Args:
            skills: The answer to `skills/list`; empty if Codex gave none.
        """
        self._skills = skills_of(skills)
        return offered(self._skills)

    async def serve(self, command: Slash) -> TurnEnd | None:
        """Run a command; None for a word that is none, which is the model's to read.

        Raises:
            BridgeError: What a turn raises; Codex refuses, or is gone.
        """
        lookup = _LOOKUPS.get(command.name)
        if lookup is not None:
            with anyio.CancelScope() as self._lookup:
                self._thread.say(await lookup(self))
            return TurnEnd("cancelled") if self._lookup.cancelled_caught else _DONE
        turn = _TURNS.get(command.name)
        if turn is not None:
            return await turn(self, command)
        skill = next((skill for skill in self._skills if skill.name == command.name), None)
        return await self._skill(skill, command) if skill is not None else None

    def interrupt(self) -> None:
        """Give up looking something up, if that is what goes on."""
        if self._lookup is not None:
            self._lookup.cancel()

    async def _skill(self, skill: Skill, command: Slash) -> TurnEnd:
        named: JsonObject = {"type": "skill", "name": skill.name, "path": skill.path}
        words = command.argument or skill_alone(skill.name)
        return await self._turn([named, *to_input((Text(words), *command.others))])

    async def _turn(self, blocks: list[JsonObject]) -> TurnEnd:
        return await self._thread.run_turn("turn/start", {"input": blocks})

    async def init(self, command: Slash) -> TurnEnd:
        """`/init`."""
        words = f"{INIT}\n\n{command.argument}" if command.argument else INIT
        return await self._turn(to_input((Text(words), *command.others)))

    async def review(self, command: Slash) -> TurnEnd:
        """`/review` and its two sisters."""
        more = [said for block in to_input(command.others) if (said := as_str(block.get("text")))]
        target = review_target(command._replace(argument=" ".join([command.argument, *more]).strip()))
        if isinstance(target, str):
            self._thread.say(target)
            return _DONE
        return await self._thread.run_turn("review/start", {"target": target})

    async def compact(self, command: Slash) -> TurnEnd:
        """`/compact`."""
        return await self._thread.run_turn("thread/compact/start", {})

    async def clear(self, command: Slash) -> TurnEnd:
        """`/clear`; that the conversation begins anew the bridge says."""
        if not await self._thread.begin_anew():
            self._thread.say("Nothing was said yet: the context is empty.")
        return _DONE

    async def rename(self, command: Slash) -> TurnEnd:
        """`/rename` with more than a title behind it: the bridge has served all others."""
        self._thread.say("A title is text alone: type nothing but /rename TITLE")
        return _DONE

    async def status(self) -> str:
        """`/status`."""
        account = await self._thread.client.request("account/read", {})
        return reports.status(self._thread.id, self._thread.settings, self._thread.usage, account)

    async def mcp(self) -> str:
        """`/mcp`."""
        params: JsonObject = {"threadId": self._thread.id, "limit": _SERVERS}
        answer = await self._thread.client.request("mcpServerStatus/list", params)
        return reports.servers(answer, self._thread.servers.given, self._thread.servers.faults)

    async def skills(self) -> str:
        """`/skills`, which looks for new ones too."""
        params: JsonObject = {"cwds": [self._thread.cwd], "forceReload": True}
        self._thread.offer(await self._thread.client.request("skills/list", params))
        return reports.skills(self._skills)


_LOOKUPS: dict[str, Callable[[SlashCommands], Awaitable[str]]] = {
    "status": SlashCommands.status,
    "mcp": SlashCommands.mcp,
    "skills": SlashCommands.skills,
}
"""Commands that say something and change nothing."""

_TURNS: dict[str, Callable[[SlashCommands, Slash], Awaitable[TurnEnd]]] = {
    "review": SlashCommands.review,
    "review-branch": SlashCommands.review,
    "review-commit": SlashCommands.review,
    "init": SlashCommands.init,
    "compact": SlashCommands.compact,
    "clear": SlashCommands.clear,
    "rename": SlashCommands.rename,
}


def names_nothing(prompt_text: str) -> bool:
    """Whether what was typed is a command that no title can be made of."""
    command = slash_of((Text(prompt_text),))
    return command is not None and command.name in NAMELESS
