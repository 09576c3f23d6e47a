"""Which Claude Code is started, and the environment it is started in."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from acp_manifold.adapters.enclosing import without_marks
from acp_manifold.bridge.backend import Program
from acp_manifold.bridge.errors import BackendGone

OVERRIDE = "CLAUDE_CODE_EXECUTABLE"
"""The environment variable that names the program to start."""


def find_program(environ: Mapping[str, str]) -> Program | None:
    """The CLI to start: named by `OVERRIDE`, else on the PATH, else in the wheel of claude-agent-sdk.

    What `OVERRIDE` names is given back unseen: that it is missing is told when it is used.
    """
    named = environ.get(OVERRIDE, "").strip()
    if named:
        script = named.endswith((".js", ".cjs", ".mjs"))
        return Program(("node", named) if script else (named,), OVERRIDE)
    on_path = shutil.which("claude", path=environ.get("PATH"))
    if on_path is not None:
        return Program((on_path,), "PATH")
    bundled = _bundled()
    return Program((str(bundled),), "claude-agent-sdk") if bundled is not None else None


def checked_command(program: Program, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The command of a program that is there.

    Raises:
        BackendGone: The override names nothing that could be started.
    """
    if program.source == OVERRIDE and shutil.which(program.command[-1], path=environ.get("PATH")) is None:
        named = program.command[-1]
        if not (len(program.command) > 1 and os.path.isfile(named)):
            raise BackendGone(f"{OVERRIDE} names {named}, which is no program that can be started: correct or unset it")
    return program.command


def login_hint(environ: Mapping[str, str]) -> str:
    """How a person logs in, with the command as it can be typed here."""
    program = find_program(environ)
    command = "claude" if program is None or program.source == "PATH" else shlex.join(program.command)
    return f"Run `{command} auth login` in a terminal, or set ANTHROPIC_API_KEY."


def person_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the marks of an enclosing session; a blank variable for the store counts as unset."""
    env = without_marks(environ)
    if not env.get("CLAUDE_CONFIG_DIR", "x").strip():
        del env["CLAUDE_CONFIG_DIR"]
    return env


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a CLI process of ours, made from our own.

    The entry point is left for the CLI to tell (`sdk-cli`): under it nothing is named
    automatically.
    """
    env = person_environment(environ)
    env["CLAUDE_CODE_SDK_READS_SESSION_STATE"] = "1"
    env["DISABLE_AUTOUPDATER"] = "1"
    return env


def config_dir(environ: Mapping[str, str]) -> Path:
    """Where the CLI keeps its settings and its store under this environment."""
    configured = environ.get("CLAUDE_CONFIG_DIR", "")
    if configured.strip():
        return Path(configured)
    home = environ.get("HOME", "")
    return (Path(home) if home else Path.home()) / ".claude"


def _bundled() -> Path | None:
    # find_spec of a top-level name imports nothing; the SDK itself takes 0.7 s to import.
    spec = find_spec("claude_agent_sdk")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        candidate = Path(folder) / "_bundled" / "claude"
        if os.access(candidate, os.X_OK):
            return candidate
    return None
