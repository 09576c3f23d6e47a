"""`can_use_tool` and its answer: a question with an option for each thing the CLI offers to remember.

Claude Code 2.1.332 sends `permission_suggestions`, changes of its own permission settings of which
the host may send back any (`updatedPermissions`). Each one that is understood becomes an
`allow_always` option whose name says what it allows and for how long. Whatever is not understood,
an option never offered, no answer: all refuse this one call, and the turn goes on (case P03).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from acp_manifold.translators.claude import tools
from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, as_str, flag, obj, text
from acp_manifold.translators.updates import Option, Question, ToolCallUpdate

ALLOW = "allow"
REJECT = "reject"
_ALWAYS = "always:"
_ANSWER = "answer:"

QUESTION_TOOL = "AskUserQuestion"
"""The tool that is a question itself: allowing it means to send its answers along."""

NOT_SHOWN = "This client can only show one question with one answer to choose. Ask in plain text instead."
"""What the model is told about questions of another form."""

REFUSED = "The user refused this tool call. Nothing was run. Go on another way, or ask what they would like instead."
"""What the model is told after a refusal."""

CANCELLED = "The turn was cancelled before the user answered. Nothing was run."
"""What the model is told when the question was withdrawn."""

_LONGEST_RULE = 120
"""Characters of a rule that a button shows."""

_PLACES = {
    "session": "in this session",
    "localSettings": "in this project, for me",
    "projectSettings": "in this project, for everyone",
    "userSettings": "in all projects",
    "cliArg": "in this session",
}
"""Where a permission is kept -> for how long it holds, for people."""

_MODES = {
    "acceptEdits": "Allow, and accept all edits",
    "plan": "Allow, and switch to planning",
    "default": "Allow, and ask again for each edit",
    "manual": "Allow, and ask again for each edit",
}


class Asked(NamedTuple):
    """A permission request of the CLI, with what is needed to answer it."""

    call_id: str
    tool_input: JsonObject
    question: Question
    remembered: dict[str, JsonObject]
    """Option id -> the change of permissions that choosing it sends back."""
    chosen: dict[str, JsonObject]
    """Option id -> the answers that choosing it gives, when the tool is a question to the person."""


def asked(request: JsonObject, cwd: str) -> Asked:
    """The question in a `can_use_tool` request that is not `unanswerable`."""
    name, tool_input = text(request, "tool_name"), obj(request, "input")
    view = tools.describe(name, tool_input, cwd)
    call = ToolCallUpdate(
        text(request, "tool_use_id"),
        title=view.title,
        kind=view.kind,
        status="pending",
        content=view.content or None,
        locations=view.locations or None,
        raw_input=tool_input or None,
    )
    if name == QUESTION_TOOL:
        return _asked_to_choose(call, tool_input)
    options = [Option(ALLOW, "Allow once", "allow_once")]
    remembered: dict[str, JsonObject] = {}
    for index, suggestion in enumerate(as_objects(request.get("permission_suggestions"))):
        label = _label(suggestion)
        if label is not None:
            remembered[f"{_ALWAYS}{index}"] = suggestion
            options.append(Option(f"{_ALWAYS}{index}", label, "allow_always"))
    options.append(Option(REJECT, "Reject", "reject_once"))
    return Asked(call.id, tool_input, Question(call, tuple(options)), remembered, {})


def unanswerable(request: JsonObject) -> str | None:
    """What to tell the model instead of asking, when no person could answer by choosing one option; else None."""
    if text(request, "tool_name") != QUESTION_TOOL:
        return None
    return NOT_SHOWN if _choices(obj(request, "input")) is None else None


def answer(asked_for: Asked, choice: str | None) -> JsonObject:
    """The CLI's answer object for the option that was chosen; None is no answer."""
    if choice == ALLOW and not asked_for.chosen:
        return {"behavior": "allow", "updatedInput": asked_for.tool_input}
    if choice is not None and choice in asked_for.chosen:
        return {"behavior": "allow", "updatedInput": {**asked_for.tool_input, "answers": asked_for.chosen[choice]}}
    if choice is not None and choice in asked_for.remembered:
        permissions: list[object] = [asked_for.remembered[choice]]
        return {"behavior": "allow", "updatedInput": asked_for.tool_input, "updatedPermissions": permissions}
    return {"behavior": "deny", "message": REFUSED if choice is not None else CANCELLED}


def allows(response: JsonObject) -> bool:
    """Whether an answer object lets the call run."""
    return response.get("behavior") == "allow"


def _choices(tool_input: JsonObject) -> tuple[str, list[JsonObject]] | None:
    """The one question of a question tool and its options; None for several questions, or several answers to one."""
    questions = as_objects(tool_input.get("questions"))
    if len(questions) != 1 or flag(questions[0], "multiSelect"):
        return None
    options = [option for option in as_objects(questions[0].get("options")) if text(option, "label")]
    asked_text = text(questions[0], "question")
    return (asked_text, options) if asked_text and options else None


def _asked_to_choose(call: ToolCallUpdate, tool_input: JsonObject) -> Asked:
    asked_text, labels = _choices(tool_input) or ("", [])
    options: list[Option] = []
    chosen: dict[str, JsonObject] = {}
    for index, choice in enumerate(labels):
        label = text(choice, "label")
        chosen[f"{_ANSWER}{index}"] = {asked_text: label}
        options.append(Option(f"{_ANSWER}{index}", label, "allow_once"))
    options.append(Option(REJECT, "Don't answer", "reject_once"))
    return Asked(call.id, tool_input, Question(call, tuple(options)), {}, chosen)


def _label(suggestion: JsonObject) -> str | None:
    """What choosing a suggestion means, for people; None for one that is not understood."""
    where = _PLACES.get(text(suggestion, "destination"))
    labeller = _LABELLERS.get(text(suggestion, "type"))
    return labeller(suggestion, where) if labeller is not None and where is not None else None


def _rules(suggestion: JsonObject, where: str) -> str | None:
    if suggestion.get("behavior") != "allow":
        return None
    rules = [rule_name(rule) for rule in as_objects(suggestion.get("rules"))]
    return f"Always allow {_cut(', '.join(rules))} {where}" if rules else None


def rule_name(rule: JsonObject) -> str:
    """A permission rule as the CLI writes it: `Bash(git log:*)`."""
    content = as_str(rule.get("ruleContent"))
    name = text(rule, "toolName")
    return f"{name}({content})" if content else name


def _directories(suggestion: JsonObject, where: str) -> str | None:
    folders = [folder for folder in as_list(suggestion.get("directories")) if isinstance(folder, str)]
    return f"Allow, and add {_cut(', '.join(folders))} to the working directories {where}" if folders else None


def _mode(suggestion: JsonObject, where: str) -> str | None:
    words = _MODES.get(text(suggestion, "mode"))
    return f"{words} {where}" if words is not None else None


def _cut(shown: str) -> str:
    one_line = " ".join(shown.split())
    return one_line if len(one_line) <= _LONGEST_RULE else one_line[: _LONGEST_RULE - 1] + "…"


_LABELLERS: dict[str, Callable[[JsonObject, str], str | None]] = {
    "addRules": _rules,
    "addDirectories": _directories,
    "setMode": _mode,
}
