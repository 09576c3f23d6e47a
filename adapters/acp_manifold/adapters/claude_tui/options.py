"""What can be set in the interactive program: the permission mode at its keyboard, model and effort when it is started.

The program goes round its modes with Shift+Tab (Claude Code 2.1.332: default, accept edits, plan and, with models that
have it, auto), and the line below its input box names the one it is in, in mid-turn too: what is told is what is
painted. Its own commands for model and effort also write them into the person's settings, as the default of all new
sessions; so the program is started anew with `--model` and `--effort` instead, at rest. Which of them it
has, it tells the command of its status line.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from acp_manifold.adapters.claude.carried import Carried
from acp_manifold.adapters.claude_tui.keyboard import Keyboard
from acp_manifold.adapters.claude_tui.readiness import Standing
from acp_manifold.adapters.claude_tui.screen import Screen
from acp_manifold.bridge.errors import BackendFault, InvalidRequest, RestartNeeded
from acp_manifold.bridge.options import checked
from acp_manifold.translators.claude import options as wire
from acp_manifold.translators.narrow import JsonObject, as_str, obj, text
from acp_manifold.translators.updates import ConfigOption, Options

logger = logging.getLogger(__name__)

NEXT_MODE: Final = b"\x1b[Z"
"""Shift+Tab."""

PAINTED: Final = 2.0
"""Seconds for the next mode to be named; 0.05 are usual, more on a busy machine."""

_ROUND: Final = ("default", "acceptEdits", "plan", "auto")
_AT_START: Final = (wire.MODEL, wire.EFFORT)

_EFFORTS: Final = ("low", "medium", "high", "xhigh", "max")

USUAL: Final = wire.Menu(
    (
        wire.Model(
            "default", "Default", "That of your settings, or Claude Code's own", "default", _EFFORTS, False, True
        ),
        wire.Model("opus", "Opus", None, "opus", _EFFORTS, False, True),
        wire.Model("fable", "Fable", None, "fable", _EFFORTS, False, True),
        wire.Model("sonnet", "Sonnet", None, "sonnet", _EFFORTS, False, True),
        wire.Model("haiku", "Haiku", None, "haiku", _EFFORTS, False, True),
    )
)
"""The names that the program (2.1.332) knows models by, where no session of the `claude` backend has told its own."""


def begin_with(carried: Carried, wishes: Mapping[str, str], menu: wire.Menu) -> None:
    """Choose what a client has wished for in `_meta`, once a session, where nothing was chosen since.

    Args:
        carried: What the session keeps.
        wishes: Option id -> value. A model may be one that is not listed; another option than the two that the program
            is started with, or a value that is not offered, is passed over.
        menu: The models, as far as they are known.
    """
    offered = menu if menu.models else USUAL
    for option in (option for option in _AT_START if option in wishes and option not in carried.wished):
        carried.wished |= {option}
        value = wire.wished(offered, option, wishes[option])
        if value is None:
            logger.info("claude-tui: _meta asks for a %s that is not offered: %.100s", option, wishes[option])
        elif option not in carried.chosen:
            carried.choose(option, value)
    carried.keep()


def start_words(carried: Carried, mode: str, *, own_mode: bool) -> list[str]:
    """The arguments that have a program begin with what was chosen for the session.

    Args:
        carried: What that is.
        mode: The permission mode, if none was chosen.
        own_mode: Whether the program begins in that by itself.
    """
    words = [f"--{option}={carried.chosen[option]}" for option in _AT_START if option in carried.chosen]
    begun_in = carried.mode or (None if own_mode else mode)
    return [f"--permission-mode={begun_in}", *words] if begun_in is not None else words


class TuiOptions:
    """One for each program."""

    def __init__(
        self,
        keyboard: Keyboard,
        screen: Screen,
        standing: Standing,
        carried: Carried,
        menu: wire.Menu,
        mode: str,
        tell: Callable[[Options], None],
    ) -> None:
        """
        Args:
            keyboard: Types.
            screen: What is painted.
            standing: Waits.
            carried: What the session keeps from one program to the next.
            menu: The models, as far as they are known.
            mode: The permission mode that the program was started in.
            tell: Told the options whenever they change.
        """
        self._keyboard = keyboard
        self._screen = screen
        self._standing = standing
        self._carried = carried
        self._menu = menu if menu.models else USUAL
        self._tell = tell
        self._absent: frozenset[str] = frozenset()
        named = as_str(carried.chosen.get(wire.MODEL))
        runs = next((model.runs for model in self._menu.models if model.id == named), named)
        effort = as_str(carried.chosen.get(wire.EFFORT))
        before = carried.held or wire.Held(model=runs, effort=effort)
        self._held = wire.Held(mode, before.model, named, before.effort)

    @property
    def options(self) -> tuple[ConfigOption, ...]:
        """See `BackendSession.options`."""
        offered = [mode for mode in _ROUND if mode not in self._absent]
        others = wire.options(self._menu, self._held, bypass=False)
        return (
            wire.mode_option(self._held.mode, offered),
            *(option for option in others if option.id in _AT_START),
        )

    def look(self) -> None:
        """Something was painted: another mode may be named."""
        mode = self._screen.mode
        if mode is not None:
            self._carried.in_mode(mode)
            self._now(self._held._replace(mode=mode))

    def measured(self, status: JsonObject) -> None:
        """The program tells its status line which model it has, and with what effort."""
        model, effort = text(obj(status, "model"), "id"), text(obj(status, "effort"), "level")
        if all(model not in (known.id, known.runs) for known in self._menu.models):
            # `claude-opus-5-5` is what `opus` means.
            model = next((known.runs for known in self._menu.models if known.id in model.split("-")), model)
        self._now(self._held._replace(model=model or self._held.model, effort=effort or None))

    def _now(self, held: wire.Held) -> None:
        if held == self._held:
            return
        before, self._held = self.options, held
        self._carried.held = held
        self._carried.keep()
        if self.options != before:
            self._tell(Options(self.options))

    async def set(self, option_id: str, value: str | bool, *, resting: bool) -> None:
        """Go round to a mode, or have the program started anew; see `BackendSession.set_option`.

        Args:
            option_id: Which option.
            value: What it is to be.
            resting: Whether the program could be let go now.

        Raises:
            InvalidParams: There is no such option or value.
            InvalidRequest: The program is at work, asks something, or does not come to the mode.
            RestartNeeded: The program is to be started anew.
            BackendGone: It ended.
        """
        wanted = str(checked(self.options, option_id, value))
        if option_id == wire.MODE:
            await self._go_to(wanted)
        elif next(option.value for option in self.options if option.id == option_id) != wanted:
            self._choose(option_id, wanted, resting)

    def _choose(self, option_id: str, wanted: str, resting: bool) -> None:
        if not resting:
            raise InvalidRequest(
                f"The interactive program takes another {option_id} only when it is started: "
                "set it while no turn runs and nothing goes on in the background"
            )
        if option_id == wire.EFFORT and wanted == wire.DEFAULT:
            if self._carried.chosen.pop(option_id, None) is None:
                return
        else:
            self._carried.chosen[option_id] = wanted
        self._carried.held = None
        self._carried.keep()
        raise RestartNeeded(f"Claude Code is started anew with another {option_id}")

    async def _go_to(self, wanted: str) -> None:
        async with self._keyboard.using:
            been = set[str]()
            while self._held.mode != wanted:
                if self._held.mode in been:
                    self._absent |= {wanted}
                    self._tell(Options(self.options))
                    raise InvalidRequest(f"Claude Code offers no mode {wanted} here; it is in {self._held.mode}")
                been.add(self._held.mode)
                await self._next()

    async def _next(self) -> None:
        before = self._held.mode
        try:
            await self._keyboard.press(NEXT_MODE)
        except BackendFault as exc:
            raise InvalidRequest(f"{exc.message}. The mode can be set once that is answered") from exc

        def another() -> bool | None:
            self.look()
            return self._held.mode != before or self._screen.look().dialog is not None or None

        if await self._standing.until(another, PAINTED) is None:
            raise InvalidRequest(f"Claude Code stays in the mode {before}")
        dialog = self._screen.look().dialog
        if dialog is not None:
            # A mode that is to be agreed to first, by a person who reads what it says: left with Escape.
            await self._keyboard.escape()
            raise InvalidRequest(self._standing.blocked(dialog).message)
