"""The background tasks of one session, as the frames of its process tell them.

Claude Code 2.1.332 sends the list of all that run (`background_tasks_changed`) before it names the
tool call of a new one (`task_started`), and the end of one (`task_updated`, `task_notification`)
before the list without it. The tool call has had its result by then: "running in background".
"""

from __future__ import annotations

from acp_manifold.translators.updates import BackgroundTask, ToolCallUpdate, ToolEnd, Update

from .frames import TaskEnded, TasksRunning, TaskStarted


class Tasks:
    """What runs in the background now."""

    def __init__(self) -> None:
        self._running: dict[str, BackgroundTask] = {}
        self._begun: dict[str, tuple[str | None, str | None, bool]] = {}
        """Tool call, command, whether it is an agent: of each task that has not ended, in the background or not yet."""
        self._stopping: set[str] = set()

    def all(self) -> tuple[BackgroundTask, ...]:
        """Every task, the oldest first."""
        return tuple(self._running.values())

    def holds(self, call_id: str) -> bool:
        """Whether a tool call goes on in the background."""
        return any(task.tool_call_id == call_id for task in self._running.values())

    def stopping(self, task_id: str) -> None:
        """A task is being stopped, by whatever means: if it fails now, that is why."""
        if task_id in self._running:
            self._stopping.add(task_id)

    def listed(self, frame: TasksRunning) -> list[Update]:
        """The list of all; a task that is no longer on it has ended."""
        ended = [task for task in self._running if task not in frame.tasks]
        for task_id, title in frame.tasks.items():
            self._running.setdefault(task_id, BackgroundTask(task_id, title))
            self._complete(task_id)
        return [update for task_id in ended for update in self._end(task_id, "completed")]

    def started(self, frame: TaskStarted, command: str | None, *, agent: bool = False) -> None:
        """The call behind a task, and the command if it runs one, or whether it is a sub-agent."""
        self._begun[frame.id] = (frame.call_id, command, agent)
        self._complete(frame.id)

    def _complete(self, task_id: str) -> None:
        task, begun = self._running.get(task_id), self._begun.get(task_id)
        if task is not None and begun is not None:
            call_id, command, agent = begun
            self._running[task_id] = task._replace(
                title=command or task.title,
                tool_call_id=call_id,
                command=command is not None,
                agent=call_id if agent else None,
            )

    def ended(self, frame: TaskEnded) -> list[Update]:
        """A task is over."""
        return self._end(frame.id, frame.status)

    def abandon(self, status: ToolEnd) -> list[Update]:
        """Everything is over: the process is gone."""
        return [update for task_id in list(self._running) for update in self._end(task_id, status)]

    def _end(self, task_id: str, status: ToolEnd) -> list[Update]:
        self._begun.pop(task_id, None)
        task = self._running.pop(task_id, None)
        if task is None or task.tool_call_id is None:
            return []
        stopped = status == "failed" and task_id in self._stopping
        self._stopping.discard(task_id)
        return [ToolCallUpdate(task.tool_call_id, status="cancelled" if stopped else status)]
