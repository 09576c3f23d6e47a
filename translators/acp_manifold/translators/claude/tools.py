"""Claude Code's tools as a client shows them: title, kind, places, changes, and what came out.

`describe` looks a tool up by name in a table of small functions; `outcome` does the same for
results. A tool that is in no table is shown under its own name. Inputs are those of Claude Code
2.1.332; a field that is missing or of another type is left out, never an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from acp_manifold.translators.narrow import JsonObject, as_int, as_list, as_object, as_objects, as_str, flag, obj, text
from acp_manifold.translators.updates import (
    Diff,
    Image,
    Location,
    ResourceLink,
    Text,
    ToolCall,
    ToolCallUpdate,
    ToolContent,
    ToolEnd,
    ToolKind,
    ToolOutput,
    Update,
)
from acp_manifold.translators.values import NamedTuple

AGENT_TOOLS = frozenset({"Agent", "Task"})
"""The tools that set a sub-agent to work."""

CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
"""Types of content blocks that call a tool."""

_WHOLE_FILE_LIMIT = 200_000
"""Characters up to which a change is shown as the whole file before and after; beyond, only the changed piece."""

_ERROR_TAG = re.compile(r"\A<tool_use_error>(.*)</tool_use_error>\Z", re.DOTALL)
_EXIT = re.compile(r"\A(?:Error: )?Exit code (\d{1,3})\b")
_FENCE = re.compile(r"^`{3,}", re.MULTILINE)


class View(NamedTuple):
    """How a call is shown once its input is known."""

    title: str
    kind: ToolKind
    content: tuple[ToolContent, ...] = ()
    locations: tuple[Location, ...] = ()


def begun(call_id: str, name: str, cwd: str) -> ToolCall:
    """The call before its input is known."""
    return ToolCall(
        call_id, _plain_name(name), _KINDS.get(name, "other"), name=name, runs_in=cwd if name in _COMMANDS else None
    )


def call(call_id: str, name: str, tool_input: JsonObject, cwd: str) -> ToolCall:
    """The whole call in one piece, for calls that were not streamed."""
    view = describe(name, tool_input, cwd)
    return ToolCall(
        call_id,
        view.title,
        view.kind,
        "in_progress",
        view.content,
        view.locations,
        tool_input,
        name,
        runs_in=cwd if name in _COMMANDS else None,
    )


def known(call_id: str, name: str, tool_input: JsonObject, cwd: str) -> ToolCallUpdate:
    """What is added to a call that was `begun` when its input has come."""
    view = describe(name, tool_input, cwd)
    return ToolCallUpdate(
        call_id, view.title, view.kind, "in_progress", view.content or None, view.locations or None, tool_input
    )


def describe(name: str, tool_input: JsonObject, cwd: str) -> View:
    """How a call of the tool `name` is shown; relative paths are taken from `cwd`."""
    viewer = _VIEWERS.get(name)
    return viewer(tool_input, cwd) if viewer is not None else View(_plain_name(name), _KINDS.get(name, "other"))


def outcome(
    call_id: str, name: str, block: JsonObject, structured: object, cwd: str, *, stopped: bool = False
) -> list[Update]:
    """The updates that end a call.

    Args:
        call_id: The call's id.
        name: The tool's name; empty when unknown.
        block: The `tool_result` block.
        structured: The tool's own result (`tool_use_result`), if the frame had one.
        cwd: Where relative paths start.
        stopped: Whether the turn was stopped, if it is an error.
    """
    status = end_of(block, stopped=stopped)
    failed = status != "completed"
    content = _result_content(block)
    if name in _COMMANDS:
        output = "".join(item.text for item in content if isinstance(item, Text))
        pictures = tuple(item for item in content if isinstance(item, Image))
        updates: list[Update] = [ToolOutput(call_id, output)] if output else []
        code = _exit_code(output) if failed else 0
        return [*updates, ToolCallUpdate(call_id, status=status, content=pictures or None, exit_code=code)]
    if failed:
        return [ToolCallUpdate(call_id, status=status, content=content)]
    if name in _EDITORS:
        changed = _changed_file(structured, cwd)
        return [ToolCallUpdate(call_id, status="completed", content=(changed,) if changed is not None else None)]
    if name == "WebSearch":
        content = _searched(structured) or content
    if name in _VERBATIM:
        content = tuple(Text(fenced(item.text)) if isinstance(item, Text) else item for item in content)
    return [ToolCallUpdate(call_id, status="completed", content=content or None)]


def end_of(block: JsonObject, *, stopped: bool) -> ToolEnd:
    """How a call has ended, by its `tool_result` block; `stopped`: whether the turn was, if it is an error."""
    return "completed" if not flag(block, "is_error") else "cancelled" if stopped else "failed"


def served(call_id: str, block: JsonObject) -> ToolCallUpdate:
    """The end of a call that ran where the model does: its `..._tool_result` block, of whatever tool."""
    content = block.get("content")
    error = text(as_object(content), "error_code")
    if error or flag(block, "is_error"):
        return ToolCallUpdate(call_id, status="failed", content=(Text(error),) if error else _result_content(block))
    found = _pages(as_objects(content)) or _result_content(block)
    return ToolCallUpdate(call_id, status="completed", content=found or None)


def _pages(found: list[JsonObject]) -> tuple[ToolContent, ...]:
    """What a search on the web has found."""
    links = ((text(page, "url"), text(page, "title")) for page in found)
    return tuple(ResourceLink(url, title or url) for url, title in links if url)


def _searched(structured: object) -> tuple[ToolContent, ...]:
    """The findings in the structured result of `WebSearch`: lists of pages, and what the model says of them."""
    content: list[ToolContent] = []
    for part in as_list(as_object(structured).get("results")):
        if isinstance(part, str):
            content.append(Text(part))
        content += _pages(as_objects(as_object(part).get("content")))
    return tuple(content)


def _exit_code(printed: str) -> int | None:
    match = _EXIT.match(printed)
    return int(match.group(1)) if match is not None else None


def fenced(body: str) -> str:
    """Text as a Markdown code block, behind a fence that is longer than any in it."""
    longest = max((len(match) for match in _FENCE.findall(body)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{body}{'' if body.endswith(chr(10)) else chr(10)}{fence}"


def _result_content(block: JsonObject) -> tuple[ToolContent, ...]:
    content = block.get("content")
    if isinstance(content, str):
        shown = _without_tag(content)
        return (Text(shown),) if shown else ()
    out: list[ToolContent] = []
    for item in as_objects(content):
        if item.get("type") == "text":
            out.append(Text(_without_tag(text(item, "text"))))
        elif item.get("type") == "image":
            source = obj(item, "source")
            out.append(Image(text(source, "data"), text(source, "media_type", "image/png")))
    return tuple(out)


def _without_tag(body: str) -> str:
    match = _ERROR_TAG.match(body)
    return match.group(1) if match is not None else body


def _changed_file(structured: object, cwd: str) -> Diff | None:
    """The file before and after an edit, from the tool's structured result."""
    result = as_object(structured)
    path = as_str(result.get("filePath")) or as_str(result.get("notebook_path"))
    if path is None:
        return None
    path = _absolute(path, cwd)
    before = as_str(result.get("originalFile"))
    if (whole := as_str(result.get("content"))) is not None:
        return Diff(path, before, whole)
    if (updated := as_str(result.get("updated_file"))) is not None:
        return Diff(path, as_str(result.get("original_file")), updated)
    old, new = as_str(result.get("oldString")), as_str(result.get("newString"))
    if old is None or new is None:
        return None
    everywhere = flag(result, "replaceAll")
    if not old or before is None or old not in before:
        return Diff(path, old or None, new)
    if len(before) <= _WHOLE_FILE_LIMIT:
        return Diff(path, before, before.replace(old, new, -1 if everywhere else 1))
    return Diff(path, old, new) if everywhere else _passage(path, before, old, new)


