"""What we advertise is what we serve: each capability by its methods, and no method without one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from acp_manifold.translators.acp.requests import TITLE_METHODS
from acp_manifold.translators.narrow import JsonObject, as_list, is_object, obj
from tests.schema import schema

from .client import AcpError, Client, of_sessions
from .conftest import both_versions
from .lab import Lab

pytestmark = [pytest.mark.anyio, pytest.mark.live]

NOT_FOUND = -32601

ALWAYS = {"initialize", "session/new", "session/prompt", "session/set_config_option"}
"""What an agent has without a capability; the last by the options that a new session tells."""

BY_CAPABILITY: dict[str, tuple[str, ...]] = {
    "loadSession": ("session/load",),
    "sessionCapabilities.additionalDirectories": (),
    "sessionCapabilities.archive": ("session/archive", "session/unarchive"),
    "sessionCapabilities.close": ("session/close",),
    "sessionCapabilities.delete": ("session/delete",),
    "sessionCapabilities.fork": ("session/fork",),
    "sessionCapabilities.list": ("session/list",),
    "sessionCapabilities.resume": ("session/resume",),
    "sessionCapabilities.status": ("session/status",),
    "sessionCapabilities.title": ("session/set_title",),
    "sessionCapabilities.setTitle": ("session/setTitle",),
    "sessionCapabilities.systemPrompt.mode.override": (),
    "auth.logout": ("logout",),
    "auth.status": ("auth/status",),
    "providers": ("providers/list", "providers/set", "providers/disable"),
    "promptCapabilities.image": (),
    "promptCapabilities.audio": (),
    "promptCapabilities.embeddedContext": (),
    "mcpCapabilities.http": (),
    "mcpCapabilities.sse": (),
    "mcpCapabilities.acp": ("mcp/message",),
    "_meta.acp-manifold.background": (
        "_acp-manifold/background/list",
        "_acp-manifold/background/output",
        "_acp-manifold/background/stop",
        "_session/async_task/stop",
    ),
    "_meta.acp-manifold.record": ("_acp-manifold/record",),
}
"""Every capability there may be, and the methods that come with it."""

BY_META: dict[str, tuple[str, ...]] = {
    "steering.supported": ("_session/steering",),
    "sessionIndex": (),
    "sessionWorktrees": (),
    "sessionBatchGet": ("_session/batch_get",),
    "sessionArchive": ("_session/archive", "_session/unarchive"),
    "sessionRename": ("_session/rename",),
    "sessionListSubscribe": ("_session/list/subscribe", "_session/list/unsubscribe"),
}
"""The same for what stands in `_meta` of the whole answer, the vendor's extensions by their names."""

OTHERS = {
    "no/such",
    "session/no_such",
    "_session/goal",
    "_session/no_such",
    "_codex/hooks/list",
    "authentication/status",
    "session/rename",
    "fs/read_text_file",
    "terminal/create",
    "proxy/initialize",
}
"""Methods of other agents and of clients, and of nobody."""

BLOCKS: dict[str, JsonObject] = {
    "image": {"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo="},
    "audio": {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="},
    "embeddedContext": {"type": "resource", "resource": {"uri": "file:///x", "text": "x", "mimeType": "text/plain"}},
}

INDEX: JsonObject = {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionIndex"]}}}


def flat(capabilities: JsonObject, path: str = "") -> Iterator[str]:
    """The paths of all that is advertised: true, or an empty object."""
    for key, value in capabilities.items():
        if is_object(value) and value:
            yield from flat(value, f"{path}{key}.")
        elif value is True or value == {}:
            yield f"{path}{key}"


def advertised(greeting: JsonObject) -> set[str]:
    """The methods that a greeting promises; what it promises beyond the tables fails."""
    meta = obj(greeting, "_meta")
    extensions = [str(name) for name in as_list(obj(obj(meta, "jetbrains"), "air").get("capabilities"))]
    ours = [path for path in flat(meta) if not path.startswith("jetbrains.")]
    capabilities = list(flat(obj(greeting, "agentCapabilities")))
    found = {method for path in capabilities for method in BY_CAPABILITY[path]}
    found |= {method for name in (*ours, *extensions) for method in BY_META[name]}
    if as_list(greeting.get("authMethods")):
        found.add("authenticate")
    return found


async def is_served(agent: Client, method: str) -> bool:
    """Whether a call of it, with params that fit nothing, is refused for those and not for the method."""
    try:
        await agent.request(method, {"sessionId": "no-such", "methodId": "no-such"})
    except AcpError as error:
        assert error.code in (NOT_FOUND, -32602, -32002, -32000, -32600), f"{method}: {error}"
        return error.code != NOT_FOUND
    return True


@pytest.mark.parametrize("asks", [False, True])
async def test_each_method_is_served_if_and_only_if_it_is_advertised(lab_agent: Client, both: Lab, asks: bool) -> None:
    greeting = await lab_agent.initialize(**({"_meta": INDEX} if asks else {}))
    promised = advertised(greeting) | ALWAYS
    # Spellings that clients use without asking, and that harm nobody: of titles, and of options by older clients.
    accepted = {*TITLE_METHODS, "session/set_mode", "session/set_model"}
    everything = schema().agent_methods | OTHERS | promised | {m for ms in BY_CAPABILITY.values() for m in ms}
    everything |= {method for methods in BY_META.values() for method in methods}
    served = {method for method in everything - {"initialize", "logout"} if await is_served(lab_agent, method)}
    assert served - accepted == promised - accepted - {"initialize", "logout"}
    assert promised & accepted <= served


@both_versions
async def test_each_kind_of_content_is_taken_if_and_only_if_it_is_advertised(
    lab_agent: Client, both: Lab, version: int
) -> None:
    lab_agent.version = version
    greeting = await lab_agent.initialize()
    takes = obj(obj(greeting, "agentCapabilities"), "promptCapabilities") or obj(of_sessions(greeting), "prompt")
    session = await lab_agent.new_session(both.cwd, "codex")
    for kind, block in BLOCKS.items():
        prompt: list[JsonObject] = [{"type": "text", "text": "SAY[1]"}, block]
        turn = lab_agent.say(session, prompt)
        if takes.get(kind) in (True, {}):
            assert (await turn.answer())["stopReason"] == "end_turn", kind
        else:
            assert (await turn.error()).code == -32602, kind
    # In v2 what is not taken is not named.
    assert takes.keys() == BLOCKS.keys() - ({"audio"} if version == 2 else set[str]())
