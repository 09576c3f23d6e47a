"""The login of Claude Code as it is shown to people, and its end.

The files tell, as far as they do; the CLI is asked only where they leave the question open, since that takes half a
second. `claude auth status` and `claude auth logout` of 2.1.332 need no terminal; the second tells the maker that the
token is to be revoked, and goes on without an answer.
"""

from __future__ import annotations

import json
import logging
import subprocess
from collections.abc import Mapping

import anyio
from anyio import to_thread

from acp_manifold.adapters.claude import endpoint
from acp_manifold.adapters.claude.login import LOGIN_VARIABLES, Findings, findings
from acp_manifold.adapters.claude.program import child_environment
from acp_manifold.bridge.errors import BackendFault
from acp_manifold.translators.auth import Account, AuthStatus
from acp_manifold.translators.narrow import JsonObject, as_object, as_str, flag, obj, text

logger = logging.getLogger(__name__)

STATUS_LIMIT = 10.0
LOGOUT_LIMIT = 30.0
"""Seconds for each; without a network a logout took half a second."""


async def status(command: tuple[str, ...] | None, environ: Mapping[str, str]) -> AuthStatus:
    """See `Backend.status`.

    Args:
        command: The CLI, asked if the files don't tell; None: there is none.
        environ: The person's environment.
    """
    found = await to_thread.run_sync(findings, environ)
    where = await to_thread.run_sync(endpoint.shown, environ)
    if found.login == "in":
        return AuthStatus("authenticated", tuple(_accounts(found)), where)
    if found.login == "out":
        return AuthStatus("unauthenticated", (), where)
    told = await _asked(command, environ) if command is not None else None
    if told is None:
        return AuthStatus("unknown", (), where)
    if not flag(told, "loggedIn"):
        return AuthStatus("unauthenticated", (), where)
    account = Account(_told_label(told), email=as_str(told.get("email")), organization=as_str(told.get("orgName")))
    return AuthStatus("authenticated", (account,), where)


async def logout(command: tuple[str, ...] | None, environ: Mapping[str, str]) -> None:
    """See `Backend.logout`. Without a login that the CLI has stored, it is not started."""
    found = await to_thread.run_sync(findings, environ)
    if found.credentials is None and not found.uncertain and _stored(found) is None:
        return
    if command is None:
        raise BackendFault("Claude Code is not installed, so that its login can't be ended")
    done = await _run((*command, "auth", "logout"), environ, LOGOUT_LIMIT)
    if done is None:
        raise BackendFault(f"Claude Code did not log out within {LOGOUT_LIMIT:g} s")
    if done.returncode != 0:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise BackendFault(f"Claude Code did not log out: {words[-1] if words else f'status {done.returncode}'}")


def _accounts(found: Findings) -> list[Account]:
    """The logins there are, the one that counts first: a variable beats a helper, and both what is stored."""
    accounts: list[Account] = []
    if found.variable is not None:
        accounts.append(Account(f"{LOGIN_VARIABLES[found.variable]} ({found.variable})"))
    if found.helper:
        accounts.append(Account("API key of a helper program (apiKeyHelper)"))
    stored = _stored(found)
    if stored is not None:
        accounts.append(stored)
    return [account._replace(active=place == 0) for place, account in enumerate(accounts)]


def _stored(found: Findings) -> Account | None:
    person = obj(found.account, "oauthAccount")
    if found.credentials is not None or person:
        plan = text(obj(found.credentials or {}, "claudeAiOauth"), "subscriptionType")
        return Account(
            f"Claude {plan.capitalize()}" if plan else "Claude",
            name=as_str(person.get("displayName")),
            email=as_str(person.get("emailAddress")),
            organization=as_str(person.get("organizationName")),
        )
    return Account("Anthropic Console") if found.account.get("primaryApiKey") else None


async def _asked(command: tuple[str, ...], environ: Mapping[str, str]) -> JsonObject | None:
    done = await _run((*command, "auth", "status", "--json"), environ, STATUS_LIMIT)
    try:
        decoded: object = json.loads(done.stdout) if done is not None else None
    except ValueError:
        decoded = None
    told = as_object(decoded)
    if "loggedIn" not in told:
        logger.warning("Claude Code could not tell whether it has a login")
        return None
    return told


def _told_label(told: JsonObject) -> str:
    plan = text(told, "subscriptionType")
    if plan:
        return f"Claude {plan.capitalize()}"
    return {"claude.ai": "Claude", "api_key": "Anthropic API key", "oauth_token": "Anthropic token"}.get(
        text(told, "authMethod"), "Claude Code login"
    )


async def _run(
    command: tuple[str, ...], environ: Mapping[str, str], limit: float
) -> subprocess.CompletedProcess[bytes] | None:
    """What the CLI said; None if it took too long.

    Raises:
        BackendFault: It can't be started.
    """
    try:
        with anyio.move_on_after(limit):
            return await anyio.run_process(
                command, stdin=subprocess.DEVNULL, env=child_environment(environ), check=False
            )
    except OSError as exc:
        raise BackendFault(f"{command[0]} can't be started: {exc.strerror}") from exc
    return None
