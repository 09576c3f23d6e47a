"""What a line says of a title: the title, and what is done to it.

Spellings of clients, of Claude Code 2.1.332 (its frames, and the records of its transcript) and of codex-cli 0.163.0.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from acp_manifold.translators.acp.requests import TITLE_METHODS
from acp_manifold.translators.narrow import JsonObject, as_str, obj
from acp_manifold.translators.values import NamedTuple

Deed: TypeAlias = Literal["asked", "written", "told", "heard", "news", "known", "discarded"]
"""A client asks for a title; the bridge writes it to a CLI, or tells it to a client; a CLI tells one that it has.

The last three are what the bridge notes of one that it heard.
"""


class Said(NamedTuple):
    """A title in a line."""

    title: str
    deed: Deed
    origin: str = ""
    """Whose title it is, where the line tells that: `client`, `user` or `generated`."""


def title_said(leg: str, inward: bool, name: str, line: JsonObject) -> Said | None:
    """What a line says of a title, or None.

    Args:
        leg: `client`, `backend` or `store`.
        inward: Whether it goes to the bridge.
        name: Its name (`shape`); of an answer that of its request.
        line: The line itself.
    """
    if leg == "client":
        return _of_client(inward, name, obj(line, "params"))
    if leg == "store":
        return _found(line.get("customTitle"), "heard") or _found(line.get("aiTitle"), "heard", "generated")
    return _of_cli(inward, name, line)


def title_noted(note: JsonObject) -> Said | None:
    """The title that a note of the bridge is about, or None."""
    if note.get("note") != "title":
        return None
    heard = note.get("heard")
    deed: Deed = "known" if heard == "known" else "discarded" if heard == "discarded" else "news"
    return _found(note.get("title"), deed, as_str(note.get("origin")) or "")


def _of_client(inward: bool, name: str, params: JsonObject) -> Said | None:
    if not inward:
        told = name == "session/update session_info_update"
        return _found(obj(params, "update").get("title"), "told") if told else None
    if name == "session/new":
        return _found(obj(obj(params, "_meta"), "acp-manifold").get("title"), "asked", "client")
    return _found(params.get(TITLE_METHODS[name]), "asked", "client") if name in TITLE_METHODS else None


def _of_cli(inward: bool, name: str, line: JsonObject) -> Said | None:
    params = obj(line, "params")
    if not inward:
        return _found(
            {"rename_session": obj(line, "request").get("title"), "thread/name/set": params.get("name")}.get(name),
            "written",
        )
    if name == "generate_session_title":
        return _found(obj(obj(line, "response"), "response").get("title"), "heard", "generated")
    if name == "thread/name/updated":
        return _found(params.get("threadName"), "heard")
    return _found(line.get("title"), "heard") if name == "system session_title_changed" else None


def _found(value: object, deed: Deed, origin: str = "") -> Said | None:
    title = as_str(value)
    return Said(title, deed, origin) if title else None
