"""The app-server is started before Python goes on to all that an agent needs, so that both come up at once.

codex-cli 0.163.0 takes 75 ms to answer its greeting. So what this file imports is kept small.
"""

from __future__ import annotations

import os

from acp_manifold.bridge.forking import Started, fork, pipe

from .program import environment, find_program, neutral_directory, server_command

_started: Started | None = None
_fault: Exception | None = None


def begin() -> None:
    """Start the app-server and greet it; its answer is read when there is an event loop.

    It ends by itself when its stdin does, so it needs nobody to end it if we don't come to use it.
    """
    global _started, _fault
    program = find_program()
    if program is None:
        return
    try:
        _started = fork(server_command(program), neutral_directory(), environment())
        from .greeting import GREETING  # The server comes up meanwhile.

        os.write(pipe(_started.process.stdin).fileno(), GREETING + b"\n")
    except (OSError, ValueError) as exc:
        # Not started, or ended already: who wants to use it finds out, and tells why.
        _fault = exc


def take() -> Started | None:
    """The app-server that was started early, once."""
    global _started, _fault
    if _fault is not None:
        import logging

        logging.getLogger(__name__).info("codex: the app-server was not started early, or took no greeting: %s", _fault)
    started, _started, _fault = _started, None, None
    return started
