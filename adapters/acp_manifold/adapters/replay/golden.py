"""What a client heard, in a form that is the same each time: ids, times and places have names. Pure, but for files."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from acp_manifold.translators.narrow import JsonObject, as_objects, is_list, is_object, obj, text

LONGEST: Final = 200
"""Characters of a text that are kept; what is longer is told by its length."""

MOST: Final = 12
"""Members of a list that are kept."""

_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"

_ID: Final = re.compile(
    rf"{_UUID}|\b[0-9a-f]{{12}}-\d+\b|\b(?:toolu|msg|call|item|rs|fc|exec|ws|ctc|term|task)_[A-Za-z0-9_-]{{4,}}"
)

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")

_LEFT_OUT: Final = frozenset({"agentInfo", "info", "availableCommands", "configOptions", "modes"})
"""Members that tell the version of the agent, or what is known of options and commands then: see `settings`."""


class Normal:
    """Gives names to ids, in the order in which they come.

    Args:
        places: Folders, with what stands for each.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._ids: dict[str, str] = {}
        # The longer first: one may lie in another.
        self._places = sorted(places.items(), key=lambda place: -len(place[0]))

    def value(self, value: object) -> object:
        """Any JSON, in its normal form."""
        if isinstance(value, str):
            return self._text(value)
        if is_object(value):
            kept = {key: member for key, member in value.items() if key not in _LEFT_OUT}
            return {self._text(key): self.value(member) for key, member in kept.items()}
        if is_list(value):
            rest = [f"and {len(value) - MOST} more"] if len(value) > MOST else []
            return [*(self.value(item) for item in value[:MOST]), *rest]
        return value

    def _text(self, words: str) -> str:
        for place, name in self._places:
            words = words.replace(place, name)
        words = _TIME.sub("<time>", words)
        words = _ID.sub(lambda found: self._ids.setdefault(found[0], f"<id-{len(self._ids) + 1}>"), words)
        return words if len(words) <= LONGEST else f"{words[:LONGEST]}… ({len(words)} characters)"


def transcript(heard: Iterable[JsonObject], places: Mapping[str, str]) -> str:
    """What a client heard, a line for each message.

    What a session tells of itself, its commands and options, is left out: it comes when the CLI gets round to it,
    before or after what is said, or after the end of the conversation.

    Args:
        heard: The messages, as `Client.heard` has them.
        places: Folders, with what stands for each, such as `{cwd: "<cwd>"}`.
    """
    normal = Normal(places)
    told = (message for message in heard if not _sets(message))
    return "".join(f"{json.dumps(normal.value(message), ensure_ascii=False)}\n" for message in told)


def _sets(message: JsonObject) -> bool:
    """Whether it is an update that comes when it comes, beside the conversation."""
    update = obj(obj(message, "params"), "update")
    return update.get("sessionUpdate") in ("available_commands_update", "config_option_update")


def settings(heard: Iterable[JsonObject]) -> dict[str, JsonObject]:
    """By session, in the order in which they come: its options, modes and commands as they were told last.

    When they are told is not the conversation's, and how often is chance: what they are in the end is neither. Of an
    option there are its name, what holds and what can be chosen.
    """
    found: dict[str, JsonObject] = {}
    for message in heard:
        params, result = obj(message, "params"), obj(message, "result")
        session = text(params, "sessionId") or text(result, "sessionId") or text(message, "session")
        for told in (result, obj(params, "update")):
            if session and (parts := _settings_in(told)):
                found[session] = {**found.get(session, {}), **parts}
    return found


def _settings_in(told: JsonObject) -> JsonObject:
    parts: JsonObject = {}
    if "configOptions" in told:
        parts["options"] = {
            text(option, "id") or text(option, "configId"): {
                "name": option.get("name"),
                "holds": option.get("currentValue"),
                "of": list(_values(option)),
            }
            for option in as_objects(told["configOptions"])
        }
    if "modes" in told:
        modes = obj(told, "modes")
        ids = [text(mode, "id") for mode in as_objects(modes.get("availableModes"))]
        parts["modes"] = {"holds": modes.get("currentModeId"), "of": ids}
    if told.get("sessionUpdate") == "current_mode_update":
        parts["mode"] = told.get("currentModeId")
    if "availableCommands" in told:
        parts["commands"] = [text(command, "name") for command in as_objects(told.get("availableCommands"))]
    return parts


def _values(option: JsonObject) -> Iterator[str]:
    """What can be chosen, in groups or not."""
    for choice in as_objects(option.get("options")):
        yield from _values(choice) if "options" in choice else (text(choice, "value"),)


def compare(path: Path, now: str, *, update: bool) -> str | None:
    """Compare with a file; None if they are alike.

    Args:
        path: The file that holds how it should be.
        now: How it is.
        update: Whether the file is to be made anew if it differs.

    Returns:
        The difference, as a unified diff.
    """
    then = path.read_text(encoding="utf-8") if path.is_file() else ""
    if then == now:
        return None
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(now, encoding="utf-8")
    lines = difflib.unified_diff(
        then.splitlines(keepends=True), now.splitlines(keepends=True), f"{path} (as it was)", f"{path} (as it is)", n=1
    )
    return "".join(lines)
