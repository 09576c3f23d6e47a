"""Codex' threads in recordings: how each was opened, what its rows and items are, and how far it has been played."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from acp_manifold.adapters.replay.codex_dialect import CodexDialect
from acp_manifold.adapters.replay.lane import Lane
from acp_manifold.adapters.replay.sessions import ALL, Recorded, session_of
from acp_manifold.adapters.replay.steps import Heard, story
from acp_manifold.bridge.recording.format import Entry
from acp_manifold.translators.narrow import JsonObject, as_int, as_objects, as_str, flag, obj, text

_UNPLAYED: Final = ("thread/closed",)
"""Notifications that come by themselves here when their time has come."""


class Thread:
    """A thread that was recorded.

    Args:
        recorded: All of it.
        speed: How many times as fast as it was; None: no time passes.
    """

    def __init__(self, recorded: Recorded, speed: float | None) -> None:
        self.id = recorded.id
        self.opened = False
        """Whether it was begun, or gone on with, in this replay."""
        self.archived = False
        self.name: str | None = None
        """Its title, if that was set while it was at rest."""
        self._opening = _opening(recorded.entries)
        told = obj(self._opening, "thread")
        self.ephemeral = flag(told, "ephemeral")
        self.cwd = text(told, "cwd") or recorded.cwd or "/"
        self._recorded_cwd = self.cwd
        self.new = recorded.new
        self.generated = _names(recorded.entries) - set(recorded.titles)
        """Titles that no client gave it: they are set when they are thought of, whenever that is."""
        played = [entry for entry in recorded.entries if not _is_left_out(entry, self.generated)]
        self.lane = Lane(
            recorded.where, recorded.id, story(played, CodexDialect()), CodexDialect(), speed, recorded.cut
        )

    def open(self, cwd: str | None, *, new: bool) -> None:
        """It is begun, or gone on with."""
        self.opened = True
        if cwd is not None:
            self.lane.maps(self._recorded_cwd, cwd)
            self.cwd = cwd

    def opening(self) -> JsonObject:
        """What Codex answered when it was opened."""
        return self.lane.here(self._opening)

    def row(self) -> JsonObject:
        """What a list shows of it now."""
        told: JsonObject = {**obj(self.opening(), "thread"), "id": self.id, "cwd": self.cwd}
        heard = [step.line for step in self._past()]
        names = [obj(line, "params").get("threadName") for line in heard if line.get("method") == "thread/name/updated"]
        name = self.name or next((name for name in reversed(names) if isinstance(name, str)), None)
        said = [item for item in self._items() if item.get("type") == "userMessage"]
        preview = " ".join(text(piece, "text") for item in said[:1] for piece in as_objects(item.get("content")))
        if name is not None:
            told["name"] = name
        if preview:
            told["preview"] = preview
        started = [obj(obj(line, "params"), "turn").get("startedAt") for line in heard]
        times = [time for time in started if isinstance(time, int)]
        if times:
            told["recencyAt"] = times[-1]
        # There is no file, and one that is looked for would not be found.
        told["path"] = "/archived_sessions/replayed" if self.archived else None
        return told

    def items(self, params: JsonObject) -> JsonObject:
        """A page of its items: what was told of it before, and what was said in it up to now."""
        return {"data": [{"item": self.lane.here(item)} for item in self._items()], "nextCursor": None}

    def _items(self) -> list[JsonObject]:
        before = [
            obj(entry, "item")
            for aside in self.lane.story.asides
            if aside.said.method == "thread/items/list"
            for entry in as_objects(obj(aside.answer, "result").get("data"))
        ]
        heard = [
            obj(obj(step.line, "params"), "item")
            for step in self._past()
            if step.line.get("method") == "item/completed"
        ]
        # Of an item that is told twice the later state counts, in the place of the first.
        return list({text(item, "id"): item for item in (*before, *heard)}.values())

    def _past(self) -> list[Heard]:
        """What the CLI has said by now: all that was recorded, of a thread that is at rest."""
        steps = self.lane.story.steps
        played = steps[: self.lane.at] if self.opened else steps
        return [step for step in played if isinstance(step, Heard)]


def threads_of(sessions: Sequence[Recorded], speed: float | None) -> list[Thread]:
    """The threads of recordings, each with its sub-agents' lines; what is of no thread goes with the one before."""
    return [Thread(recorded, speed) for recorded in _merged(sessions)]


def _merged(sessions: Sequence[Recorded]) -> list[Recorded]:
    """Those that were opened, with the lines of all others, and last one for questions that are about none."""
    found = [session for session in sessions if session.id != ALL and _opening(session.entries)]
    opened = {session.id for session in found}
    asides: list[Entry] = []
    for session in sessions:
        if session.id in opened:
            continue
        for entry in session.entries:
            place = _owner(found, session.where, entry)
            if place is None and found:
                place = 0  # Said before there was any.
            if (process := _ended(entry)) is not None:
                for end, other in enumerate(found):
                    if other.where == session.where and any(each.process == process for each in other.entries):
                        found[end] = _with(other, entry)
            elif session.id == ALL and not _is_notice(entry):
                asides.append(entry)
            elif place is not None:
                found[place] = _with(found[place], entry)
    if sessions:
        found.append(Recorded(ALL, "codex", sessions[0].where, None, False, False, tuple(asides), (), None))
    return found


def _with(session: Recorded, entry: Entry) -> Recorded:
    entries = sorted((*session.entries, entry), key=lambda each: each.t)
    return session._replace(entries=tuple(entries))


def _ended(entry: Entry) -> int | None:
    """Which process ended, if an entry says that one did."""
    note = entry.line or {}
    return as_int(note.get("process")) if entry.leg == "bridge" and note.get("note") == "exit" else None


def _owner(sessions: Sequence[Recorded], where: str, entry: Entry) -> int | None:
    """Which thread of a person's had a line last before an entry of the same recording."""
    last: tuple[float, int] | None = None
    for place, session in enumerate(sessions):
        if session.where != where or flag(obj(_opening(session.entries), "thread"), "ephemeral"):
            continue
        times = [each.t for each in session.entries if each.t <= entry.t]
        if times and (last is None or times[-1] >= last[0]):
            last = times[-1], place
    return last[1] if last is not None else None


def _is_notice(entry: Entry) -> bool:
    line = entry.line or {}
    return entry.dir == "in" and "method" in line


def _opening(entries: Sequence[Entry]) -> JsonObject:
    """The result that the thread was opened with; empty if it was not."""
    for entry in entries:
        result = obj(entry.line or {}, "result")
        if entry.leg == "backend" and entry.dir == "in" and "model" in result:
            if as_str(obj(result, "thread").get("id")) == session_of(entry):
                return result
    return {}


def _names(entries: Sequence[Entry]) -> set[str]:
    """The titles that we have set."""
    lines = [entry.line or {} for entry in entries if entry.leg == "backend" and entry.dir == "out"]
    return {text(obj(line, "params"), "name") for line in lines if line.get("method") == "thread/name/set"}


def _is_left_out(entry: Entry, generated: set[str]) -> bool:
    line = entry.line or {}
    params = obj(line, "params")
    if entry.leg != "backend":
        return False
    if entry.dir == "out":
        return line.get("method") == "thread/name/set" and text(params, "name") in generated
    if line.get("method") == "thread/name/updated" and text(params, "threadName") in generated:
        return True
    opened = as_str(obj(obj(line, "result"), "thread").get("id")) is not None and "model" in obj(line, "result")
    return opened or text(line, "method") in _UNPLAYED
