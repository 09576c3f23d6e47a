"""The ledger: what it remembers, for whom, and how it bears a bad file."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from acp_manifold.bridge.ledger import Key, Ledger, TitleRecord, state_directory

KEY = Key("alpha", "1")


def test_titles_and_aliases_are_there_after_a_restart_and_for_another_bridge(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "ledger.sqlite3"
    one, two = Ledger(path), Ledger(path)
    one.put_title(KEY, TitleRecord("Mine", "client"))
    one.put_alias("ours", KEY)
    assert two.title(KEY) == TitleRecord("Mine", "client")
    two.put_title(KEY, TitleRecord("Theirs", "user"))
    assert one.titles("alpha") == {"1": TitleRecord("Theirs", "user")}
    assert one.alias("ours") == KEY and one.aliases("alpha") == {"1": "ours"}
    one.forget(KEY)
    assert two.title(KEY) is None and two.alias("ours") == KEY, "our id is nobody else's afterwards"
    one.close()
    two.close()
    assert {oct(os.stat(file).st_mode & 0o777) for file in path.parent.iterdir()} == {"0o600"}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_file_of_a_later_version_is_left_alone_and_memory_serves(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "ledger.sqlite3"
    later = sqlite3.connect(path)
    later.execute("PRAGMA user_version = 99")
    later.close()
    before = path.read_bytes()
    ledger = Ledger(path)
    ledger.put_title(KEY, TitleRecord("Mine", "client"))
    assert ledger.title(KEY) == TitleRecord("Mine", "client")
    ledger.close()
    assert path.read_bytes()[:100] == before[:100] or sqlite3.connect(path).execute(
        "PRAGMA user_version"
    ).fetchone() == (99,)
    assert "schema 99" in caplog.text


def test_an_unwritable_place_costs_a_note_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    ledger = Ledger(tmp_path / "file" / "ledger.sqlite3")
    ledger.put_title(KEY, TitleRecord("Mine", "client"))
    assert ledger.title(KEY) == TitleRecord("Mine", "client")
    assert "kept in memory" in caplog.text
    ledger.close()


@pytest.mark.parametrize(("value", "expected"), [("", ".local/state"), ("relative", ".local/state"), ("/abs", "/abs")])
def test_the_state_directory_follows_xdg_and_takes_blank_as_unset(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, value: str, expected: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", value)
    assert state_directory() == (tmp_path / expected / "acp-manifold")


def test_a_file_that_another_program_locks_is_written_later_and_read_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite3"
    ledger = Ledger(path)
    ledger.put_alias("ours", KEY)
    ledger.put_title(KEY, TitleRecord("Before", "client"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ledger.put_title(KEY, TitleRecord("Meanwhile", "client"))
    ledger.put_alias("second", Key("alpha", "2"))
    assert ledger.title(KEY) == TitleRecord("Meanwhile", "client")
    assert ledger.alias("ours") == KEY and ledger.aliases("alpha") == {"1": "ours", "2": "second"}
    other.execute("ROLLBACK")
    other.close()
    ledger.close()
    again = Ledger(path)
    assert again.title(KEY) == TitleRecord("Meanwhile", "client") and again.alias("second") == Key("alpha", "2")
    again.close()
