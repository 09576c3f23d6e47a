"""The linked git worktrees of a directory, read from git's own files: no git is run."""

from __future__ import annotations

import os
from pathlib import Path

_LIMIT = 4096
"""Bytes of a file of git's that names a path."""


def same_place_in_worktrees(cwd: str) -> tuple[str, ...]:
    """The directory itself and the same one in every other worktree of its repository, each that exists.

    For worker threads. Whatever can't be read counts as no worktree.
    """
    here = Path(os.path.realpath(cwd))
    top = next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), None)
    if top is None:
        return (cwd,)
    below = here.relative_to(top)
    common = _common(top / ".git")
    tops = [common.parent] if common.name == ".git" else []
    tops += [Path(named).parent for named in map(_named, sorted(common.glob("worktrees/*/gitdir"))) if named]
    places = [top / below for top in tops if (top / below).is_dir()]
    others = {os.path.realpath(place): None for place in places}
    others.pop(str(here), None)
    return (cwd, *others)


def _common(git: Path) -> Path:
    """The folder that all worktrees share; `git` is a worktree's `.git`, a folder or a file that names one."""
    if git.is_dir():
        return git
    named = _named(git).removeprefix("gitdir:").strip()
    own = git.parent / named if named else git
    common = _named(own / "commondir")
    return Path(os.path.realpath(own / common)) if common else own


def _named(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return os.fsdecode(opened.read(_LIMIT)).strip()
    except OSError:
        return ""
