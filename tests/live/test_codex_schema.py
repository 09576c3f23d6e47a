"""Everything the installed Codex can tell is translated, or left out for a reason that is written down."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import cast

import pytest

from acp_manifold.adapters.codex import server as servers
from acp_manifold.adapters.codex import session as sessions
from acp_manifold.adapters.codex.greeting import NEVER_USED
from acp_manifold.adapters.codex.program import find_program
from acp_manifold.translators.codex import items, turn
from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, obj

pytestmark = pytest.mark.live

UNHEARD = {
    "account/": "the person's account, asked for where it matters",
    "command/exec/outputDelta": "commands of hosts; we run none",
    "externalAgentConfig/": "imports are made elsewhere",
    "fs/changed": "we watch nothing through Codex",
    "fuzzyFileSearch/": "we search nothing through Codex",
    "mcpServer/event/stream/notification": "for hosts that show a server's own stream",
    "mcpServer/oauthLogin/completed": "logins to MCP servers are made elsewhere",
    "process/": "processes of hosts; we run none",
    "project/changed": "projects are no part of a session",
    "thread/attachment/updated": "no attachments of ours",
    "thread/prediction/updated": "predictions are not served",
    "thread/project/updated": "projects are no part of a session",
    "thread/queue/changed": "we keep the queue",
    "thread/search/": "we search nothing through Codex",
    "thread/section/changed": "sections are no part of a session",
    "thread/realtime/": "no realtime session is ever begun",
    "thread/reverted": "we revert nothing",
    "thread/unarchived": "the list tells",
    "windows": "not on this system",
}
"""Notifications that tell no session anything (or all that begin so), and why."""

REVIEWS = {"enteredReviewMode", "exitedReviewMode"}
MESSAGES = {"userMessage", "agentMessage", "reasoning", *REVIEWS, items.PLAN, items.COMPACTION}
"""Item types that are no tool calls and tell something."""


@pytest.fixture(scope="module")
def notifications(tmp_path_factory: pytest.TempPathFactory) -> JsonObject:
    """The schema of all notifications of the installed Codex."""
    program = find_program()
    assert program is not None
    folder = tmp_path_factory.mktemp("schema")
    command = [*program.command, "app-server", "generate-json-schema", "--experimental", "--out", str(folder)]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    return cast(JsonObject, json.loads((Path(folder) / "ServerNotification.json").read_text()))


def tags(variants: object, field: str) -> set[str]:
    """The values that tell the variants of a union apart."""
    fields = (obj(obj(variant, "properties"), field) for variant in as_objects(variants))
    return {str(name) for tag in fields for name in as_list(tag.get("enum"))}


def test_no_item_type_is_unknown(notifications: JsonObject) -> None:
    kinds = tags(obj(obj(notifications, "definitions"), "ThreadItem").get("oneOf"), "type")
    assert len(kinds) > 10
    assert kinds - items.TOOLS.keys() - items.SILENT.keys() - MESSAGES == set()


def test_no_notification_is_unknown(notifications: JsonObject) -> None:
    methods = tags(notifications.get("oneOf"), "method")
    assert len(methods) > 30
    known = {*turn.HANDLERS, *turn.DROPPED, *sessions.OF_THREAD, *servers.ANYWHERE, *NEVER_USED}
    left = [method for method in methods - known if not method.startswith(tuple(UNHEARD))]
    assert sorted(left) == []
