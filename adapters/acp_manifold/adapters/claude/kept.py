"""What was set for a session, over restarts of the agent: a small file for each in the state directory.

Claude Code 2.1.332 keeps the model of a session's last answer and nothing else that can be set: `--resume` begins
in the mode, and with the effort, of the person's settings. Without the files that is what a session begins with again.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Final

from acp_manifold.bridge.ledger import state_directory
from acp_manifold.translators.narrow import JsonObject, as_object

logger = logging.getLogger(__name__)

MOST: Final = 1000
"""How many are kept; of more, those set the longest ago are forgotten."""


def folder() -> Path:
    """Where they are."""
    return state_directory() / "claude-options"


class Kept:
    """The file of one session."""

    def __init__(self, session_id: str, place: Path | None = None) -> None:
        """
        Args:
            session_id: Checked to be one.
            place: The folder of all; `folder()` by default.
        """
        self._path = (place or folder()) / f"{session_id}.json"
        self._last: JsonObject = {}

    def read(self) -> JsonObject:
        """What was kept; nothing if that can't be read."""
        try:
            self._last = as_object(json.loads(self._path.read_bytes()))
        except FileNotFoundError:
            self._last = {}
        except (OSError, ValueError) as exc:
            logger.info("claude: %s could not be read: %s", self._path, exc)
        return self._last

    def write(self, what: JsonObject) -> None:
        """Keep this from now on, if it is anything else than before."""
        if what == self._last:
            return
        self._last = what
        fresh = self._path.with_name(f"{self._path.name}.{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self._path.exists():
                _prune(self._path.parent)
            fresh.write_text(json.dumps(what), encoding="utf-8")
            fresh.replace(self._path)
        except OSError as exc:
            logger.warning("claude: what was set for a session could not be kept: %s", exc)

    def forget(self) -> None:
        """The session is gone."""
        self._path.unlink(missing_ok=True)


def _prune(place: Path) -> None:
    files = sorted(place.glob("*.json"), key=lambda path: path.stat().st_mtime)
    for path in files[: max(0, len(files) - MOST + 1)]:
        path.unlink(missing_ok=True)
