"""Slash commands of both CLIs: those they have, those we serve, those a person has made."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import JsonObject, text

from .client import Client
from .conftest import MakeLab, both_and_codex_in_v2
from .lab import Lab, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]

HOMES = {
    "claude": ("CLAUDE_CONFIG_DIR", ".claude"),
    "claude-tui": ("CLAUDE_CONFIG_DIR", ".claude"),
    "codex": ("CODEX_HOME", ".agents"),
}
"""Where a CLI looks for a person's skills, and for those of a project."""


def skill(folder: Path, name: str, words: str) -> None:
    path = folder / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\nname: {name}\ndescription: does {name} & <more>\n---\n{words}\n")


def made_by_hand(lab: Lab, backend: str) -> None:
    """A skill of the person's, one of the project's and, of Claude Code, a command of each kind."""
    home, project = Path(lab.env[HOMES[backend][0]]), Path(lab.cwd) / HOMES[backend][1]
    skill(home, "of-mine", "TEXT<<of mine>>")
    skill(project, "of-ours", "TEXT<<of ours>>")
    if backend != "codex":
        for folder, name in ((home, "my-own"), (project, "our-own")):
            (folder / "commands").mkdir(parents=True)
            (folder / "commands" / f"{name}.md").write_text(f"TEXT<<{name} got $ARGUMENTS>>\n")


def offered(agent: Client, session: str) -> set[str]:
    """The names in the last list of commands."""
    return {text(command, "name") for command in agent.commands(session)}


async def offers(agent: Client, session: str, names: Iterable[str]) -> None:
    wanted = set(names)
    await agent.wait_for(lambda: wanted <= offered(agent, session), f"the commands {wanted}")


async def says(agent: Client, session: str, words: str) -> str:
    """Run a turn, and give what the agent said in it."""
    before = len(agent.said(session))
    assert await agent.ask(session, words) == "end_turn"
    return agent.said(session)[before:]


@both_and_codex_in_v2
async def test_commands_are_offered_and_run(lab: MakeLab, backend: str, version: int) -> None:
    both = lab(backend)
    made_by_hand(both, backend)
    async with started(both, "--backend", backend, "--titles", "off", version=version) as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd)
        await offers(agent, session, {"compact", "clear", "status", "mcp", "skills", "rename", "init"})
        await offers(agent, session, {"of-mine", "of-ours"})
        assert not any(name.startswith(("/", "__")) or " " in name for name in offered(agent, session))
        assert both.cwd in await says(agent, session, "/status") and session in agent.said(session)
        assert both.env["ANTHROPIC_API_KEY" if backend == "claude" else "OPENAI_API_KEY"] not in agent.said(session)
        assert await says(agent, session, "/mcp") == "This session has no MCP servers."
        told = await says(agent, session, "/skills")
        assert "/of-mine" in told and "does of-ours" in told
        assert both.model.requests == [], "no model was asked"

        await run_what_was_made(agent, both, session, backend)
        await says(agent, session, "/nosuch thing")
        assert both.model.prompts()[-1] == "/nosuch thing", "a word that is no command is the model's to read"
        await says(agent, session, "now /compact")
        assert both.model.prompts()[-1] == "now /compact"
        await with_something_attached(agent, both, session)

        await compacted(agent, both, session)
        await cleared(agent, both, session, backend)


async def with_something_attached(agent: Client, both: Lab, session: str) -> None:
    """What stands behind a command goes with it, and behind other words there is none."""
    link = {"type": "resource_link", "uri": "file:///w/a.py", "name": "a.py"}
    before = len(both.model.prompts())
    await agent.say(session, [{"type": "text", "text": "/of-mine "}, link]).answer()
    (asked,) = both.model.prompts()[before:]
    assert asked != "/of-mine " and "a.py" in asked
    for first in ({"type": "text", "text": "explain"}, link):
        await agent.say(session, [first, {"type": "text", "text": "/clear"}]).answer()
        assert both.model.prompts()[-1].strip() == "/clear", "it is asked about"
    before, said = len(both.model.prompts()), len(agent.said(session))
    await agent.say(session, [{"type": "text", "text": "/rename Mine"}, link]).answer()
    assert agent.said(session)[said:] == "A title is text alone: type nothing but /rename TITLE"
    await agent.say(session, [{"type": "text", "text": "/rename Two"}, {"type": "text", "text": "texts"}]).answer()
    assert agent.titles(session)[-1] == "Two texts" and len(both.model.prompts()) == before


async def test_what_the_interactive_program_offers_runs_and_nothing_else_is_a_command(lab: MakeLab) -> None:
    tui = lab("claude-tui")
    made_by_hand(tui, "claude-tui")
    (Path(tui.cwd) / ".claude" / "skills" / "hidden").mkdir()
    (Path(tui.cwd) / ".claude" / "skills" / "hidden" / "SKILL.md").write_text("---\nuser-invocable: false\n---\nx\n")
    async with started(tui, "--backend", "claude-tui") as agent:
        await agent.initialize()
        session = await agent.new_session(tui.cwd)
        assert await says(agent, session, "/exit TEXT<<words>>") == "words"
        names = {"clear", "compact", "init", "review", "rename", "of-mine", "of-ours", "my-own", "our-own"}
        assert offered(agent, session) == names
        await run_what_was_made(agent, tui, session, "claude-tui")
        await says(agent, session, "now /compact")
        assert tui.model.prompts()[-1] == "now /compact"
        await compacted(agent, tui, session)
        assert agent.heard(session, "compaction_update") or "ompact" in str(agent.heard(session, "tool_call"))
        await cleared(agent, tui, session, "claude-tui")


