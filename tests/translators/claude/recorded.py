"""Recordings of Claude Code, played into the translator, and updates in a form that reads as a conversation."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

from acp_manifold.translators.claude.endings import Outcome
from acp_manifold.translators.claude.frames import ControlResponse, TitleChanged, parse
from acp_manifold.translators.claude.turn import Conversation
from acp_manifold.translators.narrow import JsonObject, as_list, as_object, obj, text
from acp_manifold.translators.updates import (
    Diff,
    MessageChunk,
    Plan,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolOutput,
    Unknown,
    Update,
    Usage,
)

RECORDINGS = Path(__file__).parents[3] / "recordings" / "claude" / "2.1.332"


def entries(scenario: str) -> list[JsonObject]:
    """What a recording has of the CLI or, if it is one of a transcript, of that."""
    lines = (RECORDINGS / f"{scenario}.jsonl").read_bytes().split(b"\n")
    header, *rows = [as_object(json.loads(line)) for line in lines if line]
    version = header["cli_version"] if header["format"] == 1 else obj(header, "clis")["claude"]
    assert version == "2.1.332" and header["scenario"] == scenario
    leg = "store" if scenario.startswith("transcript-") else "backend"
    return [row for row in rows if row.get("leg") == leg and "line" in row]


def requests(scenario: str, subtype: str) -> list[JsonObject]:
    """The control requests of one kind that the CLI sent."""
    lines = [obj(entry, "line") for entry in entries(scenario) if entry["dir"] == "in"]
    asked = [obj(line, "request") for line in lines if line.get("type") == "control_request"]
    return [request for request in asked if request.get("subtype") == subtype]


@dataclass
class Played:
    """What came of a recording."""

    updates: list[Update] = field(default_factory=lambda: [])
    outcomes: list[Outcome] = field(default_factory=lambda: [])
    titles: list[str] = field(default_factory=lambda: [])
    unknown: list[Unknown] = field(default_factory=lambda: [])

    @property
    def told(self) -> list[str]:
        """The updates in short, but for how full the context is."""
        return [tell(update) for update in self.updates if not isinstance(update, Usage)]


def play(scenario: str) -> Played:
    """Feed a recording line by line, as the adapter would."""
    conversation, played = Conversation("/project"), Played()
    interrupts: set[str] = set()
    for entry in entries(scenario):
        line = obj(entry, "line")
        if entry["dir"] == "out":
            _sent(conversation, line, interrupts)
            continue
        frame = parse(line)
        before = conversation.outcome
        played.updates += conversation.feed(frame)
        if isinstance(frame, ControlResponse) and frame.id in interrupts:
            conversation.interrupt_answered([str(uuid) for uuid in as_list(frame.response.get("still_queued"))])
        if isinstance(frame, TitleChanged):
            played.titles.append(frame.title)
        if conversation.unknown is not None:
            played.unknown.append(conversation.unknown)
        if conversation.outcome is not None and conversation.outcome is not before:
            played.outcomes.append(conversation.outcome)
    return played


def _sent(conversation: Conversation, line: JsonObject, interrupts: set[str]) -> None:
    if line.get("type") == "user":
        conversation.begin(text(line, "uuid"))
    elif obj(line, "request").get("subtype") == "interrupt":
        interrupts.add(text(line, "request_id"))
        conversation.interrupt()


def tell(update: Update) -> str:
    """One update as a short line."""
    match update:
        case MessageChunk(role, Text(words)):
            return f"{role}: {words}"
        case ToolCall():
            return f"call {update.name} [{update.kind}] {update.title} {update.status}{_diffs(update)}"
        case ToolCallUpdate():
            title = f" {update.title}" if update.title else ""
            words = "".join(f" <{item.text}>" for item in update.content or () if isinstance(item, Text))
            return f"update{title} {update.status}{words}{_diffs(update)}"
        case ToolOutput():
            return f"output {update.data}"
        case Plan():
            return "plan " + ", ".join(f"{step.status} {step.content}" for step in update.entries)
        case _:
            return type(update).__name__


def _diffs(update: ToolCall | ToolCallUpdate) -> str:
    return "".join(f" {d.path}: {d.old!r} -> {d.new!r}" for d in update.content or () if isinstance(d, Diff))
