"""What a session keeps while no process serves it, beyond what its transcript holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_manifold.translators.claude.options import BYPASS, MODEL
from acp_manifold.translators.claude.permissions import rule_name
from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, as_str, obj

if TYPE_CHECKING:
    from acp_manifold.adapters.claude.kept import Kept
    from acp_manifold.translators.claude.options import Held


class Carried:
    """One for each session of ours, for all processes that serve it in turn."""

    def __init__(self) -> None:
        self.hidden: tuple[str, ...] = ()
        """Slash commands that only make sense in a terminal."""
        self.rules: list[str] = []
        """What the person has allowed for the session: `Bash(git log:*)`."""
        self.folders: list[str] = []
        """Directories added for the session."""
        self.told_faults: set[str] = set()
        """MCP servers whose fault was told, and that have not worked since: it is told once."""
        self.chosen: dict[str, str | bool] = {}
        """The options that were set, by id; the mode apart."""
        self.wished: frozenset[str] = frozenset()
        """The options whose first value a client has wished for in `_meta`, and that have had it."""
        self.bypass = False
        """Whether the next process is to be started so that it takes the mode that bypasses permissions."""
        self._unused_model = False
        """Whether no turn has run with the model that was set last: then the CLI does not keep it."""
        self.held: Held | None = None
        """What the last process has told of itself, where that is shown until the next one tells."""
        self._first: str | None = None
        self._mode: str | None = None
        self._restored = False
        self._kept: Kept | None = None

    def keep_in(self, kept: Kept, *, known: bool = False) -> None:
        """What is set is kept there from now on.

        Args:
            kept: Where.
            known: Whether the session is from there: what is kept holds for it again.
        """
        self._kept = kept
        before = kept.read() if known else {}
        if (mode := as_str(before.get("mode"))) is not None:
            self._mode, self._restored = mode, True
        for option, value in obj(before, "chosen").items():
            if isinstance(value, str | bool):
                self.chosen[option] = value
        self._unused_model = MODEL in self.chosen

    def keep(self) -> None:
        """Something was set: all that a process would not know by itself is kept, but for what is not safe unasked."""
        if self._kept is None:
            return
        what: JsonObject = {}
        if self.mode not in (None, BYPASS):
            what["mode"] = self.mode
        # The model of the last answer the CLI keeps itself.
        left_out = () if self._unused_model else (MODEL,)
        if chosen := {option: value for option, value in self.chosen.items() if option not in left_out}:
            what["chosen"] = chosen
        self._kept.write(what)

    def choose(self, option: str, value: str | bool) -> None:
        """An option was set, the mode apart; `keep` is still to be called."""
        self.chosen[option] = value
        self._unused_model = self._unused_model or option == MODEL

    def turn_began(self) -> None:
        """A turn runs, with the model that was chosen."""
        if self._unused_model:
            self._unused_model = False
            self.keep()

    def in_mode(self, mode: str) -> None:
        """The CLI tells the permission mode it is in."""
        self._first = self._first or mode
        self._mode = mode

    def remember(self, change: JsonObject) -> None:
        """A change of permissions that the person has chosen; one for longer than the session the CLI keeps itself."""
        if change.get("destination") != "session":
            return
        if change.get("type") == "addRules" and change.get("behavior") == "allow":
            self.rules += [
                name for rule in as_objects(change.get("rules")) if (name := rule_name(rule)) not in self.rules
            ]
        elif change.get("type") == "addDirectories":
            self.folders += [folder for folder in as_list(change.get("directories")) if isinstance(folder, str)]

    @property
    def current_mode(self) -> str | None:
        """The permission mode the CLI is in, as far as it has told."""
        return self._mode

    @property
    def mode(self) -> str | None:
        """The permission mode to resume in, if it is another than the one that the person's settings gave.

        `--resume` alone begins in that one again (Claude Code 2.1.332).
        """
        return self._mode if self._restored or self._mode != self._first else None
