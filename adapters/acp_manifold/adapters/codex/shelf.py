"""What the threads share of their options: the models Codex lists, and what was chosen and Codex does not keep."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from acp_manifold.translators.codex import options as wire
from acp_manifold.translators.narrow import JsonObject

from .client import Client


class Shelf:
    """One for each `CodexBackend.running`."""

    def __init__(self) -> None:
        self.models: tuple[wire.Model, ...] = ()
        """Empty until they were told."""
        self.profiles: dict[str, tuple[wire.Profile, ...]] = {}
        """By directory, which may have a configuration of its own: the person's permission profiles there."""
        self.chosen: dict[str, JsonObject] = {}
        """By thread, for as long as it is followed: what `thread/settings/update` was sent."""
        self.listeners: list[Callable[[], None]] = []
        """Told when models, or permission profiles, become known."""
        self._asked: Client | None = None
        self._asking = anyio.Lock()

    async def want_models(self, client: Client) -> None:
        """Have an app-server tell its models, once; who listens is told when it has.

        Raises:
            BridgeError: It can't.
        """
        async with self._asking:
            if self._asked is not client:
                self._models_told(await client.request("model/list", {}))
                self._asked = client
                self.profiles = {}

    async def want_profiles(self, client: Client, cwd: str) -> None:
        """Have an app-server tell the profiles of a directory, once; it takes 3 ms (codex-cli 0.163.0).

        Raises:
            BridgeError: It can't.
        """
        async with self._asking:
            if cwd not in self.profiles:
                self.profiles[cwd] = wire.profiles(await client.request("permissionProfile/list", {"cwd": cwd}))
                if self.profiles[cwd]:
                    self._changed()

    def _models_told(self, result: JsonObject) -> None:
        models = wire.models(result)
        if models and models != self.models:
            self.models = models
            self._changed()

    def _changed(self) -> None:
        for changed in list(self.listeners):
            changed()
