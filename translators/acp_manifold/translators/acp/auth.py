"""Logins in ACP v1 JSON: how to log in, and what there is (SDK 2.4.0, unstable schema)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from acp_manifold.translators.acp.capabilities import ClientCapabilities
from acp_manifold.translators.acp.requests import META_KEY
from acp_manifold.translators.narrow import JsonObject, as_str, obj

if TYPE_CHECKING:
    from acp_manifold.translators.auth import Account, AuthStatus


def auth_method(
    method_id: str,
    name: str,
    description: str,
    can: ClientCapabilities,
    *,
    login: Sequence[str] = (),
    agent: Sequence[str] = (),
    key_of: str | None = None,
) -> JsonObject:
    """One of `authMethods`.

    Args:
        method_id: Its id.
        name: For people.
        description: What the person does.
        can: What the client takes.
        login: Arguments to this agent's command that make it a login in a terminal; none: it is not done there.
        agent: The command this agent runs as, for clients that start it by a command of its own.
        key_of: Whose API key the method takes in `_meta["api-key"]` of `authenticate`.
    """
    method: JsonObject = {"id": method_id, "name": name, "description": description}
    meta: JsonObject = {}
    if login and can.terminal_login:
        method |= {"type": "terminal", "args": list(login)}
    if login and can.terminal_login_command and agent:
        command, *args = agent
        meta["terminal-auth"] = {"command": command, "args": [*args, *login], "label": name}
    if key_of is not None:
        meta["api-key"] = {"provider": key_of}
    if meta:
        method["_meta"] = meta
    return method


def api_key(params: JsonObject) -> str | None:
    """The API key that a client sends along with `authenticate`, or None."""
    key = as_str(obj(obj(params, "_meta"), "api-key").get("apiKey"))
    return key.strip() or None if key else None


def status_result(default: str, statuses: Mapping[str, AuthStatus]) -> JsonObject:
    """The answer to `auth/status`, and the params of `auth/status_update`.

    Args:
        default: The backend that new sessions go to: its state is the agent's.
        statuses: By backend, its status.
    """
    accounts = [_account(account) for status in statuses.values() for account in status.accounts]
    result: JsonObject = {"state": statuses[default].state}
    if accounts:
        result["accounts"] = accounts
    result["_meta"] = {META_KEY: {"backends": {name: status.state for name, status in statuses.items()}}}
    return result


def _account(account: Account) -> JsonObject:
    fields = {"name": account.name, "email": account.email, "organization": account.organization}
    told = {key: value for key, value in fields.items() if value is not None}
    return {"label": account.label, "active": account.active, **told}
