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
from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, as_str, flag, obj
from acp_manifold.translators.values import NamedTuple

LOGIN_VARIABLES: dict[str, str] = {
    "CLAUDE_CODE_USE_BEDROCK": "Amazon Bedrock",
    "CLAUDE_CODE_USE_VERTEX": "Google Vertex AI",
    "CLAUDE_CODE_USE_FOUNDRY": "Microsoft Foundry",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS": "Anthropic on AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD": "Anthropic on Google Cloud",
    "CLAUDE_CODE_USE_GATEWAY": "Gateway",
    "CLAUDE_CODE_USE_MANTLE": "Mantle",
    "ANTHROPIC_AUTH_TOKEN": "Anthropic token",
    "ANTHROPIC_API_KEY": "Anthropic API key",
    "ANTHROPIC_IDENTITY_TOKEN": "Anthropic identity token",
    "ANTHROPIC_IDENTITY_TOKEN_FILE": "Anthropic identity token",
    "ANTHROPIC_PROFILE": "Anthropic profile",
    "ANTHROPIC_UNIX_SOCKET": "Anthropic socket",
    "CLAUDE_CODE_API_KEY_FILE_DESCRIPTOR": "Anthropic API key",
    "CLAUDE_CODE_HOST_CREDS_FILE": "Credentials of the host",
    "CLAUDE_CODE_OAUTH_TOKEN": "Claude token",
    "CLAUDE_CODE_OAUTH_TOKEN_FILE_DESCRIPTOR": "Claude token",
}
"""Environment variables each of which is, or brings, a login, with what it is; those that count first at the top."""

_ACCOUNT_KEYS = ("oauthAccount", "primaryApiKey")
"""Keys of `.claude.json` that a login leaves there."""

_MANAGED = {
    "linux": Path("/etc/claude-code/managed-settings.json"),
    "darwin": Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
}


class Findings(NamedTuple):
    """What the places of a login hold."""

    variable: str | None
    """The variable of the environment, or of settings, that counts."""
    helper: bool
    """Whether settings name a program that gives the key."""
    credentials: JsonObject | None
    """The CLI's own file of credentials; empty if it can't be read, None if there is none."""
    account: JsonObject
    """The account file, `.claude.json`."""
    uncertain: bool
    """Whether there may be a login where we can't look."""

    @property
    def login(self) -> Login:
        """What follows."""
        stored = self.credentials is not None or any(self.account.get(key) for key in _ACCOUNT_KEYS)
        if self.variable is not None or self.helper or stored:
            return "in"
        return "unknown" if self.uncertain else "out"


def login(environ: Mapping[str, str], cwd: str | None = None) -> Login:
    """The login that the CLI would find in this environment.

    Args:
        environ: All of it.
        cwd: Where the CLI is to be started: settings of that directory may bring a login. None: anywhere.
    """
    # On the way of every new session: the files, which may be long, are read only where these two don't tell.
    if any(environ.get(name, "").strip() for name in LOGIN_VARIABLES):
        return "in"
    if (config_dir(environ) / ".credentials.json").exists():
        return "in"
    return findings(environ, cwd).login


def findings(environ: Mapping[str, str], cwd: str | None = None) -> Findings:
    """Look at every place; for the arguments see `login`."""
    folder = config_dir(environ)
    settings = [_read(path) for path in _settings_files(folder)]
    account = _read(_account_file(folder, environ))
    credentials = folder / ".credentials.json"
    seen = {**environ, **_environment(settings)}
    # The keychain can't be asked without a dialog, and a damaged file says nothing either way.
    uncertain = sys.platform == "darwin" or account is None or None in settings
    return Findings(
        variable=next((name for name in LOGIN_VARIABLES if seen.get(name, "").strip()), None),
        helper=any(reading.get("apiKeyHelper") for reading in settings if reading is not None),
        credentials=(_read(credentials) or {}) if credentials.exists() else None,
        account=account or {},
        uncertain=uncertain or _project_brings_login(account or {}, cwd),
    )


def settings_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that the person's and the machine's settings add; they beat the environment."""
    return _environment([_read(path) for path in _settings_files(config_dir(environ))])


def default_mode(environ: Mapping[str, str]) -> str | None:
    """The permission mode that the person's, or the machine's, settings begin sessions in; None if they don't say."""
    readings = (_read(path) or {} for path in _settings_files(config_dir(environ)))
    modes = (as_str(obj(reading, "permissions").get("defaultMode")) for reading in readings)
    return next((mode for mode in modes if mode), None)


def _environment(settings: list[JsonObject | None]) -> dict[str, str]:
    pairs = (pair for reading in settings if reading is not None for pair in obj(reading, "env").items())
    return {name: value if isinstance(value, str) else str(value) for name, value in pairs}


def login_files(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files that a login or a logout changes."""
    folder = config_dir(environ)
    return folder / ".credentials.json", _account_file(folder, environ)


def _settings_files(folder: Path) -> list[Path]:
    managed = _MANAGED.get(sys.platform)
    if managed is None:
        return [folder / "settings.json"]
    return [folder / "settings.json", managed, *managed.with_suffix(".d").glob("*.json")]


def _project_brings_login(account: JsonObject, cwd: str | None) -> bool:
    """Whether settings of the directory, or, with none given, of any that the person trusts, would bring a login."""
    if cwd is not None:
        places = [Path(cwd), *Path(cwd).parents]
    else:
        trusted = obj(account, "projects").items()
        places = [Path(place) for place, known in trusted if flag(as_object(known), "hasTrustDialogAccepted")]
    names = ("settings.json", "settings.local.json")
    readings = (_read(place / ".claude" / name) for place in places for name in names)
    return any(reading is None or _brings_login(reading) for reading in readings)


def _account_file(folder: Path, environ: Mapping[str, str]) -> Path:
    inside = folder / ".claude.json"
    if environ.get("CLAUDE_CONFIG_DIR", "").strip():
        return inside
    return inside if inside.exists() else folder.parent / ".claude.json"


def _brings_login(settings: JsonObject) -> bool:
    if settings.get("apiKeyHelper"):
        return True
    variables = obj(settings, "env")
    return any(variables.get(name) for name in LOGIN_VARIABLES)


def _read(path: Path) -> JsonObject | None:
    """The object in a JSON file: empty if there is no file, None if it can't be read."""
    try:
        decoded: object = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError):
        return None
    return next(iter(as_objects([decoded])), None)
