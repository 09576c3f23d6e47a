"""Record, replay, record: the recording of a replay is the recording that was replayed, but for times."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from acp_manifold.adapters.replay.agent import started
from acp_manifold.adapters.replay.conversation import Conversation, Talk
from acp_manifold.adapters.replay.golden import Normal
from acp_manifold.bridge.recording.format import Entry
from acp_manifold.bridge.recording.reader import Recording, read
from acp_manifold.translators.narrow import JsonObject, flag, obj, text
from tests.corpus.thin import thin

from .corpus import Case, case

pytestmark = pytest.mark.anyio

Lane = tuple[str, str, str]
"""Leg, way and session."""

CASES = [
    case(backend, scenario)
    for backend in ("claude", "codex")
    for scenario in ("title-after-turn", "interleaved", "crash-mid-turn")
]


async def recorded(source: Path, found: Case, folder: Path) -> Recording:
    """What a replay of a recording is recorded as."""
    cwd = folder / "work" / "project"
    cwd.mkdir(parents=True)
    path = folder / "again.jsonl"
    env = {**os.environ, "PATH": "", "HOME": str(folder)}
    async with started(source, env=env, record=path) as client:
        await Talk(client, str(cwd), found.backend).have(Conversation.of(*found.scenario.steps))
    recording = read(path)
    assert recording.cut is None
    return recording._replace(entries=tuple(thin(recording.entries, folder)))


def lanes(entries: Iterable[Entry]) -> dict[Lane, list[str]]:
    """The lines of each leg, way and session, in their order, with names for ids, times and places."""
    found: dict[Lane, list[str]] = {}
    normal: dict[Lane, Normal] = {}
    for entry in entries:
        lane = entry.leg, entry.dir or "", entry.session or ""
        line = normal.setdefault(lane, Normal({})).value(told(entry))
        # How long a text was depends on how long the name of a folder is.
        found.setdefault(lane, []).append(re.sub(r" \(\d+ characters\)", "", json.dumps(line, sort_keys=True)))
    return found


def told(entry: Entry) -> JsonObject:
    line = {key: value for key, value in (entry.line or {}).items() if key != "emittedAtMs"}
    if entry.leg == "backend" and isinstance(line.get("id"), int):
        # Requests of all sessions are numbered in one row: which comes first is chance.
        line["id"] = None
    if entry.leg == "bridge" and flag(line, "asked"):
        # What we end ourselves ends otherwise where there is no process.
        line["how"] = None
    return line


def is_of_a_moment(entry: Entry) -> bool:
    """Whether when it comes, or how often, is chance: what can be set, that a title is known."""
    line = entry.line or {}
    kinds = ("config_option_update", "available_commands_update", "session_info_update")
    return text(obj(obj(line, "params"), "update"), "sessionUpdate") in kinds or text(line, "note") == "title"


def counted(entries: Iterable[Entry]) -> dict[Lane, Counter[str]]:
    """What was said in each session, in whatever order; what we ask a CLI by its method alone.

    Left out is what belongs to none, which tells the version of the agent, or is a list, and what Codex reads in its
    store: a replay makes these of what was recorded.
    """
    asked = [
        entry._replace(line={"method": method_of(entry)}) if (entry.leg, entry.dir) == ("backend", "out") else entry
        for entry in entries
        if entry.session is not None and not is_of_a_moment(entry) and not is_read(entry)
    ]
    return {lane: Counter(lines) for lane, lines in lanes(in_order(asked)).items()}


def kept(recording: Recording) -> list[Entry]:
    """All but what is of a moment, and what Codex is asked that is of no session, each when it is first needed."""
    asked = [entry for entry in recording.entries if entry.leg == "client" or entry.session is not None]
    return [entry for entry in asked if not is_of_a_moment(entry)]


def is_read(entry: Entry) -> bool:
    """Whether it is a thread as Codex has it in its store."""
    result = obj(entry.line or {}, "result")
    return entry.leg == "backend" and "thread" in result and "model" not in result


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """By what they say, so that ids are named alike whichever came first."""
    return sorted(entries, key=lambda entry: str(Normal({}).value(json.dumps(told(entry), sort_keys=True))))


def method_of(entry: Entry) -> str:
    line = entry.line or {}
    return text(line, "method") or text(obj(line, "request"), "subtype") or text(line, "type")


@pytest.mark.parametrize("found", CASES, ids=lambda found: found.name)
async def test_the_recording_of_a_replay_is_the_recording_but_for_times(found: Case, tmp_path: Path) -> None:
    once = await recorded(found.path, found, tmp_path / "once")
    twice = await recorded(tmp_path / "once" / "again.jsonl", found, tmp_path / "twice")
    assert lanes(kept(once)) == lanes(kept(twice))
    assert once.header._replace(date="") == twice.header._replace(date="")
    # The first was made with the CLI, by an agent that may have asked in another order.
    original = read(found.path)
    assert counted(once.entries) == counted(original.entries)
    assert once.header.clis == original.header.clis
