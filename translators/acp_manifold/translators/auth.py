"""Logins and endpoints as both sides name them: what an account is shown as, and where a client sends a CLI.

Endpoints hold secrets in their headers. They are kept in memory, and shown nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from acp_manifold.translators.values import NamedTuple

LoginState: TypeAlias = Literal["authenticated", "unauthenticated", "not_required", "unknown"]
"""Whether sessions can be begun without a login; the words are those of ACP's `AuthState`."""


class Account(NamedTuple):
    """A login or a key that a CLI has, for people; holds no secret."""

    label: str
    """Such as `Claude Max` or `OpenAI API key`."""
    active: bool = True
    """Whether it is the one that is used."""
    name: str | None = None
    email: str | None = None
    organization: str | None = None


class AuthStatus(NamedTuple):
    """What is known of the login of one CLI, as far as that can be told without asking the network."""

    state: LoginState
    accounts: tuple[Account, ...] = ()
    endpoint: str | None = None
    """The endpoint that the CLI itself is configured for, without secrets; None: its maker's own."""


class Endpoint(NamedTuple):
    """Where the model requests of a CLI go, as a client has set it."""

    api_type: str
    """The API spoken there: `anthropic`, `openai`, `bedrock`."""
    base_url: str
    headers: Mapping[str, str]
    """Sent with every request; secret."""

    def __repr__(self) -> str:
        return f"Endpoint({self.api_type!r}, {self.base_url!r}, headers=...)"

    def header(self, name: str) -> str | None:
        """The value of a header, whatever the case of its name."""
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), None)
