"""Whether Claude Code has a login, as far as environment and disk tell.

`out` is said only when every place is known and empty: a wrong `out` would lock a person out, a
wrong `unknown` costs them one failed prompt. Places as of Claude Code 2.1.332.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from acp_manifold.adapters.claude.program import config_dir
from acp_manifold.bridge.backend import Login
from acp_manifold.translators.narrow import JsonObject, as_objects, flag, obj

_VARIABLES = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN_FILE",
    "ANTHROPIC_PROFILE",
    "ANTHROPIC_UNIX_SOCKET",
    "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR",
    "CLAUDE_CODE_HOST_CREDS_FILE",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_GATEWAY",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_VERTEX",
)
"""Environment variables each of which is, or brings, a login."""

_ACCOUNT_KEYS = ("oauthAccount", "primaryApiKey")
"""Keys of `.claude.json` that a login leaves there."""

_MANAGED = {
    "linux": Path("/etc/claude-code/managed-settings.json"),
    "darwin": Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
}


def login(environ: Mapping[str, str]) -> Login:
    """The login that the CLI would find in this environment."""
    folder = config_dir(environ)
    if any(environ.get(name, "").strip() for name in _VARIABLES):
        return "in"
    if (folder / ".credentials.json").exists():
        return "in"
    readings = [_read(path) for path in _settings_files(folder)]
    account = _read(_account_file(folder, environ))
    if any(_brings_login(reading) for reading in readings if reading is not None):
        return "in"
    if account is not None and any(account.get(key) for key in _ACCOUNT_KEYS):
        return "in"
    if sys.platform == "darwin" or account is None or None in readings or _trusts_a_project(account):
        # The keychain can't be asked without a dialog; a damaged file says nothing either way; and the
        # settings of a trusted project may bring a login of their own.
        return "unknown"
    return "out"


def _settings_files(folder: Path) -> list[Path]:
    managed = _MANAGED.get(sys.platform)
    if managed is None:
        return [folder / "settings.json"]
    return [folder / "settings.json", managed, *managed.with_suffix(".d").glob("*.json")]


def _trusts_a_project(account: JsonObject) -> bool:
    return any(
        flag(project, "hasTrustDialogAccepted") for project in as_objects(list(obj(account, "projects").values()))
    )


def _account_file(folder: Path, environ: Mapping[str, str]) -> Path:
    inside = folder / ".claude.json"
    if environ.get("CLAUDE_CONFIG_DIR", "").strip():
        return inside
    return inside if inside.exists() else folder.parent / ".claude.json"


def _brings_login(settings: JsonObject) -> bool:
    if settings.get("apiKeyHelper"):
        return True
    variables = obj(settings, "env")
    return any(variables.get(name) for name in _VARIABLES)


def _read(path: Path) -> JsonObject | None:
    """The object in a JSON file: empty if there is no file, None if it can't be read."""
    try:
        decoded: object = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None
    return next(iter(as_objects([decoded])), None)
