"""What was set for a session, kept over restarts of the agent."""

from __future__ import annotations

from pathlib import Path

from acp_manifold.adapters.claude import kept
from acp_manifold.adapters.claude.carried import Carried
from acp_manifold.adapters.claude.kept import Kept

A = "aaaaaaaa-0000-4000-8000-000000000000"


def again(place: Path, *, known: bool = True) -> Carried:
    carried = Carried()
    carried.keep_in(Kept(A, place), known=known)
    return carried


def test_mode_and_effort_hold_again_and_what_is_not_safe_does_not(tmp_path: Path) -> None:
    carried = again(tmp_path)
    carried.in_mode("default")
    carried.keep()
    assert not list(tmp_path.iterdir())  # nothing was set, so there is nothing to keep
    carried.in_mode("plan")
    carried.chosen |= {"effort": "low", "model": "haiku", "fast": True}
    carried.keep()
    back = again(tmp_path)
    assert back.mode == "plan" and back.chosen == {"effort": "low", "fast": True}
    # It holds for the processes that come too, though it is the mode that the first one tells.
    back.in_mode("plan")
    assert back.mode == "plan"
    back.in_mode("bypassPermissions")
    back.keep()
    assert again(tmp_path).mode is None
    assert again(tmp_path, known=False).chosen == {}


def test_a_model_is_kept_until_a_turn_has_run_with_it(tmp_path: Path) -> None:
    carried = again(tmp_path)
    carried.choose("model", "haiku")
    carried.keep()
    back = again(tmp_path)
    assert back.chosen == {"model": "haiku"}
    back.keep()
    assert again(tmp_path).chosen == {"model": "haiku"}
    back.turn_began()
    assert again(tmp_path).chosen == {} and back.chosen == {"model": "haiku"}


def test_a_file_that_can_not_be_read_counts_as_none_and_old_ones_go(tmp_path: Path) -> None:
    (tmp_path / f"{A}.json").write_text("{")
    assert again(tmp_path).chosen == {}
    for number in range(kept.MOST + 5):
        (tmp_path / f"old-{number}.json").write_text("{}")
    fresh = Kept("fresh", tmp_path)
    fresh.write({"mode": "plan"})
    assert len(list(tmp_path.iterdir())) == kept.MOST and fresh.read() == {"mode": "plan"}
    fresh.forget()
    assert fresh.read() == {}
