"""`acp-manifold sessions ...` over scripted backends."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from acp_manifold.bridge import once
from acp_manifold.bridge.backend import SessionRow
from acp_manifold.bridge.commands import acp_manifold
from acp_manifold.bridge.errors import BackendGone, InvalidRequest
from acp_manifold.bridge.ledger import Key, Ledger, TitleRecord, ledger_path
from acp_manifold.bridge.listing import PAGE
from acp_manifold.bridge.sessions_table import columns, cut, lines
from acp_manifold.translators.updates import MessageChunk, Text, ToolCall
from tests.bridge.scripted import ScriptedBackend


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[ScriptedBackend, ScriptedBackend]:
    """Two backends that the commands find, with a session each and a ledger of the test's own."""
    alpha, beta = ScriptedBackend("alpha"), ScriptedBackend("beta")
    served = {"alpha": alpha, "beta": beta}
    alpha.stored["a1"] = SessionRow("a1", "/work/one", "2026-01-01T10:00:00.000Z", "Alpha's", "user")
    beta.stored["b1"] = SessionRow("b1", "/work/two", "2026-01-02T10:00:00.000Z", "typed first")

    def find(names: Sequence[str]) -> list[ScriptedBackend]:
        return [served[name] for name in names or served]

    monkeypatch.setattr(once, "find_backends", find)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return alpha, beta


Stores = tuple[ScriptedBackend, ScriptedBackend]


def run(*words: str) -> Result:
    return CliRunner().invoke(acp_manifold, ["sessions", *words])


def test_the_list_is_a_table_over_all_backends_newest_first(stores: Stores) -> None:
    result = run("list")
    assert result.exit_code == 0
    heading, first, second = result.output.splitlines()
    assert heading.split() == ["UPDATED", "BACKEND", "ID", "DIRECTORY", "TITLE"]
    assert first.split()[2:] == ["beta", "b1", "/work/two", "typed", "first"]
    assert second.split()[2:] == ["alpha", "a1", "/work/one", "Alpha's"]


def test_the_list_as_json_holds_what_the_protocol_tells(stores: Stores) -> None:
    rows = json.loads(run("list", "--json").output)
    assert rows[1] == {
        "sessionId": "a1",
        "backend": "alpha",
        "cwd": "/work/one",
        "title": "Alpha's",
        "updatedAt": "2026-01-01T10:00:00.000Z",
    }


def test_the_list_is_cut_down_to_a_directory_and_to_a_backend(stores: Stores) -> None:
    def ids(*words: str) -> list[str]:
        return [row["sessionId"] for row in json.loads(run("list", "--json", *words).stdout)]

    assert ids("--cwd", "/work/one") == ["a1"]
    assert ids("--backend", "beta") == ["b1"]
    outer = CliRunner().invoke(acp_manifold, ["--backend", "beta", "sessions", "list", "--json"])
    assert [row["sessionId"] for row in json.loads(outer.output)] == ["b1"]
    assert ids("--cwd", os.path.relpath("/work/two")) == ["b1"]
    nothing = run("list", "--cwd", "/nowhere")
    assert (nothing.exit_code, nothing.stdout, nothing.stderr) == (0, "", "There are no sessions of /nowhere.\n")


def test_the_list_goes_through_all_pages(stores: Stores) -> None:
    alpha, beta = stores
    for backend in (alpha, beta):
        for number in range(PAGE + 7):
            name = f"{backend.name}-{number:03}"
            backend.stored[name] = SessionRow(name, "/work", f"2025-01-01T00:{number % 60:02}:00.000Z")
    rows = json.loads(run("list", "--json").output)
    assert len({row["sessionId"] for row in rows}) == len(rows) == 2 * (PAGE + 7) + 2


