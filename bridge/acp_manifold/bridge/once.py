"""One piece of work by the hub for a command of the shell: no client, nothing of the protocol, up and down again."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import click

from .backends import NoBackend, backend_names, find_backends
from .errors import BridgeError
from .serve import INTERRUPT_GRACE

if TYPE_CHECKING:
    from .backend import Backend
    from .hub import Hub

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


class Fault(click.ClickException):
    """What went wrong, for a person; the process ends with status 1."""


class NothingToServe(Fault):
    """There is no backend; the process ends as the agent would."""

    exit_code = 2


def backend_option(command: Command) -> Command:
    """Give a command the option `--backend`; without it the agent's own, before the command's name, counts."""
    return click.option(
        "backends",
        "--backend",
        multiple=True,
        metavar="NAME",
        callback=_or_the_agents,
        help=f"This backend alone ({backend_names()}); may be given again.",
    )(command)


def _or_the_agents(ctx: click.Context, _param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    return value or cast("tuple[str, ...]", ctx.find_root().params.get("backends", ()))


def with_hub(names: Sequence[str], work: Callable[[Hub], Awaitable[T]]) -> T:
    """Do some work with a running hub over the backends of these names, all installed ones if there are none.

    Raises:
        NothingToServe: There is no backend.
        Fault: The work raised a `BridgeError`.
    """
    note_on_stderr()
    try:
        backends = find_backends(names)
    except NoBackend as exc:
        raise NothingToServe(exc.message) from exc
    import anyio

    try:
        return anyio.run(run, backends, work)
    except BridgeError as exc:
        raise Fault(exc.message) from exc


async def run(backends: Sequence[Backend], work: Callable[[Hub], Awaitable[T]]) -> T:
    """Do some work with a hub of its own; what it raises comes as it was raised."""
    from .hub import Hub
    from .ledger import Ledger, ledger_path

    hub = Hub(backends, Ledger(ledger_path()), grace=INTERRUPT_GRACE)
    async with hub.running():
        try:
            return await work(hub)
        except BridgeError as exc:
            # Carried past the hub's task group, which would wrap it.
            failure = exc
    raise failure


def note_on_stderr() -> None:
    """What the bridge warns of is for the person at the terminal: no time, no module."""
    logging.basicConfig(format="acp-manifold: %(message)s", level=logging.WARNING)


def say(text: str) -> None:
    """Print a line, also where the terminal has no such characters.

    Raises:
        BrokenPipeError: Nobody reads any more; click ends the process without a word then.
        Fault: It can't be written for another reason.
    """
    out: TextIO | None = sys.stdout
    encoding = getattr(out, "encoding", None) or "utf-8"
    try:
        click.echo(text.encode(encoding, "backslashreplace").decode(encoding))
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise Fault(f"The output can't be written: {exc.strerror}") from exc
