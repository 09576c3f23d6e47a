"""Many prompts in one session of the interactive program, of every kind, none of which may be stuck (issue 6).

`make tui-soak` runs a hundred; a short form is among the live tests.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
from pathlib import Path

import anyio
import click

from acp_manifold.adapters.model import run_model

from .client import Client
from .lab import make_lab, started

STUCK: float = 60.0
"""Seconds after which a turn counts as stuck."""


def prompts(number: int) -> dict[str, str]:
    """What is asked in the turn of that number, by kind; all but `cancelled` say `pN. `."""
    said = f"TEXT<<p{number}. >>"
    return {
        "short": said,
        "lines": f"first line\nsecond line\n\nlast {said}",
        "long": f"{said} " + "filler words " * 200,
        "tool": f"RUN[echo {number}] ;; {said}",
        "command": f"!touch pwned {said}",
        "cancelled": f"GATE[never{number}] TEXT<<no>>",
    }


async def soak(agent: Client, session: str, count: int, dice: random.Random) -> list[tuple[str, float]]:
    """Run so many turns, some renames between them, and give the kind and the seconds of each.

    Raises:
        AssertionError: A turn ended otherwise than it had to, or said something else.
        TimeoutError: One is stuck.
    """
    taken: list[tuple[str, float]] = []
    kinds = list(prompts(0))
    for number in range(count):
        kind = kinds[number % len(kinds)]
        begun, before = anyio.current_time(), agent.said(session)
        turn = agent.prompt(session, prompts(number)[kind])
        if kind == "cancelled":
            with anyio.move_on_after(dice.random()):
                # It has no end of its own: a cancel at any moment is what is looked at.
                await turn.answer(STUCK)
            agent.notify("session/cancel", {"sessionId": session})
        elif dice.random() < 0.3:
            title = f"Title {number}"
            answer = await agent.request("session/set_title", {"sessionId": session, "title": title}, limit=STUCK)
            assert answer == {"title": title}
        ended = (await turn.answer(STUCK))["stopReason"]
        assert ended == ("cancelled" if kind == "cancelled" else "end_turn"), f"turn {number} ({kind}) ended {ended}"
        said = agent.said(session)[len(before) :]
        assert said == ("" if kind == "cancelled" else f"p{number}. "), f"turn {number} ({kind}) said {said!r}"
        taken.append((kind, anyio.current_time() - begun))
    return taken


@click.command()
@click.option("--count", default=100, show_default=True, help="How many prompts.")
@click.option("--seed", default=None, type=int, help="Of the dice; a random one is printed.")
def main(count: int, seed: int | None) -> None:
    """Prompt the interactive program again and again; fails if a turn is stuck or says something else."""
    chosen = seed if seed is not None else random.SystemRandom().randrange(1 << 32)
    click.echo(f"seed {chosen}")
    taken = anyio.run(_in_a_lab, count, random.Random(chosen))
    for kind in prompts(0):
        seconds = [each for of, each in taken if of == kind]
        if seconds:
            click.echo(f"{kind:>10}: {len(seconds)} x {statistics.median(seconds):.2f} s, at most {max(seconds):.2f} s")
    click.echo(f"{len(taken)} prompts, none stuck")
    sys.exit(0)


async def _in_a_lab(count: int, dice: random.Random) -> list[tuple[str, float]]:
    with tempfile.TemporaryDirectory() as folder:
        async with run_model() as model:
            lab = make_lab(Path(folder), model, ("claude-tui",))
            async with started(lab) as agent:
                await agent.initialize()
                return await soak(agent, await agent.new_session(lab.cwd), count, dice)


if __name__ == "__main__":
    main()
