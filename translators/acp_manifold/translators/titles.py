"""Titles: their one normal form, and which title takes the place of which.

`normalise` is applied to every title that is set or shown, those read from stores too.
`DECISIONS` is the whole policy of the title keeper as a table; the keeper only carries it out.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias

LIMIT = 200
"""The longest title, in code points: Claude Code 2.1.332 cuts there too."""

Origin: TypeAlias = Literal["none", "generated", "user", "client"]
"""Who made a title: a model, a person elsewhere, a client through us; `none` when there is none."""

Decision: TypeAlias = Literal["take", "discard"]

DECISIONS: dict[tuple[Origin, Origin], Decision] = {
    ("none", "generated"): "take",
    ("none", "user"): "take",
    ("none", "client"): "take",
    ("generated", "generated"): "take",
    ("generated", "user"): "take",
    ("generated", "client"): "take",
    ("user", "generated"): "discard",
    ("user", "user"): "take",
    ("user", "client"): "take",
    ("client", "generated"): "discard",
    ("client", "user"): "take",
    ("client", "client"): "take",
}
"""(what we have, what arrives) -> what to do with what arrives."""

ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"  # OSC, DCS and kin, with their end
    r"|\x1b[ -/]*[0-~]"  # two-character and charset sequences
)
"""What a terminal would obey."""

_ZWJ = "\u200d"
_INVISIBLE_CATEGORIES = frozenset({"Cc", "Cf", "Zl", "Zp", "Zs", "Cs"})
_INVISIBLE_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f")
"""Letters and marks that are drawn as nothing, though their category says otherwise."""


_BLANK_PATTERN = "\u2800"
"""The Braille pattern without dots."""


def normalise(title: str) -> str:
    """The one-line form of a title, perhaps empty.

    Terminal escapes go whole; controls, line breaks and invisible characters become a space,
    as do lone surrogates; runs of space become one; the ends are trimmed; the rest is cut at
    `LIMIT` code points, never between a base and what modifies it nor inside a flag.
    """
    without_escapes = ESCAPES.sub(" ", title)
    spaced = "".join(_visible(without_escapes))
    cut = _cut(" ".join(spaced.split()))
    return cut if any(_is_drawn(char) for char in cut) else ""


def _is_drawn(char: str) -> bool:
    """Whether a character shows by itself: a mark needs a base, and blanks are blank."""
    return unicodedata.category(char)[0] not in "MZC" and char != _BLANK_PATTERN and char not in _INVISIBLE_LETTERS


def _visible(text: str) -> list[str]:
    out: list[str] = []
    for index, char in enumerate(text):
        if char == _ZWJ and _joins(text, index):
            out.append(char)
        elif unicodedata.category(char) in _INVISIBLE_CATEGORIES or char in _INVISIBLE_LETTERS:
            out.append(" ")
        else:
            out.append(char)
    return out


def _joins(text: str, index: int) -> bool:
    """Whether the zero-width joiner at `index` stands between two visible characters that are not spaces."""
    return 0 < index < len(text) - 1 and _is_symbol(text[index - 1]) and _is_symbol(text[index + 1])


def _is_symbol(char: str) -> bool:
    return unicodedata.category(char) in {"So", "Sk", "Mn", "Lo", "Mc"} and char not in _INVISIBLE_LETTERS


def _cut(text: str) -> str:
    if len(text) <= LIMIT:
        return text
    end = LIMIT
    while end > 0 and _continues(text, end):
        end -= 1
    return text[: end or LIMIT].rstrip()


def _continues(text: str, index: int) -> bool:
    """Whether cutting before `index` would part a character from what belongs to it."""
    char = text[index]
    if unicodedata.category(char) in {"Mn", "Mc", "Me"} or char == _ZWJ or "\U0001f3fb" <= char <= "\U0001f3ff":
        return True
    if text[index - 1] == _ZWJ:
        return True
    return _is_flag_letter(char) and _flag_letters_before(text, index) % 2 == 1


def _is_flag_letter(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_letters_before(text: str, index: int) -> int:
    start = index
    while start > 0 and _is_flag_letter(text[start - 1]):
        start -= 1
    return index - start
