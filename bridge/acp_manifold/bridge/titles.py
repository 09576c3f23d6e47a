"""The title keeper: what each session is called, who called it so, and what a new title changes.

The rule is the table in `translators.titles`; this carries it out for all sessions of the hub.
A title a client sets counts from the moment the write begins, so that one generated meanwhile
finds it there; if the write fails, what was before counts again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

import anyio

from acp_manifold.translators.titles import DECISIONS, normalise

from .backend import StoreOrigin
from .errors import InvalidParams
from .ledger import Key, Ledger, TitleRecord

ECHO_SECONDS = 5.0
"""How long after a write of ours a store may still tell us of it."""

ECHOES = 2
"""How often a store tells us of one write of ours: by the CLI's stream, and by the watched file."""

NO_TITLE = TitleRecord("", "none")

Heard: TypeAlias = Literal["news", "known", "discarded"]
"""A title heard: taken and worth telling, nothing new, or one that must not stand."""


class _Echo:
    """A write of ours that we will hear of."""

    __slots__ = ("left", "text", "until")

    def __init__(self, text: str, until: float) -> None:
        self.text = text
        self.until = until
        self.left = ECHOES


class _Kept:
    __slots__ = ("echoes", "record", "version", "writing")

    def __init__(self, record: TitleRecord) -> None:
        self.record = record
        self.version = 0
        """Counts every change of the record: what was begun under an older one is stale."""
        self.echoes: list[_Echo] = []
        self.writing = anyio.Lock()
        """Held while a client's title is on its way into the store."""


class TitleKeeper:
    """Titles of all sessions, by the backend's name of them."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: dict[Key, _Kept] = {}

    def current(self, key: Key) -> TitleRecord:
        """The title as far as we know it without asking the store."""
        return self._of(key).record

    def version(self, key: Key) -> int:
        """A number that changes with every change of the title."""
        return self._of(key).version

    def seen_in_store(self, key: Key, title: str | None, origin: StoreOrigin | None) -> TitleRecord:
        """Join what a store's row says with what we know, and give the title that counts.

        A person's title in the store counts over ours: it can only have come later, since ours
        was in the store before we answered. A generated one doesn't, and neither does any while
        one of ours is on its way.
        """
        kept = self._of(key)
        text = normalise(title or "")
        if not text or origin is None or kept.writing.locked():
            return kept.record
        if text != kept.record.text and DECISIONS[kept.record.origin, origin] == "take":
            self._change(key, kept, TitleRecord(text, origin))
        return kept.record

    def shown(self, key: Key, title: str | None, origin: StoreOrigin | None, record: TitleRecord | None) -> str | None:
        """What a list shows for a store's row, where `record` is what the ledger has; changes nothing."""
        kept = self._kept.get(key)
        ours = kept.record if kept is not None else record or NO_TITLE
        text = normalise(title or "")
        if text and origin is not None and DECISIONS[ours.origin, origin] == "take":
            return text
        return ours.text or text or None

    async def set(self, key: Key, title: str, write: Callable[[str], Awaitable[str]]) -> str:
        """Set a title for a client and give back what was stored.

        Args:
            key: The session.
            title: As the client sent it.
            write: Puts a title into the backend's store and gives back what that holds then.

        Raises:
            InvalidParams: Nothing is left of the title once it is normalised.
            BridgeError: What `write` raises; the title is then what it was before.
        """
        wanted = normalise(title)
        if not wanted:
            raise InvalidParams("title: is empty, or holds nothing that can be shown", {"field": "title"})
        kept = self._of(key)
        async with kept.writing:
            before = kept.record
            version = self._change(key, kept, TitleRecord(wanted, "client"))
            echo = self._expect(kept, wanted)
            try:
                stored = normalise(await write(wanted)) or wanted
            except BaseException:
                if echo in kept.echoes:
                    kept.echoes.remove(echo)
                if kept.version == version:
                    self._change(key, kept, before)
                raise
            echo.text = stored
            if kept.version == version and stored != wanted:
                self._change(key, kept, TitleRecord(stored, "client"))
        return stored

    async def put_back(
        self, key: Key, shown: Callable[[], Awaitable[str | None]], write: Callable[[str], Awaitable[str]]
    ) -> None:
        """Write the title that counts once more, if the store shows another one.

        Args:
            key: The session.
            shown: What the store shows now; None for no title.
            write: As for `set`.
        """
        kept = self._of(key)
        async with kept.writing:
            store, title = await shown(), kept.record.text
            if store is not None and normalise(store) != title:
                self._expect(kept, title)
                await write(title)

    def heard(self, key: Key, title: str, origin: StoreOrigin) -> Heard:
        """Weigh a title that appeared in a backend's store or stream."""
        text = normalise(title)
        kept = self._of(key)
        last = kept.echoes[-1].text if kept.echoes else None
        echo = self._is_echo(kept, text)
        if not text or text == kept.record.text or (echo and text != last):
            return "known"
        if echo:
            # The last we wrote, and it stands behind what somebody else wrote in the same moment.
            self._change(key, kept, TitleRecord(text, "client"))
            return "news"
        if DECISIONS[kept.record.origin, origin] == "discard":
            return "discarded"
        self._change(key, kept, TitleRecord(text, origin))
        return "news"

    def rename_key(self, old: Key, new: Key) -> None:
        """A session got another name at its backend: its title goes with it."""
        kept = self._kept.pop(old, None)
        if kept is not None and kept.record.origin != "none":
            self._kept[new] = kept
            self._ledger.put_title(new, kept.record)

    def copy_key(self, old: Key, new: Key) -> None:
        """A conversation goes on as `new`, and `old` stays what it was; both are called what a person called it."""
        record = self._of(old).record
        if record.origin in ("client", "user"):
            self._change(new, self._of(new), record)
        self.let_go(old)

    def copied(self, new: Key, record: TitleRecord) -> None:
        """A session begins as a copy of another one: it is called what that is called, by whoever called it so."""
        if record.origin != "none":
            self._change(new, self._of(new), record)

    def let_go(self, key: Key) -> None:
        """Nobody has the session open: the ledger knows what there is to know, but for a write that is under way."""
        kept = self._kept.get(key)
        if kept is not None and not kept.writing.locked():
            del self._kept[key]

    def forget(self, key: Key) -> None:
        """The session is gone for good."""
        self._kept.pop(key, None)
        self._ledger.forget(key)

    def _of(self, key: Key) -> _Kept:
        kept = self._kept.get(key)
        if kept is None:
            kept = self._kept[key] = _Kept(self._ledger.title(key) or NO_TITLE)
        return kept

    def _change(self, key: Key, kept: _Kept, record: TitleRecord) -> int:
        kept.record = record
        kept.version += 1
        self._ledger.put_title(key, record)
        return kept.version

    def _expect(self, kept: _Kept, text: str) -> _Echo:
        now = anyio.current_time()
        kept.echoes = [echo for echo in kept.echoes if echo.until > now and echo.left]
        kept.echoes.append(_Echo(text, now + ECHO_SECONDS))
        return kept.echoes[-1]

    def _is_echo(self, kept: _Kept, text: str) -> bool:
        """Whether a store tells of a write of ours; each time is counted, so that no rename back is taken for one."""
        now = anyio.current_time()
        for echo in kept.echoes:
            if echo.text == text and echo.left and echo.until > now:
                echo.left -= 1
                return True
        return False
