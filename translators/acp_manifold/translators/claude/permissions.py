"""`can_use_tool` and its answer: a question with an option for each thing the CLI offers to remember.

Claude Code 2.1.332 sends `permission_suggestions`, changes of its own permission settings of which
the host may send back any (`updatedPermissions`). Each one that is understood becomes an
`allow_always` option whose name says what it allows and for how long. Whatever is not understood,
an option never offered, no answer: all refuse this one call, and the turn goes on (case P03).

The end of planning (ExitPlanMode) comes without suggestions, its plan in the input; the mode that is
sent back with the yes is the one it goes on in, and a no goes on planning.
"""

from __future__ import annotations

from collections.abc import Callable

from acp_manifold.translators.claude import tools
from acp_manifold.translators.narrow import JsonObject, as_list, as_objects, as_str, obj, text
from acp_manifold.translators.updates import CommandToRun, Option, Question, ToolCallUpdate
from acp_manifold.translators.values import NamedTuple

ALLOW = "allow"
REJECT = "reject"
_ALWAYS = "always:"

QUESTION_TOOL = "AskUserQuestion"
"""The tool that is a question itself: allowing it means to send its answers along. See `questions`."""

_PLAN_TOOL = "ExitPlanMode"

_SHELL_TOOL = "Bash"

KEEP_PLANNING = "The user wants to keep planning. Nothing was changed. Ask what the plan lacks, or work on it."
"""What the model is told when its plan was not approved."""

REFUSED = "The user refused this tool call. Nothing was run. Go on another way, or ask what they would like instead."
"""What the model is told after a refusal."""

CANCELLED = "The turn was cancelled before the user answered. Nothing was run."
"""What the model is told when the question was withdrawn."""

FAILED: JsonObject = {"behavior": "deny", "message": "The user could not be asked. Nothing was run."}
"""The answer when the question broke on its way."""

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
    refusal: str = REFUSED
    """What the model is told when the person says no."""


def call_of(request: JsonObject, cwd: str) -> ToolCallUpdate:
    """The tool call that a `can_use_tool` request is about, as a person is shown it."""
    name, tool_input = text(request, "tool_name"), obj(request, "input")
    view = tools.describe(name, tool_input, cwd)
    return ToolCallUpdate(
        text(request, "tool_use_id"),
        title=view.title,
        kind=view.kind,
        status="pending",
        content=view.content or None,
        locations=view.locations or None,
        raw_input=tool_input or None,
    )


def asked(request: JsonObject, cwd: str) -> Asked:
    """The question in a `can_use_tool` request, but for one of `QUESTION_TOOL`, which is no matter of permission."""
    call, tool_input = call_of(request, cwd), obj(request, "input")
    if text(request, "tool_name") == _PLAN_TOOL:
        choices = tuple(option for option, _ in _PLAN_CHOICES)
        modes = {option.id: mode for option, mode in _PLAN_CHOICES if mode is not None}
        return Asked(call.id, tool_input, Question(call, choices), modes, KEEP_PLANNING)
    options = [Option(ALLOW, "Allow once", "allow_once")]
    remembered: dict[str, JsonObject] = {}
    for index, suggestion in enumerate(as_objects(request.get("permission_suggestions"))):
        label = _label(suggestion)
        if label is not None:
            remembered[f"{_ALWAYS}{index}"] = suggestion
            options.append(Option(f"{_ALWAYS}{index}", label, "allow_always"))
    options.append(Option(REJECT, "Reject", "reject_once"))
    words = as_str(tool_input.get("command"))
    command = CommandToRun(words, cwd) if words is not None and text(request, "tool_name") == _SHELL_TOOL else None
    reason = as_str(request.get("description")) or None
    return Asked(call.id, tool_input, Question(call, tuple(options), command, reason), remembered)


def answer(asked_for: Asked, choice: str | None) -> JsonObject:
    """The CLI's answer object for the option that was chosen; None is no answer."""
    if choice == ALLOW and choice not in asked_for.remembered:
        return {"behavior": "allow", "updatedInput": asked_for.tool_input}
    if choice is not None and choice in asked_for.remembered:
        permissions: list[object] = [asked_for.remembered[choice]]
        return {"behavior": "allow", "updatedInput": asked_for.tool_input, "updatedPermissions": permissions}
    return {"behavior": "deny", "message": asked_for.refusal if choice is not None else CANCELLED}


def allows(response: JsonObject) -> bool:
    """Whether an answer object lets the call run."""
    return response.get("behavior") == "allow"


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


def _goes_on_in(mode: str) -> JsonObject:
    return {"type": "setMode", "mode": mode, "destination": "session"}


_PLAN_CHOICES: tuple[tuple[Option, JsonObject | None], ...] = (
    (Option("plan:edits", "Yes, and accept all edits", "allow_always"), _goes_on_in("acceptEdits")),
    (Option(ALLOW, "Yes, and ask before each edit", "allow_once"), _goes_on_in("default")),
    (Option(REJECT, "No, keep planning", "reject_once"), None),
)
"""What the CLI's own dialog offers, but for modes in which it asks for nothing any more."""

_LABELLERS: dict[str, Callable[[JsonObject, str], str | None]] = {
    "addRules": _rules,
    "addDirectories": _directories,
    "setMode": _mode,
}
