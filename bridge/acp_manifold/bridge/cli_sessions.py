"""The commands `acp-manifold sessions ...`: list, show, rename and delete sessions without an editor.

They do what the protocol's methods do, by the same calls of the hub.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING

import click

from .once import backend_option, say, with_hub

if TYPE_CHECKING:
    from acp_manifold.translators.plain import Entry
    from acp_manifold.translators.titles import Origin

    from .backend import SessionRow
    from .hub import Hub, Told
    from .sessions_table import Listed

MADE_BY: dict[Origin, str] = {
    "client": "set through acp-manifold",
    "user": "set by a person in the CLI",
    "generated": "made by a model",
    "none": "no title: what was typed first",
}


@click.group()
def sessions() -> None:
    """List, show, rename and delete the sessions of every backend.

    The ids are those that the CLIs and the editor use. A title set here is stored as one set by an
    editor: in the CLI's own store, and never replaced by a generated one.
    """


@sessions.command("list")
@backend_option
@click.option("cwd", "--cwd", metavar="DIRECTORY", help="Only sessions of this directory.")
@click.option("as_json", "--json", is_flag=True, help="As a JSON array.")
def list_sessions(backends: tuple[str, ...], cwd: str | None, as_json: bool) -> None:
    """All sessions, those used last first."""
    place = os.path.abspath(cwd) if cwd is not None else None

    async def listed(hub: Hub) -> list[Listed]:
        from .sessions_table import every_session

        return await every_session(hub, place)

    rows = with_hub(backends, listed)
    if as_json:
        say(json.dumps([_json_row(*row) for row in rows], indent=2))
        return
    from .sessions_table import lines

    if not rows:
        click.echo("There are no sessions." if place is None else f"There are no sessions of {place}.", err=True)
    for line in lines(rows, _width()):
        say(line)


@sessions.command()
@click.argument("session_id", metavar="ID")
@backend_option
@click.option("as_json", "--json", is_flag=True, help="As a JSON object.")
def show(session_id: str, backends: tuple[str, ...], as_json: bool) -> None:
    """One session: what is known of it, and the conversation as plain text.

    Of what tools did their titles are shown, not what they printed.
    """
    told, entries = with_hub(backends, lambda hub: _told(hub, session_id))
    if as_json:
        say(json.dumps(_json_session(told, entries), indent=2))
        return
    from acp_manifold.translators.plain import one_line, render

    title = f"{told.title.text} ({MADE_BY[told.title.origin]})" if told.title.text else "none"
    say(f"Session    {one_line(told.id)}")
    say(f"Backend    {told.backend}")
    say(f"Title      {title}")
    say(f"Directory  {one_line(told.row.cwd)}")
    say(f"Updated    {told.row.updated_at}")
    for line in render(entries):
        say(line)


@sessions.command()
@click.argument("session_id", metavar="ID")
@click.argument("title", metavar="TITLE")
@backend_option
def rename(session_id: str, title: str, backends: tuple[str, ...]) -> None:
    """Set the title of a session, and print it as it was stored."""
    say(with_hub(backends, lambda hub: hub.set_title(session_id, title)))


@sessions.command()
@click.argument("session_id", metavar="ID")
@backend_option
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
def delete(session_id: str, backends: tuple[str, ...], yes: bool) -> None:
    """Remove a session for good; asks first on a terminal."""
    if not yes and sys.stdin is not None and sys.stdin.isatty():
        # Asked with no event loop running, which would keep Ctrl-C to itself.
        told = with_hub(backends, lambda hub: hub.tell(session_id, None))
        click.confirm(f"Delete {_name(told)} for good?", abort=True, err=True)

    async def deleted(hub: Hub) -> Told:
        told = await hub.tell(session_id, None)
        await hub.delete(session_id)
        return told

    say(f"Deleted {_name(with_hub(backends, deleted))}")


def _name(told: Told) -> str:
    return f"{told.backend} session {told.id}" + (f" ({told.title.text})" if told.title.text else "")


async def _told(hub: Hub, session_id: str) -> tuple[Told, list[Entry]]:
    from acp_manifold.translators.plain import Conversation

    conversation = Conversation()
    told = await hub.tell(session_id, conversation.feed)
    return told, conversation.entries()


def _json_row(session_id: str, backend: str, row: SessionRow, title: str | None) -> dict[str, object]:
    return {"sessionId": session_id, "backend": backend, "cwd": row.cwd, "title": title, "updatedAt": row.updated_at}


def _json_session(told: Told, entries: list[Entry]) -> dict[str, object]:
    return {
        **_json_row(told.id, told.backend, told.row, told.title.text or None),
        "titleOrigin": told.title.origin,
        "conversation": [
            {"role": entry.who, "text": entry.text} | ({"status": entry.status} if entry.status else {})
            for entry in entries
        ],
    }


def _width() -> int | None:
    """Columns of the terminal; None when the output goes elsewhere, and nothing is cut."""
    import shutil

    return shutil.get_terminal_size().columns if sys.stdout is not None and sys.stdout.isatty() else None
