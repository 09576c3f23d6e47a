"""The commands of the shell, on both real CLIs and their own stores."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import anyio
import pytest

from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, obj, text

from .conftest import MakeLab
from .lab import Lab, started
from .leftovers import bearing, none_left

pytestmark = [pytest.mark.anyio, pytest.mark.live]

BACKENDS = ("claude", "codex")


class Done(NamedTuple):
    """A command that has ended."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> object:
        return json.loads(self.out)


async def command(lab: Lab, *words: str, env: Mapping[str, str] | None = None) -> Done:
    """Run `acp-manifold WORDS` in the lab; it may leave nothing behind."""
    with anyio.fail_after(30):
        done = await anyio.run_process(
            [sys.executable, "-m", "acp_manifold.bridge", *words],
            env={**lab.env, **(env or {})},
            cwd=lab.cwd,
            check=False,
        )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


async def told_sessions(lab: Lab, *words: str) -> dict[str, JsonObject]:
    rows = as_objects((await command(lab, "sessions", "list", "--json", *words)).json)
    return {text(row, "sessionId"): row for row in rows}


def stored_titles(lab: Lab, backend: str, session: str) -> list[str]:
    """What the CLI's own store says, oldest first."""
    key, of, name = {
        "claude": ("customTitle", f"{session}.jsonl", "sessionId"),
        "codex": ("thread_name", "session_index.jsonl", "id"),
    }[backend]
    (file,) = lab.folder.rglob(of)
    records = [as_object(json.loads(line)) for line in file.read_text().splitlines()]
    return [text(record, key) for record in records if key in record and record[name] == session]


def files_of(lab: Lab, session: str) -> list[Path]:
    return [path for path in lab.folder.rglob(f"*{session}*") if path.suffix == ".jsonl"]


async def test_sessions_are_listed_shown_renamed_and_deleted_without_an_editor(both: Lab) -> None:
    made: dict[str, str] = {}
    async with started(both, "--titles", "off") as agent:
        await agent.initialize()
        for backend in BACKENDS:
            made[backend] = await agent.new_session(both.directory(backend), backend)
            assert await agent.ask(made[backend], f"TEXT<<Hello from {backend}>>") == "end_turn"
    assert both.model.titles.asked == 0

    table = (await command(both, "sessions", "list")).out
    assert all(made[backend] in table and backend in table for backend in BACKENDS)
    assert set(await told_sessions(both, "--cwd", os.path.join("..", "codex"))) == {made["codex"]}
    async with anyio.create_task_group() as tasks:
        for backend, session in made.items():
            tasks.start_soon(shown_and_renamed, both, backend, session)

    async with started(both) as agent:
        await agent.initialize()
        titles = {text(row, "sessionId"): row.get("title") for row in await agent.list_sessions()}
        assert titles == {session: f"Kept by {backend}" for backend, session in made.items()}

    async with anyio.create_task_group() as tasks:
        for session in made.values():
            tasks.start_soon(deleted_for_good, both, session)
    assert await told_sessions(both) == {}
    assert not await none_left(str(both.folder), 5)


async def shown_and_renamed(lab: Lab, backend: str, session: str) -> None:
    shown = (await command(lab, "sessions", "show", session)).out
    assert f"Backend    {backend}\n" in shown and "--- you\n" in shown
    assert shown.endswith(f"--- agent\nHello from {backend}\n")
    renamed = await command(lab, "sessions", "rename", session, f" Kept\tby {backend} ")
    assert renamed == Done(0, f"Kept by {backend}\n", "")
    assert stored_titles(lab, backend, session)[-1] == f"Kept by {backend}"
    told = as_object((await command(lab, "sessions", "show", session, "--json")).json)
    assert (told["title"], told["titleOrigin"]) == (f"Kept by {backend}", "client")


async def deleted_for_good(lab: Lab, session: str) -> None:
    assert files_of(lab, session)
    assert (await command(lab, "sessions", "delete", session, "--yes")).status == 0
    assert not files_of(lab, session)
    again = await command(lab, "sessions", "delete", session, "--yes")
    assert again == Done(1, "", f"Error: Session not found: {session}\n")


async def test_doctor_tells_the_versions_and_who_has_which_session(both: Lab) -> None:
    async with started(both) as agent:
        await agent.initialize()
        made = {backend: await agent.new_session(both.cwd, backend) for backend in BACKENDS}
        for session in made.values():
            assert await agent.ask(session, "SAY[1]") == "end_turn"
        report = as_object((await command(both, "doctor", "--json")).json)
        assert (report["ok"], report["problems"]) == (True, [])
        assert obj(report, "state")["ledger"] == "in order"
        for backend in as_objects(report["backends"]):
            assert text(backend, "version")[-1].isdigit() or "Claude Code" in text(backend, "version")
            assert (backend["login"], backend["sessions"]) == ("in", 1)
            assert Path(text(backend, "store")).is_relative_to(both.folder)
            if sys.platform == "linux":
                (held,) = as_objects(backend["open"])
                assert held["sessionId"] == made[text(backend, "name")]
                assert isinstance(held["pid"], int) and held["pid"] in bearing(str(both.folder))
        for session in made.values():
            refused = await command(both, "sessions", "delete", session, "--yes")
            assert refused.status == 1 and "close it there first" in refused.err.lower()
            assert files_of(both, session)
    plain = await command(both, "doctor")
    assert plain.status == 0 and plain.out.endswith("All is well.\n"), plain
    assert "2." in plain.out and "codex-cli " in plain.out and plain.out.count("open     no session") == 2


async def test_doctor_names_what_is_wrong_and_shows_no_secret(lab: MakeLab) -> None:
    place = lab()
    env = {"CLAUDE_CODE_EXECUTABLE": "/no/claude", "CODEX_PATH": "/no/codex", "ANTHROPIC_API_KEY": "sk-ant-verysecret"}
    done = await command(place, "doctor", env=env)
    wrong = done.out.partition("Wrong:\n")[2]
    assert done.status == 1
    assert "CLAUDE_CODE_EXECUTABLE names /no/claude" in wrong and "correct or unset CODEX_PATH" in wrong
    assert wrong.count("\n  * ") + wrong.startswith("  * ") == 2, "each program that does not start is one problem"
    broken = place.folder / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    both = {"CLAUDE_CODE_EXECUTABLE": str(broken), "CODEX_PATH": str(broken)}
    wrong = (await command(place, "doctor", env=both)).out.partition("Wrong:\n")[2]
    assert "orrect or unset CLAUDE_CODE_EXECUTABLE" in wrong and "correct or unset CODEX_PATH" in wrong
    (Path(place.env["CODEX_HOME"]) / "config.toml").unlink()
    out = await command(place, "doctor", "--json", "--backend", "codex", env={"OPENAI_API_KEY": "sk-verysecret"})
    assert out.status == 1 and "login" in str(as_object(out.json)["problems"])
    assert "verysecret" not in done.out + done.err + out.out + out.err
