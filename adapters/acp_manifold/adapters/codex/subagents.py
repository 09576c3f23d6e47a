"""The sub-agents of one session: threads of their own that nobody opened, whose lines and questions are the session's.

codex-cli 0.163.0 stops none of them with the turn that began them, and none with the thread: a cancel reaches each that
the turn has set to work, the end of the session each there is. Those of earlier turns are work in the background, which
no cancel of a turn ends. Deleting the thread deletes theirs.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Protocol

from acp_manifold.bridge.errors import BackendGone
from acp_manifold.translators.codex.subagents import Reached, SubagentStream, reached
from acp_manifold.translators.narrow import JsonObject, obj
from acp_manifold.translators.updates import BackgroundTask, Notice, TaskOutput, Update

from .asking import Asking
from .client import RequestId
from .server import AppServer

logger = logging.getLogger(__name__)

_OVER = frozenset({"thread/closed", "thread/archived", "thread/deleted"})


class Owner(Protocol):
    """What sub-agents need of their session."""

    @property
    def turn(self) -> str | None:
        """The turn that runs; None for none."""
        ...

    def tell(self, update: Update) -> None:
        """Tell its clients."""
        ...

    def hears_questions(self) -> bool:
        """Whether anything may be asked now."""
        ...

    def room(self) -> Awaitable[None]:
        """Wait while its clients are behind."""
        ...


class Subagents:
    """The sub-agents of one session that have not ended."""

    def __init__(self, server: AppServer, owner: Owner, asking: Asking) -> None:
        self.server = server
        self.owner = owner
        self.asking = asking
        self._threads: dict[str, _Agent] = {}

    def spoken_of(self, item: JsonObject, parent: str = "") -> None:
        """An item has ended that may have begun sub-agents, given them work, or ended them.

        Args:
            item: Of the session's thread, or of a sub-agent's.
            parent: The call that began the sub-agent whose it is; empty for the session's own.
        """
        for found in reached(item):
            agent = self._threads.get(found.thread)
            if agent is not None and found.ended:
                self.forget(found.thread)
                agent.tell(agent.stream.ended())
            elif agent is not None and found.works:
                agent.turn = self._turn_of(parent)
            elif found.works:
                self._follow(found, parent)

    def _turn_of(self, parent: str) -> str | None:
        """The session's turn that gave something to do to what a sub-agent, or the session itself, has set to work."""
        agents = (agent.turn for agent in self._threads.values() if agent.stream.call == parent)
        return next(agents, None) if parent else self.owner.turn

    def _follow(self, found: Reached, parent: str) -> None:
        turn = self._turn_of(parent)
        agent = self._threads[found.thread] = _Agent(self, found, parent, turn)
        agent.tell(agent.stream.begun())
        self.server.follow(found.thread, agent)
        if not found.begun:
            # Of an agent from before the session was let go and opened again nothing is told without being asked for.
            self.server.client.post("thread/resume", {"threadId": found.thread, "excludeTurns": True})

    def forget(self, thread_id: str) -> None:
        """Nothing more is heard of an agent."""
        self._threads.pop(thread_id, None)
        self.server.routes.pop(thread_id, None)

    @property
    def running(self) -> bool:
        """Whether one of them works."""
        return any(agent.stream.turn or agent.stream.stream.open for agent in self._threads.values())

    def interrupt(self) -> None:
        """Have those stop that work for the turn that runs."""
        for agent in self._threads.values():
            if agent.turn == self.owner.turn:
                agent.interrupt()

    def leave(self) -> None:
        """Have all of them stop, and let their threads go."""
        for thread_id, agent in list(self._threads.items()):
            agent.interrupt()
            for method in ("thread/backgroundTerminals/clean", "thread/unsubscribe"):
                self.server.client.post(method, {"threadId": thread_id})
            self.forget(thread_id)
            agent.tell(agent.stream.ended())

    def abandon(self) -> None:
        """Tell the end of all of them."""
        for thread_id, agent in list(self._threads.items()):
            self.forget(thread_id)
            agent.tell(agent.stream.ended())

    # -- as work in the background ---------------------------------------------------------------

    def tasks(self) -> tuple[BackgroundTask, ...]:
        """Those that work behind their turn. The id of a task is that of the call which began the agent."""
        agents = [agent.stream for agent in self._behind()]
        return tuple(BackgroundTask(stream.call, stream.title, agent=stream.call) for stream in agents)

    def output(self, task_id: str) -> TaskOutput | None:
        """What one of `tasks` said last; None if it is none of them."""
        agent = self._found(task_id)
        if agent is None:
            return None
        words = agent.stream.last_words
        return TaskOutput(words, len(words.encode("utf-8", "replace")))

    def stop(self, task_id: str) -> bool:
        """Have one of `tasks` stop; False if it is none of them."""
        agent = self._found(task_id)
        if agent is not None:
            agent.interrupt()
        return agent is not None

    def _behind(self) -> list[_Agent]:
        working = (agent for agent in self._threads.values() if agent.stream.turn)
        return [agent for agent in working if agent.turn is None or agent.turn != self.owner.turn]

    def _found(self, task_id: str) -> _Agent | None:
        return next((agent for agent in self._behind() if agent.stream.call == task_id), None)


class _Agent:
    """The `Route` of one sub-agent."""

    def __init__(self, agents: Subagents, found: Reached, parent: str, turn: str | None) -> None:
        self._agents = agents
        self._thread = found.thread
        self.stream = SubagentStream(found, parent)
        self.turn = turn
        """The session's turn that it works for, or worked for last."""

    def tell(self, updates: list[Update]) -> None:
        """Tell the session's clients."""
        for update in updates:
            self._agents.owner.tell(update)

    def notified(self, method: str, params: JsonObject) -> None:
        """A notification about the thread."""
        if method == "serverRequest/resolved":
            self._agents.asking.resolved(params.get("requestId"))
        elif method in _OVER:
            self._agents.forget(self._thread)
            self.tell(self.stream.ended())
        else:
            self.tell(self.stream.notified(method, params))
        if method == "item/completed":
            self._agents.spoken_of(obj(params, "item"), self.stream.call)

    def asked(self, request_id: RequestId, method: str, params: JsonObject) -> None:
        """A request about the thread: to the person who has the session."""
        asking, items = self._agents.asking, self.stream.stream.items
        if self._agents.owner.hears_questions():
            asking.ask(request_id, method, params, items)
        else:
            asking.refuse(request_id, method, params, items)

    def interrupt(self) -> None:
        """Have it stop."""
        if self.stream.turn:
            self.stream.stream.stopping = True
            params: JsonObject = {"threadId": self._thread, "turnId": self.stream.turn}
            self._agents.server.client.post("turn/interrupt", params)

    async def room(self) -> None:
        """Wait while the session's clients are behind."""
        await self._agents.owner.room()

    def noticed(self, notice: Notice) -> None:
        """The session itself is told."""

    def server_gone(self, reason: BackendGone) -> None:
        """The server ended."""
        self._agents.forget(self._thread)
        self.tell(self.stream.ended("failed"))