def test_a_backend_that_cannot_list_is_left_out_with_a_note(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    alpha, _ = stores

    async def fails(query: object) -> list[SessionRow]:
        raise BackendGone("alpha crashed")

    monkeypatch.setattr(alpha, "list", fails)
    result = run("list")
    assert result.exit_code == 0 and "b1" in result.output and "a1" not in result.output
    assert "alpha can't list its sessions: alpha crashed" in caplog.text


def test_show_tells_the_title_who_made_it_and_the_conversation(stores: Stores) -> None:
    alpha, _ = stores
    alpha.history["a1"] = [
        MessageChunk("user", Text("hello"), "1"),
        MessageChunk("agent", Text("hi \x1b[2Jthere"), "2"),
        ToolCall("t", "ls", status="completed"),
    ]
    shown = run("show", "a1").output
    assert "Title      Alpha's (set by a person in the CLI)\n" in shown
    assert shown.endswith("--- you\nhello\n\n--- agent\nhi there\n\n  * ls (completed)\n")
    told = json.loads(run("show", "a1", "--json").output)
    assert (told["title"], told["titleOrigin"], told["backend"]) == ("Alpha's", "user", "alpha")
    assert told["conversation"] == [
        {"role": "user", "text": "hello"},
        {"role": "agent", "text": "hi \x1b[2Jthere"},
        {"role": "tool", "text": "ls", "status": "completed"},
    ]
    assert "typed first (no title: what was typed first)" in run("show", "b1").output


def test_rename_prints_what_was_stored_and_counts_as_set_by_a_client(stores: Stores) -> None:
    _, beta = stores
    result = run("rename", "b1", "  New\n name ")
    assert (result.exit_code, result.output) == (0, "New name\n")
    assert beta.stored["b1"].title == "New name"
    assert "New name (set through acp-manifold)" in run("show", "b1").output
    ledger = Ledger(ledger_path())
    assert ledger.title(Key("beta", "b1")) == TitleRecord("New name", "client")
    ledger.close()


def test_a_session_is_known_by_the_id_that_clients_call_it(stores: Stores) -> None:
    ledger = Ledger(ledger_path())
    ledger.put_alias("ours", Key("alpha", "a1"))
    ledger.close()
    assert "Session    ours\n" in run("show", "ours").output
    assert "Session    ours\n" in run("show", "a1").output
    assert run("rename", "ours", "By alias").output == "By alias\n"
    assert "  ours  " in run("list").output


def test_delete_is_final_and_says_what_was_deleted(stores: Stores) -> None:
    alpha, _ = stores
    result = run("delete", "a1", "--yes")
    assert (result.exit_code, result.output) == (0, "Deleted alpha session a1 (Alpha's)\n")
    assert "a1" not in alpha.stored
    assert run("delete", "a1", "--yes").exit_code == 1


@pytest.mark.parametrize("words", [("show", "nobody"), ("rename", "nobody", "x"), ("delete", "nobody", "--yes")])
def test_an_id_that_nobody_has_is_told_with_status_1(stores: Stores, words: tuple[str, ...]) -> None:
    result = run(*words)
    assert (result.exit_code, result.stderr) == (1, "Error: Session not found: nobody\n")


def test_a_refusal_is_told_in_its_words(stores: Stores) -> None:
    alpha, _ = stores
    alpha.refuses_titles = InvalidRequest("Session a1 is archived; run `alpha unarchive a1` first")
    result = run("rename", "a1", "x")
    assert (result.exit_code, result.stderr) == (1, f"Error: {alpha.refuses_titles.message}\n")
    assert run("rename", "a1", " \u200b ").exit_code == 1


def test_no_backend_is_status_2_as_of_the_agent() -> None:
    result = CliRunner().invoke(acp_manifold, ["sessions", "list", "--backend", "nobody"])
    assert result.exit_code == 2 and "no backend is called 'nobody'" in result.stderr


def test_a_table_on_a_terminal_fits_it_whatever_the_width_of_its_letters() -> None:
    rows = [
        ("1", "alpha", SessionRow("1", "/very/long" * 9, "2026-01-01T10:00:00.000Z"), "日本語のタイトル" * 9),
        ("2", "alpha", SessionRow("2", "/x\x1b[2J\ny", "no time"), None),
    ]
    table = list(lines(rows, 100))
    assert [columns(line) for line in table][1] in (99, 100) and all(columns(line) <= 100 for line in table)
    assert table[1].endswith("…") and "/x y" in table[2]
    whole = list(lines(rows, None))[1]
    assert "/very/long" * 9 in whole and whole.endswith("タイトル")
    assert cut("日本語", 4) == "日…" and cut("日本語", 6) == "日本語"


PROGRAM = """
import sys
from acp_manifold.bridge import once
from acp_manifold.bridge.backend import SessionRow
from acp_manifold.bridge.commands import acp_manifold
from tests.bridge.scripted import ScriptedBackend
alpha = ScriptedBackend()
for number in range(5000):
    alpha.stored[str(number)] = SessionRow(str(number), "/work", f"2026-01-01T00:00:00.{number:04}Z", "Title", "user")
once.find_backends = lambda names: [alpha]
acp_manifold(["sessions", *sys.argv[1:]], prog_name="acp-manifold")
"""


def test_a_reader_that_has_seen_enough_is_no_fault(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.close(ours)
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    try:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "list"],
            stdout=theirs,
            stderr=subprocess.PIPE,
            env=env,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(theirs)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.parametrize(("answer", "status", "told"), [(b"n\n", 1, ""), (b"y\n", 0, "Deleted alpha session 7")])
def test_on_a_terminal_delete_asks_first(tmp_path: Path, answer: bytes, status: int, told: str) -> None:
    ours, theirs = pty.openpty()
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    try:
        os.write(ours, answer)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "delete", "7"],
            stdin=theirs,
            capture_output=True,
            env=env,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert "Delete alpha session 7 (Title) for good?" in done.stderr
    assert (done.returncode, told in done.stdout) == (status, True)
