"""`acp-manifold doctor` over scripted backends."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner, Result

from acp_manifold.bridge import doctor, inspecting
from acp_manifold.bridge.backend import Held, SessionRow
from acp_manifold.bridge.commands import acp_manifold
from acp_manifold.bridge.doctor import ledger_state
from acp_manifold.bridge.errors import BackendGone
from acp_manifold.bridge.inspecting import version_told
from acp_manifold.bridge.ledger import Key, Ledger, TitleRecord, ledger_path
from acp_manifold.bridge.plugins import Plugin
from acp_manifold.bridge.version import __version__
from tests.bridge.scripted import ScriptedBackend


class Missing(ScriptedBackend):
    """A backend whose CLI is not installed."""

    def program(self) -> None:
        return None


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, ScriptedBackend]:
    """The backends that are found: a test may change them."""
    found: dict[str, ScriptedBackend] = {"alpha": ScriptedBackend("alpha")}

    def wanted(names: Sequence[str]) -> list[Plugin]:
        return [Plugin(name, f"no.such.module:{name}") for name in names or found]

    def made(plugin: Plugin) -> object:
        return found[plugin.name] if plugin.name in found else plugin.load()

    monkeypatch.setattr(doctor, "wanted_plugins", wanted)
    monkeypatch.setattr(doctor, "plugin_backend", made)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return found


Served = dict[str, ScriptedBackend]


def run(*words: str) -> Result:
    return CliRunner().invoke(acp_manifold, ["doctor", *words])


def told(*words: str) -> dict[str, object]:
    answer: dict[str, object] = json.loads(run("--json", *words).output)
    return answer


def test_all_well_is_status_0_with_what_there_is(served: Served, tmp_path: Path) -> None:
    alpha = served["alpha"]
    alpha.stored["a1"] = SessionRow("a1", "/work", "2026-01-01T10:00:00.000Z")
    alpha.held = (Held("a1", 4711, "a terminal"),)
    result = run()
    assert result.exit_code == 0, result.output
    for expected in (
        f"acp-manifold {__version__}",
        sys.executable,
        f"{tmp_path / 'acp-manifold'} (ledger: none yet)",
        "true (found by test)",
        "version  1.0",
        "login    Alpha account (me@example.org)",
        "/nowhere/alpha (1 sessions)",
        "a1 in a terminal, pid 4711",
        "All is well.",
    ):
        assert expected in result.output
    assert list(tmp_path.iterdir()) == []


def test_json_tells_the_same(served: Served) -> None:
    served["alpha"].held = None
    assert told() | {"python": 0, "platform": 0, "state": 0, "logs": 0} == {
        "ok": True,
        "problems": [],
        "version": __version__,
        "python": 0,
        "platform": 0,
        "state": 0,
        "logs": 0,
        "backends": [
            {
                "name": "alpha",
                "label": "Alpha",
                "command": ["true"],
                "foundBy": "test",
                "version": "1.0",
                "login": "in",
                "accounts": ["Alpha account (me@example.org)"],
                "endpoint": None,
                "store": "/nowhere/alpha",
                "sessions": 0,
                "open": None,
                "problems": [],
            }
        ],
    }
    assert "can't be told on this system" in run().output


def test_what_is_wrong_is_said_with_what_to_do_and_status_1(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    alpha = served["alpha"]
    alpha.login_state = "out"
    alpha.problems = ("The store is locked away: chmod it",)

    async def fails(query: object) -> list[SessionRow]:
        raise BackendGone("alpha crashed")

    monkeypatch.setattr(alpha, "list", fails)
    result = run()
    assert result.exit_code == 1
    wrong = result.output.partition("Wrong:\n")[2].splitlines()
    assert [line[:4] for line in wrong] == ["  * "] * 3
    assert "chmod it" in wrong[0] and "alpha crashed" in wrong[1] and "Run `alpha login`" in wrong[2]
    assert told()["ok"] is False


def test_a_program_that_does_not_start_is_one_problem(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    alpha = served["alpha"]
    alpha.login_state, alpha.version = "out", None
    alpha.problems = ("alpha can't be started: correct or unset ALPHA_PATH",)

    async def fails(query: object) -> list[SessionRow]:
        raise BackendGone("alpha can't be started")

    monkeypatch.setattr(alpha, "list", fails)
    assert run().output.partition("Wrong:\n")[2].splitlines() == [
        "  * alpha can't be started: correct or unset ALPHA_PATH"
    ]


def test_a_missing_cli_is_wrong_only_if_it_was_asked_for_or_is_the_last(served: Served) -> None:
    served["beta"] = Missing("beta")
    assert run().exit_code == 0 and "Beta: not installed" in run().output
    assert told("--backend", "beta")["problems"] == ["Beta is not installed: install beta"]
    del served["alpha"]
    result = run()
    assert result.exit_code == 1 and "nothing to serve. Install one: Beta: install beta" in result.output


def test_a_backend_that_cannot_be_imported_is_named(served: Served) -> None:
    problems = told("--backend", "alpha", "--backend", "broken")["problems"]
    assert problems == [
        "The backend broken can't be imported (No module named 'no'): install its package anew, or remove it"
    ]


def test_an_unknown_backend_is_status_2() -> None:
    assert CliRunner().invoke(acp_manifold, ["doctor", "--backend", "nobody"]).exit_code == 2


def test_the_ledger_in_order_damaged_of_a_newer_version_and_in_a_place_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = ledger_path()
    assert ledger_state(path) == ("none yet", [])
    ledger = Ledger(path)
    ledger.put_title(Key("alpha", "a1"), TitleRecord("Kept", "client"))
    assert ledger_state(path) == ("in order", [])
    ledger.close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    words, problems = ledger_state(path)
    assert words == "of a newer version" and "schema 99" in problems[0]
    path.write_bytes(b"no database at all" * 100)
    words, problems = ledger_state(path)
    assert words == "damaged" and "set aside" in problems[0]
    assert path.read_bytes().startswith(b"no database")
    (tmp_path / "file").touch()
    _, problems = ledger_state(tmp_path / "file" / "acp-manifold" / "ledger.sqlite3")
    assert problems and "kept in memory only" in problems[0]


@pytest.mark.anyio
async def test_a_cli_is_asked_for_its_version_and_what_fails_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(name: str, script: str) -> str:
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o700)
        return str(path)

    with anyio.fail_after(20):
        assert await version_told([program("good", 'echo "$1 1.2"; echo more')], os.environ) == "--version 1.2"
        for name, script, why in (("bad", "echo secret >&2; exit 3", "exit status 3"), ("mute", "", "exit status 0")):
            with pytest.raises(BackendGone, match=f"{name} did not tell its version: {why}$"):
                await version_told([program(name, script)], os.environ)
        with pytest.raises(BackendGone, match="gone can't be started: No such file"):
            await version_told([str(tmp_path / "gone")], os.environ)
        monkeypatch.setattr(inspecting, "PATIENCE", 0.05)
        with pytest.raises(BackendGone, match="within 0.05 s"):
            await version_told([program("slow", "exec sleep 60")], os.environ)
