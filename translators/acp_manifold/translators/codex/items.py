"""Items of a Codex thread to updates: one function per item type, for its start and for its end.

The same functions serve live turns (`item/started`, `item/completed`) and history
(`thread/items/list`), so what is replayed looks like what was streamed. Item types and their
fields: `ThreadItem` of codex-cli 0.163.0 and 0.171.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from acp_manifold.translators.attached import restored
from acp_manifold.translators.narrow import JsonObject, as_int, as_list, as_object, as_objects, as_str, flag, obj, text
from acp_manifold.translators.updates import (
    Audio,
    BlobResource,
    Compaction,
    Content,
    Image,
    Location,
    MessageChunk,
    PlanChunk,
    PlanText,
    ResourceLink,
    Role,
    Text,
    TextResource,
    ToolCall,
    ToolCallUpdate,
    ToolContent,
    ToolKind,
    ToolOutput,
    ToolStatus,
    Unknown,
    Update,
)

from . import commands, diffs
from .threads import typed

Updates: TypeAlias = tuple[Update | Unknown, ...]
Opener: TypeAlias = Callable[[JsonObject], ToolCall]
Closer: TypeAlias = Callable[[JsonObject], ToolCallUpdate]

STATUSES: dict[str, ToolStatus] = {
    "inProgress": "in_progress",
    "completed": "completed",
    "failed": "failed",
    "declined": "failed",
    "interrupted": "cancelled",
}
"""Item status -> canonical status; a declined command counts as failed, since it never ran."""


def status_of(item: JsonObject, default: ToolStatus = "completed") -> ToolStatus:
    """The canonical status of a tool item; `default` for one without."""
    return STATUSES.get(text(item, "status"), default)


def _command_started(item: JsonObject) -> ToolCall:
    actions, cwd = item.get("commandActions"), text(item, "cwd")
    return ToolCall(
        id=text(item, "id"),
        title=commands.unwrap(text(item, "command")) or "Run a command",
        kind=commands.kind_of(actions),
        status="in_progress",
        locations=commands.locations_of(actions, cwd),
        raw_input=commands.raw_input(item),
        name="shell",
        runs_in=cwd or "/",
    )


def _command_completed(item: JsonObject) -> ToolCallUpdate:
    code = as_int(item.get("exitCode"))
    result: JsonObject = {"exitCode": code, "durationMs": as_int(item.get("durationMs"))}
    if text(item, "status") == "declined":
        result = {"declined": True}
    return ToolCallUpdate(id=text(item, "id"), status=status_of(item), raw_output=result, exit_code=code)


def _file_change_started(item: JsonObject) -> ToolCall:
    changes = diffs.changes_of(item)
    title, kind = diffs.headline(changes)
    return ToolCall(
        id=text(item, "id"),
        title=title,
        kind=kind,
        status="in_progress",
        content=tuple(diff for change in changes for diff in diffs.diffs_of(change)),
        locations=tuple(place for change in changes for place in diffs.locations_of(change)),
        name="apply_patch",
    )


def _file_change_completed(item: JsonObject) -> ToolCallUpdate:
    begun = _file_change_started(item)
    return ToolCallUpdate(
        id=begun.id,
        title=begun.title,
        kind=begun.kind,
        status=status_of(item),
        content=begun.content,
        locations=begun.locations,
    )


def _mcp_started(item: JsonObject) -> ToolCall:
    server, tool = text(item, "server"), text(item, "tool")
    return ToolCall(
        id=text(item, "id"),
        title=f"{server}: {tool}",
        kind="read" if flag(item, "readOnlyHint") else "other",
        status="in_progress",
        raw_input=obj(item, "arguments") or None,
        name=f"mcp.{server}.{tool}",
    )


def _mcp_completed(item: JsonObject) -> ToolCallUpdate:
    error = as_str(obj(item, "error").get("message"))
    result = obj(item, "result")
    content = tuple(block for raw in as_objects(result.get("content")) if (block := _mcp_block(raw)) is not None)
    return ToolCallUpdate(
        id=text(item, "id"),
        status=status_of(item),
        content=(Text(error),) if error else content,
        raw_output=result or ({"error": error} if error else None),
    )


def _mcp_block(raw: JsonObject) -> ToolContent | None:
    kind = text(raw, "type")
    if kind == "text":
        return Text(text(raw, "text"))
    if kind == "image":
        return Image(text(raw, "data"), text(raw, "mimeType", "image/png"))
    if kind == "audio":
        return Audio(text(raw, "data"), text(raw, "mimeType", "audio/wav"))
    if kind == "resource_link":
        return ResourceLink(text(raw, "uri"), text(raw, "name"), as_str(raw.get("mimeType")))
    if kind == "resource":
        return _mcp_resource(obj(raw, "resource"))
    return None


def _mcp_resource(raw: JsonObject) -> ToolContent | None:
    uri, mime_type = text(raw, "uri"), as_str(raw.get("mimeType"))
    if (said := as_str(raw.get("text"))) is not None:
        return TextResource(uri, said, mime_type)
    return BlobResource(uri, blob, mime_type) if (blob := text(raw, "blob")) else None


def _dynamic_started(item: JsonObject) -> ToolCall:
    space, tool = as_str(item.get("namespace")), text(item, "tool")
    name = f"{space}.{tool}" if space else tool
    return ToolCall(text(item, "id"), name, status="in_progress", raw_input=obj(item, "arguments") or None, name=name)


def _dynamic_completed(item: JsonObject) -> ToolCallUpdate:
    texts = [text(raw, "text") for raw in as_objects(item.get("contentItems")) if text(raw, "type") == "inputText"]
    return ToolCallUpdate(text(item, "id"), status=status_of(item), content=tuple(Text(said) for said in texts))


def _web_search_title(item: JsonObject) -> tuple[str, ToolKind]:
    action = obj(item, "action")
    url = as_str(action.get("url"))
    if url:
        return f"Open {url}", "fetch"
    query = text(item, "query") or text(action, "query")
    return (f"Search the web: {query}" if query else "Search the web"), "search"


def _web_search_started(item: JsonObject) -> ToolCall:
    title, kind = _web_search_title(item)
    return ToolCall(text(item, "id"), title, kind, "in_progress", name="web_search")


def _web_search_completed(item: JsonObject) -> ToolCallUpdate:
    title, kind = _web_search_title(item)
    found = ((text(page, "url"), text(page, "title")) for page in as_objects(item.get("results")))
    pages = tuple(ResourceLink(url, name or url) for url, name in found if url)
    return ToolCallUpdate(text(item, "id"), title=title, kind=kind, status="completed", content=pages or None)


def _image_view_started(item: JsonObject) -> ToolCall:
    path = text(item, "path")
    name = path.rpartition("/")[2]
    return ToolCall(
        text(item, "id"),
        f"View {name}",
        "read",
        "in_progress",
        content=(ResourceLink(f"file://{path}", name),),
        locations=(Location(path),),
        name="view_image",
    )


def _image_made_started(item: JsonObject) -> ToolCall:
    return ToolCall(text(item, "id"), "Generate an image", "other", "in_progress", name="image_generation")


def _image_made_completed(item: JsonObject) -> ToolCallUpdate:
    data, path = text(item, "result"), as_str(item.get("savedPath"))
    picture = (Image(data, "image/png", f"file://{path}" if path else None),) if data else ()
    failure, drawn = text(obj(item, "failure"), "message"), text(item, "revisedPrompt")
    words = tuple(Text(said) for said in (drawn, failure) if said)
    return ToolCallUpdate(text(item, "id"), status=status_of(item), content=(*words, *picture))


_COLLABORATION: dict[str, str] = {
    "spawnAgent": "Start a sub-agent",
    "sendInput": "Send input to a sub-agent",
    "resumeAgent": "Resume a sub-agent",
    "wait": "Wait for sub-agents",
    "closeAgent": "Close a sub-agent",
    "sendMessage": "Send a message to a sub-agent",
    "followupTask": "Give a sub-agent another task",
    "interruptAgent": "Interrupt a sub-agent",
    "listAgents": "List sub-agents",
}


def _collaboration_started(item: JsonObject) -> ToolCall:
    tool, prompt = text(item, "tool"), as_str(item.get("prompt"))
    return ToolCall(
        text(item, "id"),
        _COLLABORATION.get(tool, tool),
        "other",
        "in_progress",
        content=(Text(prompt),) if prompt else (),
        name=tool,
    )


def _collaboration_completed(item: JsonObject) -> ToolCallUpdate:
    """The end of a call to sub-agents, with the last words of each."""
    states = obj(item, "agentsStates")
    words = (text(as_object(state), "message") for state in states.values())
    return ToolCallUpdate(
        text(item, "id"), status=status_of(item), content=tuple(map(Text, filter(None, words))) or None
    )


def _sub_agent_started(item: JsonObject) -> ToolCall:
    title = f"Sub-agent {text(item, 'kind')}: {text(item, 'agentPath')}"
    return ToolCall(text(item, "id"), title, "other", "in_progress", name="sub_agent")


def _completed(item: JsonObject) -> ToolCallUpdate:
    return ToolCallUpdate(text(item, "id"), status=status_of(item))


TOOLS: dict[str, tuple[Opener, Closer]] = {
    "commandExecution": (_command_started, _command_completed),
    "fileChange": (_file_change_started, _file_change_completed),
    "mcpToolCall": (_mcp_started, _mcp_completed),
    "dynamicToolCall": (_dynamic_started, _dynamic_completed),
    "webSearch": (_web_search_started, _web_search_completed),
    "imageView": (_image_view_started, _completed),
    "imageGeneration": (_image_made_started, _image_made_completed),
    "collabAgentToolCall": (_collaboration_started, _collaboration_completed),
    "subAgentActivity": (_sub_agent_started, _completed),
}
"""Item type -> what tells its start and its end; these items are tool calls to a client."""

OF_AGENTS = frozenset({"collabAgentToolCall", "subAgentActivity"})
"""The item types that speak of sub-agents."""

SILENT = {
    "hookPrompt": "what a hook adds for the model",
    "functionCallOutput": "what a tool without an item of its own gave the model",
    "sleep": "the model waits",
}
"""Item types that tell a person nothing, and why."""

COMPACTION = "contextCompaction"
"""The item type of a compaction, which is an update of its own."""

PLAN = "plan"
"""The item type of a plan that is proposed in words."""


def started(item: JsonObject) -> ToolCall | None:
    """The tool call an item begins; None for items that are none."""
    tool = TOOLS.get(text(item, "type"))
    return tool[0](item) if tool else None


def completed(item: JsonObject) -> ToolCallUpdate | None:
    """The end of a tool call; None for items that are none."""
    tool = TOOLS.get(text(item, "type"))
    return tool[1](item) if tool else None


def whole_output(item: JsonObject) -> ToolOutput | None:
    """All that a command printed, for one whose output was not streamed."""
    printed = as_str(item.get("aggregatedOutput"))
    return ToolOutput(text(item, "id"), printed) if printed else None


def lost_beginning(item: JsonObject, streamed: int, last: str) -> Text | None:
    """What a command printed before Codex streamed its output, for a client to show before the rest.

    What is printed in the first moments is often in no `outputDelta` (codex-cli 0.163.0 and 0.171.0); it is
    in the whole output at the end. That is cut in its middle beyond 1 MiB, hence the look at its end.

    Args:
        item: The completed item.
        streamed: Characters that were streamed.
        last: The last piece of them.
    """
    printed = text(item, "aggregatedOutput")
    if not streamed or streamed >= len(printed) or not printed.endswith(last):
        return None
    lost = printed[: len(printed) - streamed]
    fence = "```"
    while fence in lost:
        fence += "`"
    return Text(f"{fence}console\n{lost}{'' if lost.endswith(chr(10)) else chr(10)}{fence}")


def said_by(item: JsonObject) -> tuple[Role, str] | None:
    """Role and whole text of an item that is something said; None for the others."""
    kind = text(item, "type")
    if kind == "agentMessage":
        return "agent", text(item, "text")
    if kind == "reasoning":
        parts = as_list(item.get("summary")) or as_list(item.get("content"))
        return "thought", "\n\n".join(part for part in parts if isinstance(part, str))
    if kind == "exitedReviewMode":
        return "agent", text(item, "review")
    if kind == "enteredReviewMode":
        return "thought", f"Review: {text(item, 'review').partition(chr(10))[0]}"
    return None


def is_review_again(item: JsonObject, review: str | None) -> bool:
    """Whether an item is the message in which the agent repeats the review it has just given (codex-cli 0.163.0)."""
    return bool(review) and text(item, "type") == "agentMessage" and text(item, "text") == review


def review_in(item: JsonObject) -> str | None:
    """The text of a review, in the item that ends it."""
    return text(item, "review") if text(item, "type") == "exitedReviewMode" else None


def user_content(item: JsonObject) -> tuple[Content, ...]:
    """What a person sent in a `userMessage` item."""
    raws = as_objects(item.get("content"))
    blocks = [block for raw in raws if (block := _input_block(raw)) is not None]
    if raws and raws[0].get("type") == "skill" and len(blocks) > 1 and isinstance(said := blocks[1], Text):
        # As it is typed here; the terminal program has the skill behind the words, in which it is named.
        command = f"/{text(raws[0], 'name')}"
        blocks[:2] = [said if said.text == command else Text(f"{command} {said.text}")]
    if all(isinstance(block, Text) and not block.text.strip() for block in blocks):
        return ()
    return tuple(restored(blocks))


def _input_block(raw: JsonObject) -> Content | None:
    kind = text(raw, "type")
    if kind == "text":
        said = text(raw, "text")
        shown = said if said.isspace() else typed(said)
        return Text(shown) if shown else None
    if kind == "image":
        return _picture(text(raw, "url"))
    if kind in ("localImage", "mention", "skill"):
        path = text(raw, "path")
        return ResourceLink(f"file://{path}", text(raw, "name") or path.rpartition("/")[2])
    return None


def _picture(url: str) -> Content | None:
    head, comma, data = url.partition(";base64,")
    if comma and head.startswith("data:"):
        return Image(data, head.removeprefix("data:"))
    return ResourceLink(url, "image") if url else None


def replayed(item: JsonObject) -> Updates:
    """All updates of one item of the history."""
    kind = text(item, "type")
    if kind == "userMessage":
        return tuple(MessageChunk("user", block, text(item, "id")) for block in user_content(item))
    tool = TOOLS.get(kind)
    if tool is not None:
        output = whole_output(item) if kind == "commandExecution" else None
        return (tool[0](item), *((output,) if output else ()), tool[1](item))
    if kind == COMPACTION:
        return Compaction(text(item, "id"), "in_progress"), Compaction(text(item, "id"), "completed")
    if kind == PLAN:
        return (PlanChunk(text(item, "id"), text(item, "text")), PlanText(text(item, "id"), text(item, "text")))
    said = said_by(item)
    if said is not None:
        return (MessageChunk(said[0], Text(said[1]), text(item, "id")),) if said[1] else ()
    return () if kind in SILENT else (Unknown(item),)
