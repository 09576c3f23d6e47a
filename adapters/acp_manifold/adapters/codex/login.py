"""Whether Codex has a login, asked of the app-server or read from its files.

An `OPENAI_API_KEY` in the environment is no login: codex-cli 0.163.0 sends it only to a provider
whose `env_key` names it. Its own provider wants `codex login`.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

import anyio

from acp_manifold.bridge.backend import Login
from acp_manifold.bridge.errors import BackendGone, RemoteError
from acp_manifold.translators.narrow import JsonObject, as_str, flag, obj, text

from .config import read_config
from .server import AppServer

logger = logging.getLogger(__name__)

_PATIENCE = 2.0
"""Seconds for the app-server to tell; without an answer nothing is certain."""


async def login_of(server: AppServer | None, home: Path) -> Login:
    """Whether there is a login; `out` only if it is certain that there is none."""
    config = read_config(home)
    if config is None:
        return "unknown"
    key = missing_key(config)
    if key is not None:
        logger.info("codex: the configured model provider wants the environment variable %s", key)
        return "out"
    told = _from_files(config, home)
    # A running app-server of codex-cli 0.163.0 says that there is no login until a turn has made it look at the file
    # of one that was made meanwhile.
    return told if told == "in" or server is None or not server.alive else await _asked(server)


async def _asked(server: AppServer) -> Login:
    """What the app-server says. Not by `account/read`, which goes to the network if there is a ChatGPT account."""
    with anyio.move_on_after(_PATIENCE):
        try:
            told = await server.client.request("getAuthStatus", {"includeToken": False, "refreshToken": False})
        except (RemoteError, BackendGone):
            return "unknown"
        if told.get("authMethod"):
            return "in"
        wanted = told.get("requiresOpenaiAuth")
        return "in" if wanted is False else "out" if wanted is True else "unknown"
    return "unknown"


def own_provider(config: JsonObject) -> JsonObject | None:
    """The table of the configured model provider; None for one that Codex brings itself."""
    name = as_str(config.get("model_provider"))
    providers = obj(config, "model_providers")
    return obj(providers, name) if name and name in providers else None


def missing_key(config: JsonObject) -> str | None:
    """The environment variable that the configured provider wants and that is not set."""
    provider = own_provider(config)
    key = as_str(provider.get("env_key")) if provider else None
    return key if key and not os.environ.get(key) else None


def _from_files(config: JsonObject, home: Path) -> Login:
    provider = own_provider(config)
    if provider is not None:
        if not flag(provider, "requires_openai_auth"):
            return "in"
    elif text(config, "model_provider", "openai") != "openai":
        return "unknown"
    if (home / "auth.json").is_file():
        return "in"
    return "out" if text(config, "cli_auth_credentials_store", "file") == "file" else "unknown"
