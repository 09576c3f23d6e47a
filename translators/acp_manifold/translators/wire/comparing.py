"""What differs on the wire between two recordings of one scenario, such as one of each of two versions of a CLI.

Each direction of each lane is compared by itself, and the order in it is not: which of two comes first is
often a matter of moments. Pieces of one stream are one message. What has no equal on the other side is laid
beside the next of its name, and their members are compared.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_object, is_list, is_object, text
from acp_manifold.translators.values import NamedTuple

from .normal import normal
from .reading import Reading, read
from .words import SAYS_ALL

Sign: TypeAlias = Literal["+", "-", "~"]
"""What is in the second recording alone, in the first alone, or in both and not the same."""


class Change(NamedTuple):
    """A member of a message that is not the same."""

    sign: Sign
    place: str
    """Where, as `params.item.status`; members of a list are `[]`."""
    before: object = None
    after: object = None


class Difference(NamedTuple):
    """A message that is in one recording alone, or what changed in those of one name."""

    sign: Sign
    leg: str
    inward: bool
    name: str
    """With `answer to` before it for an answer."""
    times: int
    """How many messages it is true of."""
    change: Change | None = None
    """None if the whole message came or went."""


class _Message(NamedTuple):
    name: str
    line: JsonObject


_Pipe: TypeAlias = tuple[str, bool, int]
"""Leg, whether inward, and which lane in the order in which they appear."""


def compare(
    one: Sequence[JsonObject], other: Sequence[JsonObject], backends: tuple[str, str] = ("", "")
) -> list[Difference]:
    """The differences between the entries of two recordings, each once with how often it is there.

    Args:
        one: The entries of the first.
        other: Those of the second.
        backends: The backends of their headers.
    """
    before, after = _pipes(one, backends[0]), _pipes(other, backends[1])
    counts: dict[str, tuple[Difference, int]] = {}
    for pipe in dict.fromkeys((*before, *after)):
        leg, inward, _ = pipe
        for sign, name, change in _compared(before.get(pipe, []), after.get(pipe, [])):
            found = Difference(sign, leg, inward, name, 1, change)
            key = json.dumps(found)
            counts[key] = (found, counts[key][1] + 1 if key in counts else 1)
    return [found._replace(times=times) for found, times in counts.values()]


def _pipes(entries: Sequence[JsonObject], backend: str) -> dict[_Pipe, list[_Message]]:
    lanes: defaultdict[str, list[str]] = defaultdict(list)
    pipes: defaultdict[_Pipe, list[_Message]] = defaultdict(list)
    last: dict[_Pipe, Reading] = {}
    for entry, reading in zip(entries, read(entries, backend).readings, strict=True):
        if reading.lane not in lanes[reading.leg]:
            lanes[reading.leg].append(reading.lane)
        pipe = (reading.leg, reading.inward, lanes[reading.leg].index(reading.lane))
        if not (reading.piece and pipe in last and last[pipe].piece and last[pipe].name == reading.name):
            pipes[pipe].append(_message(entry, reading))
        last[pipe] = reading
    return pipes


def _message(entry: JsonObject, reading: Reading) -> _Message:
    name = f"answer to {reading.name}" if reading.kind in {"answer", "failure"} else reading.name
    line: JsonObject = {"text": text(entry, "text")}
    if "line" in entry:
        line = normal(as_object(entry["line"]))
    return _Message(name or "?", _unsaid(line) if reading.piece else line)


def _unsaid(line: JsonObject) -> JsonObject:
    """A piece of a stream without what it says: where a text is broken is a matter of moments, too."""
    return {
        key: _unsaid(value) if is_object(value) else "<piece>" if key in SAYS_ALL else value
        for key, value in line.items()
    }


def _compared(one: list[_Message], other: list[_Message]) -> Iterator[tuple[Sign, str, Change | None]]:
    """By name, in the order in which names appear."""
    before, after = _by_name(one), _by_name(other)
    for name in dict.fromkeys((*before, *after)):
        left, right = _without_the_same(before.get(name, []), after.get(name, []))
        for line, new_line in zip(left, right, strict=False):
            for change in changes(line, new_line):
                yield "~", name, change
        for _ in left[len(right) :]:
            yield "-", name, None
        for _ in right[len(left) :]:
            yield "+", name, None


def _by_name(messages: list[_Message]) -> dict[str, list[JsonObject]]:
    lines: defaultdict[str, list[JsonObject]] = defaultdict(list)
    for message in messages:
        lines[message.name].append(message.line)
    return lines


def _without_the_same(one: list[JsonObject], other: list[JsonObject]) -> tuple[list[JsonObject], list[JsonObject]]:
    """What has no equal on the other side."""
    left = Counter(json.dumps(line, sort_keys=True) for line in one)
    right = Counter(json.dumps(line, sort_keys=True) for line in other)
    return _rest(one, left & right), _rest(other, left & right)


def _rest(lines: list[JsonObject], same: Counter[str]) -> list[JsonObject]:
    same = same.copy()
    rest: list[JsonObject] = []
    for line in lines:
        key = json.dumps(line, sort_keys=True)
        if same[key]:
            same[key] -= 1
        else:
            rest.append(line)
    return rest


def changes(before: object, after: object, place: str = "") -> Iterator[Change]:
    """What differs between two JSON values."""
    if is_object(before) and is_object(after):
        for key in dict.fromkeys((*before, *after)):
            where = f"{place}.{key}" if place else key
            if key not in after:
                yield Change("-", where, before[key])
            elif key not in before:
                yield Change("+", where, None, after[key])
            else:
                yield from changes(before[key], after[key], where)
    elif is_list(before) and is_list(after):
        yield from _list_changes(before, after, f"{place}[]")
    elif before != after or type(before) is not type(after):
        yield Change("~", place, before, after)


def _list_changes(before: list[object], after: list[object], place: str) -> Iterator[Change]:
    if len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from changes(one, other, place)
        return
    # Of lists that are not of one length it is told what came and went, each thing once.
    texts = [json.dumps(item, sort_keys=True) for item in before], [json.dumps(item, sort_keys=True) for item in after]
    for text_of, item in zip(texts[0], before, strict=True):
        if text_of not in texts[1]:
            yield Change("-", place, item)
    for text_of, item in zip(texts[1], after, strict=True):
        if text_of not in texts[0]:
            yield Change("+", place, None, item)
    if set(texts[0]) == set(texts[1]):
        yield Change("~", place.removesuffix("[]"), f"{len(before)} items", f"{len(after)} items")
