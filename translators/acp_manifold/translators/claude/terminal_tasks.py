"""Background work as the records of the interactive program tell it: its beginning, its output, its end.

Claude Code 2.1.332 names a command's id beside the result of its call, and the file it prints into within that
result; a sub-agent's beside the result as well, which comes as soon as the agent has begun. The end is a notification
put into the program's own queue, before a turn is made of it; a command that the model has stopped is named beside the
result of that call, and nowhere else.
"""

from __future__ import annotations

import re
from typing import Final

from acp_manifold.translators.claude.frames import TASK_ENDS, TaskEnded, TaskStarted, message_blocks
from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, obj, text
from acp_manifold.translators.values import NamedTuple

_OUTPUT: Final = re.compile(r"Output is being written to: (/.+?/tasks/(\w+)\.output)(?=\. |\s|$)")
_NOTICE: Final = "<task-notification>"
_ID: Final = re.compile(r"<task-id>(\w+)</task-id>")
_STATUS: Final = re.compile(r"<status>(\w+)</status>")


class Begun(NamedTuple):
    """A command goes on in the background, or a sub-agent."""

    frame: TaskStarted
    output: str | None
    """The file that it prints into."""
    title: str = ""
    """What a sub-agent is to do, in few words."""


def begun(record: JsonObject) -> Begun | None:
    """The command, or the sub-agent, that a result tells to go on in the background."""
    result = as_object(record.get("toolUseResult"))
    launched = text(result, "status") == "async_launched"
    task_id = text(result, "agentId" if launched else "backgroundTaskId")
    if not task_id:
        return None
    results = (block for block in message_blocks(obj(record, "message")) if block.get("type") == "tool_result")
    block = next(results, as_object(None))
    if launched:
        return Begun(TaskStarted(task_id, text(block, "tool_use_id") or None), None, text(result, "description"))
    content = block.get("content")
    said = content if isinstance(content, str) else "".join(text(part, "text") for part in as_objects(content))
    paths = {found[2]: found[1] for found in _OUTPUT.finditer(said)}
    return Begun(TaskStarted(task_id, text(block, "tool_use_id") or None), paths.get(task_id))


def ended(record: JsonObject) -> TaskEnded | None:
    """The command, or the sub-agent, whose end a record tells."""
    kind = record.get("type")
    if kind == "queue-operation" and record.get("operation") == "enqueue":
        return _noticed(text(record, "content"))
    if kind != "user":
        return None
    result = as_object(record.get("toolUseResult"))
    if text(result, "task_id") and text(result, "message").startswith("Successfully stopped"):
        return TaskEnded(text(result, "task_id"), "cancelled")
    return None


def _noticed(said: str) -> TaskEnded | None:
    found = _ID.search(said) if said.startswith(_NOTICE) else None
    if found is None:
        return None
    status = _STATUS.search(said)
    return TaskEnded(found[1], TASK_ENDS.get(status and status[1], "failed"))
