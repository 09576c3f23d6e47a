"""The options of one session, as its process tells them; and the requests that set them.

What is shown is what the process says of itself. Until its handshake that is what the last one said, with what was
chosen for this session put over it; and a choice is sent again to each process that comes to serve the session.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from acp_manifold.adapters.claude.carried import Carried
from acp_manifold.adapters.claude.control import Control
from acp_manifold.adapters.claude.shelf import Shelf
from acp_manifold.bridge.errors import BackendFault, BackendGone, InvalidRequest, RestartNeeded
from acp_manifold.bridge.options import checked
from acp_manifold.translators.claude import options as wire
from acp_manifold.translators.narrow import JsonObject, as_str, flag, text
from acp_manifold.translators.updates import ConfigOption, Options

logger = logging.getLogger(__name__)

OPTION_LIMIT: Final = 10.0
"""Seconds to set an option; some milliseconds are usual, and a turn that runs holds nothing up."""


class SessionOptions:
    """One for each process."""

    def __init__(
        self,
        control: Control,
        carried: Carried,
        shelf: Shelf,
        mark: str,
        cwd: str,
        tell: Callable[[Options], None],
        rests: Callable[[], Awaitable[bool]],
        name: str,
    ) -> None:
        """
        Args:
            control: How to ask the process.
            carried: What was chosen for the session, for whichever process serves it.
            shelf: What was offered last.
            mark: What a menu belongs to; see `Shelf.mark`.
            cwd: The directory of the session.
            tell: Told the options whenever they change.
            rests: Whether the process could be let go just now, or in a moment.
            name: Whom log lines speak of.
        """
        self._control = control
        self._carried = carried
        self._shelf = shelf
        self._place = (mark, cwd)
        self._tell = tell
        self._rests = rests
        self._name = name
        self._menu, self._held = shelf.recall(mark, cwd)
        self._assume()
        self._served: tuple[str, ...] | None = None
        self._known = False
        """Whether the process has told all."""
        self._told: tuple[ConfigOption, ...] = self.options
        self._head: tuple[str, ...] = ()
        """What the last turn's head said."""

    def served(self, models: tuple[str, ...]) -> None:
        """What an endpoint of the person's, or of the client's, says it serves; nothing if it doesn't say."""
        self._served = models or None
        self.changed()

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        """See `BackendSession.options`."""
        return wire.options(self._menu, self._held, bypass=bypass_taken(), models=self._served)

    @property
    def stale(self) -> bool:
        """Whether the process has not told all yet."""
        return not self._known

    def changed(self) -> None:
        """Tell the options if they are others than those told last."""
        now = self.options
        if now != self._told:
            self._told = now
            self._tell(Options(now))

    # -- from one process to the next -------------------------------------------------------------

    def _assume(self) -> None:
        """Show what was chosen for the session: it will hold as soon as the process is up."""
        chosen: JsonObject = {**self._carried.chosen}
        if self._carried.mode is not None:
            self._held = self._held._replace(mode=self._carried.mode)
        model = as_str(chosen.get(wire.MODEL))
        if model is not None:
            runs = next((known.runs for known in self._menu.models if known.id == model), model)
            self._held = self._held._replace(model=runs, named=model)
        self._held = self._held._replace(
            effort=as_str(chosen.get(wire.EFFORT)) or self._held.effort,
            fast=flag(chosen, wire.FAST) if wire.FAST in chosen else self._held.fast,
            ultracode=flag(chosen, wire.ULTRACODE) if wire.ULTRACODE in chosen else self._held.ultracode,
            output_style=as_str(chosen.get(wire.STYLE)) or self._held.output_style,
            agent=as_str(chosen.get(wire.AGENT)) or self._held.agent,
        )

    def restore(self) -> None:
        """Send what was chosen, behind the `initialize` of a new process and before any prompt."""
        for option in wire.ORDER:
            if option in self._carried.chosen:
                self._control.post(wire.request(option, self._carried.chosen[option], self._held))

    def greeted(self, answer: JsonObject) -> None:
        """The answer to `initialize` is there."""
        self._menu = wire.menu(answer)
        self._held = wire.greeted(self._held, answer)
        self._carried.in_mode(self._held.mode)
        self._assume()
        # Model and effort are yet to be told: those shown so far stay until then.
        self.changed()

    def begin_with(self, wishes: Mapping[str, str]) -> None:
        """Set what a client has wished for in `_meta`, once a session, where nothing was chosen since.

        A model may be one that the CLI does not list; of the others, those that are not offered are passed over.
        """
        for option in (option for option in wire.ORDER if option in wishes and option not in self._carried.wished):
            self._carried.wished |= {option}
            if option in self._carried.chosen:
                continue
            value = wire.wished(self._menu, option, wishes[option])
            if value is None:
                logger.info("%s: _meta asks for a %s that is not offered: %.100s", self._name, option, wishes[option])
                continue
            self._control.post(wire.request(option, value, self._held))
            self._carried.choose(option, value)
            self._assume()
        self._carried.keep()
        self.changed()

    def refresh(self, *, typed: bool = False) -> None:
        """Have the process tell what holds.

        Args:
            typed: Whether a slash command ran, so that what has changed was chosen by the person.
        """

        def told(answer: JsonObject) -> None:
            before = self._held
            self._applied(answer)
            if typed:
                self._adopt(before)
            self.changed()

        self._control.post({"subtype": "get_settings"}, told)

    def _applied(self, answer: JsonObject) -> None:
        self._known = True
        self._held = wire.applied(self._held, answer)
        model = as_str(self._carried.chosen.get(wire.MODEL))
        if model is not None:
            self._held = self._held._replace(named=model)
        if not self._carried.chosen and self._carried.mode is None:
            self._shelf.keep(*self._place, self._menu, self._held)

    def _adopt(self, before: wire.Held) -> None:
        """What a slash command has changed is to hold in the next process too."""
        if self._held.model != before.model:
            model = wire.current_model(self._menu, self._held._replace(named=None))
            name = model.id if model is not None else self._held.model
            if name is not None:
                self._carried.choose(wire.MODEL, name)
                self._held = self._held._replace(named=name)
        if self._held.effort not in (None, before.effort):
            self._carried.choose(wire.EFFORT, self._held.effort or "")
        if self._held != before:
            self._carried.keep()

    # -- what the process tells -------------------------------------------------------------------

    def in_mode(self, mode: str) -> None:
        """The process is in this permission mode."""
        self._carried.in_mode(mode)
        if mode != wire.BYPASS:
            self._carried.bypass = False
        self._held = self._held._replace(mode=mode)
        self._carried.keep()
        self.changed()

    def head(self, frame: JsonObject) -> None:
        """The head of a turn: what it runs with."""
        self._carried.turn_began()
        told = (text(frame, "model"), text(frame, "output_style"))
        self._held = wire.running(self._held, frame)
        mode = as_str(frame.get("permissionMode"))
        if self._known and told != self._head and told != (self._held.model, self._held.output_style):
            self.refresh()
        self._head = told
        if mode:
            self.in_mode(mode)

    # -- what a client sets -----------------------------------------------------------------------

    async def set(self, option_id: str, value: str | bool) -> None:
        """Set an option of a process that is up; see `BackendSession.set_option`."""
        value = checked(self.options, option_id, value)
        if option_id == wire.MODE and value == wire.BYPASS and self._held.mode != wire.BYPASS:
            await self._allow_bypass()
        try:
            answer = await self._control.request(wire.request(option_id, value, self._held), OPTION_LIMIT)
        except BackendGone:
            raise
        except BackendFault as exc:
            self._carried.bypass = False
            raise InvalidRequest(exc.message) from exc
        if option_id == wire.MODE:
            self.in_mode(text(answer, "mode") or str(value))
            return
        if option_id == wire.EFFORT and value == wire.DEFAULT:
            self._carried.chosen.pop(option_id, None)
        else:
            self._carried.choose(option_id, value)
        self._carried.keep()
        if option_id == wire.FAST:
            # Told by no answer, but by the head of the next turn.
            self._held = self._held._replace(fast=bool(value), fast_obstacle=None)
        self._applied(await self._control.request({"subtype": "get_settings"}, OPTION_LIMIT))
        self.changed()

    async def _allow_bypass(self) -> None:
        """A process takes this mode only if it was started to: so it is started anew, and only for who asks for it.

        Raises:
            RestartNeeded: Now.
            InvalidRequest: Something runs.
        """
        if self._carried.bypass:
            return
        if not await self._rests():
            raise InvalidRequest(
                f"Claude Code takes the mode {wire.BYPASS} only when it is started: "
                "set it while no turn runs and nothing goes on in the background"
            )
        self._carried.bypass = True
        raise RestartNeeded(f"Claude Code is started anew for the mode {wire.BYPASS}")


def bypass_taken() -> bool:
    """Whether the CLI would start in the mode that bypasses permissions.

    Claude Code 2.1.332 refuses it to root, unless the environment says that it is in a sandbox.
    """
    return os.geteuid() != 0 or os.environ.get("IS_SANDBOX") == "1"
