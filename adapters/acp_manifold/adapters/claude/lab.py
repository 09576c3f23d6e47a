"""A private Claude Code: its own home and store in one folder, its model a scripted one on loopback."""

from __future__ import annotations

import json
from pathlib import Path


def prepare(folder: Path, model_url: str) -> dict[str, str]:
    """Make the folder's store and give back the environment that leads the CLI there and nowhere else.

    Permissions stay at the CLI's default, under which a command that writes is asked about.
    """
    home = folder / "home"
    config = home / ".claude"
    config.mkdir(parents=True, exist_ok=True)
    (config / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True, "theme": "dark"}))
    (folder / "tmp").mkdir(exist_ok=True)
    return {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(config),
        "CLAUDE_CODE_TMPDIR": str(folder / "tmp"),
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": "sk-ant-test-lab",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }
