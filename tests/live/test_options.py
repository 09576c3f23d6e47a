"""Modes, models and other options on the real CLIs: what is set is what the model is asked with."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import pytest

from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .client import Client, leave_open, reject
from .conftest import MakeLab, both_versions
from .lab import Lab, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]
both_backends = pytest.mark.parametrize("backend", ["claude", "codex"])

OTHER_MODEL = {
    "claude": ("haiku", "claude-haiku-5-5"),
    "claude-tui": ("sonnet", "claude-sonnet-5-5"),
    "codex": ("gpt-6-luna", "gpt-6-luna"),
}
"""A model that is not the one each CLI starts with: its id, and what a request then names."""

MODES = {
    "claude": ("default", "acceptEdits"),
    "claude-tui": ("default", "acceptEdits"),
    "codex": ("read-only", "agent-full-access"),
}
"""The mode of the lab, and one that asks less."""


def values(options: object) -> dict[str, object]:
    """Option -> what holds."""
    return {option_id(option): option["currentValue"] for option in as_objects(options)}


def option_id(option: JsonObject) -> str:
    """The id of an option, in v2 its `configId`."""
    return text(option, "id" if "id" in option else "configId")


def choices(options: object, option_id: str) -> list[str]:
    (option,) = (option for option in as_objects(options) if option["id"] == option_id)
    return [text(choice, "value") for choice in as_objects(option["options"])]


def told(agent: Client, session: str) -> JsonObject:
    """The options that were told last."""
    updates = agent.heard(session, "config_option_update")
    return updates[-1] if updates else {}


async def knows(agent: Client, session: str, **wanted: object) -> JsonObject:
    """Wait until these options were told with these values, and give the update."""

    def look() -> JsonObject | None:
        held = values(told(agent, session).get("configOptions"))
        return told(agent, session) if wanted.items() <= held.items() else None

    return await agent.wait_for(look, f"{wanted} in the options of {session}")


async def choose(agent: Client, session: str, option: str, value: object) -> dict[str, object]:
    return values(await agent.set_option(session, option, value))


def asked_with(lab: Lab, backend: str) -> tuple[object, object, bool]:
    """Model, effort and whether it was to be fast, as the last request to the model said."""
    body = lab.model.requests[-1].body
    effort = obj(body, "reasoning" if backend == "codex" else "output_config").get("effort")
    return body.get("model"), effort, body.get("speed") == "fast" or body.get("service_tier") == "priority"


@both_versions
@both_backends
async def test_each_option_is_listed_set_and_what_the_model_is_asked_with(
    lab_agent: Client, both: Lab, backend: str, version: int
) -> None:
    lab_agent.version = version
    await lab_agent.initialize(session={"configOptions": {"boolean": {}}})
    agent = lab_agent
    meta = {"acp-manifold": {"backend": backend, "title": "So that the model is asked for none"}}
    opened = await agent.request("session/new", {"cwd": both.cwd, "mcpServers": [], "_meta": meta})
    session = text(opened, "sessionId")
    before, after = MODES[backend]
    assert values(opened["configOptions"])["mode"] == before
    if version == 1:
        assert obj(opened, "modes")["currentModeId"] == before
    model, named = OTHER_MODEL[backend]

    if "fast" not in values(opened["configOptions"]):
        # The CLI tells with its handshake, or with a list that nobody waits for.
        opened = await knows(agent, session, effort="medium", fast=False)
    assert {"backend", "mode", "model", "effort", "fast"} <= set(values(opened["configOptions"]))
    categories = {option_id(o): o.get("category") for o in as_objects(opened["configOptions"])}
    assert [categories[name] for name in ("mode", "model", "effort")] == ["mode", "model", "thought_level"]

    assert (await choose(agent, session, "fast", True))["fast"] is True
    assert await agent.ask(session, "SAY[1]") == "end_turn"
    assert asked_with(both, backend)[1:] == ("medium", True)
    assert (await choose(agent, session, "fast", "off" if version == 1 else False))["fast"] is False
    assert (await choose(agent, session, "model", model))["model"] == model
    assert (await choose(agent, session, "reasoning_effort", "high"))["effort"] == "high"
    if version == 1:
        await agent.request("session/set_mode", {"sessionId": session, "modeId": after})
        assert agent.heard(session, "current_mode_update")[-1]["currentModeId"] == after
    else:
        assert (await choose(agent, session, "mode", after))["mode"] == after
    assert await agent.ask(session, "SAY[1]") == "end_turn"
    assert asked_with(both, backend) == (named, "high", False)
    assert values(told(agent, session)["configOptions"])["mode"] == after

    params = {"sessionId": session, "configId": "model", "value": "no-such-model"} | (
        {"type": "id"} if version == 2 else {}
    )
    wrong = await agent.fails("session/set_config_option", params)
    assert wrong.code == -32602 and model in wrong.message
    unknown = await agent.fails("session/set_config_option", {**params, "configId": "colour"})
    assert unknown.code == -32602 and "effort" in unknown.message
    yolo = await agent.fails("session/set_config_option", {**params, "configId": "mode", "value": "yolo"})
    assert yolo.code == -32602
    if version == 1:
        assert (await agent.fails("session/set_mode", {"sessionId": session, "modeId": "yolo"})).code == -32602


@pytest.mark.parametrize("backend", ["claude", "claude-tui", "codex"])
async def test_a_mode_that_asks_less_asks_less_and_nothing_unsafe_is_on_before(
    agent: Client, both: Lab, backend: str
) -> None:
    session = await agent.new_session(both.cwd, backend)
    path = Path(both.cwd) / "made.txt"
    writes = f'TOOL[Write {{"file_path": "{path}", "content": "x"}}] ;; SAY[1]'
    if backend == "codex":
        writes = f"RUN[touch {path}] ;; SAY[1]"
    # Codex runs it in its sandbox, which refuses; Claude Code asks.
    agent.on_question = reject
    assert await agent.ask(session, writes) == "end_turn"
    assert not path.exists()
    asked = len(agent.questions)
    assert asked == (backend != "codex")
    await choose(agent, session, "mode", MODES[backend][1])
    assert await agent.ask(session, writes) == "end_turn"
    assert len(agent.questions) == asked and path.exists()


PROFILES = """default_permissions = ":workspace"
[permissions.drop]
description = "Writes to the drop alone"
[permissions.drop.filesystem]
":root" = "read"
"{drop}" = "write"
[permissions.forge]
extends = ":workspace"
[permissions.forge.network]
enabled = true
"""


async def test_permission_profiles_of_the_person_are_modes_of_codex(lab: MakeLab) -> None:
    both = lab("codex")
    drop = both.directory("drop")
    config = Path(both.env["CODEX_HOME"]) / "config.toml"
    config.write_text(config.read_text().replace("\n\n", f"\n{PROFILES.format(drop=drop)}\n", 1))
    here, there = Path(both.cwd) / "made.txt", Path(drop) / "made.txt"
    flags = ("--backend", "codex", "--titles", "off")
    async with started(both, *flags) as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd)

        def listed() -> bool:
            now = told(agent, session).get("configOptions")
            names = choices(now, "mode")[-2:] if now else []
            return names == ["permission-profile:drop", "permission-profile:forge"]

        await agent.wait_for(listed, "the profiles")
        assert values(told(agent, session)["configOptions"])["mode"] == "workspace-write"
        assert (await choose(agent, session, "mode", "permission-profile:drop"))["mode"] == "permission-profile:drop"
        assert await agent.ask(session, f"RUN[touch {here}; touch {there}] ;; SAY[1]") == "end_turn"
        assert there.exists() and not here.exists()
        wrong = {"sessionId": session, "configId": "mode", "value": "permission-profile:none"}
        assert (await agent.fails("session/set_config_option", wrong)).code == -32602
    async with started(both, *flags) as agent:
        await agent.initialize()
        await agent.load(session, both.cwd)
        await knows(agent, session, mode="permission-profile:drop")
        assert await agent.ask(session, f"RUN[touch {here}] ;; SAY[1]") == "end_turn"
        assert not here.exists()
        await choose(agent, session, "mode", "workspace-write")
        assert await agent.ask(session, f"RUN[touch {here}] ;; SAY[1]") == "end_turn"
        assert here.exists()


@pytest.mark.parametrize("backend", ["claude", "claude-tui", "codex"])
async def test_options_hold_over_a_rest_a_killed_cli_and_a_load(lab: MakeLab, backend: str) -> None:
    place = lab(backend)
    model, named = OTHER_MODEL[backend]
    async with started(place, "--idle-timeout", "1") as agent:
        await agent.initialize()
        session = await agent.new_session(place.cwd, backend)
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        await choose(agent, session, "model", model)
        await choose(agent, session, "effort", "low")
        if backend == "codex":
            await choose(agent, session, "fast", "on")
        wanted = {"model": model, "effort": "low", "mode": MODES[backend][1]}
        await choose(agent, session, "mode", MODES[backend][1])
        for _ in range(2):
            for pid in cli_processes(place):
                os.kill(pid, signal.SIGKILL)
            assert await agent.ask(session, "SAY[1]") == "end_turn"
            assert asked_with(place, backend) == (named, "low", backend == "codex")
            assert wanted.items() <= values(told(agent, session)["configOptions"]).items()
        if backend != "codex":
            # Its process is let go by itself; Codex' is there for all.
            (pid,) = cli_processes(place)
            await ends(pid)
            assert await agent.ask(session, "SAY[1]") == "end_turn"
            assert asked_with(place, backend) == (named, "low", False)
        opened = await agent.request("session/load", {"sessionId": session, "cwd": place.cwd, "mcpServers": []})
        assert wanted.items() <= values(opened["configOptions"]).items()
        if backend == "claude":
            # No turn runs with it before the restart.
            await choose(agent, session, "model", "sonnet")
        await agent.request("session/close", {"sessionId": session})
    if backend == "codex":
        return
    # Claude Code itself keeps neither mode nor effort with a session: they are kept here, also over a restart of ours.
    async with started(place) as agent:
        await agent.initialize()
        opened = await agent.request("session/load", {"sessionId": session, "cwd": place.cwd, "mcpServers": []})
        assert {"effort": "low", "mode": wanted["mode"]}.items() <= values(opened["configOptions"]).items()
        shown = [text(obj(body, "content"), "text") for body in agent.heard(session, "user_message_chunk")]
        assert set(shown) == {"SAY[1]"}  # and no command that nobody typed
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        assert asked_with(place, backend) == ("claude-sonnet-5-5", "low", False)
        # The effort of the person's settings, or of the model, again.
        assert (await choose(agent, session, "effort", "default"))["effort"] == "medium"
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        assert asked_with(place, backend)[1:] == ("medium", False)


async def test_the_interactive_program_goes_round_its_modes_and_is_started_anew_for_a_model(lab: MakeLab) -> None:
    place = lab("claude-tui")
    settings = Path(place.env["CLAUDE_CONFIG_DIR"]) / "settings.json"
    async with started(place) as agent:
        await agent.initialize()
        opened = await agent.request("session/new", {"cwd": place.cwd, "mcpServers": []})
        session = text(opened, "sessionId")
        assert values(opened["configOptions"])["mode"] == "default" == obj(opened, "modes")["currentModeId"]
        assert choices(opened["configOptions"], "mode") == ["default", "acceptEdits", "plan", "auto"]
        assert (await choose(agent, session, "model", "haiku"))["model"] == "haiku"
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        assert place.model.requests[-1].body["model"] == OTHER_MODEL["claude"][1]
        assert (await choose(agent, session, "model", "sonnet"))["model"] == "sonnet"
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        await knows(agent, session, model="sonnet", effort="medium")
        assert (await choose(agent, session, "effort", "high"))["effort"] == "high"

        # In mid-turn a mode holds at once, a model is refused; a question has the keyboard.
        turn = agent.prompt(session, "SAY[1] GATE[go] ;; SAY[1]")
        await place.model.gate("go").reached()
        assert (await choose(agent, session, "mode", "plan"))["mode"] == "plan"
        assert agent.heard(session, "current_mode_update")[-1]["currentModeId"] == "plan"
        busy = {"sessionId": session, "configId": "model", "value": "opus"}
        assert (await agent.fails("session/set_config_option", busy)).code == -32600
        place.model.gate("go").set()
        assert (await turn.answer())["stopReason"] == "end_turn"
        assert "sonnet" in text(place.model.requests[-1].body, "model")
        assert obj(place.model.requests[-1].body, "output_config")["effort"] == "high"
        await choose(agent, session, "mode", "default")
        agent.on_question = leave_open
        turn = agent.prompt(session, "RUN[touch made]")
        question = await agent.question(session)
        mode: JsonObject = {"sessionId": session, "modeId": "acceptEdits"}
        assert "waits for an answer" in (await agent.fails("session/set_mode", mode)).message
        question.choose(question.option("reject_once"))
        await turn.answer()
        await choose(agent, session, "mode", "plan")

        wanted = {"model": "sonnet", "effort": "high", "mode": "plan"}
        for pid in cli_processes(place, b"--settings"):
            os.kill(pid, signal.SIGKILL)
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        assert wanted.items() <= values(told(agent, session)["configOptions"]).items()
        opened = await agent.request("session/load", {"sessionId": session, "cwd": place.cwd, "mcpServers": []})
        assert wanted.items() <= values(opened["configOptions"]).items()
    assert not settings.exists(), "the person's settings are what they were"
    async with started(place) as agent:
        await agent.initialize()
        opened = await agent.request("session/load", {"sessionId": session, "cwd": place.cwd, "mcpServers": []})
        assert {"effort": "high", "mode": "plan"}.items() <= values(opened["configOptions"]).items()


async def ends(pid: int) -> None:
    """Wait until a process has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        with anyio.fail_after(20):
            await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def cli_processes(place: Lab, *words: bytes) -> list[int]:
    """The CLI processes of the lab, those with one of these words on their command line."""
    words = words or (b"stream-json", b"--settings", b"app-server")
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            line = (entry / "cmdline").read_bytes()
            env = (entry / "environ").read_bytes()
        except OSError:
            continue
        if str(place.folder).encode() in env and any(word in line for word in words):
            found.append(int(entry.name))
    return found


async def test_what_claude_code_changes_itself_is_told_and_kept(agent: Client, both: Lab) -> None:
    """A slash command, an answer to a permission question, a change while a turn runs."""
    session = await agent.new_session(both.cwd, "claude")
    assert await agent.ask(session, "/model sonnet") == "end_turn"
    await knows(agent, session, model="sonnet")

    path = Path(both.cwd) / "made.txt"
    agent.on_question = leave_open
    turn = agent.prompt(session, f'TOOL[Write {{"file_path": "{path}", "content": "x"}}] ;; SAY[1]')
    question = await agent.question(session)
    assert (await choose(agent, session, "model", "haiku"))["model"] == "haiku"
    accept = [o for o in as_objects(question.params["options"]) if "all edits" in text(o, "name")]
    question.choose(text(accept[0], "optionId"))
    assert (await turn.answer())["stopReason"] == "end_turn"
    assert asked_with(both, "claude")[0] == "claude-haiku-5-5"
    await knows(agent, session, mode="acceptEdits", model="haiku")
    assert agent.heard(session, "current_mode_update")[-1]["currentModeId"] == "acceptEdits"


async def test_claude_code_bypasses_permissions_only_for_who_asks_for_it(lab: MakeLab) -> None:
    place = lab("claude")
    place.env["IS_SANDBOX"] = "1"
    async with started(place) as agent:
        await agent.initialize()
        opened = await agent.request("session/new", {"cwd": place.cwd, "mcpServers": []})
        session = text(opened, "sessionId")
        assert values(opened["configOptions"])["mode"] == "default"
        assert "bypassPermissions" in choices(opened["configOptions"], "mode")
        assert b"dangerously" not in command_line(place)
        agent.on_question = leave_open
        turn = agent.prompt(session, "RUN[echo x > made.txt] ;; SAY[1]")
        question = await agent.question(session)
        params = {"sessionId": session, "modeId": "bypassPermissions"}
        assert (await agent.fails("session/set_mode", params)).code == -32600
        question.choose(question.option("reject_once"))
        await turn.answer()
        assert await agent.request("session/set_mode", params) == {}
        assert await agent.ask(session, "RUN[echo x > made.txt] ;; SAY[1]") == "end_turn"
        assert len(agent.questions) == 1 and (Path(place.cwd) / "made.txt").exists()
        await agent.request("session/set_mode", {"sessionId": session, "modeId": "default"})
        assert values(told(agent, session)["configOptions"])["mode"] == "default"


async def test_claude_code_run_by_root_offers_no_bypass(lab: MakeLab) -> None:
    place = lab("claude")
    place.env["IS_SANDBOX"] = "no"
    async with started(place) as agent:
        await agent.initialize()
        opened = await agent.request("session/new", {"cwd": place.cwd, "mcpServers": []})
        offered = "bypassPermissions" in choices(opened["configOptions"], "mode")
        assert offered == (os.geteuid() != 0)


def command_line(place: Lab) -> bytes:
    """How the lab's CLI was started."""
    return b" ".join(Path(f"/proc/{pid}/cmdline").read_bytes() for pid in cli_processes(place))


async def test_the_models_of_the_last_session_are_known_before_the_cli_is_up(lab: MakeLab) -> None:
    place = lab("claude")
    async with started(place) as agent:
        await agent.initialize()
        session = await agent.new_session(place.cwd)
        await knows(agent, session, effort="medium")
    async with started(place) as agent:
        await agent.initialize()
        opened = await agent.request("session/new", {"cwd": place.cwd, "mcpServers": []})
        assert {"default", "haiku"} <= set(choices(opened["configOptions"], "model"))
        assert values(opened["configOptions"])["effort"] == "medium"
        session = text(opened, "sessionId")
        # Asked for before there is anybody to ask, and in force for the prompt right behind it.
        change = agent.start("session/set_config_option", {"sessionId": session, "configId": "model", "value": "haiku"})
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        assert change.done and asked_with(place, "claude")[0] == "claude-haiku-5-5"


async def test_a_session_of_codex_starts_as_configured_and_can_go_back_to_it(lab: MakeLab) -> None:
    place = lab("codex")
    config = Path(place.env["CODEX_HOME"]) / "config.toml"
    network = "\n[sandbox_workspace_write]\nnetwork_access = true\n"
    config.write_text('sandbox_mode = "workspace-write"\n' + config.read_text() + network)
    async with started(place, "--backend", "codex") as agent:
        await agent.initialize()
        opened = await agent.request("session/new", {"cwd": place.cwd, "mcpServers": []})
        session = text(opened, "sessionId")
        assert values(opened["configOptions"])["mode"] == "config" == obj(opened, "modes")["currentModeId"]
        assert (await choose(agent, session, "mode", "agent"))["mode"] == "agent"
        assert (await choose(agent, session, "mode", "config"))["mode"] == "config"
        assert (await choose(agent, session, "collaboration_mode", "plan"))["collaboration_mode"] == "plan"
        assert await agent.ask(session, "SAY[1]") == "end_turn"
        # The last request may be the one for a title.
        assert any("Plan Mode" in str(request.body) for request in place.model.requests)


@both_backends
async def test_the_models_of_an_endpoint_are_those_it_serves(agent: Client, both: Lab, backend: str) -> None:
    both.model.models = ("made-up-large", "made-up-small")
    session = await agent.new_session(both.cwd, backend)

    def offered() -> list[str] | None:
        found = choices(told(agent, session).get("configOptions", ()), "model") if told(agent, session) else []
        return found if "made-up-large" in found else None

    await agent.wait_for(offered, "the models of the endpoint")
    assert (await choose(agent, session, "model", "made-up-small"))["model"] == "made-up-small"
    assert await agent.ask(session, "SAY[1]") == "end_turn"
    assert asked_with(both, backend)[0] == "made-up-small"
