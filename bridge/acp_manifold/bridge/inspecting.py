"""What adapters share to look at a CLI: it is asked for its version, once, with a deadline."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence

import anyio

from .errors import BackendGone

PATIENCE = 10.0
"""Seconds a CLI has to tell its version; it takes a tenth of one."""

_LONGEST = 100
"""Characters of it that are shown."""


async def version_told(command: Sequence[str], env: Mapping[str, str]) -> str:
    """The first line that `COMMAND --version` prints.

    Raises:
        BackendGone: It can't be started, fails, prints nothing or takes too long. What it said is not repeated.
    """
    name = command[-1]
    try:
        with anyio.fail_after(PATIENCE):
            done = await anyio.run_process(
                [*command, "--version"], stdin=subprocess.DEVNULL, env=dict(env), check=False
            )
    except TimeoutError:
        raise BackendGone(f"{name} did not tell its version within {PATIENCE:g} s") from None
    except OSError as exc:
        raise BackendGone(f"{name} can't be started: {exc.strerror}") from exc
    told = done.stdout.decode(errors="replace").strip()
    if done.returncode != 0 or not told:
        raise BackendGone(f"{name} did not tell its version: exit status {done.returncode}")
    return told.splitlines()[0][:_LONGEST]
