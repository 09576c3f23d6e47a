"""Linked worktrees, as git itself makes them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from acp_manifold.bridge.worktrees import same_place_in_worktrees

_NOBODY = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.invalid"]
    subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, env={**os.environ, **_NOBODY}
    )


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a folder `src`, and a worktree `other` beside it."""
    main = tmp_path / "main"
    (main / "src").mkdir(parents=True)
    (main / "src" / "file").write_text("x")
    git(main, "init", "-q")
    git(main, "add", ".")
    git(main, "commit", "-qm", "x")
    git(main, "worktree", "add", "-q", str(tmp_path / "other"))
    return tmp_path


def test_each_worktree_knows_the_others(repository: Path) -> None:
    main, other = str(repository / "main"), str(repository / "other")
    assert same_place_in_worktrees(main) == (main, other)
    assert same_place_in_worktrees(other) == (other, main)
    assert same_place_in_worktrees(f"{other}/src") == (f"{other}/src", f"{main}/src")


def test_a_directory_that_is_not_in_the_others_is_alone(repository: Path) -> None:
    (repository / "other" / "new").mkdir()
    assert same_place_in_worktrees(str(repository / "other" / "new")) == (str(repository / "other" / "new"),)


def test_without_a_repository_or_with_a_broken_one_there_is_the_directory_alone(tmp_path: Path) -> None:
    assert same_place_in_worktrees(str(tmp_path)) == (str(tmp_path),)
    (tmp_path / ".git").write_text("gitdir: /no/such\n")
    assert same_place_in_worktrees(str(tmp_path)) == (str(tmp_path),)
