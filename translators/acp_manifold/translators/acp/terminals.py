"""Commands as terminals, for clients that show one from `_meta` of a tool call.

The convention is Zed's, and both CLIs' other agents keep it: `terminal_info` and a terminal's place in
the content when the call begins, `terminal_output` with each piece of output, once, and `terminal_exit`
at the end. The terminal is ours, with the id of its tool call; the client is never asked to run anything.
"""

from __future__ import annotations

from acp_manifold.translators.narrow import JsonObject, as_list, obj
from acp_manifold.translators.updates import ENDED, OfSubagent, Subagent, ToolCall, ToolCallUpdate, ToolOutput, Update

from . import v1
from .output import ToolOutputs


class Terminals:
    """The commands of one session that are open, as one client is told them."""

    def __init__(self) -> None:
        self._open: set[str] = set()
        self._others = ToolOutputs()

    def render(self, session_id: str, update: Update) -> JsonObject | None:
        """Params of the `session/update` for `update`; None when there is nothing to tell yet."""
        if isinstance(update, OfSubagent) and not isinstance(update.update, Subagent):
            return self.render(v1.subagent_id(session_id, update.id), update.update)
        if isinstance(update, ToolCall) and update.runs_in is not None:
            self._open.add(update.id)
            info: JsonObject = {"terminal_info": {"terminal_id": update.id, "cwd": update.runs_in}}
            return _with(session_id, update, info, shown=True)
        if isinstance(update, ToolOutput) and update.id in self._open:
            if not update.data:
                return None
            return _piece(session_id, update)
        if isinstance(update, ToolCallUpdate) and update.id in self._open:
            return self._patch(session_id, update)
        return self._others.render(session_id, update)

    def _patch(self, session_id: str, update: ToolCallUpdate) -> JsonObject:
        shown = update.content is not None
        if update.status not in ENDED:
            return _with(session_id, update, {}, shown=shown)
        self._open.discard(update.id)
        ended = {"terminal_id": update.id, "exit_code": update.exit_code, "signal": None}
        return _with(session_id, update, {"terminal_exit": ended}, shown=shown)


def _piece(session_id: str, update: ToolOutput) -> JsonObject:
    meta = {"terminal_output": {"terminal_id": update.id, "data": update.data}}
    body = {"sessionUpdate": "tool_call_update", "toolCallId": update.id, "_meta": meta}
    return {"sessionId": session_id, "update": body}


def _with(session_id: str, update: Update, meta: JsonObject, *, shown: bool) -> JsonObject:
    """The usual rendering, with `_meta`, and where content is `shown` with the terminal behind it."""
    params = v1.update_params(session_id, update)
    body = obj(params, "update")
    if shown:
        content = {"type": "terminal", "terminalId": body["toolCallId"]}
        body["content"] = [*as_list(body.get("content")), content]
    if meta:
        body["_meta"] = {**obj(body, "_meta"), **meta}
    return params
