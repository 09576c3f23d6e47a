"""What Claude Code offered last, for sessions whose process has not told it yet.

A process tells its models 0.3 to 1 s after it was started, `session/new` is answered before. So what the last one
told is kept, in memory and, for the first session of an agent, in a small file of the state directory. It is only
ever shown until the process itself has told.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from acp_manifold.translators.claude.options import Held, Menu, Model
from acp_manifold.translators.narrow import JsonObject, as_list, as_object, as_objects
from acp_manifold.translators.updates import Choice

logger = logging.getLogger(__name__)

FILE: Final = "claude-options.json"

_FORM: Final = 1
"""Of the file; one of another form is not read."""

_TELLING: Final = ("CLAUDE_CONFIG_DIR", "HOME", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL")
"""What of the environment decides over the menu, together with the program. No secrets."""


class Shelf:
    """One for each `ClaudeBackend.running`."""

    def __init__(self, path: Path, environ: Mapping[str, str]) -> None:
        self._path = path
        self._environ = environ
        self._read: set[str] = set()
        self._last: dict[str, tuple[Menu, Held]] = {}
        self._by_folder: dict[tuple[str, str], Held] = {}

    def mark(self, command: Sequence[str]) -> str:
        """What a menu belongs to: the program and the environment it is started in."""
        told = [*command, *(self._environ.get(name, "") for name in _TELLING)]
        return hashlib.sha256("\0".join(told).encode("utf-8", "replace")).hexdigest()[:32]

    def recall(self, mark: str, cwd: str) -> tuple[Menu, Held]:
        """What was offered and held last, in this directory if there was a session in it; else nothing."""
        if mark not in self._read:
            self._read.add(mark)
            self._load(mark)
        menu, held = self._last.get(mark, (Menu(), Held()))
        return menu, self._by_folder.get((mark, cwd), held)

    def keep(self, mark: str, cwd: str, menu: Menu, held: Held) -> None:
        """A process in which nothing was chosen by a client has told all."""
        known = self._last.get(mark)
        self._last[mark] = (menu, held)
        self._by_folder[mark, cwd] = held
        if known != (menu, held):
            self._save(mark, menu, held)

    def _load(self, mark: str) -> None:
        try:
            kept = as_object(json.loads(self._path.read_bytes()))
            if kept.get("form") == _FORM and kept.get("mark") == mark:
                self._last.setdefault(
                    mark, (_menu(as_object(kept.get("menu"))), Held(**_fields(as_object(kept.get("held")))))
                )
        except FileNotFoundError:
            return
        except (OSError, ValueError, TypeError) as exc:
            # It is written anew by the next session.
            logger.info("claude: %s could not be read: %s", self._path, exc)

    def _save(self, mark: str, menu: Menu, held: Held) -> None:
        kept: JsonObject = {
            "form": _FORM,
            "mark": mark,
            "menu": {
                "models": [model._asdict() for model in menu.models],
                "styles": list(menu.styles),
                "agents": [choice._asdict() for choice in menu.agents],
            },
            "held": held._asdict(),
        }
        fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fresh.write_text(json.dumps(kept), encoding="utf-8")
            fresh.replace(self._path)
        except OSError as exc:
            logger.info("claude: %s could not be written: %s", self._path, exc)


def _menu(kept: JsonObject) -> Menu:
    """A menu as it was written; a field that is missing or new is a `TypeError`."""
    return Menu(
        tuple(Model(**_fields(entry, "efforts")) for entry in as_objects(kept.get("models"))),
        tuple(style for style in as_list(kept.get("styles")) if isinstance(style, str)),
        tuple(Choice(**_fields(entry)) for entry in as_objects(kept.get("agents"))),
    )


def _fields(entry: JsonObject, listed: str = "") -> dict[str, Any]:
    return {name: tuple(as_list(value)) if name == listed else value for name, value in entry.items()}
