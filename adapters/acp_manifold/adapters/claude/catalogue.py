"""Every transcript of a store with what was read of it, in the order of the list.

All methods are for worker threads. Those that read take a bounded piece of the work and are called
again for the next, so that whoever waits for them can be cancelled in between.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from acp_manifold.adapters.claude import scan
from acp_manifold.adapters.claude.index import Entry, Index, row_of
from acp_manifold.adapters.claude.regular import opened
from acp_manifold.adapters.claude.transcripts import (
    Looks,
    Transcript,
    copies_of,
    real_path,
    transcript_at,
)
from acp_manifold.bridge.backend import ListQuery, SessionRow
from acp_manifold.translators.claude.archive import says_archived, visible

logger = logging.getLogger(__name__)

CLOSE_LOOK_SECONDS: Final = 1.0
"""For so long after a look at every transcript, lists look at those alone that they show, and for new ones: a
client that pages or asks again need not wait for thousands of system calls. What another program says meanwhile
in a session that is not on the page moves it up in the first list after that."""

SLICE: Final = 256
"""Transcripts of which a piece is read in one go: 10 ms of work."""

SEARCH_BUDGET: Final = 8 * 1024 * 1024
"""Bytes that one list reads at most for titles in the middle of transcripts; the rest is read behind its back."""

_AT_EASE: Final = 2 * 1024 * 1024
"""Bytes that are searched in one go behind its back: few, since a list may come and wait for it."""

_ASKED_FOR: Final = 64
"""Transcripts that were asked for by name and are looked at in every list."""

_BEGUN_AT_EASE: Final = 32
"""Transcripts whose start is read in one go behind its back."""

_SAVED_AT_ONCE: Final = 512


class Catalogue:
    """The transcripts under one `projects` folder."""

    def __init__(self, projects: Path, index: Index) -> None:
        self._projects = projects
        self._index = index
        self._looks: Looks | None = None
        self._looked_at = -math.inf
        """When the last close look began."""
        self._entries: dict[str, Entry] = {}
        self._order: list[Entry] | None = None
        """One entry for each session, the newest first; None when that is to be made anew."""
        self._unread: dict[str, Transcript] = {}
        """Those that were new or changed at a look and not read since: whoever looked may have been cancelled."""
        self._asked_for: dict[str, None] = {}
        """The last that were asked for one by one: something may be going on there, so each list looks at them."""
        self._unbegun: dict[str, Entry] = {}
        """Those whose start was not read."""
        self._unsearched: dict[str, Entry] = {}
        """Those that were shown and not searched whole."""
        self._unsaved: dict[str, Entry] = {}
        self._gone: set[str] = set()
        """Paths that the index does not know to be gone."""
        self._lock = threading.Lock()

    def refresh(self) -> list[Transcript]:
        """Look what is there; gives the transcripts that are new or have changed, which are then to be read.

        For one thread at a time.
        """
        with self._lock:
            looks = self._load()
        begun = time.monotonic()
        closely = begun - self._looked_at >= CLOSE_LOOK_SECONDS
        found = looks.look(closely=closely)
        if closely:
            self._looked_at = begun
        with self._lock:
            for path in found.gone:
                self._forget(path)
                self._unread.pop(path, None)
            self._unread.update((transcript.path, transcript) for transcript in found.changed)
            return list(self._unread.values())

    def read(self, transcripts: Iterable[Transcript]) -> None:
        """Read the ends of transcripts; what can't be read is none."""
        with self._lock:
            for transcript in transcripts:
                self._unread.pop(transcript.path, None)
                self._read(transcript)

    def page(self, query: ListQuery) -> list[SessionRow] | None:
        """Sessions, newest first; None if more must be read first, a piece of which is done."""
        with self._lock:
            chosen = self._choose(query)
            live = [entry for path in self._asked_for if (entry := self._entries.get(path)) is not None]
            if chosen is not None and self._have_changed([*chosen, *live]):
                chosen = self._choose(query)
            if chosen is None:
                return None
            before = [_is_archived(entry, query) for entry in chosen]
            rows = self._rows(chosen)
            if before != [_is_archived(entry, query) for entry in chosen]:
                return None  # A title found just now says so.
            return [row._replace(archived=is_so) for row, is_so in zip(rows, before, strict=True)]

    def find(self, session_id: str) -> SessionRow | None:
        """The row of one session."""
        copies = copies_of(self._projects, session_id)
        with self._lock:
            for transcript in copies:
                if not self._is_read(transcript):
                    self._read(transcript)
                self._asked_for.pop(transcript.path, None)
                self._asked_for[transcript.path] = None
            for path in list(self._asked_for)[:-_ASKED_FOR]:
                del self._asked_for[path]
            known = [entry for copy in copies if (entry := self._entries.get(copy.path)) is not None]
            session = self._newest(known)
            return self._rows([session])[0] if session is not None else None

    def forget(self, path: str) -> None:
        """A transcript is gone."""
        with self._lock:
            self._forget(path)

    def tend(self) -> bool:
        """Do a piece of the work that nobody waits for; whether there is more."""
        with self._lock:
            if not self._is_saving_due:
                return self._search_one() or self._begin_some()
            rows, gone = self._take_unsaved()
        self._index.save(rows, gone)
        return True

    def save(self) -> None:
        """Keep all that was read."""
        while True:
            with self._lock:
                rows, gone = self._take_unsaved()
            if not rows and not gone:
                return
            self._index.save(rows, gone)

    # -- what follows is called with the lock held ----------------------------------------------

    def _choose(self, query: ListQuery) -> list[Entry] | None:
        """The entries of a page; None if too many starts would have to be read at once to know them."""
        chosen: list[Entry] = []
        places: dict[str, str] = {}
        wanted = real_path(query.cwd) if query.cwd is not None else None
        archived = None if query.archived == "include" else query.archived == "only"
        left = SLICE
        for entry in self._ordered():
            if len(chosen) == query.limit:
                break
            if query.before is not None and entry.key >= query.before:
                continue
            if archived is not None and _is_archived(entry, query) != archived:
                continue
            if not entry.reading.is_begun:
                if left == 0:
                    return None
                left -= 1
                self._begin(entry)
            facts = entry.reading.facts
            if facts.is_session and (wanted is None or _real_place(facts.cwd or "/", places) == wanted):
                chosen.append(entry)
        return chosen

    def _have_changed(self, entries: list[Entry]) -> bool:
        """Whether some are no longer what was read, which is then done."""
        looks = [(entry, transcript_at(entry.path)) for entry in entries]
        for entry, transcript in looks:
            if transcript is None:
                self._forget(entry.path)
            elif transcript.mark != entry.mark:
                self._read(transcript)
        return any(transcript is None or transcript.mark != entry.mark for entry, transcript in looks)

    def _load(self) -> Looks:
        if self._looks is None:
            for entry in self._index.load(self._projects):
                self._entries.setdefault(entry.path, entry)
                if not entry.reading.is_begun:
                    self._unbegun[entry.path] = entry
            known = {path: entry.mark for path, entry in self._entries.items()}
            self._looks = Looks(self._projects, known)
        return self._looks

    def _is_read(self, transcript: Transcript) -> bool:
        known = self._entries.get(transcript.path)
        return known is not None and known.mark == transcript.mark

    def _read(self, transcript: Transcript) -> None:
        path, mark = transcript.path, transcript.mark
        known = self._entries.get(path)
        before = known.mark if known is not None else mark
        grew = mark.inode == before.inode and mark.size > before.size
        self._forget(path)
        try:
            reading = scan.read(path, known.reading if known is not None and grew else None)
        except OSError as exc:
            logger.info("%s can't be read: %s", path, exc.strerror)
            if self._looks is not None:
                self._looks.forget(path)
            return
        self._gone.discard(path)
        self._entries[path] = entry = Entry(path, mark, reading)
        if not reading.is_begun:
            self._unbegun[path] = entry
        self._unsaved[path] = entry

    def _forget(self, path: str) -> None:
        self._order = None
        if self._entries.pop(path, None) is not None:
            self._gone.add(path)
        for table in (self._unbegun, self._unsearched, self._unsaved):
            table.pop(path, None)

    def _ordered(self) -> list[Entry]:
        if self._order is None:
            by_id: dict[str, list[Entry]] = {}
            for entry in self._entries.values():
                by_id.setdefault(entry.id, []).append(entry)
            # Of most sessions there is one transcript, whose start need not be read to know that it counts.
            ones = [copies[0] if len(copies) == 1 else self._newest(copies) for copies in by_id.values()]
            self._order = sorted((one for one in ones if one is not None), key=lambda entry: entry.key, reverse=True)
        return self._order

    def _newest(self, copies: list[Entry]) -> Entry | None:
        """Of several transcripts of a session the one written last; None if none is a session."""
        for entry in copies:
            self._begin(entry)
        sessions = [entry for entry in copies if entry.reading.facts.is_session]
        return max(sessions, key=lambda entry: entry.mark.mtime_ns, default=None)

    def _begin(self, entry: Entry) -> None:
        path = entry.path
        self._unbegun.pop(path, None)
        if entry.reading.is_begun:
            return
        try:
            with opened(path) as file:
                entry.reading.begin(file)
        except OSError as exc:
            logger.info("%s can't be read: %s", path, exc.strerror)
        self._unsaved[path] = entry

    def _rows(self, entries: list[Entry]) -> list[SessionRow]:
        left = SEARCH_BUDGET
        for entry in entries:
            left -= self._search(entry, left)
        return [_row(entry) for entry in entries]

    def _search(self, entry: Entry, budget: int) -> int:
        """Search on for the title of a row that is shown; gives the bytes read."""
        path = entry.path
        if entry.reading.is_whole:
            return 0
        self._unsearched[path] = entry
        if budget <= 0:
            return 0
        self._unsaved[path] = entry
        try:
            with opened(path) as file:
                spent = entry.reading.look(file, budget)
        except OSError as exc:
            logger.info("%s can't be read: %s", path, exc.strerror)
            self._unsearched.pop(path)
            return 0
        if entry.reading.is_whole:
            self._unsearched.pop(path)
        return spent

    def _search_one(self) -> bool:
        entry = next(iter(self._unsearched.values()), None)
        if entry is not None:
            self._search(entry, _AT_EASE)
        return entry is not None

    def _begin_some(self) -> bool:
        entries = list(islice(self._unbegun.values(), _BEGUN_AT_EASE))
        for entry in entries:
            self._begin(entry)
        return bool(entries)

    @property
    def _is_saving_due(self) -> bool:
        """Whether much is unsaved, or nothing else is left to be done."""
        waiting = len(self._unsaved) + len(self._gone)
        return waiting >= _SAVED_AT_ONCE or (waiting > 0 and not self._unbegun and not self._unsearched)

    def _take_unsaved(self) -> tuple[list[tuple[object, ...]], list[str]]:
        paths = list(islice(self._unsaved, _SAVED_AT_ONCE))
        rows = [row for path in paths if (row := row_of(self._unsaved.pop(path))) is not None]
        gone = list(self._gone)
        self._gone.clear()
        return rows, gone


def _real_place(cwd: str, known: dict[str, str]) -> str:
    """The real path of a directory, asked for once."""
    if cwd not in known:
        known[cwd] = real_path(cwd)
    return known[cwd]


def _is_archived(entry: Entry, query: ListQuery) -> bool:
    return entry.id in query.in_our_archive or _says_archived(entry)


def _says_archived(entry: Entry) -> bool:
    custom = entry.reading.facts.custom
    return custom is not None and "[" in custom and says_archived(custom)


def _row(entry: Entry) -> SessionRow:
    facts, title = entry.reading.facts, entry.reading.facts.title
    updated_at, session_id = entry.key
    return SessionRow(
        id=session_id,
        cwd=facts.cwd or "/",
        updated_at=updated_at,
        title=visible(title.text) if title is not None else facts.first_typed,
        title_origin=title.origin if title is not None else None,
        archived=_says_archived(entry),
        model=facts.model,
        cost_usd=facts.cost,
        forked_from=facts.forked_from,
    )
