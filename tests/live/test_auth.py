"""Logins and endpoints of both real CLIs, without an account and without a network."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest

from acp_manifold.adapters.claude import endpoint as claude_endpoint
from acp_manifold.adapters.codex import endpoint as codex_endpoint
from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, obj, text

from .client import AcpError, Client
from .conftest import MakeLab, both_and_codex_in_v2, both_versions
from .lab import Lab, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]
both_backends = pytest.mark.parametrize("backend", ["claude", "codex"])

SECRET = "s3cr3t-of-the-client"

PERSONS_OWN = """\
model = "gpt-5.5"
model_provider = "own"

[model_providers.own]
name = "own"
base_url = "{url}/v1"
wire_api = "responses"
experimental_bearer_token = "persons-own"
"""
"""A Codex configured for an endpoint of the person's."""

LOGIN = {"claude": ".credentials.json", "codex": "auth.json"}
"""The file in which each CLI keeps its login."""


def store(lab: Lab, backend: str) -> Path:
    return Path(lab.env[{"claude": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME"}[backend]])


def without_login(lab: Lab) -> Lab:
    """Take away the login that a lab has; the CLIs' own endpoints are out of reach then."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL"):
        lab.env.pop(name, None)
    if "CODEX_HOME" in lab.env:
        (store(lab, "codex") / "config.toml").write_text('model = "gpt-5.5"\n')
    return lab


def log_in(lab: Lab, backend: str) -> None:
    """What a login of a person leaves on the disk."""
    path = store(lab, backend) / LOGIN[backend]
    if backend == "codex":
        path.write_text(json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-test-stored"}))
        return
    oauth = {"accessToken": "sk-ant-oat01-test", "refreshToken": "sk-ant-ort01-test", "expiresAt": 4102444800000}
    path.write_text(json.dumps({"claudeAiOauth": {**oauth, "scopes": ["user:inference"], "subscriptionType": "max"}}))
    account = store(lab, backend) / ".claude.json"
    person = {"accountUuid": "a", "emailAddress": "me@example.org", "organizationName": "Org"}
    account.write_text(json.dumps({**json.loads(account.read_text()), "oauthAccount": person}))


async def new_in(agent: Client, lab: Lab, backend: str) -> AcpError | None:
    """Try to begin a session."""
    try:
        await agent.new_session(lab.cwd, backend)
    except AcpError as error:
        return error
    return None


async def status_told(agent: Client, state: str, *accounts: tuple[str, str | None]) -> None:
    """Wait until the last `auth/status_update` has this state, and these accounts by label and e-mail address."""

    def look() -> bool:
        news = [obj(line, "params") for line in agent.lines if line.get("method") == "auth/status_update"]
        if not news:
            return False
        told = as_objects(news[-1].get("accounts"))
        return news[-1]["state"] == state and [(a["label"], a.get("email")) for a in told] == list(accounts)

    await agent.wait_for(look, f"the news that the login is {state}, with {accounts}")


def terminal_login(version: int) -> JsonObject:
    """The capability of a client that runs logins in a terminal."""
    return {"terminal": True if version == 1 else {}}


@pytest.mark.case("A02")
@both_and_codex_in_v2
async def test_a_login_made_in_a_terminal_counts_at_once_and_a_logout_ends_it(
    lab: MakeLab, backend: str, version: int
) -> None:
    world = without_login(lab(backend))
    login, logout = ("authenticate", "logout") if version == 1 else ("auth/login", "auth/logout")
    async with started(world, "--backend", backend, version=version) as agent:
        told = await agent.initialize(auth=terminal_login(version))
        can = obj(obj(told, "agentCapabilities" if version == 1 else "capabilities"), "auth")
        assert can == ({"logout": {}, "status": {}} if version == 1 else {"status": {}})
        assert (await agent.request("auth/status", {}))["state"] == "unauthenticated"
        error = await new_in(agent, world, backend)
        assert error is not None and error.code == -32000 and "login" in error.message
        error = await agent.fails(login, {"methodId": f"{backend}-login"})
        assert error.code == -32000 and "login" in error.message

        log_in(world, backend)
        accounts = {"claude": ("Claude Max", "me@example.org"), "codex": ("OpenAI API key", None)}
        await status_told(agent, "authenticated", accounts[backend])
        assert await agent.request(login, {"methodId": f"{backend}-login"}) == {}
        session = await agent.new_session(world.cwd, backend)
        await agent.request("session/close", {"sessionId": session})

        kept = {"settings.json": "{}", "keep/me": "kept"} if backend == "claude" else {"keep": "kept"}
        for name, words in kept.items():
            (store(world, backend) / name).parent.mkdir(exist_ok=True)
            (store(world, backend) / name).write_text(words)
        assert await agent.request(logout, {}) == {}
        assert not (store(world, backend) / LOGIN[backend]).exists()
        assert {name: (store(world, backend) / name).read_text() for name in kept} == kept
        await status_told(agent, "unauthenticated")
        error = await new_in(agent, world, backend)
        assert error is not None and error.code == -32000
        assert await agent.request(logout, {}) == {}
    assert "sk-ant-" not in json.dumps(agent.lines) and "sk-test" not in json.dumps(agent.lines)


@both_versions
async def test_the_ways_to_log_in_are_told_as_the_client_takes_them(lab: MakeLab, version: int) -> None:
    world = lab()
    name, usual = ("id", None) if version == 1 else ("methodId", "agent")
    async with started(world, version=version) as agent:
        plain = as_objects((await agent.initialize())["authMethods"])
        assert [method[name] for method in plain] == ["claude-login", "claude-api-key", "codex-login", "codex-api-key"]
        assert all(method.get("type") == usual for method in plain)
        by_args = as_objects((await agent.initialize(auth=terminal_login(version)))["authMethods"])
        runs = {text(method, name): method["args"] for method in by_args if method.get("type") == "terminal"}
        assert runs == {
            way: ["login", way] for way in ("claude-login", "claude-console", "codex-login", "codex-device")
        }
        by_command = as_objects((await agent.initialize(_meta={"terminal-auth": True}))["authMethods"])
        shown = {text(method, name): obj(obj(method, "_meta"), "terminal-auth") for method in by_command}
        assert all(method.get("type") == usual for method in by_command)
        run = shown["codex-login"]
    command = [text(run, "command"), *[str(word) for word in as_list(run["args"])]]
    with anyio.fail_after(20):
        done = await anyio.run_process([*command, "--help"], env=world.env, check=False)
    assert done.returncode == 0 and b"METHOD" in done.stdout


async def test_an_api_key_that_the_client_sends_becomes_codex_login(lab: MakeLab) -> None:
    world = without_login(lab("codex"))
    async with started(world, "--backend", "codex") as agent:
        methods = as_objects((await agent.initialize())["authMethods"])
        (key_method,) = [method for method in methods if method["id"] == "codex-api-key"]
        assert key_method["_meta"] == {"api-key": {"provider": "openai"}}
        assert (await agent.fails("authenticate", {"methodId": "codex-api-key"})).code == -32000
        meta = {"api-key": {"apiKey": "sk-test-sent"}}
        assert await agent.request("authenticate", {"methodId": "codex-api-key", "_meta": meta}) == {}
        assert (await agent.request("auth/status", {}))["state"] == "authenticated"
        stored = store(world, "codex") / "auth.json"
        assert json.loads(stored.read_text())["OPENAI_API_KEY"] == "sk-test-sent"
        assert stored.stat().st_mode & 0o077 == 0
        assert await new_in(agent, world, "codex") is None
        assert "sk-test-sent" not in json.dumps(agent.lines)
    assert "sk-test-sent" not in world.log.read_text()


@both_backends
async def test_an_endpoint_set_by_the_client_serves_sessions_without_any_login(lab: MakeLab, backend: str) -> None:
    """The model hears the client's headers, and nothing of the person's own login, also against settings of theirs."""
    world = without_login(lab(backend))
    if backend == "claude":
        theirs = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_AUTH_TOKEN": "persons-own"}
        (store(world, backend) / "settings.json").write_text(
            json.dumps({"env": theirs, "apiKeyHelper": "echo persons-own"})
        )
    api, path = {"claude": ("anthropic", ""), "codex": ("openai", "/v1")}[backend]
    setting: JsonObject = {
        "providerId": backend,
        "apiType": api,
        "baseUrl": world.model.url + path,
        "headers": {"X-Route": SECRET, "Authorization": f"Bearer {SECRET}-token"},
    }
    async with started(world, "--backend", backend, "--verbose") as agent:
        assert obj(await agent.initialize(), "agentCapabilities")["providers"] == {}
        (before,) = as_objects((await agent.request("providers/list", {}))["providers"])
        assert before["providerId"] == backend and api in as_list(before["supported"]) and "current" not in before
        assert await agent.request("providers/set", setting) == {}
        (after,) = as_objects((await agent.request("providers/list", {}))["providers"])
        assert after["current"] == {"apiType": api, "baseUrl": world.model.url + path}
        status = await agent.request("auth/status", {})
        assert status["state"] == "authenticated"

        session = await agent.new_session(world.cwd, backend)
        assert await agent.ask(session, "SAY[2]") == "end_turn"
        assert agent.said(session).split() == ["word0", "word1"]
        turns = [request for request in world.model.requests if "SAY[2]" in request.asked.prompt]
        assert turns and all(request.headers.get("x-route") == SECRET for request in world.model.requests)
        assert {request.headers.get("authorization") for request in world.model.requests} == {f"Bearer {SECRET}-token"}
        assert all("persons-own" not in json.dumps(request.headers) for request in world.model.requests)

        assert await agent.request("providers/disable", {"providerId": backend}) == {}
        assert await agent.request("providers/disable", {"providerId": "unknown"}) == {}
        assert await agent.ask(session, "SAY[1]") == "end_turn"  # An open session keeps what it was opened with.
        rows = [row["sessionId"] for row in await agent.list_sessions()]
        assert rows == [session]
        if backend == "codex":
            await agent.request("session/close", {"sessionId": session})
            params: JsonObject = {"sessionId": session, "cwd": world.cwd, "mcpServers": []}
            (store(world, backend) / "config.toml").write_text(PERSONS_OWN.format(url=world.model.url))
            assert "configOptions" in await agent.request("session/resume", params)
            assert await agent.ask(session, "SAY[1]") == "end_turn"
            assert world.model.requests[-1].headers.get("authorization") == "Bearer persons-own"
            copy = text(await agent.request("session/fork", params), "sessionId")
            assert await agent.ask(copy, "SAY[1]") == "end_turn"
            assert world.model.requests[-1].headers.get("authorization") == "Bearer persons-own"
            own = await agent.new_session(world.cwd, backend)
            assert await agent.ask(own, "SAY[1]") == "end_turn"
            await agent.request("session/close", {"sessionId": own})
            await agent.request("providers/set", setting)
            try:
                await agent.request("session/resume", {**params, "sessionId": own})
            except AcpError as kept:  # codex-cli 0.171.0
                assert kept.code == -32600 and kept.data == {"reason": "model_provider", "sessionId": own}
                own = text(await agent.request("session/fork", {**params, "sessionId": own}), "sessionId")
            assert await agent.ask(own, "SAY[1]") == "end_turn"
            assert world.model.requests[-1].headers.get("authorization") == f"Bearer {SECRET}-token"
        assert SECRET not in json.dumps(agent.lines)
        assert not any(SECRET in line for line in _command_lines(world))
    assert SECRET not in world.log.read_text()
    assert not [path for path in world.folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def _command_lines(world: Lab) -> list[str]:
    lines: list[str] = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(process.read_bytes().decode(errors="replace"))
        except OSError:
            continue  # It has ended meanwhile.
    return lines


async def test_the_models_of_an_endpoint_come_from_the_endpoint(lab: MakeLab) -> None:
    world = lab()
    world.model.models = ("made-up-large", "made-up-small")
    env = world.env
    with anyio.fail_after(20):
        assert await claude_endpoint.models(None, env) == world.model.models
        assert await codex_endpoint.models(None, store(world, "codex"), env) == world.model.models
    logins = [headers.get("x-api-key") or headers.get("authorization") for headers in world.model.lists]
    assert logins == [
        "sk-ant-test-lab",
        "Bearer sk-test",
    ]


@pytest.mark.case("A04")
async def test_a_configuration_that_codex_cannot_read_is_named_with_its_line(lab: MakeLab) -> None:
    world = lab("codex")
    config = store(world, "codex") / "config.toml"
    config.write_text(config.read_text() + "approval_policy = [\n")
    async with started(world, "--backend", "codex") as agent:
        await agent.initialize()
        error = await new_in(agent, world, "codex")
        assert error is not None and error.code == -32603
        assert f"{config}:" in error.message
        assert (await agent.request("auth/status", {}))["state"] == "unknown"


@pytest.mark.case("A04")
@both_backends
async def test_a_program_for_another_machine_is_named_as_that(lab: MakeLab, backend: str) -> None:
    world = lab(backend)
    program = world.folder / "foreign"
    program.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(57))
    program.chmod(0o755)
    world.env[{"claude": "CLAUDE_CODE_EXECUTABLE", "codex": "CODEX_PATH"}[backend]] = str(program)
    async with started(world, "--backend", backend) as agent:
        await agent.initialize()
        error = await new_in(agent, world, backend)
        assert error is not None and str(program) in error.message and "this machine" in error.message