async def run_what_was_made(agent: Client, lab: Lab, session: str, backend: str) -> None:
    await says(agent, session, "/of-ours SAY[1]")
    assert "TEXT<<of ours>>" in str(lab.model.requests[-1].body)
    if backend != "codex":
        assert await says(agent, session, "/our-own Bob") == "our-own got Bob"
        assert await says(agent, session, "/my-own Eve") == "my-own got Eve"
        return
    skill(Path(lab.env["CODEX_HOME"]), "brand-new", "TEXT<<brand new>>")
    assert "/brand-new" in await says(agent, session, "/skills")
    await offers(agent, session, {"brand-new", "of-ours"})
    await says(agent, session, "/brand-new")
    assert "TEXT<<brand new>>" in str(lab.model.requests[-1].body)


async def compacted(agent: Client, lab: Lab, session: str) -> None:
    before, asked = len(agent.heard(session)), len(lab.model.requests)
    assert await agent.ask(session, "/compact") == "end_turn"
    assert len(lab.model.requests) > asked
    later = agent.heard(session)[before:]
    assert "of-mine" not in str(later), "what was said before is not said once more"
    assert (await says(agent, session, "SAY[2]")).split() == ["word0", "word1"]


async def cleared(agent: Client, lab: Lab, session: str, backend: str) -> None:
    """The id goes on with an empty context; what was is listed under another."""
    await agent.request("session/set_title", {"sessionId": session, "title": "Kept"})
    model = {"claude": "haiku", "codex": "gpt-5.6-luna"}.get(backend, "")
    if model:
        await agent.set_option(session, "model", model)
    assert "begins anew" in await says(agent, session, "/clear")
    assert (await says(agent, session, "TEXT<<fresh>>")) == "fresh"
    assert model in text(lab.model.requests[-1].body, "model"), "what was chosen holds on"
    assert "now /compact" not in str(lab.model.requests[-1].body), "the context is empty"
    rows = {text(row, "sessionId"): row.get("title") for row in await agent.list_sessions()}
    assert rows.pop(session) == "Kept" and list(rows.values()) == ["Kept"]
    (other,) = rows
    await agent.request("session/close", {"sessionId": session})
    for one, has in ((session, "fresh"), (other, "now /compact")):
        before = len(agent.heard(one))
        await agent.load(one, lab.cwd)
        replayed = str([u for u in agent.heard(one)[before:] if "message_chunk" in text(u, "sessionUpdate")])
        assert [words in replayed for words in ("fresh", "now /compact")] == [has == "fresh", has != "fresh"]
        await offers(agent, one, {"compact", "of-mine"})


def repository(folder: str) -> str:
    """A repository with one commit and a change that is not committed; gives the commit."""

    def git(*words: str) -> str:
        user = ("-c", "user.email=a@example.org", "-c", "user.name=A")
        return subprocess.run(
            ["git", "-C", folder, *user, *words], check=True, capture_output=True, text=True
        ).stdout.strip()

    git("init", "-q", "-b", "main")
    (Path(folder) / "a.txt").write_text("a\n")
    git("add", "-A")
    git("commit", "-qm", "first")
    (Path(folder) / "b.txt").write_text("b\n")
    return git("rev-parse", "HEAD")


async def test_codex_reviews_what_it_is_told_to_and_a_cancel_ends_a_review(lab: MakeLab) -> None:
    both = lab("codex")
    sha = repository(both.cwd)
    async with started(both, "--backend", "codex", "--titles", "off") as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd)
        for words, asks in (
            ("/review", "current code changes"),
            ("/review branch main", "base branch 'main'"),
            (f"/review-commit {sha}", f"commit {sha}"),
        ):
            said = await says(agent, session, words)
            assert asks in both.model.prompts()[-1]
            assert said.count("This is the scripted model") == 1, "a review is told once"
        assert await says(agent, session, "/review RUN[echo looked] ;; TEXT<<All is well.>>") == "All is well."
        assert "Review: current changes" in agent.said(session, "agent_thought_chunk")
        assert "Type the commit" in await says(agent, session, "/review-commit")

        running = agent.prompt(session, "/review GATE[never]")
        waiting = agent.prompt(session, "/status")
        await both.model.gate("never").reached()
        agent.notify("session/cancel", {"sessionId": session})
        assert await running.answer() == await waiting.answer() == {"stopReason": "cancelled"}
        assert await says(agent, session, "TEXT<<and on>>") == "and on"

        replayed = await history(agent, both, session)
        assert replayed.count("All is well.") == 1


async def history(agent: Client, lab: Lab, session: str) -> str:
    await agent.request("session/close", {"sessionId": session})
    before = len(agent.said(session))
    params: JsonObject = {"sessionId": session, "cwd": lab.cwd, "mcpServers": []}
    await agent.request("session/load", params)
    return agent.said(session)[before:]
