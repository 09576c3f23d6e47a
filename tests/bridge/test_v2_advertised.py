"""What a v2 client is told that we serve is what we serve, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from acp_manifold.bridge.link_v2 import LinkV2
from acp_manifold.translators.acp.requests import TITLE_METHODS
from acp_manifold.translators.narrow import JsonObject, as_list, is_object, obj
from tests.schema import schema

from .editor import Refused, editors
from .scripted import ScriptedBackend

pytestmark = pytest.mark.anyio

BASELINE = {"initialize", "session/set_config_option", "tool_call/cancel", "terminal/cancel"} | {
    f"session/{name}" for name in ("new", "list", "resume", "close", "prompt")
}
"""What comes with `capabilities.session`, with the options and the calls that a session tells."""

BY_CAPABILITY: dict[str, tuple[str, ...]] = {
    "session.prompt.image": (),
    "session.prompt.embeddedContext": (),
    "session.mcp.stdio": (),
    "session.mcp.http": (),
    "session.delete": ("session/delete",),
    "session.additionalDirectories": (),
    "session.systemPrompt.mode.override": (),
    "session.fork": ("session/fork",),
    "session.archive": ("session/archive", "session/unarchive"),
    "session.status": ("session/status",),
    "session.title": ("session/set_title",),
    "session.setTitle": ("session/setTitle",),
    "auth.status": ("auth/status",),
    "providers": ("providers/list", "providers/set", "providers/disable"),
    "_meta.acp-manifold.background": (
        "_acp-manifold/background/list",
        "_acp-manifold/background/output",
        "_acp-manifold/background/stop",
        "_session/async_task/stop",
    ),
    "_meta.acp-manifold.record": ("_acp-manifold/record",),
}
"""Every capability that is advertised, and the methods that come with it."""

BY_META: dict[str, tuple[str, ...]] = {
    "sessionIndex": (),
    "sessionWorktrees": (),
    "sessionBatchGet": ("_session/batch_get",),
    "sessionArchive": ("_session/archive", "_session/unarchive"),
    "sessionRename": ("_session/rename",),
    "sessionListSubscribe": ("_session/list/subscribe", "_session/list/unsubscribe"),
}


def flat(capabilities: JsonObject, path: str = "") -> Iterator[str]:
    for key, value in capabilities.items():
        if is_object(value) and value:
            yield from flat(value, f"{path}{key}.")
        else:
            yield f"{path}{key}"


@pytest.mark.parametrize("asks", [False, True])
async def test_each_method_of_v2_is_served_if_and_only_if_it_is_advertised(asks: bool) -> None:
    can: JsonObject = (
        {"_meta": {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionIndex"]}}}} if asks else {}
    )
    async with editors(ScriptedBackend(), versions=(2,), can=can) as (editor,):
        greeting = next(obj(line, "result") for line in editor.lines if "result" in line)
        extensions = as_list(obj(obj(obj(greeting, "_meta"), "jetbrains"), "air").get("capabilities"))
        promised = BASELINE | {m for path in flat(obj(greeting, "capabilities")) for m in BY_CAPABILITY[path]}
        promised |= {m for name in extensions for m in BY_META[str(name)]}
        assert greeting["authMethods"] and obj(obj(greeting, "_meta"), "steering")["supported"] is True
        promised |= {"auth/login", "auth/logout", "_session/steering"}
        everything = {*schema(1).agent_methods, *schema(2).agent_methods, *LinkV2.methods, *promised}
        served: set[str] = set()
        for method in everything:
            try:
                await editor.request(method, sessionId="no-such", methodId="no-such", protocolVersion=2)
            except Refused as refused:
                if refused.code == -32601:
                    continue
            served.add(method)
        # Spellings of titles that clients use without asking harm nobody.
        assert served - {*TITLE_METHODS} == promised - {*TITLE_METHODS}
        assert served >= {*TITLE_METHODS}
