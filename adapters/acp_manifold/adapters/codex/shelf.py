"""What the threads share of their options: the models Codex lists, and what was chosen and Codex does not keep."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from acp_manifold.translators.codex import options as wire
from acp_manifold.translators.narrow import JsonObject

from .client import Client


class Shelf:
    """One for each `CodexBackend.running`."""

    def __init__(self) -> None:
        self.models: tuple[wire.Model, ...] = ()
        """Empty until they were told."""
        self.served: tuple[str, ...] | None = None
        """What the endpoint serves, where others have found that out; see `Backend.offer_models`."""
        self.chosen: dict[str, JsonObject] = {}
        """By thread, for as long as it is followed: what `thread/settings/update` was sent."""
        self.listeners: list[Callable[[], None]] = []
        """Told when models become known."""
        self._asked: Client | None = None

    def want_models(self, client: Client) -> None:
        """Have an app-server tell its models, once; who listens is told when it has.

        Asked for when the first thread is there: before, it would hold that up.
        """
        if self._asked is not client:
            self._asked = client
            client.begin("model/list", {}, self._models_told)

    def _models_told(self, result: JsonObject) -> None:
        models = wire.models(result)
        if models and models != self.models:
            self.models = models
            self._changed()

    def offer(self, ids: Sequence[str] | None) -> None:
        """See `Backend.offer_models`."""
        self.served = None if ids is None else tuple(ids)
        self._changed()

    def _changed(self) -> None:
        for changed in list(self.listeners):
            changed()
