"""What the bridge notes for a recording, while a test looks."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from acp_manifold.bridge.taps import Place, Tap, Way, taps
from acp_manifold.translators.narrow import JsonObject


class Notes:
    """A listener that keeps the notes alone, each with its backend and its session."""

    def __init__(self) -> None:
        self.told: list[tuple[JsonObject, str | None, str | None]] = []

    def at(self, place: Place) -> Tap:
        def tap(_way: Way, _line: bytes) -> None:
            """Lines are nobody's here."""

        return tap

    def note(self, note: JsonObject, backend: str | None = None, session: str | None = None) -> None:
        self.told.append((note, backend, session))

    def follow(self, backend: str, session: str, root: Path, path: Path) -> None:
        """Stores are not looked at."""

    def dropped(self) -> list[tuple[object, object, str | None, str | None]]:
        """Name and reason of each line that was dropped, its backend and its session."""
        return [
            (note["name"], note["reason"], backend, session)
            for note, backend, session in self.told
            if note["note"] == "dropped"
        ]


@contextmanager
def noted() -> Generator[Notes]:
    """All notes of what runs inside."""
    notes = Notes()
    taps.listen(notes)
    try:
        yield notes
    finally:
        taps.listen(None)
