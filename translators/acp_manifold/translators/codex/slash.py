"""Slash commands of a Codex session: which there are, and what is reviewed by one.

The app-server has none (codex-cli 0.163.0): those of its terminal program that make sense in an editor are
served by the adapter, and each skill is a command too. Custom prompts (`~/.codex/prompts`) this version no
longer has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text
from acp_manifold.translators.slash import Slash, can_be_typed
from acp_manifold.translators.updates import Command, Commands
from acp_manifold.translators.values import NamedTuple

BUILT_IN: tuple[Command, ...] = (
    Command("review", "Review the uncommitted changes, or what you name", "branch NAME | commit SHA | instructions"),
    Command("review-branch", "Review the changes against a branch", "NAME"),
    Command("review-commit", "Review what a commit has changed", "SHA"),
    Command("init", "Write an AGENTS.md that tells Codex about this project", "what it should mind"),
    Command("compact", "Summarize the conversation to free up context"),
    Command("clear", "Begin anew with an empty context; the conversation so far stays in the list"),
    Command("rename", "Rename the session", "new title"),
    Command("status", "Show the session's id, model, permissions, context usage and login"),
    Command("mcp", "Show the MCP servers of this session and their tools"),
    Command("skills", "List the skills"),
)
"""What is served whatever the session has. `rename` is the bridge's own."""

NAMELESS = frozenset({"compact", "clear", "rename", "status", "mcp", "skills"})
"""Commands that say nothing of what the conversation is about: no title can be made of them."""

INIT = (
    "Look at this project and write a file AGENTS.md at its root: a short guide for coding agents that work here. "
    "Say what the parts are and where they lie, how to build, test and check (the commands themselves), which "
    "conventions the code follows, and what to watch out for. Say nothing that the files don't show. If there is an "
    "AGENTS.md already, improve it and keep what is right in it."
)
"""What `/init` asks of the model."""

_SKILL_ALONE = re.compile(r"Use the skill (\S+)\.")
_REVIEW = re.compile(
    r"Review the (?:current code changes \(staged, unstaged, and untracked files\) and provide prioritized findings\.$"
    r"|code changes against the base branch '(?P<branch>\S+)'\. (?:The merge base commit|Start by finding)"
    r"|code changes introduced by commit (?P<commit>[0-9a-f]+)\. Provide prioritized, actionable findings\.$)"
)
"""What Codex itself says for a review (codex-cli 0.163.0), in its terminal program too."""
_CUT_OFF = 80
"""Characters of `INIT` by which it is known where the rest of it is cut off."""

_SHA = re.compile(r"[0-9a-fA-F]{7,64}")
_SKILL_HINT = "what to do with it"
_LONGEST = 200
"""Characters of a description: skills describe themselves to the model, at length."""


class Skill(NamedTuple):
    """A skill that Codex has for a directory."""

    name: str
    description: str
    path: str
    """Its `SKILL.md`, absolute."""
    scope: str
    """Whose it is: `repo`, `user`, `system` or `admin`."""


def skills_of(answer: JsonObject) -> tuple[Skill, ...]:
    """The skills in the answer to `skills/list`, each name once, those that are switched off left out."""
    found: dict[str, Skill] = {}
    for entry in as_objects(answer.get("data")):
        for raw in as_objects(entry.get("skills")):
            name, path = text(raw, "name"), text(raw, "path")
            if name and path and raw.get("enabled") is not False:
                found.setdefault(name, Skill(name, _short(raw), path, text(raw, "scope")))
    return tuple(found.values())


def _short(raw: JsonObject) -> str:
    told = text(obj(raw, "interface"), "shortDescription") or text(raw, "shortDescription") or text(raw, "description")
    line = " ".join(told.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1].rstrip() + "…"


def offered(skills: Iterable[Skill]) -> Commands:
    """All commands: those that are built in, then the skills; a skill by the name of a command is none."""
    taken = {command.name for command in BUILT_IN}
    usable = [skill for skill in skills if skill.name not in taken and can_be_typed(skill.name)]
    return Commands((*BUILT_IN, *(Command(skill.name, skill.description, _SKILL_HINT) for skill in usable)))


def skill_alone(name: str) -> str:
    """What is said to Codex for a skill with nothing typed behind it: there must be some words."""
    return f"Use the skill {name}."


def as_typed(said: str) -> str:
    """What a person typed of what was said to Codex: a command instead of the words that it stands for."""
    if said.startswith(INIT):
        return f"/init {said[len(INIT) :].strip()}".rstrip()
    if len(said) >= _CUT_OFF and INIT.startswith(said):
        return "/init"
    if (review := _REVIEW.match(said)) is not None:
        named = next((f"-{kind} {name}" for kind, name in review.groupdict().items() if name), "")
        return f"/review{named}"
    match = _SKILL_ALONE.fullmatch(said)
    return f"/{match[1]}" if match is not None else said


def review_target(command: Slash) -> JsonObject | str:
    """The `target` of `review/start` for a `/review...`; or what is missing, for the person."""
    words = command.argument.split()
    if command.name == "review-branch":
        return _branch(words[-1]) if words else "Type the branch behind it: /review-branch NAME"
    if command.name == "review-commit":
        return _commit(words[-1]) if words else "Type the commit behind it: /review-commit SHA"
    if words[:1] == ["branch"] and len(words) == 2:
        return _branch(words[1])
    if words[:1] == ["commit"] and len(words) == 2 and _SHA.fullmatch(words[1]):
        return _commit(words[1])
    if not words:
        return {"type": "uncommittedChanges"}
    return {"type": "custom", "instructions": command.argument}


def _branch(name: str) -> JsonObject:
    return {"type": "baseBranch", "branch": name}


def _commit(sha: str) -> JsonObject:
    return {"type": "commit", "sha": sha, "title": None}
