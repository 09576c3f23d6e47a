"""What is offered, what a review is of, and what the reports say."""

from __future__ import annotations

import pytest

from acp_manifold.translators.codex import reports
from acp_manifold.translators.codex.items import user_content
from acp_manifold.translators.codex.slash import INIT, offered, review_target, skill_alone, skills_of
from acp_manifold.translators.codex.threads import typed
from acp_manifold.translators.narrow import JsonObject
from acp_manifold.translators.slash import Slash, can_be_typed, slash_of
from acp_manifold.translators.updates import ResourceLink, Text, Usage


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        ("/compact", ("compact", "")),
        ("/review  the\nparser \n", ("review", "the\nparser")),
        ("/mcp__a__b x", ("mcp__a__b", "x")),
        (" /compact", None),
        ("/", None),
        ("/usr/bin", None),
        ("//x", None),
        ("see /compact", None),
    ],
)
def test_a_command_is_what_a_prompt_begins_with(typed: str, command: tuple[str, str] | None) -> None:
    found = slash_of((Text(typed),))
    assert (found and (found.name, found.argument)) == command


def test_what_comes_with_a_command_is_kept_and_a_command_behind_something_is_none() -> None:
    link = ResourceLink("file:///x", "x")
    assert slash_of((Text("/review"), link)) == Slash("review", "", (link,))
    assert slash_of((link, Text("/review"))) is None
    assert not can_be_typed("a b") and not can_be_typed("a/b") and can_be_typed("a:b")


REVIEW = "Review the current code changes (staged, unstaged, and untracked files) and provide prioritized findings."
REVIEW_BRANCH = (
    "Review the code changes against the base branch 'main'. The merge base commit for this comparison is dd1d27b. "
    "Run `git diff dd1d27b` to inspect the changes relative to main. Provide prioritized, actionable findings."
)
REVIEW_COMMIT = "Review the code changes introduced by commit b2990df8. Provide prioritized, actionable findings."
SKILL: JsonObject = {"type": "skill", "name": "fix", "path": "/s/fix/SKILL.md"}


def words(said: str) -> JsonObject:
    return {"type": "text", "text": said}


@pytest.mark.case("L06")
@pytest.mark.parametrize(
    ("content", "told"),
    [
        ([SKILL, words("the parser"), words("[@a](/a)")], (Text("/fix the parser"), ResourceLink("file:///a", "a"))),
        ([SKILL, words(skill_alone("fix"))], (Text("/fix"),)),
        ([words(f"{INIT}\n\nbe short")], (Text("/init be short"),)),
        ([words(INIT)], (Text("/init"),)),
        ([words(REVIEW)], (Text("/review"),)),
        ([words(REVIEW_BRANCH)], (Text("/review-branch main"),)),
        ([words(REVIEW_COMMIT)], (Text("/review-commit b2990df8"),)),
        (
            [words("Review the code changes of commit b2990df8.")],
            (Text("Review the code changes of commit b2990df8."),),
        ),
        # The terminal program's: its words name the skill themselves.
        ([words("$fix it"), SKILL], (Text("$fix it"), ResourceLink("file:///s/fix/SKILL.md", "fix"))),
    ],
)
def test_a_history_tells_a_command_as_it_was_typed(content: list[object], told: tuple[object, ...]) -> None:
    assert user_content({"type": "userMessage", "content": content}) == told


def test_a_preview_is_what_was_typed_where_it_is_cut_off_too() -> None:
    assert [typed(said) for said in (INIT, INIT[:100], skill_alone("fix"), INIT[:20])] == [
        "/init",
        "/init",
        "/fix",
        INIT[:20],
    ]


@pytest.mark.parametrize(
    ("name", "argument", "target"),
    [
        ("review", "", {"type": "uncommittedChanges"}),
        ("review", "branch main", {"type": "baseBranch", "branch": "main"}),
        ("review", "commit 0123abc", {"type": "commit", "sha": "0123abc", "title": None}),
        ("review", "commit messages of last week", {"type": "custom", "instructions": "commit messages of last week"}),
        ("review", "commit messages", {"type": "custom", "instructions": "commit messages"}),
        ("review", "branch names in a", {"type": "custom", "instructions": "branch names in a"}),
        ("review-branch", "main", {"type": "baseBranch", "branch": "main"}),
        ("review-commit", "HEAD", {"type": "commit", "sha": "HEAD", "title": None}),
    ],
)
def test_what_is_reviewed(name: str, argument: str, target: JsonObject) -> None:
    assert review_target(Slash(name, argument, ())) == target


def test_skills_are_offered_by_a_name_that_can_be_typed_and_no_command_has() -> None:
    def skill(name: str, **more: object) -> JsonObject:
        return {"name": name, "path": f"/{name}", "description": "long " * 90, "scope": "user", **more}

    answer: JsonObject = {
        "data": [
            {"skills": [skill("good", interface={"shortDescription": "short"}), skill("off", enabled=False)]},
            {"skills": [skill("good"), skill("status"), skill("two words"), {"name": "nowhere"}]},
        ]
    }
    found = skills_of(answer)
    assert [one.name for one in found] == ["good", "status", "two words"]
    assert found[0].description == "short" and len(found[1].description) == 200
    names = [command.name for command in offered(found).commands]
    assert names.count("status") == 1 and names[-1] == "good"
    assert "**/good** (user): short" in reports.skills(found)


def test_the_status_tells_what_is_set_and_no_secret() -> None:
    settings: JsonObject = {
        "cwd": "/w",
        "model": "m",
        "effort": "low",
        "approvalPolicy": "on-request",
        "sandbox": {"type": "readOnly"},
        "sandboxPolicy": {"type": "workspaceWrite"},
        "config": {"env": {"TOKEN": "secret"}},
    }
    account: JsonObject = {"account": {"type": "chatgpt", "email": "me@example.org", "planType": "plus"}}
    said = reports.status("t1", settings, Usage(1500, 200000), account)
    for words in ("`t1`", "m (low)", "on-request", "workspaceWrite", "1,500 of 200,000 tokens", "ChatGPT (plus)"):
        assert words in said
    assert "secret" not in said and "me@" not in said
    assert "**Login:** none" in reports.status("t1", {}, None, {"account": None, "requiresOpenaiAuth": True})


def test_servers_are_told_by_the_name_they_were_given() -> None:
    answer: JsonObject = {
        "data": [
            {"name": "a_b", "runtimeStatus": "connected", "tools": {"look": {}, "see": {}}},
            {"name": "dead", "runtimeStatus": "failed", "toolsError": "MCP startup failed: " + "x" * 900},
        ]
    }
    first, second = reports.servers(answer, {"a_b": "a b"}, {}).splitlines()
    assert first == "- **a b:** connected; tools: `look`, `see`"
    assert second.startswith("- **dead:** failed: xxx") and len(second) < 400
    assert reports.servers({"data": []}, {}, {}) == "This session has no MCP servers."
