"""The places where lines cross in this process, and who listens there: nobody, unless a recording is made.

A place is an end of ours of a link to a client or to a CLI. Whoever owns one asks, for each line, whether its `tap` is
None, and that is all it costs who does not record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias
from weakref import WeakSet

if TYPE_CHECKING:
    from acp_manifold.translators.narrow import JsonObject

Way: TypeAlias = Literal["in", "out"]
"""`in` is towards us."""

Tap: TypeAlias = Callable[[Way, bytes], None]
"""Takes a line that crosses, without its end; quick, and never raises."""


class Place:
    """One end of a link."""

    __slots__ = ("__weakref__", "backend", "command", "leg", "number", "session", "tap")

    def __init__(
        self,
        leg: Literal["client", "backend"],
        number: int = 0,
        backend: str | None = None,
        session: str | None = None,
        command: Sequence[str] = (),
    ) -> None:
        self.leg = leg
        self.number = number
        """Of the connection, or of the process, in order of start."""
        self.backend = backend
        self.session = session
        """Whose lines cross here, if they are of one session alone."""
        self.command = tuple(command)
        """What was started, on the backend leg."""
        self.tap: Tap | None = None
        """Who listens."""


NOWHERE = Place("client")
"""A place that nobody ever listens at."""


class Listener(Protocol):
    """Who listens at all places. Every method is quick, and never raises."""

    def at(self, place: Place) -> Tap:
        """What is to be called with the lines of a place, which is new or has now another session."""
        ...

    def note(self, note: JsonObject, backend: str | None = None, session: str | None = None) -> None:
        """Something that crossed nowhere."""
        ...

    def follow(self, backend: str, session: str, root: Path, path: Path) -> None:
        """A session's file in a CLI's store, and whatever lies in the folder of the same name beside it."""
        ...


class Taps:
    """All places that are open now. There is one for the process, `taps`."""

    def __init__(self) -> None:
        self.listener: Listener | None = None
        """Who listens; None for nobody."""
        self._places: WeakSet[Place] = WeakSet()
        self._stores: dict[tuple[str, str], tuple[Path, Callable[[], Path]]] = {}
        self._counts = {"client": 0, "backend": 0}

    def open(
        self,
        leg: Literal["client", "backend"],
        backend: str | None = None,
        session: str | None = None,
        command: Sequence[str] = (),
    ) -> Place:
        """A place that is there for as long as somebody has it."""
        self._counts[leg] += 1
        place = Place(leg, self._counts[leg], backend, session, command)
        self._places.add(place)
        if self.listener is not None:
            place.tap = self.listener.at(place)
        return place

    def belongs(self, place: Place, session: str) -> None:
        """Lines of a place are of this session from now on."""
        place.session = session
        if place.tap is not None and self.listener is not None:
            place.tap = self.listener.at(place)

    def note(self, place: Place, note: JsonObject) -> None:
        """Something happened at a place that is no line."""
        if self.listener is not None:
            self.listener.note({**note, "process": place.number}, place.backend, place.session)

    def ended(self, place: Place, how: str, *, asked: bool, said: str) -> None:
        """A process is no more.

        Args:
            place: Where its lines crossed.
            how: It ended, as the end of a sentence.
            asked: Whether we have ended it.
            said: The last on its stderr.
        """
        note: JsonObject = {"note": "exit", "how": how, "asked": asked}
        self.note(place, {**note, "stderr": said} if said else note)

    def dropped(self, backend: str, session: str | None, name: str, reason: str) -> None:
        """A line that crossed reaches nobody, and why."""
        if self.listener is not None:
            self.listener.note({"note": "dropped", "name": name, "reason": reason}, backend, session)

    def keep(self, backend: str, session: str, root: Path, path: Callable[[], Path]) -> None:
        """Where a CLI keeps an open session: `path` finds it, below the `root` of its store, if anybody listens."""
        self._stores[backend, session] = root, path
        if self.listener is not None:
            self.listener.follow(backend, session, root, path())

    def forget(self, backend: str, session: str) -> None:
        """A session is no longer open."""
        self._stores.pop((backend, session), None)

    def listen(self, listener: Listener | None) -> None:
        """Have somebody listen at every place, those to come too; None: nobody any more."""
        self.listener = listener
        for place in self._places:
            place.tap = listener.at(place) if listener is not None else None
        if listener is not None:
            for (backend, session), (root, path) in self._stores.items():
                listener.follow(backend, session, root, path())


taps = Taps()
