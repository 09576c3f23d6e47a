"""Codex, replayed: its own adapter over an app-server that is a recording.

The app-server is Codex' store as well. What it tells of threads at rest is made of what was recorded: their rows, their
items, their titles.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import anyio

from acp_manifold.adapters.codex.backend import CodexBackend
from acp_manifold.adapters.replay.backend import ReplayedBackend
from acp_manifold.adapters.replay.codex_dialect import CodexDialect
from acp_manifold.adapters.replay.dialect import Said
from acp_manifold.adapters.replay.lane import PATIENCE
from acp_manifold.adapters.replay.sessions import ALL, Recorded
from acp_manifold.adapters.replay.stage import Stage
from acp_manifold.adapters.replay.threads import Thread, threads_of
from acp_manifold.adapters.replay.transport import Replayed
from acp_manifold.bridge.starting import Launch
from acp_manifold.translators.narrow import JsonObject, as_list, as_str, flag, obj, text

_OPENING = ("thread/start", "thread/resume")


class ReplayedCodex(ReplayedBackend, CodexBackend):
    """The backend `codex` on a recording; for the arguments see `ReplayedClaude`."""

    def __init__(self, stage: Stage, sessions: Sequence[Recorded], speed: float | None, version: str | None) -> None:
        super().__init__(stage, stage.codex, version)
        self._speed = speed
        self._threads = threads_of(sessions, speed)

    def transport(self, launch: Launch) -> Replayed:
        """See `ReplayedBackend.transport`."""
        return _AppServer(launch.name, self._speed, self._threads)


class _AppServer(Replayed):
    """One app-server."""

    def __init__(self, name: str, speed: float | None, threads: Sequence[Thread]) -> None:
        super().__init__(name, speed)
        self._threads = threads
        self._dialect = CodexDialect()
        self._live: dict[str, Thread] = {}
        """By the id that a thread has now."""

    def heard(self, line: JsonObject) -> None:
        """See `Replayed.heard`."""
        said = self._dialect.said(line)
        params = obj(line, "params")
        thread = self._live.get(text(params, "threadId"))
        if said.method in _OPENING:
            self._open(said, params)
        elif said.method == "answer":
            self._answered(said)
        elif said.method == "thread/unsubscribe":
            self._let_go(said, params)
        elif said.kind == "talk" and thread is not None:
            self._talk(thread, said, params)
        elif said.id is not None:
            self._aside(said, params, thread)

    def _talk(self, thread: Thread, said: Said, params: JsonObject) -> None:
        if said.method == "thread/name/set" and text(params, "name") in thread.generated:
            self._aside(said, params, thread)
            return
        if thread.ephemeral and said.method == "turn/start" and not thread.lane.expects(said):
            thread = self._swapped(thread, said, text(params, "threadId"))
        self.say_all(thread.lane.take(said))

    def _swapped(self, thread: Thread, said: Said, thread_id: str) -> Thread:
        """The thread that was asked this: those that think of titles are begun before it is known which is which."""
        for other in self._threads:
            if other.ephemeral and not other.opened and other.lane.expects(said):
                thread.opened, other.opened = False, True
                other.lane.goes_by(thread_id)
                self._live[thread_id] = other
                self._tasks.start_soon(self._play, other)
                return other
        return thread

    def _open(self, said: Said, params: JsonObject) -> None:
        """Have a thread begun, the next that was, or gone on with."""
        wanted = as_str(params.get("threadId")) if said.method == "thread/resume" else None
        ephemeral = flag(params, "ephemeral")
        for thread in self._threads:
            fresh = thread.new and thread.ephemeral == ephemeral and not thread.opened
            if thread.id == wanted or (wanted is None and fresh):
                break
        else:
            begun = sum(thread.new and not thread.ephemeral for thread in self._threads)
            words = f"no rollout found for thread id {wanted}"
            if wanted is None:
                words = f"the recording has no further session to begin: {begun} were begun in it"
            self.say_all(list(self._dialect.refusal(said, words)))
            return
        thread.open(as_str(params.get("cwd")), new=wanted is None)
        self._live[thread.id] = thread
        if said.id is not None:
            self.say_all([{"id": said.id, "result": thread.opening()}])
        self._tasks.start_soon(self._play, thread)

    async def _play(self, thread: Thread) -> None:
        await thread.lane.play(self.say)
        ended = thread.lane.ended
        if ended is None:
            return
        if thread.lane.running and any(each.lane.ended is None for each in self._live.values()):
            # What ended it ended all its threads: the others have a while to come to it.
            await anyio.sleep(PATIENCE)
        elif any(each.lane.ended is None for each in self._live.values()):
            return
        for each in self._threads:
            each.lane.is_past(ended)
        self.end(ended)

    def _answered(self, said: Said) -> None:
        """The answer to a question: to the thread that waits for it."""
        for thread in self._live.values():
            if thread.lane.expects(said):
                self.say_all(thread.lane.take(said))
                return
        for thread in self._live.values():
            if thread.lane.asking:
                self.say_all(thread.lane.take(said))
                return

    def _let_go(self, said: Said, params: JsonObject) -> None:
        thread_id = text(params, "threadId")
        known = self._live.pop(thread_id, None) is not None
        result: JsonObject = {"status": "unsubscribed" if known else "notLoaded"}
        lines: list[JsonObject] = [{"id": said.id, "result": result}]
        if known:
            lines.append({"method": "thread/closed", "params": {"threadId": thread_id}})
        self.say_all(lines)

    def _aside(self, said: Said, params: JsonObject, live: Thread | None) -> None:
        thread_id = text(params, "threadId")
        thread = live or next((each for each in self._threads if each.id == thread_id), None)
        made = _MADE.get(said.method)
        result = made(self._threads, thread, params) if made is not None else None
        if result is not None:
            self.say_all([{"id": said.id, "result": result}])
            if said.method == "thread/name/set":
                renamed: JsonObject = {"threadId": thread_id, "threadName": params.get("name")}
                self.say_all([{"method": "thread/name/updated", "params": renamed}])
            return
        everyone = [thread] if thread is not None else self._threads
        for each in everyone:
            aside = each.lane.aside(said)
            if aside is not None and said.id is not None:
                answer = self._dialect.named(each.lane.here(aside.answer), said.id)
                self.say_after(aside.seconds, answer)
                return
        self.say_all(list(self._dialect.refusal(said, f"the recording holds no answer to {said.method}")))


def _list(threads: Sequence[Thread], thread: Thread | None, params: JsonObject) -> JsonObject:
    """`thread/list`: one page with all of them, the newest first."""
    wanted = params.get("cwd")
    places = [wanted] if isinstance(wanted, str) else as_list(wanted)
    rows = [
        each.row()
        for each in threads
        if each.id != ALL
        and not each.ephemeral
        and each.archived == flag(params, "archived")
        and (not places or each.cwd in places)
    ]
    if "sourceKinds" in params:
        # All are in the one list; the other would hold what no person has begun.
        rows = []
    rows.sort(key=lambda row: (json.dumps(row.get("recencyAt")), text(row, "id")), reverse=True)
    return {"data": rows, "nextCursor": None}


def _read(threads: Sequence[Thread], thread: Thread | None, params: JsonObject) -> JsonObject | None:
    return {"thread": thread.row()} if thread is not None else None


def _items(threads: Sequence[Thread], thread: Thread | None, params: JsonObject) -> JsonObject | None:
    """`thread/items/list`: one page with all of them."""
    return thread.items(params) if thread is not None else None


def _name(threads: Sequence[Thread], thread: Thread | None, params: JsonObject) -> JsonObject | None:
    if thread is None:
        return None
    thread.name = text(params, "name")
    return {}


def _nothing(threads: Sequence[Thread], thread: Thread | None, params: JsonObject) -> JsonObject | None:
    return {}


def _archive(threads: Sequence[Thread], thread: Thread | None, params: JsonObject) -> JsonObject | None:
    if thread is None:
        return None
    thread.archived = True
    return {}


def _unarchive(threads: Sequence[Thread], thread: Thread | None, params: JsonObject) -> JsonObject | None:
    if thread is None:
        return None
    thread.archived = False
    return {"thread": thread.row()}


_MADE = {
    "thread/list": _list,
    "thread/read": _read,
    "thread/items/list": _items,
    "thread/name/set": _name,
    "thread/archive": _archive,
    "thread/unarchive": _unarchive,
    "thread/backgroundTerminals/clean": _nothing,
}
"""Requests that are about the store, answered from what was recorded of the threads."""
