"""Approval requests of Codex to questions, and the chosen option to Codex' answer.

A request becomes an `Approval`: the question, and for each option the result to send. Facts of
codex-cli 0.163.0 that shape it:

* `decline` is taken although `availableDecisions` does not list it, and the turn goes on (case P03);
  `cancel` refuses and interrupts the turn, so it is never the first refusal on offer.
* A file change brings no diff; it is in the `fileChange` item that began just before.
* Approval of an MCP tool comes as an elicitation marked `codex_approval_kind: mcp_tool_call`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from acp_manifold.translators.narrow import JsonObject, as_list, as_object, as_objects, as_str, obj, text
from acp_manifold.translators.updates import CommandToRun, Option, Question, Text, ToolCallUpdate, ToolContent
from acp_manifold.translators.values import NamedTuple

from . import commands, items


class Choice(NamedTuple):
    """An option and what it answers."""

    option: Option
    result: JsonObject


class Approval(NamedTuple):
    """A request of Codex for a person's consent."""

    question: Question
    results: dict[str, JsonObject]
    """Option id -> the JSON-RPC result it stands for."""
    refusal: JsonObject
    """The result for no answer: this one call is refused, the turn goes on."""
    abort: JsonObject
    """The result when the turn is being cancelled."""

    def answer(self, chosen: str | None) -> JsonObject:
        """The result for the chosen option; anything that was not offered refuses."""
        return self.results.get(chosen, self.refusal) if chosen is not None else self.refusal


Items: TypeAlias = dict[str, JsonObject]
"""Open `fileChange` and `mcpToolCall` items by id."""

_DECLINE: JsonObject = {"decision": "decline"}
_CANCEL: JsonObject = {"decision": "cancel"}


def _decision(option: Option, decision: object) -> Choice:
    return Choice(option, {"decision": decision})


_ALLOW = _decision(Option("accept", "Allow once", "allow_once"), "accept")
_ALLOW_SESSION = _decision(Option("acceptForSession", "Allow for this session", "allow_always"), "acceptForSession")
_REJECT = _decision(Option("decline", "Reject", "reject_once"), "decline")
_STOP = _decision(Option("cancel", "Reject and stop the turn", "reject_once"), "cancel")
_SIMPLE: dict[str, Choice] = {"accept": _ALLOW, "acceptForSession": _ALLOW_SESSION}


def _amendment(index: int, raw: JsonObject) -> Choice | None:
    prefix = as_list(obj(raw, "acceptWithExecpolicyAmendment").get("execpolicy_amendment"))
    if prefix:
        words = " ".join(str(word) for word in prefix)
        option = Option(f"execpolicy{index}", f"Always allow commands that begin with `{words}`", "allow_always")
        return _decision(option, raw)
    network = obj(obj(raw, "applyNetworkPolicyAmendment"), "network_policy_amendment")
    if network:
        allow = text(network, "action") == "allow"
        name = f"{'Always allow' if allow else 'Always refuse'} network access to {text(network, 'host')}"
        return _decision(Option(f"network{index}", name, "allow_always" if allow else "reject_always"), raw)
    return None


def _offered(decisions: object) -> list[Choice]:
    """The choices for `availableDecisions`, in its order, a plain refusal before the one that stops the turn."""
    listed = as_list(decisions) or ["accept", "acceptForSession", "decline", "cancel"]
    choices: list[Choice] = []
    for index, decision in enumerate(listed):
        if isinstance(decision, str):
            choice = _SIMPLE.get(decision)
        else:
            choice = _amendment(index, as_object(decision))
        if choice is not None:
            choices.append(choice)
    return [*choices, _REJECT, *([_STOP] if "cancel" in listed else [])]


def _approval(
    call: ToolCallUpdate,
    choices: list[Choice],
    refusal: JsonObject,
    abort: JsonObject,
    *,
    reason: object = None,
    command: CommandToRun | None = None,
) -> Approval:
    question = Question(call, tuple(choice.option for choice in choices), command, as_str(reason) or None)
    return Approval(question, {c.option.id: c.result for c in choices}, refusal, abort)


def _reason(params: JsonObject) -> tuple[ToolContent, ...]:
    reason = as_str(params.get("reason"))
    return (Text(reason),) if reason else ()


def _command(params: JsonObject, open_items: Items) -> Approval:
    command, host = as_str(params.get("command")), as_str(obj(params, "networkApprovalContext").get("host"))
    title = f"Network access to {host}" if host else commands.unwrap(command or "Run a command")
    call = ToolCallUpdate(
        id=text(params, "itemId"),
        title=title,
        kind="fetch" if host else commands.kind_of(params.get("commandActions")),
        status="pending",
        content=_reason(params) or None,
        raw_input=commands.raw_input(params) if command else None,
    )
    cwd = as_str(params.get("cwd"))
    to_run = CommandToRun(title, cwd) if command and cwd and not host else None
    choices = _offered(params.get("availableDecisions"))
    return _approval(call, choices, _DECLINE, _CANCEL, reason=params.get("reason"), command=to_run)


