"""The login of Codex as it is shown to people, its beginning with an API key, and its end.

Told from Codex' files where they tell: `account/read` of codex-cli 0.163.0 goes to the network for a ChatGPT account.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

from anyio import to_thread

from acp_manifold.bridge.errors import BackendFault, RemoteError
from acp_manifold.translators.auth import Account, AuthStatus
from acp_manifold.translators.codex.failures import without_keys
from acp_manifold.translators.narrow import JsonObject, as_object, as_str, flag, obj, text

from . import endpoint
from .config import read_config
from .login import login_of, missing_key, own_provider
from .server import AppServer

LIMIT = 30.0
"""Seconds for a login with a key, and for a logout, which may tell the maker of it."""

_KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")
"""Variables with an API key for Codex' own provider, which the app-server itself does not look at."""


async def status(server: AppServer | None, home: Path) -> AuthStatus:
    """See `Backend.status`.

    Args:
        server: The app-server, asked where the files don't tell, if it runs.
        home: Codex' own directory.
    """
    config = await to_thread.run_sync(read_config, home) or {}
    where = endpoint.shown(config)
    login = await login_of(server, home)
    if login == "out":
        return AuthStatus("unauthenticated", (), where)
    if login == "unknown":
        return AuthStatus("unknown", (), where)
    provider = own_provider(config)
    if provider is not None and not flag(provider, "requires_openai_auth"):
        return _of_provider(config, provider, where)
    stored = await to_thread.run_sync(_stored, home)
    return AuthStatus("authenticated", (stored or Account("OpenAI"),), where)


async def logout(server: AppServer) -> None:
    """See `Backend.logout`: the app-server forgets its login, and takes the file of it away.

    Raises:
        BackendFault: It could not.
    """
    try:
        await server.client.request("account/logout", {}, limit=LIMIT)
    except RemoteError as exc:
        raise BackendFault(f"Codex did not log out: {exc.message}") from exc


async def log_in(server: AppServer, key: str) -> None:
    """Have Codex store an API key, as `codex login --with-api-key` does; it takes the place of what is stored.

    Raises:
        BackendFault: It does not take the key.
    """
    try:
        await server.client.request("account/login/start", {"type": "apiKey", "apiKey": key}, limit=LIMIT)
    except RemoteError as exc:
        raise BackendFault(f"Codex does not take the API key: {without_keys(exc.message)}") from exc


def key_in_environment() -> str | None:
    """The API key that the person has given by the environment, or None."""
    return next((key for name in _KEYS if (key := os.environ.get(name, "").strip())), None)


def has_stored_login(home: Path) -> bool:
    """Whether Codex may have a login to forget: in its file, or where we can't look."""
    config = read_config(home)
    elsewhere = config is None or text(config, "cli_auth_credentials_store", "file") != "file"
    return elsewhere or auth_file(home).exists()


def auth_file(home: Path) -> Path:
    """Codex' file with its login."""
    return home / "auth.json"


def _of_provider(config: JsonObject, provider: JsonObject, where: str | None) -> AuthStatus:
    name = text(config, "model_provider")
    variable = as_str(provider.get("env_key"))
    if variable and missing_key(config) is None:
        return AuthStatus("authenticated", (Account(f"Model provider {name} ({variable})"),), where)
    if any(provider.get(key) for key in ("http_headers", "env_http_headers", "experimental_bearer_token", "auth")):
        return AuthStatus("authenticated", (Account(f"Model provider {name}"),), where)
    return AuthStatus("not_required", (), where)


def _stored(home: Path) -> Account | None:
    """The account in Codex' file; None without one."""
    try:
        decoded: object = json.loads(auth_file(home).read_bytes())
    except (OSError, ValueError):
        return None
    auth = as_object(decoded)
    claims = _claims(text(obj(auth, "tokens"), "id_token"))
    if not claims and auth.get("OPENAI_API_KEY"):
        return Account("OpenAI API key")
    plan = text(obj(claims, "https://api.openai.com/auth"), "chatgpt_plan_type")
    label = f"ChatGPT {plan.capitalize()}" if plan else "ChatGPT" if claims else "OpenAI"
    return Account(label, name=as_str(claims.get("name")), email=as_str(claims.get("email")))


def _claims(token: str) -> JsonObject:
    """What a token says of its person; its signature is the maker's to check."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        decoded: object = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return as_object(decoded)
