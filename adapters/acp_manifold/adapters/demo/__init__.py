"""The command `acp-manifold demo`: an editor's day in ten seconds, with the real CLIs and a scripted model.

This file is imported for `acp-manifold --help` too, so that everything else is imported when the command runs.
"""

from __future__ import annotations

import sys

import click

INTERRUPTED = 130
"""The exit status after Ctrl-C, as shells have it."""


@click.command()
@click.option("--plain", is_flag=True, help="Plain lines, as when the output is piped.")
def demo(plain: bool) -> None:
    """Watch Claude Code and Codex work side by side on one connection.

    It plays an editor against the real bridge and the real CLIs. A scripted model on loopback
    speaks for the language models: no account, no network, and nothing of yours is touched.
    """
    from .run import run

    try:
        status = run(plain=plain)
    except KeyboardInterrupt:
        click.echo("\nInterrupted; everything that was started has been ended.", err=True)
        status = INTERRUPTED
    sys.exit(status)
