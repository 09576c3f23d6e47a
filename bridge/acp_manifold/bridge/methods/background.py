"""Background work of a session: what there is, what it printed, its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from acp_manifold.bridge.errors import TaskNotFound
from acp_manifold.translators.acp import requests, v1
from acp_manifold.translators.narrow import JsonObject

if TYPE_CHECKING:
    from acp_manifold.bridge.link import Link, Method
    from acp_manifold.bridge.peer import Call


async def _tasks(link: Link, params: JsonObject, call: Call) -> JsonObject:
    session = link.hub.session(requests.session_id(params), link)
    return v1.tasks_result(await session.tasks())


async def _task_output(link: Link, params: JsonObject, call: Call) -> JsonObject:
    session = link.hub.session(requests.session_id(params), link)
    return v1.task_output_result(await session.task_output(requests.required_text(params, "taskId")))


async def _stop_task(link: Link, params: JsonObject, call: Call) -> JsonObject:
    session = link.hub.session(requests.session_id(params), link)
    await session.stop_task(requests.required_text(params, "taskId"))
    return {}


async def _stop_async_task(link: Link, params: JsonObject, call: Call) -> JsonObject:
    """The vendors' spelling, which has a word for "no such task" of its own."""
    session = link.hub.session(requests.session_id(params), link)
    try:
        await session.stop_task(requests.required_text(params, "asyncTaskId"))
    except TaskNotFound:
        return {"stopped": False}
    return {"stopped": True}


TABLE: dict[str, Method] = {
    "_acp-manifold/background/list": _tasks,
    "_acp-manifold/background/output": _task_output,
    "_acp-manifold/background/stop": _stop_task,
    "_session/async_task/stop": _stop_async_task,
}
