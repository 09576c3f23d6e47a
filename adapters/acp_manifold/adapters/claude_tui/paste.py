"""The text of a prompt as what is typed: safe bytes in pieces that the program takes as one person's words. Pure.

A prompt comes from files and web pages. Typed into Claude Code 2.1.332 it could run a shell command
(`!` at its start, or behind an `ESC [ 201 ~` that ends the paste too early), a slash command, or take
two Enters (after invisible characters). So controls, escape sequences and invisible characters go out,
and a start or an end that means something to the input box gets a blank beside it.

A paste of more than two line breaks or 800 characters is folded, and reaches the model marked as pasted
content (measured). A person's words go in smaller pastes therefore, one after the other; only what is
very long goes as one folded paste.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

BEGIN: Final = b"\x1b[200~"
END: Final = b"\x1b[201~"
"""Bracketed paste."""

PIECE: Final = 600
"""Characters of a paste that is not folded; from 800 on it would be."""

PIECE_BREAKS: Final = 2
"""Line breaks of a paste that is not folded; with three it would be."""

PIECES: Final = 24
"""How many pastes one prompt may take, at 30 ms each; a longer one goes as one that is folded."""

BLANK: Final = "\u2800"
"""The one blank that the program neither takes away nor takes for space: a command behind it is none."""

_ESCAPES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|.)?", re.DOTALL
)
_COMMAND: Final = re.compile(r"\s*/")
_NOT_A_LINE_BREAK: Final = re.compile(r"[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def safe(text: str) -> str:
    """The text with everything taken out that is no text: it can be pasted, and submitted by one Enter."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _NOT_A_LINE_BREAK.sub("\n", text).replace("\t", "    ")
    return "".join(char for char in text if char == "\n" or not _is_invisible(char))


def prompt(text: str) -> str:
    """What is to be typed for a prompt: plain words to the program, whatever stands in them. Empty if nothing does."""
    text = safe(text).rstrip()
    if not text.strip():
        return ""
    if _COMMAND.match(text):
        text = BLANK + text.lstrip()
    elif text.lstrip()[0] in "!#&?":
        text = " " + text.lstrip()
    # A backslash before Enter would be a line break.
    return text + BLANK if text.endswith("\\") else text


def argument(text: str) -> str:
    """What is to be typed behind a command that a client means."""
    text = safe(text).strip()
    return text + BLANK if text.endswith("\\") else text


def pastes(text: str, *, whole: bool = False) -> list[bytes]:
    """What to write to the terminal for a text that is `safe`; each piece is to be seen before the next.

    Args:
        text: The text.
        whole: Whether it goes as one paste, whatever becomes of that.
    """
    pieces = [text] if whole else _pieces(text)
    return [BEGIN + piece.encode("utf-8", "replace") + END for piece in (pieces if len(pieces) <= PIECES else [text])]


def _pieces(text: str) -> list[str]:
    pieces: list[str] = []
    piece, breaks = "", 0
    for line in re.split(r"(?<=\n)", text):
        for start in range(0, len(line), PIECE) or (0,):
            part = line[start : start + PIECE]
            if piece and (len(piece) + len(part) > PIECE or breaks == PIECE_BREAKS):
                pieces.append(piece)
                piece, breaks = "", 0
            piece += part
            breaks += part.endswith("\n")
    return [*pieces, piece] if piece else pieces


def squeezed(text: str) -> str:
    """A text as far as it can be found again on a screen: without space, blanks and line breaks."""
    return "".join(char for char in text if not char.isspace() and char != BLANK)


def _is_invisible(char: str) -> bool:
    """Controls, and what the program takes out of its input, with a second Enter as the price."""
    return unicodedata.category(char) in ("Cc", "Cf", "Cs")
