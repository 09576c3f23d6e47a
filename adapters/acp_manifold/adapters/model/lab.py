"""A private world for real CLIs: stores of their own, the scripted model behind them, nothing of the person's."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from acp_manifold.bridge.backend import Backend

_OF_THE_PERSON = ("ACP_MANIFOLD_", "ANTHROPIC_", "AWS_", "CLAUDE", "CODEX_", "OPENAI_", "XDG_")
"""Beginnings of variables that tell the CLIs about accounts, settings and stores."""

_PROGRAMS = {"CLAUDE_CODE_EXECUTABLE", "CODEX_PATH"}
"""Those that only say which CLI to start."""


def private_environment(folder: Path, model_url: str, backends: Sequence[Backend]) -> dict[str, str]:
    """The whole environment for a bridge, or a CLI, that is to keep to itself.

    Every process started with it has the folder's path in its environment, by which it can be found.

    Args:
        folder: An empty directory of the caller's; stores and the home directory are made in it.
        model_url: `http://127.0.0.1:PORT`, a scripted model.
        backends: Those that will be used.
    """
    env = {
        name: value for name, value in os.environ.items() if name in _PROGRAMS or not name.startswith(_OF_THE_PERSON)
    }
    home = folder / "home"
    home.mkdir()
    env |= {"HOME": str(home), "XDG_STATE_HOME": str(folder / "state")}
    for backend in backends:
        store = folder / backend.name
        store.mkdir()
        env |= backend.lab(store, model_url)
    return env
