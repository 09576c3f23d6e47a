"""A transcript told as a history: records in, updates out, each item once and in order (case L06)."""

from __future__ import annotations

from acp_manifold.translators.claude import plans, tools
from acp_manifold.translators.claude.frames import message_blocks
from acp_manifold.translators.claude.records import (
    added_content,
    agent_blocks,
    attached_content,
    is_by_person,
    is_sidechain,
    is_stopped,
    typed_content,
    working_directory,
)
from acp_manifold.translators.claude.typed_commands import command_of, printed_by
from acp_manifold.translators.narrow import JsonObject, flag, obj, text
from acp_manifold.translators.updates import Compaction, MessageChunk, Text, ToolCallUpdate, Update


class History:
    """Fed with the records of one transcript, from the first to the last."""

    def __init__(self, *, sidechain: bool = False) -> None:
        """
        Args:
            sidechain: Whether it is the transcript of a sub-agent, whose records are all marked so.
        """
        self._sidechain = sidechain
        self._seen: set[str] = set()
        self._calls: dict[str, str] = {}
        self._plan = plans.Tasks()
        self._model: MessageChunk | None = None
        """A `/model` that may not have been typed, as what it printed will tell."""
        self._command: tuple[str, str | None] | None = None
        """The prompt and the record of a command that was typed and not answered yet."""

    def feed(self, record: JsonObject) -> list[Update]:
        """The updates of one record; most records have none."""
        model, self._model = self._model, None
        updates = self._feed(record)
        if model is None or (record.get("type") == "user" and printed_by(obj(record, "message"))):
            # Of a model that a client has set Claude Code 2.1.332 makes a record as if it was typed, and of what it
            # prints another user record, where that of a command is none.
            return updates if model is None else []
        return [model, *updates]

    def _feed(self, record: JsonObject) -> list[Update]:
        kind = record.get("type")
        if kind == "attachment" and self._is_new(record):
            attachment = obj(record, "attachment")
            uuid = text(attachment, "source_uuid") or None
            return [MessageChunk("user", content, uuid) for content in added_content(attachment)]
        if kind == "system" and self._is_new(record):
            return self._system(record)
        if kind not in ("user", "assistant") or is_sidechain(record) is not self._sidechain or not self._is_new(record):
            return []
        return self._assistant(record) if kind == "assistant" else self._user(record)

    def finish(self) -> list[Update]:
        """The updates that end the calls whose result never came."""
        left = (call_id for call_id, name in self._calls.items() if name not in plans.TOOLS)
        failed: list[Update] = [ToolCallUpdate(call_id, status="failed") for call_id in left]
        self._calls = {}
        model, self._model = self._model, None
        return failed if model is None else [model, *failed]

    def _is_new(self, record: JsonObject) -> bool:
        uuid = text(record, "uuid")
        if uuid in self._seen:
            return False
        if uuid:
            self._seen.add(uuid)
        return True

    def _assistant(self, record: JsonObject) -> list[Update]:
        self._command = None
        message_id = text(obj(record, "message"), "id") or text(record, "uuid")
        cwd = working_directory(record) or "/"
        updates: list[Update] = []
        for block in agent_blocks(record):
            kind = block.get("type")
            if kind == "text" and (said := text(block, "text")):
                updates.append(MessageChunk("agent", Text(said), message_id))
            elif kind == "thinking" and (thought := text(block, "thinking")):
                updates.append(MessageChunk("thought", Text(thought), message_id))
            elif kind in tools.CALL_BLOCKS:
                updates += self._call(block, cwd)
            elif text(block, "type").endswith("_tool_result") and self._calls.pop(text(block, "tool_use_id"), ""):
                updates.append(tools.served(text(block, "tool_use_id"), block))
        return updates

    def _call(self, block: JsonObject, cwd: str) -> list[Update]:
        call_id, name, tool_input = text(block, "id"), text(block, "name"), obj(block, "input")
        self._calls[call_id] = name
        if name in plans.TOOLS:
            plan = self._plan.called(call_id, name, tool_input)
            return [plan] if plan is not None else []
        return [tools.call(call_id, name, tool_input, cwd)]

    def _result(self, block: JsonObject, record: JsonObject, *, alone: bool) -> list[Update]:
        call_id = text(block, "tool_use_id")
        name = self._calls.pop(call_id, None)
        if name is None:
            return []
        structured = record.get("toolUseResult") if alone else None
        if name in plans.TOOLS:
            plan = self._plan.answered(call_id, structured)
            return [plan] if plan is not None else []
        cwd = working_directory(record) or "/"
        return tools.outcome(call_id, name, block, structured, cwd, stopped=is_stopped(record))

    def _compaction(self, record: JsonObject) -> list[Update]:
        compaction = f"compaction-{text(record, 'uuid')}"
        return [Compaction(compaction, "in_progress"), Compaction(compaction, "completed")]

    def _system(self, record: JsonObject) -> list[Update]:
        if record.get("subtype") == "compact_boundary":
            return self._compaction(record)
        printed = printed_by(record) if record.get("subtype") == "local_command" else None
        return [MessageChunk("agent", Text(printed), text(record, "uuid") or None)] if printed else []

    def _user(self, record: JsonObject) -> list[Update]:
        uuid = text(record, "uuid") or None
        updates: list[Update] = [MessageChunk("user", content, uuid) for content in typed_content(record)]
        if self._command is not None and flag(record, "isMeta") and text(record, "promptId") == self._command[0]:
            return [MessageChunk("user", content, self._command[1]) for content in attached_content(record)]
        if not updates and is_by_person(record):
            message = obj(record, "message")
            if (command := command_of(message)) is not None and command.startswith("/model "):
                self._model = MessageChunk("user", Text(command), uuid)
            elif command is not None:
                updates.append(MessageChunk("user", Text(command), uuid))
                self._command = (prompt, uuid) if (prompt := text(record, "promptId")) else None
            if (printed := printed_by(message)) is not None:
                updates.append(MessageChunk("agent", Text(printed), uuid))
        blocks = message_blocks(obj(record, "message"))
        results = [block for block in blocks if block.get("type") == "tool_result"]
        for block in results:
            updates += self._result(block, record, alone=len(results) == 1)
        return updates
