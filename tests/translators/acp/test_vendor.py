"""What clients of another agent ask for in `_meta`."""

from __future__ import annotations

import pytest

from acp_manifold.translators.acp.requests import SessionSetup, session_setup
from acp_manifold.translators.instructions import SystemPrompt
from acp_manifold.translators.mcp import HttpServer, StdioServer
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.wishes import Wishes

PLAIN = SessionSetup("/w", (), (), None, None)


def setup(options: object = None, **more: object) -> SessionSetup:
    return session_setup({"cwd": "/w", "mcpServers": [], "_meta": {"claudeCode": {"options": options}, **more}})


def test_the_model_to_begin_with_and_fewer_tools_are_wishes() -> None:
    options = {"model": "opus", "effort": "high", "agent": " ", "tools": ["Read"], "disallowedTools": ["Bash(rm:*)", 5]}
    assert setup(options).wishes == Wishes({"model": "opus", "effort": "high"}, ("Read",), ("Bash(rm:*)",))
    assert setup(None, disableBuiltInTools=True).wishes == Wishes(only_tools=())
    assert setup({"tools": ["Read"]}, disableBuiltInTools=True).wishes == Wishes(only_tools=("Read",))
    assert setup({"tools": {"type": "preset", "preset": "claude_code"}}).wishes is None


def test_servers_stand_behind_those_of_the_protocol_which_have_their_names() -> None:
    servers = {
        "one": {"command": "theirs", "args": ["-x"], "env": {"A": "b", "C": 5}},
        "two": {"type": "sse", "url": "http://h/x", "headers": {"K": "v"}},
        "three": {"type": "sdk", "name": "three"},
        " ": {"command": "x"},
        "four": 4,
    }
    params: JsonObject = {
        "cwd": "/w",
        "mcpServers": [{"name": "one", "command": "ours"}],
        "_meta": {"claudeCode": {"options": {"mcpServers": servers}}},
    }
    two = HttpServer("two", "http://h/x", {"K": "v"}, sse=True)
    assert session_setup(params).mcp_servers == (StdioServer("one", "ours"), two)
    (one, _) = session_setup({**params, "mcpServers": []}).mcp_servers
    assert one == StdioServer("one", "theirs", ("-x",), {"A": "b"})


def test_directories_are_absolute_and_named_once() -> None:
    asked = setup({"additionalDirectories": ["/a", "b", "/c\0"]}, additionalRoots=["/a", "/d", None])
    assert asked.more_directories == ("/a", "/d") and asked.additional_directories == ()


@pytest.mark.parametrize(
    ("options", "beside", "prompt"),
    [
        ("instead", None, SystemPrompt("override", "instead")),
        ({"type": "preset", "append": "behind"}, None, SystemPrompt("append", "behind")),
        (None, "instead", SystemPrompt("override", "instead")),
        (None, {"append": "behind"}, SystemPrompt("append", "behind")),
        ("one", "other", SystemPrompt("override", "one")),
        (" ", {"append": " "}, None),
        ({"type": "preset"}, ["x"], None),
    ],
)
def test_instructions_come_behind_those_of_the_cli_or_in_their_place(
    options: object, beside: object, prompt: SystemPrompt | None
) -> None:
    assert setup({"systemPrompt": options}, systemPrompt=beside).system_prompt == prompt


def test_what_the_protocol_and_our_own_key_say_counts_more() -> None:
    params: JsonObject = {
        "cwd": "/w",
        "mcpServers": [],
        "systemPrompt": {"mode": "append", "content": [{"type": "text", "text": "said"}]},
        "_meta": {
            "systemPrompt": "x",
            "acp-manifold": {"title": "Ours"},
            "claudeCode": {"options": {"title": "Theirs", "systemPrompt": "y"}},
        },
    }
    found = session_setup(params)
    assert (found.system_prompt, found.title) == (SystemPrompt("append", "said"), "Ours")


def test_custom_instructions_come_behind_whatever_else_is_said() -> None:
    air = {"air": {"version": 1, "customInstructions": " be brief "}}
    assert setup(jetbrains=air).system_prompt == SystemPrompt("append", "be brief")
    assert setup(jetbrains=air, systemPrompt="x").system_prompt == SystemPrompt("override", "x\n\nbe brief")
    params: JsonObject = {"cwd": "/w", "mcpServers": [], "_meta": {"jetbrains": {"air": {"customInstructions": 5}}}}
    assert session_setup(params) == PLAIN


@pytest.mark.parametrize(
    "options",
    [
        {"permissionMode": "bypassPermissions", "allowDangerouslySkipPermissions": True, "allowedTools": ["Bash"]},
        {"env": {"X": "1"}, "settings": {"permissions": {"defaultMode": "acceptEdits"}}, "extraArgs": {"x": None}},
        {"hooks": {"PreToolUse": []}, "plugins": [{"type": "local", "path": "/p"}], "sandbox": {"enabled": False}},
        {"model": 5, "tools": "Bash", "disallowedTools": "Bash", "mcpServers": [], "additionalDirectories": "/a"},
        {"systemPrompt": 7, "title": 7},
        "x",
        [5],
    ],
)
def test_what_gives_permissions_or_makes_no_sense_is_passed_over(options: object) -> None:
    assert setup(options) == PLAIN
