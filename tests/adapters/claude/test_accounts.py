"""Logins of Claude Code as people see them, their end, and endpoints that clients set."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_manifold.adapters.claude import ClaudeBackend
from acp_manifold.adapters.claude.endpoint import PLACEHOLDER, configured, environment, settings_request, shown
from acp_manifold.adapters.claude.login import login
from acp_manifold.bridge.errors import BackendFault, LoginNeeded
from acp_manifold.translators.auth import Account, AuthStatus, Endpoint
from acp_manifold.translators.narrow import obj

CREDENTIALS = json.dumps({"claudeAiOauth": {"accessToken": "s3cr3t", "subscriptionType": "pro"}})
PERSON = json.dumps(
    {"oauthAccount": {"emailAddress": "me@example.org", "displayName": "Me", "organizationName": "Org"}}
)


class Place:
    """A store of Claude Code, and a program that stands in for it."""

    def __init__(self, folder: Path) -> None:
        self.config = folder / "config"
        self.config.mkdir()
        self.calls = folder / "calls"
        self.program = folder / "claude"
        self.says('{"loggedIn": false}')
        self.env = {"CLAUDE_CONFIG_DIR": str(self.config), "CLAUDE_CODE_EXECUTABLE": str(self.program), "PATH": "/bin"}
        self.backend = ClaudeBackend(self.env)

    def says(self, words: str, status: int = 0) -> None:
        self.program.write_text(
            f"#!/bin/sh\necho \"$*\" >> '{self.calls}'\necho '{words}'\necho '{words}' >&2\nexit {status}\n"
        )
        self.program.chmod(0o755)

    def write(self, **files: str) -> None:
        for name, words in files.items():
            (self.config / {"credentials": ".credentials.json", "account": ".claude.json"}.get(name, name)).write_text(
                words
            )

    @property
    def asked(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr("sys.platform", "linux")
    return Place(tmp_path)


@pytest.mark.anyio
async def test_every_login_is_shown_and_the_one_that_counts_comes_first(place: Place) -> None:
    place.write(credentials=CREDENTIALS, account=PERSON)
    place.env["ANTHROPIC_API_KEY"] = "s3cr3t"
    place.env["ANTHROPIC_BASE_URL"] = "https://me:s3cr3t@gateway.example/api?key=s3cr3t"
    status = await place.backend.status()
    assert status == AuthStatus(
        "authenticated",
        (
            Account("Anthropic API key (ANTHROPIC_API_KEY)"),
            Account("Claude Pro", active=False, name="Me", email="me@example.org", organization="Org"),
        ),
        "https://gateway.example/api",
    )
    assert "s3cr3t" not in repr(status) and place.asked == []


@pytest.mark.anyio
async def test_the_cli_is_asked_only_where_the_files_leave_it_open(place: Place) -> None:
    assert (await place.backend.status()).state == "unauthenticated" and place.asked == []
    place.write(account="{damaged")
    assert (await place.backend.status()).state == "unauthenticated"
    assert place.asked == ["auth status --json"]
    place.says('{"loggedIn": true, "authMethod": "claude.ai", "email": "me@example.org", "subscriptionType": "max"}')
    assert (await place.backend.status()).accounts == (Account("Claude Max", email="me@example.org"),)
    place.says("what?")
    assert (await place.backend.status()).state == "unknown"


@pytest.mark.anyio
async def test_a_logout_is_the_clis_own_and_only_of_a_login_it_has_stored(place: Place) -> None:
    place.env["ANTHROPIC_API_KEY"] = "s3cr3t"
    await place.backend.logout()
    assert place.asked == []
    place.write(credentials=CREDENTIALS)
    await place.backend.logout()
    assert place.asked == ["auth logout"]
    place.says("no such thing", 3)
    with pytest.raises(BackendFault, match="no such thing"):
        await place.backend.logout()


@pytest.mark.anyio
async def test_a_way_to_log_in_says_what_to_do_while_there_is_no_login(place: Place) -> None:
    for method in place.backend.auth_methods:
        with pytest.raises(LoginNeeded) as caught:
            await place.backend.authenticate(method, None)
        assert method.description in caught.value.message
    place.write(credentials=CREDENTIALS)
    for method in place.backend.auth_methods:
        await place.backend.authenticate(method, None)


def test_settings_of_a_project_may_bring_a_login_for_sessions_in_it_alone(place: Place, tmp_path: Path) -> None:
    project, other = tmp_path / "project" / "inner", tmp_path / "other"
    for folder in (project, other):
        folder.mkdir(parents=True)
    settings = tmp_path / "project" / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    settings.write_text('{"apiKeyHelper": "echo key"}')
    place.write(account=json.dumps({"projects": {str(tmp_path / "project"): {"hasTrustDialogAccepted": True}}}))
    assert login(place.env, str(project)) == "unknown"
    assert login(place.env, str(other)) == "out"
    assert login(place.env) == "unknown"
    settings.write_text("{}")
    assert login(place.env, str(project)) == login(place.env) == "out"


PERSONS_OWN = {
    "PATH": "/bin",
    "ANTHROPIC_MODEL": "kept",
    "ANTHROPIC_API_KEY": "persons",
    "ANTHROPIC_CUSTOM_HEADERS": "X-A: persons",
    "CLAUDE_CODE_OAUTH_TOKEN": "persons",
    "CLAUDE_CODE_USE_VERTEX": "1",
}


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({}, {"ANTHROPIC_AUTH_TOKEN": PLACEHOLDER}),
        ({"X-A": "1", "x-b": "2"}, {"ANTHROPIC_AUTH_TOKEN": PLACEHOLDER, "ANTHROPIC_CUSTOM_HEADERS": "X-A: 1\nx-b: 2"}),
        ({"authorization": "bearer t"}, {"ANTHROPIC_AUTH_TOKEN": "t"}),
        ({"Authorization": "Basic t"}, {"ANTHROPIC_CUSTOM_HEADERS": "Authorization: Basic t"}),
        ({"X-Api-Key": "k"}, {"ANTHROPIC_API_KEY": "k"}),
        (
            {"X-Api-Key": "k", "Authorization": "Bearer t"},
            {"ANTHROPIC_AUTH_TOKEN": "t", "ANTHROPIC_CUSTOM_HEADERS": "X-Api-Key: k"},
        ),
    ],
)
def test_an_endpoint_gets_the_clients_headers_and_nothing_of_the_persons(
    headers: dict[str, str], expected: dict[str, str]
) -> None:
    endpoint = Endpoint("anthropic", "https://gateway", headers)
    always = {"PATH": "/bin", "ANTHROPIC_MODEL": "kept", "ANTHROPIC_BASE_URL": "https://gateway"}
    assert environment(PERSONS_OWN, endpoint) == {**always, **expected}
    settings = obj(settings_request(endpoint), "settings")
    held = obj(settings, "env")
    assert settings["apiKeyHelper"] == "" and held["CLAUDE_CODE_OAUTH_TOKEN"] == held["CLAUDE_CODE_USE_VERTEX"] == ""
    assert {name: value for name, value in held.items() if value} == {
        "ANTHROPIC_BASE_URL": "https://gateway",
        **expected,
    }


def test_a_bedrock_endpoint_needs_a_region_and_a_token_of_its_own() -> None:
    found = environment({"PATH": "/bin"}, Endpoint("bedrock", "https://gateway", {"Authorization": "Bearer t"}))
    assert found == {
        "PATH": "/bin",
        "AWS_REGION": "us-east-1",
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "ANTHROPIC_BEDROCK_BASE_URL": "https://gateway",
        "AWS_BEARER_TOKEN_BEDROCK": "t",
    }


def test_the_configured_endpoint_is_that_of_the_settings_before_the_environments(place: Place) -> None:
    assert configured(place.env) is None and shown(place.env) is None
    place.env |= {"ANTHROPIC_BASE_URL": "https://one/", "ANTHROPIC_API_KEY": "k"}
    assert configured(place.env) == Endpoint("anthropic", "https://one", {"X-Api-Key": "k"})
    settings = {"env": {"ANTHROPIC_BASE_URL": "https://two", "ANTHROPIC_CUSTOM_HEADERS": "X-A: 1\nX-B : 2"}}
    (place.config / "settings.json").write_text(json.dumps(settings))
    assert configured(place.env) == Endpoint("anthropic", "https://two", {"X-A": "1", "X-B": "2", "X-Api-Key": "k"})
    place.env["CLAUDE_CODE_USE_BEDROCK"] = "1"
    assert configured(place.env) is None
