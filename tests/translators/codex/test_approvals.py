"""Approval requests as questions, and options as Codex' answers."""

from __future__ import annotations

import pytest

from acp_manifold.translators.codex.approvals import Approval, approval_of, polite_refusal
from acp_manifold.translators.codex.turn import Stream
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.updates import CommandToRun, Diff, Text

from .recorded import recorded

COMMAND = "item/commandExecution/requestApproval"
FILES = "item/fileChange/requestApproval"
ELICITATION = "mcpServer/elicitation/request"


def approval(method: str, params: JsonObject, items: dict[str, JsonObject] | None = None) -> Approval:
    found = approval_of(method, params, items or {})
    assert found is not None
    return found


def test_a_recorded_command_is_asked_about_with_its_reason() -> None:
    (params,) = recorded("approval-accept").requests(COMMAND)
    asked = approval(COMMAND, params)
    call = asked.question.tool_call
    assert (call.title, call.kind, call.content) == ("echo esc", "execute", (Text("scripted"),))
    assert (asked.question.command, asked.question.reason) == (CommandToRun("echo esc", "/project"), "scripted")
    assert [(option.name, option.kind) for option in asked.question.options] == [
        ("Allow once", "allow_once"),
        ("Always allow commands that begin with `echo esc`", "allow_always"),
        ("Reject", "reject_once"),
        ("Reject and stop the turn", "reject_once"),
    ]
    amendment = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["echo", "esc"]}}
    assert [asked.answer(option.id) for option in asked.question.options] == [
        {"decision": "accept"},
        {"decision": amendment},
        {"decision": "decline"},
        {"decision": "cancel"},
    ]


@pytest.mark.case("P03")
@pytest.mark.parametrize(
    "decisions", [None, [], ["accept"], ["accept", "cancel"], ["cancel", "decline", "accept"], ["new"]]
)
def test_the_first_refusal_never_stops_the_turn(decisions: list[str] | None) -> None:
    asked = approval(COMMAND, {"itemId": "c", "command": "make", "availableDecisions": decisions})
    first = next(option for option in asked.question.options if option.kind == "reject_once")
    assert asked.answer(first.id) == {"decision": "decline"}
    assert asked.answer(None) == asked.answer("never offered") == {"decision": "decline"}
    assert asked.abort == {"decision": "cancel"}


def test_only_what_is_available_is_offered() -> None:
    asked = approval(COMMAND, {"itemId": "c", "command": "make", "availableDecisions": ["accept", "decline"]})
    assert [option.id for option in asked.question.options] == ["accept", "decline"]


def test_network_access_names_the_host() -> None:
    amendment = {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "h.test", "action": "deny"}}}
    params: JsonObject = {
        "itemId": "c",
        "networkApprovalContext": {"host": "h.test", "protocol": "https"},
        "availableDecisions": ["accept", amendment],
    }
    asked = approval(COMMAND, params)
    assert asked.question.tool_call.title == "Network access to h.test"
    assert [(option.name, option.kind) for option in asked.question.options][1] == (
        "Always refuse network access to h.test",
        "reject_always",
    )


def test_a_recorded_file_change_is_asked_about_with_its_diff() -> None:
    stream = Stream()
    told = recorded("file-change-declined")
    for method, params in told.notifications():
        if method == "item/started":
            stream.translate(method, params)
    (params,) = told.requests(FILES)
    asked = approval(FILES, params, stream.items)
    assert asked.question.tool_call.title == "Edit old.txt"
    assert asked.question.tool_call.content == (Diff("/project/old.txt", "one\ntwo\nthree\n", "one\nTWO\nthree\n"),)
    assert {option.id for option in asked.question.options} == {"accept", "acceptForSession", "decline", "cancel"}


def test_permissions_are_granted_as_asked_or_not_at_all() -> None:
    params: JsonObject = {"itemId": "p", "permissions": {"network": {"enabled": True}, "fileSystem": None}}
    asked = approval("item/permissions/requestApproval", params)
    granted = {"network": {"enabled": True}}
    assert asked.answer("session") == {"permissions": granted, "scope": "session"}
    assert asked.answer(None) == asked.abort == {"permissions": {}, "scope": "turn"}


def test_an_mcp_tool_is_asked_about_and_other_elicitations_are_declined() -> None:
    meta = {"codex_approval_kind": "mcp_tool_call", "persist": ["session", "always"], "tool_params": {"who": "you"}}
    open_items: dict[str, JsonObject] = {"call_1": {"type": "mcpToolCall", "id": "call_1", "server": "x"}}
    asked = approval(ELICITATION, {"serverName": "x", "message": "Allow greet?", "_meta": meta}, open_items)
    assert asked.question.tool_call.id == "call_1"
    assert asked.question.tool_call.raw_input == {"who": "you"}
    assert [option.id for option in asked.question.options] == ["accept", "session", "always", "decline"]
    assert asked.answer("always") == {"action": "accept", "content": {}, "_meta": {"persist": "always"}}
    assert asked.refusal["action"] == "decline"
    real: JsonObject = {"serverName": "x", "message": "Your name?", "_meta": None}
    assert approval_of(ELICITATION, real, {}) is None
    assert polite_refusal(ELICITATION, real) == {"action": "decline", "content": None, "_meta": None}


def test_an_unknown_request_has_no_polite_answer() -> None:
    assert approval_of("attestation/generate", {}, {}) is None
    assert polite_refusal("attestation/generate", {}) is None