def _file_change(params: JsonObject, open_items: Items) -> Approval:
    item_id = text(params, "itemId")
    begun = items.started(open_items.get(item_id, {"type": "fileChange", "id": item_id}))
    reason, root = _reason(params), as_str(params.get("grantRoot"))
    if root:
        reason = (*reason, Text(f"Asks to write under {root} for the rest of the session"))
    call = ToolCallUpdate(
        id=item_id,
        title=begun.title if begun and begun.content else "Edit files",
        kind="edit",
        status="pending",
        content=(*reason, *(begun.content if begun else ())) or None,
        locations=begun.locations if begun else None,
    )
    return _approval(call, _offered(None), _DECLINE, _CANCEL, reason=params.get("reason"))


def _permissions(params: JsonObject, open_items: Items) -> Approval:
    wanted = {key: value for key, value in obj(params, "permissions").items() if value is not None}
    call = ToolCallUpdate(
        id=text(params, "itemId"),
        title="Grant more permissions",
        kind="other",
        status="pending",
        content=_reason(params) or None,
        raw_input=wanted,
    )
    refusal: JsonObject = {"permissions": {}, "scope": "turn"}
    turn: JsonObject = {"permissions": wanted, "scope": "turn"}
    session: JsonObject = {"permissions": wanted, "scope": "session"}
    choices = [
        Choice(Option("turn", "Allow for this turn", "allow_once"), turn),
        Choice(Option("session", "Allow for this session", "allow_always"), session),
        Choice(Option("decline", "Reject", "reject_once"), refusal),
    ]
    return _approval(call, choices, refusal, refusal, reason=params.get("reason"))


_PERSIST: dict[str, str] = {"session": "Allow for this session", "always": "Always allow"}


def _mcp_tool(params: JsonObject, open_items: Items) -> Approval | None:
    meta = obj(params, "_meta")
    if text(meta, "codex_approval_kind") != "mcp_tool_call":
        return None
    refusal: JsonObject = {"action": "decline", "content": None, "_meta": None}
    accept: JsonObject = {"action": "accept", "content": {}, "_meta": None}
    choices = [Choice(Option("accept", "Allow once", "allow_once"), accept)]
    for scope in as_list(meta.get("persist")):
        if isinstance(scope, str) and scope in _PERSIST:
            option = Option(scope, _PERSIST[scope], "allow_always")
            choices.append(Choice(option, {**accept, "_meta": {"persist": scope}}))
    choices.append(Choice(Option("decline", "Reject", "reject_once"), refusal))
    call = ToolCallUpdate(
        id=_mcp_call_id(params, open_items),
        title=text(params, "message", "Use a tool") or "Use a tool",
        kind="other",
        status="pending",
        raw_input=obj(meta, "tool_params") or None,
    )
    return _approval(call, choices, refusal, {**refusal, "action": "cancel"})


def _mcp_call_id(params: JsonObject, open_items: Items) -> str:
    """The call the question is about: Codex names only the server, whose newest open call it is."""
    server = text(params, "serverName")
    calls = [item_id for item_id, item in open_items.items() if text(item, "server") == server]
    return calls[-1] if calls else f"mcp:{server}:{text(params, 'turnId')}"


_APPROVALS: dict[str, Callable[[JsonObject, Items], Approval | None]] = {
    "item/commandExecution/requestApproval": _command,
    "item/fileChange/requestApproval": _file_change,
    "item/permissions/requestApproval": _permissions,
    "mcpServer/elicitation/request": _mcp_tool,
}


def approval_of(method: str, params: JsonObject, open_items: Items) -> Approval | None:
    """The question in a server request, or None if it asks for nothing a person can consent to."""
    make = _APPROVALS.get(method)
    return make(params, open_items) if make else None


INQUIRIES = frozenset({"mcpServer/elicitation/request", "item/tool/requestUserInput"})
"""Requests that ask the person for more than consent, unless they are approvals; see `questions`."""


def polite_refusal(method: str, params: JsonObject) -> JsonObject | None:
    """The result that declines a server request that can't be put to a person; None if there is none."""
    if method == "mcpServer/elicitation/request":
        return {"action": "decline", "content": None, "_meta": None}
    if method == "item/tool/requestUserInput":
        return {"answers": {text(question, "id"): {"answers": []} for question in as_objects(params.get("questions"))}}
    if method == "item/tool/call":
        return {"contentItems": [{"type": "inputText", "text": "This client offers no tools."}], "success": False}
    return None
