"""Whether what is said now is what was said then: placeholders stand for anything, ids and places are mapped. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from acp_manifold.translators.narrow import is_list, is_object

_PLACEHOLDER: Final = re.compile(r"/?<(?:(?:token|header|email)-\d+|home|user)>")

_SHOWN: Final = 120
"""Characters of a value that a message repeats."""


def difference(expected: object, given: object, place: str = "") -> str | None:
    """The first place where two values differ, with both, as the end of a sentence; None if they are alike.

    Args:
        expected: As it was recorded: a placeholder in it stands for any text.
        given: As it is now, with ids and places as they were then.
        place: Where the two stand.
    """
    if isinstance(expected, str) and isinstance(given, str):
        return None if _alike(expected, given) else _said(expected, given, place)
    if is_object(expected) and is_object(given):
        for key in dict.fromkeys((*expected, *given)):
            inside = f"{place}.{key}" if place else key
            if key not in expected or key not in given:
                return _said(expected.get(key, _NOTHING), given.get(key, _NOTHING), inside)
            found = difference(expected[key], given[key], inside)
            if found is not None:
                return found
        return None
    if is_list(expected) and is_list(given) and len(expected) == len(given):
        pairs = enumerate(zip(expected, given, strict=True))
        return next((found for n, (one, two) in pairs if (found := difference(one, two, f"{place}[{n}]"))), None)
    return None if expected == given else _said(expected, given, place)


class _Nothing:
    def __repr__(self) -> str:
        return "nothing"


_NOTHING: Final = _Nothing()


def _said(expected: object, given: object, place: str) -> str:
    at = f" in {place}" if place else ""
    return f"expected {_short(expected)}{at}, given {_short(given)}"


def _short(value: object) -> str:
    shown = repr(value) if isinstance(value, _Nothing) else json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def _alike(expected: str, given: str) -> bool:
    if expected == given:
        return True
    if _PLACEHOLDER.search(expected) is None:
        return False
    pieces = map(re.escape, _PLACEHOLDER.split(expected))
    return re.fullmatch(".*".join(pieces), given, re.DOTALL) is not None


class Substitution:
    """What was recorded, and what stands for it now: ids as whole strings, folders as beginnings of paths.

    Args:
        names: Whole strings.
        folders: Folders.
    """

    def __init__(self, names: Mapping[str, str] | None = None, folders: Mapping[str, str] | None = None) -> None:
        self._names: dict[str, str] = {}
        self._folders: dict[str, tuple[re.Pattern[str], str]] = {}
        self._needles: tuple[bytes, ...] = ()
        for old, new in (names or {}).items():
            self.name(old, new)
        for old, new in (folders or {}).items():
            self.folder(old, new)

    def name(self, old: str, new: str) -> None:
        """A string stands for another one."""
        if old != new:
            self._names[old] = new
            self._look_for()

    def folder(self, old: str, new: str) -> None:
        """A folder stands for another one, and what lies in it for what lies there."""
        if old and new and old != new:
            self._folders[old] = re.compile(rf"(?<![\w.-]){re.escape(old)}(?![\w-]|\.\w)"), new.replace("\\", "\\\\")
            self._look_for()

    def line(self, raw: bytes) -> bytes:
        """A line of JSON with all that is mapped in it."""
        for needle in self._needles:
            if needle in raw:
                value: object = json.loads(raw)
                return json.dumps(self.value(value), separators=(",", ":")).encode()
        return raw

    def value(self, value: object) -> object:
        """Any JSON with all that is mapped in it."""
        if isinstance(value, str):
            return self._text(value)
        if is_object(value):
            return {self._text(key): self.value(member) for key, member in value.items()}
        if is_list(value):
            return [self.value(item) for item in value]
        return value

    def _text(self, words: str) -> str:
        if words in self._names:
            return self._names[words]
        for pattern, new in self._folders.values():
            words = pattern.sub(new, words)
        return words

    def _look_for(self) -> None:
        known = (*self._names, *self._folders)
        spelled = [json.dumps(old, ensure_ascii=ascii_only) for old in known for ascii_only in (True, False)]
        self._needles = tuple(form[1:-1].encode("utf-8", "replace") for form in spelled)
