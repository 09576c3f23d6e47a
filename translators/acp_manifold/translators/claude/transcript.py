"""A transcript told as a history: records in, updates out, each item once and in order (case L06)."""

from __future__ import annotations

from acp_manifold.translators.claude import tools
from acp_manifold.translators.claude.frames import message_blocks
from acp_manifold.translators.claude.records import agent_blocks, is_sidechain, typed, typed_texts, working_directory
from acp_manifold.translators.narrow import JsonObject, flag, obj, text
from acp_manifold.translators.updates import Image, MessageChunk, Text, ToolCallUpdate, Update


class History:
    """Fed with the records of one transcript, from the first to the last."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._calls: dict[str, str] = {}

    def feed(self, record: JsonObject) -> list[Update]:
        """The updates of one record; most records have none."""
        kind = record.get("type")
        if kind == "attachment":
            return _added(obj(record, "attachment")) if self._is_new(record) else []
        if kind not in ("user", "assistant") or is_sidechain(record) or not self._is_new(record):
            return []
        return self._assistant(record) if kind == "assistant" else self._user(record)

    def finish(self) -> list[Update]:
        """The updates that end the calls whose result never came."""
        failed: list[Update] = [ToolCallUpdate(call_id, status="failed") for call_id in self._calls]
        self._calls = {}
        return failed

    def _is_new(self, record: JsonObject) -> bool:
        uuid = text(record, "uuid")
        if uuid in self._seen:
            return False
        if uuid:
            self._seen.add(uuid)
        return True

    def _assistant(self, record: JsonObject) -> list[Update]:
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
                updates.append(self._call(block, cwd))
        return updates

    def _call(self, block: JsonObject, cwd: str) -> Update:
        call_id, name, tool_input = text(block, "id"), text(block, "name"), obj(block, "input")
        if name == tools.PLAN_TOOL:
            return tools.plan(tool_input)
        self._calls[call_id] = name
        return tools.call(call_id, name, tool_input, cwd)

    def _user(self, record: JsonObject) -> list[Update]:
        uuid = text(record, "uuid") or None
        updates: list[Update] = [MessageChunk("user", Text(said), uuid) for said in typed_texts(record)]
        blocks = message_blocks(obj(record, "message"))
        results = [block for block in blocks if block.get("type") == "tool_result"]
        structured = record.get("toolUseResult") if len(results) == 1 else None
        for block in results:
            call_id = text(block, "tool_use_id")
            name = self._calls.pop(call_id, None)
            if name is not None:
                updates += tools.outcome(call_id, name, block, structured, working_directory(record) or "/")
        if not flag(record, "isMeta"):
            updates += [_image(block, uuid) for block in blocks if block.get("type") == "image"]
        return updates


def _added(attachment: JsonObject) -> list[Update]:
    """What the person said in the middle of a turn; Claude Code 2.1.332 keeps it beside the results it went with."""
    if attachment.get("type") != "queued_command" or attachment.get("commandMode") != "prompt":
        return []
    uuid = text(attachment, "source_uuid") or None
    updates: list[Update] = []
    for block in message_blocks({"content": attachment.get("prompt")}):
        if block.get("type") == "text" and (said := typed(text(block, "text"))):
            updates.append(MessageChunk("user", Text(said), uuid))
        elif block.get("type") == "image":
            updates.append(_image(block, uuid))
    return updates


def _image(block: JsonObject, uuid: str | None) -> MessageChunk:
    source = obj(block, "source")
    return MessageChunk("user", Image(text(source, "data"), text(source, "media_type", "image/png")), uuid)
