"""A private world for a replay: stores, state and a home of its own, so that nothing real is read or written.

The process belongs to the replay alone, so its own environment is made to point there: whatever code looks for a
store, or would start a program, finds this one.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_OF_THE_PERSON: Final = ("ANTHROPIC_", "AWS_", "CLAUDE", "CODEX_", "OPENAI_", "XDG_")
"""Beginnings of variables that tell of accounts, settings and stores."""


class Stage:
    """Folders that are there until `close`, and the environment that leads to them."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="acp-manifold-replay-"))
        self.claude = self.folder / "claude"
        """Claude Code's config directory."""
        self.codex = self.folder / "codex"
        """Codex' home."""
        for made in (self.claude, self.codex, self.folder / "home"):
            made.mkdir()
        self._before = dict(os.environ)
        for name in [name for name in os.environ if name.startswith(_OF_THE_PERSON)]:
            del os.environ[name]
        os.environ |= {
            "HOME": str(self.folder / "home"),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "CLAUDE_CONFIG_DIR": str(self.claude),
            "CODEX_HOME": str(self.codex),
        }
        self._closed = False
        atexit.register(self.close)

    def close(self) -> None:
        """Take it all away, and leave the environment as it was; once."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        os.environ.clear()
        os.environ.update(self._before)
        shutil.rmtree(self.folder, ignore_errors=True)
