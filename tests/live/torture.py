"""Renames at random moments of everything that real CLIs do, and the count of titles lost: `make titles-torture`.

Four sessions, two of each CLI, in one lab; those of Claude Code may be served by its interactive program. Each step
brings one of them into a circumstance (streaming, a big turn, compaction, a resume, a kill of its CLI, a restart of the
agent, a rename by another program), has a client rename it in the midst, and looks in the list whether the last name
given is the one that is shown: at once, when the circumstance is over, and for all sessions after each restart.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import anyio
import click

from acp_manifold.adapters.claude.program import config_dir
from acp_manifold.adapters.model import run_model
from acp_manifold.translators.narrow import JsonObject, text

from .client import AcpError, Client, Pending
from .lab import Lab, make_lab, started
from .leftovers import bearing

BIG = "SAY[1] " + "filler " * 15_000
"""A prompt of 100 KB: Claude Code 2.1.332 appends its own idea of the title again behind it."""

PATIENCE = 90.0
"""Seconds for one step."""


@dataclass
class Subject:
    """One session, and what it was called last."""

    id: str
    backend: str
    title: str
    open: bool = True


@dataclass
class Torture:
    """A run of it."""

    lab: Lab
    dice: random.Random
    claude: str = "claude"
    """The backend of the sessions of Claude Code."""
    subjects: list[Subject] = field(default_factory=list[Subject])
    lost: list[str] = field(default_factory=list[str])
    steps: Counter[str] = field(default_factory=Counter[str])
    renames: int = 0
    checks: int = 0

    # -- what is done -----------------------------------------------------------------------------

    async def begin(self, agent: Client) -> None:
        """Four sessions with a turn each."""
        for backend in (self.claude, "codex", self.claude, "codex"):
            session = await agent.new_session(self.lab.cwd, backend)
            await agent.ask(session, "SAY[1]")
            self.subjects.append(Subject(session, backend, ""))
            await self.rename(agent, self.subjects[-1])

    async def rename(self, agent: Client, subject: Subject) -> None:
        """Rename as a client does, and look at once."""
        self.renames += 1
        title = f"Title {self.renames} of {subject.backend}"
        answer = await agent.request("session/set_title", {"sessionId": subject.id, "title": title})
        subject.title = title
        if answer != {"title": title}:
            self.lost.append(f"{title}: answered {answer}")
        await self.check(agent, "at once")

    async def check(self, agent: Client, when: str) -> None:
        """Compare the list with what each session was called last."""
        shown = {text(row, "sessionId"): row.get("title") for row in await agent.list_sessions()}
        for subject in self.subjects:
            self.checks += 1
            if shown.get(subject.id) != subject.title:
                self.lost.append(f"{subject.title}: {shown.get(subject.id)!r} {when}")
                subject.title = str(shown.get(subject.id))

    async def step(self, agent: Client) -> None:
        """One session, one circumstance, one rename or more."""
        subject = self.dice.choice(self.subjects)
        name = self.dice.choice([name for name, (only, _) in CIRCUMSTANCES.items() if subject.backend.startswith(only)])
        self.steps[name] += 1
        with anyio.fail_after(PATIENCE):
            await CIRCUMSTANCES[name][1](self, agent, subject)
            await self.check(agent, f"after {name}")

    # -- circumstances ----------------------------------------------------------------------------

    async def serve(self, agent: Client, subject: Subject) -> None:
        """Have the session open."""
        if not subject.open:
            await agent.request("session/resume", self.where(subject))
            subject.open = True

    def where(self, subject: Subject) -> JsonObject:
        """Params that open it."""
        return {"sessionId": subject.id, "cwd": self.lab.cwd, "mcpServers": []}

    async def some_time(self, most: float) -> None:
        """Let a random moment pass: when the rename comes is the point."""
        with anyio.move_on_after(self.dice.uniform(0, most)):
            await anyio.sleep_forever()

    async def turn(self, agent: Client, subject: Subject, words: str, most: float) -> None:
        """Rename in the midst of a turn."""
        await self.serve(agent, subject)
        turn = agent.prompt(subject.id, words)
        await self.some_time(most)
        await self.rename(agent, subject)
        await _over(turn)

    async def streaming(self, agent: Client, subject: Subject) -> None:
        """While words stream."""
        await self.turn(agent, subject, "DELAY[5] SAY[60]", 0.5)

    async def big(self, agent: Client, subject: Subject) -> None:
        """While more is written than the CLI looks back."""
        await self.turn(agent, subject, BIG, 0.6)

    async def compaction(self, agent: Client, subject: Subject) -> None:
        """While the conversation is compacted."""
        await self.turn(agent, subject, "/compact", 0.4)

    async def at_rest(self, agent: Client, subject: Subject) -> None:
        """With no CLI on it, and then a resume with a big turn."""
        await agent.request("session/close", {"sessionId": subject.id})
        subject.open = False
        await self.rename(agent, subject)
        await self.serve(agent, subject)
        await _over(agent.prompt(subject.id, BIG))

    async def resuming(self, agent: Client, subject: Subject) -> None:
        """While its CLI reads the transcript."""
        await agent.request("session/close", {"sessionId": subject.id})
        opening = agent.start("session/resume", self.where(subject))
        await self.some_time(0.6)
        await self.rename(agent, subject)
        await opening.answer()
        subject.open = True
        await _over(agent.prompt(subject.id, BIG))

    async def killed(self, agent: Client, subject: Subject) -> None:
        """Right behind the answer its CLI is killed, in a turn."""
        await self.serve(agent, subject)
        turn = agent.prompt(subject.id, "DELAY[5] SAY[60]")
        await self.some_time(0.3)
        await self.rename(agent, subject)
        words = ("app-server",) if subject.backend == "codex" else (subject.id, "--output-format", "--settings")
        for pid, command in bearing(str(self.lab.folder)).items():
            if any(word in command for word in words):
                os.kill(pid, signal.SIGKILL)
        await _over(turn)

    async def renamed_elsewhere(self, agent: Client, subject: Subject) -> None:
        """Another program renames it, which counts; a big turn later it still does, until a client renames it."""
        await self.serve(agent, subject)
        (path,) = (config_dir(self.lab.env) / "projects").glob(f"*/{subject.id}.jsonl")
        self.renames += 1
        subject.title = f"Title {self.renames} of another program"
        record = {"type": "custom-title", "customTitle": subject.title, "sessionId": subject.id}
        with path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        await agent.wait_for(lambda: agent.titles(subject.id)[-1:] == [subject.title] or None, "the other title")
        await _over(agent.prompt(subject.id, BIG))
        await self.check(agent, "a big turn after a rename elsewhere")
        await self.rename(agent, subject)


_Circumstance: TypeAlias = Callable[[Torture, Client, Subject], Awaitable[None]]

CIRCUMSTANCES: dict[str, tuple[str, _Circumstance]] = {
    "streaming": ("", Torture.streaming),
    "a big turn": ("", Torture.big),
    "compaction": ("claude", Torture.compaction),
    "rest": ("", Torture.at_rest),
    "a resume": ("", Torture.resuming),
    "a kill": ("", Torture.killed),
    "a rename elsewhere": ("claude", Torture.renamed_elsewhere),
}
"""Name -> the backend it is for, if not for both, and what happens."""


async def _over(turn: Pending) -> None:
    """Wait for the end of a turn, whatever it is: a kill makes it an error."""
    try:
        await turn.answer(PATIENCE)
    except AcpError as exc:
        if "killed" not in exc.message and "gone" not in exc.message.lower():
            raise


async def torture(lab: Lab, renames: int, seed: int, per_life: int = 25, claude: str = "claude") -> Torture:
    """So many renames, with a restart of the agent after each `per_life`."""
    run = Torture(lab, random.Random(seed), claude)
    while run.renames < renames:
        goal = min(renames, run.renames + per_life)
        async with _agent(lab) as agent:
            if not run.subjects:
                await run.begin(agent)
            else:
                await run.check(agent, "after a restart")
            while run.renames < goal:
                await run.step(agent)
        for subject in run.subjects:
            subject.open = False
    async with _agent(lab) as agent:
        await run.check(agent, "at the end")
    return run


@asynccontextmanager
async def _agent(lab: Lab) -> AsyncGenerator[Client]:
    async with started(lab) as agent:
        await agent.initialize()
        yield agent


@click.command()
@click.option("--renames", default=500, show_default=True, help="How many.")
@click.option("--seed", default=None, type=int, help="Of the dice; a random one is printed.")
@click.option("--claude", default="claude", show_default=True, help="Or claude-tui.")
def main(renames: int, seed: int | None, claude: str) -> None:
    """Rename sessions of the real CLIs at random moments, and count the titles that are lost."""
    chosen = seed if seed is not None else random.SystemRandom().randrange(1 << 32)
    click.echo(f"seed {chosen}")
    run = anyio.run(_in_a_lab, renames, chosen, claude)
    click.echo(f"{run.renames} renames, {run.checks} looks: " + ", ".join(f"{n} x {w}" for w, n in run.steps.items()))
    for lost in run.lost:
        click.echo(f"LOST {lost}")
    click.echo(f"titles lost or replaced: {len(run.lost)}")
    sys.exit(1 if run.lost else 0)


async def _in_a_lab(renames: int, seed: int, claude: str) -> Torture:
    with tempfile.TemporaryDirectory() as folder:
        async with run_model() as model:
            return await torture(make_lab(Path(folder), model, (claude, "codex")), renames, seed, claude=claude)


if __name__ == "__main__":
    main()
