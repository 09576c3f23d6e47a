"""The command `acp-manifold login`: this process becomes the login of a CLI.

Clients that take logins in a terminal start the agent with it; it is for people, too.
"""

from __future__ import annotations

import os
import shutil

import click

from .backends import NoBackend, find_backends
from .logins import find_method
from .once import Fault, NothingToServe, backend_option


@click.command()
@click.argument("method", metavar="METHOD", required=False)
@backend_option
def login(method: str | None, backends: tuple[str, ...]) -> None:
    """Log in to a CLI, as the CLI itself does it.

    METHOD is a way to log in, or the name of a backend for its usual one; one that is unknown lists them all. Without
    it, the usual one of the first backend.
    """
    try:
        found = find_backends(backends)
    except NoBackend as exc:
        raise NothingToServe(exc.message) from exc
    wanted = find_method(found, method or found[0].name)
    ways = [way for backend in found for way in backend.auth_methods]
    if wanted is None:
        known = ", ".join(way.id for way in ways if way.command)
        raise Fault(f"There is no way to log in called {method!r}; there are: {known}")
    backend, way = wanted
    if not way.command:
        raise Fault(f"That needs no terminal. {way.description}")
    env = backend.login_environment()
    program = shutil.which(way.command[0], path=env.get("PATH")) or way.command[0]
    try:
        os.execve(program, way.command, env)
    except OSError as exc:
        raise Fault(f"Can't start {way.command[0]}: {exc.strerror}") from exc
