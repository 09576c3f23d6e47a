"""A private Codex home whose model is a scripted one on loopback."""

from __future__ import annotations

import json
from pathlib import Path

from .program import HOME_VARIABLE

MODEL = "gpt-5.5"
"""A model of Codex' own catalogue: any other brings a warning with every turn (codex-cli 0.163.0)."""

_CONFIG = """\
model = "{model}"
model_provider = "lab"

[model_providers.lab]
name = "lab"
base_url = {base_url}
wire_api = "responses"
env_key = "OPENAI_API_KEY"
"""


def make_lab(folder: Path, model_url: str) -> dict[str, str]:
    """Make the home in `folder`. See `Backend.lab`."""
    home, codex = folder / "home", folder / "codex"
    home.mkdir(parents=True, exist_ok=True)
    codex.mkdir(parents=True, exist_ok=True)
    config = _CONFIG.format(model=MODEL, base_url=json.dumps(f"{model_url.rstrip('/')}/v1"))
    (codex / "config.toml").write_text(config, encoding="utf-8")
    return {"HOME": str(home), HOME_VARIABLE: str(codex), "OPENAI_API_KEY": "sk-test"}
