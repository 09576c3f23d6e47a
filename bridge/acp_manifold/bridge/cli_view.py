"""The command `acp-manifold view`: a recording as one HTML page."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from .once import Fault, say

_OURS = b'<!doctype html>\n<html lang="en" data-made-by="acp-manifold view">'
"""What a page of ours begins with: it may be replaced without being asked for by name."""


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option(
    "output",
    "-o",
    "--output",
    metavar="PAGE",
    help="Where to, `-` for stdout; the name of FILE with .html, in the current directory, if it is not told.",
)
@click.option("open_it", "--open", is_flag=True, help="Open it in a browser.")
def view(file: Path, output: str | None, open_it: bool) -> None:
    """Make an HTML page of a recording, to look at what crossed the wire.

    The page holds all of the recording, needs no network, and is private to you (0600). Nothing in a recording
    is run by it. Press ? in it for its keys.
    """
    from .errors import BridgeError
    from .recording.reader import read
    from .view.data import page_data
    from .view.page import page

    try:
        recording = read(file)
    except BridgeError as exc:
        raise Fault(exc.message) from exc
    note = f"Cut off: {recording.cut}. What is before that is shown." if recording.cut else ""
    entries = [entry.to_wire() for entry in recording.entries]
    whole = page(page_data(file.name, recording.header.to_wire(), entries, note)).encode()
    if output == "-":
        click.echo(whole, nl=False)
        return
    place = Path(output) if output is not None else _page_of(file)
    try:
        _write(place, whole)
    except OSError as exc:
        raise Fault(f"{place} can't be written: {exc.strerror or exc}") from exc
    say(str(place))
    if open_it:
        _open(place)


def _page_of(file: Path) -> Path:
    place = Path(f"{file.name.removesuffix('.gz').removesuffix('.jsonl')}.html")
    try:
        with place.open("rb") as there:
            ours = there.read(len(_OURS)) == _OURS
    except FileNotFoundError:
        return place
    except OSError as exc:
        raise Fault(f"{place} is in the way: {exc.strerror or exc}. Name another place with -o.") from exc
    if not ours:
        raise Fault(f"{place} is in the way, and was not made by this command. Name another place with -o.")
    return place


def _write(place: Path, whole: bytes) -> None:
    """Write a private file, whole or not at all; raises `OSError`."""
    descriptor, beside = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:100]}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(whole)
        os.replace(beside, place)
    except BaseException:
        os.unlink(beside)
        raise


def _open(place: Path) -> None:
    import webbrowser

    if not webbrowser.open(place.absolute().as_uri()):
        raise Fault(f"No browser can be started here; open {place.absolute()} in one.")