def _passage(path: str, before: str, old: str, new: str) -> Diff:
    """The lines of a file in which an edit was made, and those that are there now."""
    at = before.index(old)
    first = before.rfind("\n", 0, at) + 1
    end = before.find("\n", at + len(old) - 1) + 1 or len(before)
    if end - first > _WHOLE_FILE_LIMIT:
        return Diff(path, old, new)
    was = before[first:end]
    return Diff(path, was, was.replace(old, new, 1), line=before.count("\n", 0, first) + 1)


def _absolute(path: str, cwd: str) -> str:
    return str(PurePosixPath(cwd) / path)


def _short(path: str, cwd: str) -> str:
    """The path as a person in `cwd` would write it."""
    absolute, base = PurePosixPath(cwd) / path, PurePosixPath(cwd)
    return str(absolute.relative_to(base)) if absolute.is_relative_to(base) and absolute != base else str(absolute)


def _plain_name(name: str) -> str:
    if name.startswith("mcp__"):
        server, _, tool = name.removeprefix("mcp__").partition("__")
        return f"{server}: {tool}" if tool else server
    return name or "Tool"


def _bash(tool_input: JsonObject, cwd: str) -> View:
    command = text(tool_input, "command").strip()
    description = text(tool_input, "description")
    return View(command or "Bash", "execute", (Text(description),) if description and command else ())


def _read(tool_input: JsonObject, cwd: str) -> View:
    path = text(tool_input, "file_path")
    if not path:
        return View("Read", "read")
    first, count = as_int(tool_input.get("offset")), as_int(tool_input.get("limit"))
    lines = ""
    if count is not None:
        lines = f" ({first or 1} - {(first or 1) + count - 1})"
    elif first is not None:
        lines = f" (from line {first})"
    return View(f"Read {_short(path, cwd)}{lines}", "read", (), (Location(_absolute(path, cwd), first or 1),))


