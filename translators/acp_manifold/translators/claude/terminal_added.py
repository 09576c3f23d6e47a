"""Messages that were typed while a turn of the interactive program ran: which of them the turn still has to answer.

Claude Code 2.1.332 queues what is entered in mid-turn. With the next tool results it is shown to the model, which is an
attachment of its transcript; if no tool is called any more, or it is sent at once, it is a prompt of its own. What is
queued when the turn is interrupted is run then, unless it was taken back into the input box.
"""

from __future__ import annotations

from dataclasses import dataclass

from acp_manifold.translators.claude.records import unmarked
from acp_manifold.translators.claude.typed import letters
from acp_manifold.translators.narrow import JsonObject, obj, text
from acp_manifold.translators.updates import MessageChunk, Prompt


@dataclass(eq=False, slots=True)
class Message:
    """One of them."""

    typed: str
    """The letters and digits of what is typed."""
    prompt: Prompt
    """What the client has said."""
    queued: bool = False
    """Whether the program has it in its queue."""
    open: bool = True
    """Whether no model was shown it yet."""


class Added:
    """The messages added to one turn, in the order in which they were typed."""

    def __init__(self) -> None:
        self._open: list[Message] = []

    @property
    def open(self) -> bool:
        """Whether one of them is still to be shown to a model."""
        return bool(self._open)

    @property
    def queued(self) -> bool:
        """Whether one of them can be taken back."""
        return any(message.queued for message in self._open)

    def add(self, message: Message) -> None:
        """It is about to be entered."""
        self._open.append(message)

    def drop(self, message: Message | None = None) -> None:
        """Nothing will come of one of them, or of any."""
        for one in [message] if message is not None else list(self._open):
            if one in self._open:
                self._open.remove(one)
            one.open = False

    def moved(self, record: JsonObject) -> None:
        """A record of the program's queue."""
        message = self._find(text(record, "content"))
        if message is None:
            return
        if record.get("operation") == "enqueue":
            message.queued = True
        elif record.get("operation") == "popAll":
            self.drop(message)

    def attached(self, record: JsonObject) -> list[MessageChunk]:
        """What an attachment shows to have been said."""
        attachment = obj(record, "attachment")
        if attachment.get("type") != "queued_command" or attachment.get("commandMode") != "prompt":
            return []
        return self.said(text(attachment, "prompt"), text(attachment, "source_uuid"))

    def said(self, words: str, uuid: str) -> list[MessageChunk]:
        """What is told of a message that the program shows the model; nothing if it is none of these.

        Args:
            words: What was typed, as the program has it.
            uuid: What the message is called in the transcript.
        """
        message = self._find(words)
        if message is None:
            return []
        self.drop(message)
        return [MessageChunk("user", content, uuid or None) for content in message.prompt]

    def _find(self, words: str) -> Message | None:
        heard = letters(unmarked(words))
        return next((message for message in self._open if message.typed == heard), None)
