"""What a person types: the options, and the commands.

Without a command the process is an agent on stdin and stdout. Commands come from the
entry-point group `acp_manifold.commands`, so that adapters can bring their own.
"""

from __future__ import annotations

import math
import shlex
import sys
from typing import TYPE_CHECKING

import click

from .backends import NoBackend, backend_names, find_backends
from .plugins import Plugin, plugins
from .serve import IDLE_TIMEOUT, INTERRUPT_GRACE, serve
from .version import __version__

if TYPE_CHECKING:
    from .connection import Protocol

COMMANDS = "acp_manifold.commands"

OWN = {
    plugin.name: plugin
    for plugin in (
        Plugin("login", "acp_manifold.bridge.cli_login:login"),
        Plugin("doctor", "acp_manifold.bridge.cli_doctor:doctor"),
        Plugin("recordings", "acp_manifold.bridge.cli_recordings:recordings"),
        Plugin("sessions", "acp_manifold.bridge.cli_sessions:sessions"),
        Plugin("view", "acp_manifold.bridge.cli_view:view"),
    )
}
"""The bridge's own commands: imported when they are asked for, as those of adapters are."""

ON_A_TERMINAL = """\
acp-manifold is an ACP agent: an editor starts it and speaks JSON-RPC to it over stdin and stdout.
On a terminal there is nobody to speak to. Put this into your editor's list of agents:

    {"command": "acp-manifold", "args": []}

Zed, in settings.json:

    "agent_servers": {"acp-manifold": {"type": "custom", "command": "acp-manifold", "args": [], "env": {}}}

To see it at work without an editor and without an account: acp-manifold demo
More: acp-manifold --help
"""


class Commands(click.Group):
    """The group of all commands, which finds them by entry point when they are asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted({*super().list_commands(ctx), *plugins(COMMANDS), *OWN})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """One command, imported now."""
        known = super().get_command(ctx, cmd_name)
        if known is not None:
            return known
        plugin = OWN.get(cmd_name) or plugins(COMMANDS).get(cmd_name)
        command = plugin.load() if plugin is not None else None
        return command if isinstance(command, click.Command) else None


def _show_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        click.echo(f"acp-manifold {__version__}")
        ctx.exit()


def _explain(backends: tuple[str, ...]) -> None:
    """Say what to do with us on a terminal, and what would be served; exits with 2 if that is nothing."""
    click.echo(ON_A_TERMINAL)
    try:
        found = find_backends(backends)
    except NoBackend as exc:
        click.echo(f"As it is, nothing would be served: {exc.message}", err=True)
        sys.exit(2)
    click.echo("Served here, the first by default:")
    for backend in found:
        program = backend.program()
        click.echo(f"  {backend.label}: {shlex.join(program.command) if program else '?'}")


def _finite(_ctx: click.Context, _param: click.Parameter, value: float) -> float:
    if not math.isfinite(value):
        raise click.BadParameter("must be a number of seconds")
    return value


@click.group(
    cls=Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Say which.")
@click.option(
    "backends",
    "--backend",
    multiple=True,
    metavar="NAME",
    help=f"Serve this backend ({backend_names()}); may be given again, the first is the default"
    " for new sessions. Without it: every one whose CLI is installed.",
)
@click.option(
    "grace",
    "--interrupt-grace",
    type=click.FloatRange(min=0.0, min_open=True),
    default=INTERRUPT_GRACE,
    callback=_finite,
    show_default="10",
    metavar="SECONDS",
    help="How long a CLI may ignore a cancel before it is ended and, with the next prompt, resumed.",
)
@click.option(
    "idle",
    "--idle-timeout",
    type=click.FloatRange(min=0.0),
    default=IDLE_TIMEOUT,
    callback=_finite,
    show_default="900",
    metavar="SECONDS",
    help="How long a session may lie idle before its CLI is let go, to come back with the next prompt; 0: never.",
)
@click.option(
    "--titles",
    type=click.Choice(["auto", "off"]),
    default="auto",
    show_default=True,
    help="Whether a model is asked, once, to name a session that nobody named.",
)
@click.option(
    "--protocol",
    type=click.Choice(["auto", "v1", "v2"]),
    default="auto",
    show_default=True,
    help="Which version of the protocol is spoken: what the client asks for, or one alone. v2 is a draft.",
)
@click.option(
    "--record",
    metavar="FILE|DIR",
    help="Record all that crosses, to the client and to the CLIs, scrubbed; into a folder, a file for each session.",
)
@click.option("--log-file", type=click.Path(dir_okay=False), metavar="FILE", help="Log there as well, made 0600.")
@click.option("-v", "--verbose", is_flag=True, help="Log everything, not warnings alone.")
@click.pass_context
def acp_manifold(
    ctx: click.Context,
    backends: tuple[str, ...],
    grace: float,
    idle: float,
    titles: str,
    protocol: Protocol,
    record: str | None,
    log_file: str | None,
    verbose: bool,
) -> None:
    """One ACP agent over the coding CLIs you already have: many sessions on one connection, titles that stay.

    An editor starts it without a command and speaks the Agent Client Protocol to it over stdin and stdout.
    """
    if ctx.invoked_subcommand is not None:
        return
    if sys.stdin is not None and sys.stdin.isatty():
        _explain(backends)
        return
    named = titles == "auto"
    sys.exit(
        serve(
            backends,
            grace=grace,
            idle=idle,
            name_them=named,
            protocol=protocol,
            record=record,
            log_file=log_file,
            verbose=verbose,
        )
    )