def _edit(tool_input: JsonObject, cwd: str) -> View:
    path = text(tool_input, "file_path")
    if not path:
        return View("Edit", "edit")
    absolute = _absolute(path, cwd)
    edits = as_objects(tool_input.get("edits")) or [tool_input]
    changes = [(as_str(edit.get("old_string")), as_str(edit.get("new_string"))) for edit in edits]
    diffs = tuple(Diff(absolute, old or None, new) for old, new in changes if new is not None)
    return View(f"Edit {_short(path, cwd)}", "edit", diffs, (Location(absolute),))


def _write(tool_input: JsonObject, cwd: str) -> View:
    path = text(tool_input, "file_path")
    if not path:
        return View("Write", "edit")
    absolute = _absolute(path, cwd)
    content = as_str(tool_input.get("content"))
    diffs = (Diff(absolute, None, content),) if content is not None else ()
    return View(f"Write {_short(path, cwd)}", "edit", diffs, (Location(absolute),))


def _notebook_edit(tool_input: JsonObject, cwd: str) -> View:
    path = text(tool_input, "notebook_path")
    if not path:
        return View("NotebookEdit", "edit")
    absolute = _absolute(path, cwd)
    source = as_str(tool_input.get("new_source"))
    diffs = (Diff(absolute, None, source),) if source is not None else ()
    return View(f"Edit {_short(path, cwd)}", "edit", diffs, (Location(absolute),))


def _grep(tool_input: JsonObject, cwd: str) -> View:
    pattern, path = text(tool_input, "pattern"), text(tool_input, "path")
    title = f"Search for {pattern}" if pattern else "Search"
    if path:
        title += f" in {_short(path, cwd)}"
    return View(title, "search", (), (Location(_absolute(path, cwd)),) if path else ())


def _glob(tool_input: JsonObject, cwd: str) -> View:
    pattern, path = text(tool_input, "pattern"), text(tool_input, "path")
    title = f"Find {pattern}" if pattern else "Find files"
    if path:
        title += f" in {_short(path, cwd)}"
    return View(title, "search", (), (Location(_absolute(path, cwd)),) if path else ())


def _fetch(tool_input: JsonObject, cwd: str) -> View:
    url, prompt = text(tool_input, "url"), text(tool_input, "prompt")
    return View(f"Fetch {url}" if url else "Fetch", "fetch", (Text(prompt),) if prompt else ())


def _web_search(tool_input: JsonObject, cwd: str) -> View:
    query = text(tool_input, "query")
    return View(f"Search the web for {query}" if query else "Search the web", "fetch")


def _task(tool_input: JsonObject, cwd: str) -> View:
    prompt = text(tool_input, "prompt")
    return View(text(tool_input, "description") or "Task", "think", (Text(prompt),) if prompt else ())


def _exit_plan(tool_input: JsonObject, cwd: str) -> View:
    body = text(tool_input, "plan")
    return View("Ready to code?", "switch_mode", (Text(body),) if body else ())


def _ask(tool_input: JsonObject, cwd: str) -> View:
    asked = [text(question, "question") for question in as_objects(tool_input.get("questions"))]
    return View("; ".join(question for question in asked if question) or "Question", "other")


def _skill(tool_input: JsonObject, cwd: str) -> View:
    skill = text(tool_input, "skill") or text(tool_input, "command")
    return View(f"Skill {skill}" if skill else "Skill", "other")


_VIEWERS: dict[str, Callable[[JsonObject, str], View]] = {
    "Agent": _task,
    "AskUserQuestion": _ask,
    "Bash": _bash,
    "Edit": _edit,
    "ExitPlanMode": _exit_plan,
    "Glob": _glob,
    "Grep": _grep,
    "MultiEdit": _edit,
    "NotebookEdit": _notebook_edit,
    "Read": _read,
    "Skill": _skill,
    "Task": _task,
    "WebFetch": _fetch,
    "WebSearch": _web_search,
    "web_fetch": _fetch,
    "web_search": _web_search,
    "Write": _write,
}

_KINDS: dict[str, ToolKind] = {
    "Agent": "think",
    "Bash": "execute",
    "BashOutput": "read",
    "Edit": "edit",
    "EnterPlanMode": "switch_mode",
    "ExitPlanMode": "switch_mode",
    "Glob": "search",
    "Grep": "search",
    "KillShell": "execute",
    "Monitor": "execute",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Read": "read",
    "Task": "think",
    "TaskStop": "execute",
    "ToolSearch": "search",
    "WebFetch": "fetch",
    "WebSearch": "fetch",
    "Write": "edit",
    "bash_code_execution": "execute",
    "code_execution": "execute",
    "web_fetch": "fetch",
    "web_search": "fetch",
}
"""Kinds by name, for calls whose input is not known yet and tools without a function of their own."""

_COMMANDS = frozenset({"Bash", "PowerShell"})
"""Tools that run a command and tell what it printed."""

_EDITORS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "Write"})
"""Tools whose result is the file as it is now; what they say in words is for the model."""

_VERBATIM = frozenset({"Glob", "Grep", "Read"})
"""Tools whose result is no Markdown."""
