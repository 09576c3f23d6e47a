"""A conversation as plain text: what was said, and a line for each thing that was done. Safe to print on a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from acp_manifold.translators.values import NamedTuple

from .titles import ESCAPES
from .updates import (
    Audio,
    BlobResource,
    Content,
    Image,
    MessageChunk,
    PlanText,
    ResourceLink,
    Text,
    TextResource,
    ToolCall,
    ToolCallUpdate,
    ToolStatus,
    Update,
)

Who: TypeAlias = Literal["user", "agent", "tool"]

HEADINGS: dict[Who, str] = {"user": "you", "agent": "agent"}
"""How who speaks is called in text."""

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for tab and line feed, what turns the direction of writing, and halves of characters."""


class Entry(NamedTuple):
    """One message, or one tool call."""

    who: Who
    text: str
    """What was said; of a tool call its title."""
    status: ToolStatus | None = None
    """Of a tool call."""


def printable(text: str) -> str:
    """Text without anything that a terminal would obey instead of showing it; lines and tabs stay."""
    return _CONTROLS.sub("", ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n")))


def one_line(text: str) -> str:
    """The same on one line."""
    return " ".join(printable(text).split())


class Conversation:
    """Gathers the entries of a history. Thoughts, what tools printed, plans and usage are left out."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []
        self._pieces: list[str] = []
        self._message: tuple[Who, str | None] | None = None
        """Who speaks in `_pieces`, and in which message."""
        self._calls: dict[str, int] = {}

    def feed(self, update: Update) -> None:
        """The next update."""
        match update:
            case MessageChunk(role="thought"):
                pass
            case MessageChunk():
                self._say(update)
            case PlanText():
                self._say(MessageChunk("agent", Text(update.text), update.id))
            case ToolCall():
                self._end_message()
                self._calls[update.id] = len(self._entries)
                self._entries.append(Entry("tool", update.title, update.status))
            case ToolCallUpdate(id=call) if call in self._calls:
                entry = self._entries[self._calls[call]]
                text, status = update.title or entry.text, update.status or entry.status
                self._entries[self._calls[call]] = Entry("tool", text, status)
            case _:
                pass

    def entries(self) -> list[Entry]:
        """All so far."""
        self._end_message()
        return self._entries

    def _say(self, chunk: MessageChunk) -> None:
        message: tuple[Who, str | None] = ("user" if chunk.role == "user" else "agent", chunk.message_id)
        if self._message != message:
            self._end_message()
            self._message = message
        self._pieces.append(_shown(chunk.content))

    def _end_message(self) -> None:
        if self._message is not None and any(self._pieces):
            self._entries.append(Entry(self._message[0], "".join(self._pieces)))
        self._message = None
        self._pieces = []


def _shown(content: Content) -> str:
    match content:
        case ResourceLink():
            return f"[{content.title or content.name}]({content.uri})"
        case Image():
            return f"[image {content.uri or content.mime_type}]"
        case TextResource() | BlobResource():
            return f"[{content.uri}]"
        case Audio():
            return f"[sound {content.mime_type}]"
        case Text():
            return content.text


def render(entries: Sequence[Entry]) -> Iterator[str]:
    """The lines of a conversation: a heading where the other one begins, an indented line for a tool call."""
    speaker: Who | None = None
    after_call = False
    for entry in entries:
        who: Who = "agent" if entry.who == "tool" else entry.who
        if who != speaker:
            yield from ("", f"--- {HEADINGS[who]}")
        elif not (after_call and entry.who == "tool"):
            yield ""
        speaker, after_call = who, entry.who == "tool"
        if after_call:
            yield f"  * {one_line(entry.text)} ({(entry.status or 'pending').replace('_', ' ')})"
        else:
            yield printable(entry.text).strip("\n")
