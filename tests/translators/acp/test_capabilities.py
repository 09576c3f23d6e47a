"""What a client takes is read from its `initialize`, whatever shape that has."""

from __future__ import annotations

import pytest

from acp_manifold.translators.acp.capabilities import ClientCapabilities, client_capabilities


def test_what_a_client_takes_is_read_from_where_the_schema_has_it() -> None:
    said: dict[str, object] = {
        "auth": {"terminal": True},
        "elicitation": {"form": {}, "url": {}},
        "plan": {},
        "session": {"notices": {}, "compaction": {}, "configOptions": {"boolean": {}}},
        "subagents": {},
        "_meta": {
            "terminal_output": True,
            "terminal-auth": True,
            "jetbrains": {"air": {"version": 1, "capabilities": ["sessionRename"]}},
        },
    }
    can = client_capabilities({"clientCapabilities": said})
    assert can == ClientCapabilities()._replace(
        **dict.fromkeys([name for name in ClientCapabilities._fields if name != "air"], True),
        air=frozenset({"sessionRename"}),
    )


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"clientCapabilities": None},
        {"clientCapabilities": ["form"]},
        {"clientCapabilities": {"elicitation": {"form": True}, "plan": None, "session": 3, "auth": {"terminal": 1}}},
        {"clientCapabilities": {"_meta": {"jetbrains": {"air": {"version": 0, "capabilities": ["sessionRename"]}}}}},
        {"clientCapabilities": {"_meta": {"jetbrains": {"air": {"version": 1, "capabilities": "sessionRename"}}}}},
    ],
)
def test_what_is_missing_or_malformed_is_not_taken(params: dict[str, object]) -> None:
    assert client_capabilities(params) == ClientCapabilities()
