"""A private interactive Claude Code: as the `claude` backend's lab, with the program's first questions answered."""

from __future__ import annotations

import json
from pathlib import Path

from acp_manifold.adapters.claude.lab import prepare as prepare_store

_KEY_END = 20
"""Characters at the end of an API key by which the program knows it (Claude Code 2.1.332)."""


def prepare(folder: Path, model_url: str) -> dict[str, str]:
    """Make the folder's store and give back the environment that leads the program there and nowhere else.

    The folder above it, where the caller's working directories are, counts as trusted.
    """
    env = prepare_store(folder, model_url)
    account = Path(env["CLAUDE_CONFIG_DIR"]) / ".claude.json"
    answered = {
        "projects": {str(folder.parent): {"hasTrustDialogAccepted": True}},
        "customApiKeyResponses": {"approved": [env["ANTHROPIC_API_KEY"][-_KEY_END:]], "rejected": []},
    }
    account.write_text(json.dumps({**json.loads(account.read_text()), **answered}))
    return env
