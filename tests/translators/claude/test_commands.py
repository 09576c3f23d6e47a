"""Commands as they are typed, and reports that hold no secret."""

from __future__ import annotations

from acp_manifold.translators.claude import reports
from acp_manifold.translators.claude.commands import commands
from acp_manifold.translators.claude.compaction import kept_messages
from acp_manifold.translators.claude.frames import CommandsChanged, Init, parse
from acp_manifold.translators.narrow import JsonObject


def test_prompts_of_mcp_servers_are_offered_in_one_word_and_texts_as_they_were() -> None:
    entries: list[object] = [
        {"name": "my server:say hi (MCP)", "description": "greets"},
        {"name": "mine", "description": "a &lt;b&gt; &amp;amp; c"},
        {"name": "mcp", "description": "Manage MCP servers"},
    ]
    offered = {command.name: command.description for command in commands({"commands": entries}).commands}
    assert offered["mcp__my_server__say_hi"] == "greets"
    assert offered["mine"] == "a <b> &amp; c"
    assert "tools" in offered["mcp"] and list(offered).count("mcp") == 1


def test_the_frames_that_tell_of_commands_and_servers() -> None:
    raw: JsonObject = {"type": "system", "subtype": "commands_changed", "commands": []}
    assert parse(raw) == CommandsChanged(raw)
    servers = [{"name": "a", "status": "failed"}]
    init = parse({"type": "system", "subtype": "init", "mcp_servers": servers})
    assert isinstance(init, Init) and init.mcp_servers == (("a", "failed"),)


def test_the_status_shows_no_password_and_no_row_that_it_does_not_know() -> None:
    rows: list[object] = [
        {"label": "Session ID", "value": "s1"},
        {"label": "API key", "value": "ANTHROPIC_API_KEY"},
        {"label": "Anthropic base URL", "value": "https://me:secret@example.org:8443/v1?key=secret"},
        {"label": "Peer address", "value": "uds:/tmp/secret.sock"},
    ]
    said = reports.status({"sections": [{"rows": rows}]}, {"totalTokens": 1500, "maxTokens": 200000}, "plan")
    assert "https://example.org:8443/v1" in said and "secret" not in said
    for words in ("`s1`", "ANTHROPIC_API_KEY", "plan", "1,500 of 200,000 tokens"):
        assert words in said


def test_servers_and_skills() -> None:
    answer: JsonObject = {
        "mcpServers": [
            {"name": "a", "status": "connected", "tools": [{"name": "look"}], "config": {"env": {"T": "secret"}}},
            {"name": "b", "status": "failed", "error": "no\nsuch file"},
            {"name": "c", "status": "needs-auth"},
        ]
    }
    said = reports.servers(answer)
    assert said.splitlines()[:2] == ["- **a:** connected; tools: `look`", "- **b:** failed: no such file"]
    assert "/mcp" in said.splitlines()[2] and "secret" not in said
    found: list[object] = [{"name": "x", "description": "does x", "source": "user"}, {"name": "y", "state": "off"}]
    assert reports.skills({"skills": found}) == "- **/x** (user): does x"


def test_what_a_compaction_keeps_is_known_by_its_uuid() -> None:
    boundary: JsonObject = {"compact_metadata": {"preserved_messages": {"all_uuids": ["u1", "u2", 3]}}}
    assert kept_messages(boundary) == {"u1", "u2"}
    assert kept_messages({}) == frozenset()
