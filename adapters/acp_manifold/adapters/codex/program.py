"""Where the Codex CLI is, and the environment it is started with.

The app-server is started before much else is imported, so what only others need is imported where it is.
"""

from __future__ import annotations

import importlib.util
import os

from acp_manifold.adapters.enclosing import without_marks
from acp_manifold.bridge.program import Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PATH_VARIABLE = "CODEX_PATH"
"""Names the program to start; blank means unset."""

HOME_VARIABLE = "CODEX_HOME"
"""Names Codex' own directory; blank means unset."""

_PACKAGE = "codex_cli_bin"
"""The import package of openai-codex-cli-bin, which brings the CLI as `bin/codex`."""

_SETTINGS = ("-c", "thread_unload_delay_secs=0")
"""A thread that nobody follows is unloaded at once, so that another program can go on with it. Without it codex-cli
0.163.0 keeps the thread, and its writer lock, for half an hour; 0.166.0 knows the setting too."""


def find_program() -> Program | None:
    """The CLI to start: `CODEX_PATH`, else `codex` on the PATH, else the one of openai-codex-cli-bin.

    A `CODEX_PATH` that names nothing is given back all the same: starting it fails with its name.
    """
    named = os.environ.get(PATH_VARIABLE)
    if named:
        return Program((named,), PATH_VARIABLE)
    import shutil

    found = shutil.which("codex")
    if found:
        return Program((found,), "PATH")
    packaged = _packaged()
    return Program((packaged,), "openai-codex-cli-bin") if packaged else None


def _packaged() -> str | None:
    spec = importlib.util.find_spec(_PACKAGE)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        program = os.path.join(place, "bin", "codex")
        if os.path.isfile(program):
            return program
    return None


def server_command(program: Program) -> tuple[str, ...]:
    """What to start to have an app-server on stdio."""
    return (*program.command, "app-server", *_SETTINGS)


def login_command() -> str:
    """What a person types to log in, with the program that is there."""
    import shlex

    program = find_program()
    return "codex" if program is None or program.source == "PATH" else shlex.join(program.command)


def person_environment() -> dict[str, str]:
    """Our own environment without the marks of an enclosing session."""
    env = without_marks(os.environ)
    if not env.get(HOME_VARIABLE):
        env.pop(HOME_VARIABLE, None)
    return env


def environment() -> dict[str, str]:
    """What `codex app-server` gets."""
    env = person_environment()
    # Its log lines end up in messages for people; the commands it runs get NO_COLOR from Codex anyway.
    env["NO_COLOR"] = "1"
    return env


def codex_home(env: Mapping[str, str] = os.environ) -> Path:
    """Codex' own directory."""
    from pathlib import Path

    named = env.get(HOME_VARIABLE)
    return Path(named) if named else Path.home() / ".codex"


def neutral_directory() -> str:
    """Where the app-server is started: a directory that stays, whatever the sessions do. Threads bring their own."""
    home = os.path.expanduser("~")
    return home if os.path.isdir(home) else "/"
