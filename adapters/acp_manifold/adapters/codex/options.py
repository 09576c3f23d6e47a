"""The options of one thread, as the app-server tells them; and the requests that set them."""

from __future__ import annotations

import logging
from collections.abc import Callable

import anyio

from acp_manifold.bridge.errors import BridgeError, InvalidRequest, RemoteError
from acp_manifold.bridge.options import checked
from acp_manifold.translators.codex import options as wire
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import ConfigOption, Options

from .client import Client
from .shelf import Shelf

logger = logging.getLogger(__name__)

MODELS_DELAY = 0.25
"""Seconds between the opening of a thread and the request for the models: the list costs codex-cli 0.163.0 as much as a
thread (17 ms), which whoever opens a session, or several, should not wait for."""

TOLD_LIMIT = 2.0
"""Seconds for Codex to tell what holds once it has taken a change; a millisecond is usual."""


class ThreadOptions:
    """One for each opening of a thread."""

    def __init__(self, client: Client, cwd: str, shelf: Shelf, tell: Callable[[Options], None]) -> None:
        """
        Args:
            client: How to ask the app-server.
            cwd: The directory of the thread.
            shelf: What the threads share.
            tell: Told the options whenever they change.
        """
        self._client = client
        self._cwd = cwd
        self._shelf = shelf
        self._tell = tell
        self._thread = ""
        self._held: wire.Settings | None = None
        self._configured: wire.Settings | None = None
        self._told: tuple[ConfigOption, ...] = ()
        self._served: tuple[str, ...] | None = None
        self._heard = anyio.Event()
        """Set, and made anew, when the app-server tells what holds."""

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        """See `BackendSession.options`; none before the thread is open."""
        if self._held is None or self._configured is None:
            return ()
        return wire.options(self._held, self._configured, self._shelf.models, self._served, self._own)

    @property
    def _own(self) -> tuple[wire.Profile, ...]:
        return self._shelf.profiles.get(self._cwd, ())

    @property
    def model(self) -> str | None:
        """The model that the thread's next turn runs with."""
        return self._held.model if self._held is not None else None

    def opened(self, thread_id: str, result: JsonObject) -> None:
        """The thread is open, with these settings; or the conversation goes on in this one, after `/clear`.

        What was chosen for the one before is for `restore` to set in the new one too.
        """
        before, self._thread = self._thread, thread_id
        self._held = self._configured = wire.opened(result)
        if before in self._shelf.chosen:
            self._shelf.chosen[thread_id] = self._shelf.chosen[before]
        if not before:
            self._told = self.options
            self._shelf.listeners.append(self.changed)

    async def learn(self) -> None:
        """Have models and permission profiles told, a while after the thread was opened."""
        if self._shelf.models and self._cwd in self._shelf.profiles:
            return
        await anyio.sleep(MODELS_DELAY)
        try:
            await self._look_around()
        except BridgeError as exc:
            logger.info("codex session %s: what can be chosen is not known: %s", self._thread, exc.message)

    async def _look_around(self) -> None:
        await self._shelf.want_models(self._client)
        await self._shelf.want_profiles(self._client, self._cwd)

    def close(self) -> None:
        """The thread is let go."""
        if self.changed in self._shelf.listeners:
            self._shelf.listeners.remove(self.changed)

    def changed(self) -> None:
        """Tell the options if they are others than those told last."""
        now = self.options
        if now != self._told:
            self._told = now
            self._tell(Options(now))

    def served(self, models: tuple[str, ...]) -> None:
        """What an endpoint of the person's, or of the client's, says it serves; nothing if it doesn't say."""
        self._served = models or None
        self.changed()

    def settings_updated(self, params: JsonObject) -> None:
        """The app-server tells what holds now."""
        self._held = wire.updated(params)
        self.changed()
        heard, self._heard = self._heard, anyio.Event()
        heard.set()

    async def restore(self, known_as: str) -> None:
        """Set again what was chosen before the thread was let go, or had to be begun anew.

        Args:
            known_as: The thread's id then.
        """
        chosen = self._shelf.chosen.get(known_as)
        if not chosen:
            return
        self._shelf.chosen[self._thread] = chosen
        try:
            await self._update(chosen)
        except RemoteError as exc:
            logger.warning("codex session %s: its settings could not be restored: %s", self._thread, exc.message)
        self._told = self.options

    async def set(self, option_id: str, value: str | bool) -> None:
        """Set an option; see `BackendSession.set_option`."""
        held, configured = self._held, self._configured
        if held is None or configured is None:
            raise InvalidRequest(f"Codex has not opened session {self._thread} yet")
        if not self._shelf.models or self._cwd not in self._shelf.profiles:
            await self._look_around()
        value = checked(self.options, option_id, value)
        params = wire.change(option_id, value, held, configured, self._shelf.models, self._own)
        news = self._heard if all(now.value != value for now in self.options if now.id == option_id) else None
        try:
            await self._update(params)
        except RemoteError as exc:
            raise InvalidRequest(f"Codex does not set {option_id} to {value}: {exc.message}") from exc
        if news is not None:
            # The answer comes first, and what holds then with the next line.
            with anyio.move_on_after(TOLD_LIMIT):
                await news.wait()
        self._shelf.chosen[self._thread] = {**self._shelf.chosen.get(self._thread, {}), **params}

    async def _update(self, params: JsonObject) -> None:
        await self._client.request("thread/settings/update", {"threadId": self._thread, **params})
