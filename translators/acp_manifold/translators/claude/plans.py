"""Plans that Claude Code keeps with tools: the whole list at once (`TodoWrite`), or task by task.

Which of them a session has is the CLI's decision (2.1.332: tasks, and only where they are turned on).
Their calls are shown as the plan they make, not as tool calls.
"""

from __future__ import annotations

from acp_manifold.translators.narrow import JsonObject, as_object, as_objects, as_str, obj, text
from acp_manifold.translators.updates import Plan, PlanEntry, PlanStatus

TODOS = "TodoWrite"
TOOLS = frozenset({TODOS, "TaskCreate", "TaskUpdate", "TaskList"})
"""The tools whose calls are shown as a plan."""

_STATUS: dict[str, PlanStatus] = {"pending": "pending", "in_progress": "in_progress", "completed": "completed"}


class Tasks:
    """The plan of one session as its tools have built it."""

    def __init__(self) -> None:
        self._tasks: dict[str, PlanEntry] = {}
        self._asked: dict[str, tuple[str, JsonObject]] = {}
        """Calls without a result: name and input."""

    def called(self, call_id: str, name: str, tool_input: JsonObject) -> Plan | None:
        """A call of one of `TOOLS`: the plan that its input makes by itself."""
        if name == TODOS:
            todos = as_objects(tool_input.get("todos"))
            return Plan(tuple(PlanEntry(text(todo, "content"), _status(todo)) for todo in todos))
        self._asked[call_id] = (name, tool_input)
        return None

    def answered(self, call_id: str, structured: object) -> Plan | None:
        """The result of such a call: the plan after it, if it has changed."""
        name, tool_input = self._asked.pop(call_id, ("", {}))
        result, before = as_object(structured), dict(self._tasks)
        if name == "TaskCreate":
            self._put(obj(result, "task"))
        elif name == "TaskUpdate" and result.get("success") is True:
            self._update(tool_input)
        elif name == "TaskList" and "tasks" in result:
            self._tasks = {}
            for task in as_objects(result["tasks"]):
                self._put(task)
        return Plan(tuple(self._tasks.values())) if self._tasks != before else None

    def _put(self, task: JsonObject) -> None:
        if task_id := text(task, "id"):
            self._tasks[task_id] = PlanEntry(text(task, "subject"), _status(task))

    def _update(self, change: JsonObject) -> None:
        task_id = text(change, "taskId")
        if text(change, "status") == "deleted":
            self._tasks.pop(task_id, None)
        elif (entry := self._tasks.get(task_id)) is not None:
            status = _STATUS.get(text(change, "status"), entry.status)
            self._tasks[task_id] = PlanEntry(as_str(change.get("subject")) or entry.content, status)


def _status(task: JsonObject) -> PlanStatus:
    return _STATUS.get(text(task, "status"), "pending")
