"""From figures to a table, ratios and verdicts. Pure."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TypeAlias

from .contestants import CLIS, Cli
from .delay import OTHERS, RATE, Delays
from .idle import Idle
from .lists import PROJECTS, TRANSCRIPTS, Lists
from .loads import TURNS, Load
from .recording import UPDATES, Recorded
from .renames import Renames
from .rendering import Rendering
from .tui import Tui
from .work import MANY, STREAMED, Figures

Results: TypeAlias = Mapping[tuple[Cli, bool], Sequence[Figures]]
"""(CLI, whether ours) -> the figures of all runs; a peer that is not installed has none."""

Get: TypeAlias = Callable[[Figures], float | None]

_LABELS: dict[Cli, str] = {"claude": "Claude Code", "codex": "Codex"}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    unit: str
    ours: float | None
    claude_peer: float | None
    codex_peer: float | None
    against: float | None
    """The figure that the ratio is taken to."""
    at_most: float | None
    """The budget for the ratio."""
    limit: float | None = None
    """The budget for the figure itself, where there is nobody to compare with."""

    @property
    def ratio(self) -> float | None:
        """Ours to what it is compared with."""
        return None if self.ours is None or not self.against else self.ours / self.against

    @property
    def held(self) -> bool | None:
        """Whether the budget was kept; None where there is none, or nobody to compare with."""
        if self.limit is not None:
            return None if self.ours is None else self.ours <= self.limit
        return None if self.ratio is None or self.at_most is None else self.ratio <= self.at_most


@dataclass(frozen=True, slots=True)
class _Quantity:
    name: str
    unit: str
    scale: float
    get: Get
    budgets: Mapping[Cli, float]


_STREAMING = f"{MANY} sessions streaming {STREAMED} words each at once"

_QUANTITIES = (
    _Quantity("`session/new`", "ms", 1e3, lambda f: f.new, {"claude": 0.5, "codex": 1.0}),
    _Quantity("start to `session/new` answer", "ms", 1e3, lambda f: f.initialize + f.new, {}),
    _Quantity("start to first token", "ms", 1e3, lambda f: f.first_token, {"claude": 0.75, "codex": 1.0}),
    _Quantity("turn of five words", "ms", 1e3, lambda f: f.short_prompt, {}),
    _Quantity("bridge CPU per streamed word", "us", 1e6, lambda f: f.cpu_per_word, {"claude": 1.0, "codex": 1.0}),
    _Quantity(f"bridge memory (PSS), {MANY} sessions", "MB", 1, lambda f: f.pss_many, {}),
    _Quantity(f"bridge and CLIs (PSS), {MANY} sessions", "MB", 1, lambda f: f.pss_many_tree, {}),
    _Quantity(_STREAMING, "ms", 1e3, lambda f: f.stream_many, {"claude": 1.0, "codex": 1.0}),
    _Quantity(f"bridge CPU for that, {MANY} sessions", "ms", 1e3, lambda f: f.cpu_many, {"claude": 1.0, "codex": 1.0}),
)


_TITLES: dict[str, Get] = {"live": lambda f: f.set_title, "at rest": lambda f: f.set_title_at_rest}


def rows(results: Results) -> list[Row]:
    """All lines of the table; each figure is the median of its runs."""

    def median(cli: Cli, ours: bool, get: Get, scale: float) -> float | None:
        values = [value for figures in results.get((cli, ours), ()) if (value := get(figures)) is not None]
        return statistics.median(values) * scale if values else None

    def per_cli(quantity: _Quantity, cli: Cli) -> Row:
        peer = median(cli, False, quantity.get, quantity.scale)
        return Row(
            f"{quantity.name}, {_LABELS[cli]}",
            quantity.unit,
            median(cli, True, quantity.get, quantity.scale),
            peer if cli == "claude" else None,
            peer if cli == "codex" else None,
            peer,
            quantity.budgets.get(cli),
        )

    def title_row(cli: Cli, where: str) -> Row:
        # Only one of the official adapters has the method: ours is compared with that one on both CLIs.
        peer = median("codex", False, lambda f: f.set_title, 1e3)
        name = f"`session/set_title`, {_LABELS[cli]}, {where}"
        return Row(name, "ms", median(cli, True, _TITLES[where], 1e3), None, peer, peer, 1.3)

    starts = [median(cli, ours, lambda f: f.initialize, 1e3) for ours in (True, False) for cli in CLIS]
    memory = [median(cli, ours, lambda f: f.pss_one, 1) for ours in (True, False) for cli in CLIS]
    peers_memory = [value for value in memory[2:] if value is not None]
    return [
        Row("start to `initialize` answer", "ms", _worst(starts[:2]), starts[2], starts[3], starts[3], 0.8),
        *(per_cli(quantity, cli) for quantity in _QUANTITIES[:5] for cli in CLIS),
        *(title_row(cli, where) for cli in CLIS for where in _TITLES),
        Row(
            "bridge memory (PSS), one session",
            "MB",
            _worst(memory[:2]),
            memory[2],
            memory[3],
            min(peers_memory, default=None),
            0.5,
        ),
        *(per_cli(quantity, cli) for quantity in _QUANTITIES[5:] for cli in CLIS),
    ]


def delay_rows(delays: Delays) -> list[Row]:
    """The lines about updates of one session while others stream; nobody is compared with, the budgets are fixed."""
    name = f"delay of an update while {OTHERS} sessions stream {RATE} updates/s, scripted CLIs"
    return [
        _absolute(f"{name}, median", "ms", delays.median * 1e3, 2.0),
        _absolute(f"{name}, 99th percentile", "ms", delays.p99 * 1e3, 20.0),
    ]


def rendering_rows(rendering: Rendering) -> list[Row]:
    """The line about clients of ACP v2, which are compared with those of v1."""
    v1 = rendering.v1 * 1e6
    name = f"CPU per update for an ACP v2 client (v1: {v1:.1f} us)"
    return [Row(name, "us", rendering.v2 * 1e6, None, None, v1, 1.2)]


def recording_rows(cli: Cli, recorded: Recorded) -> list[Row]:
    """The lines about recordings: compared with the same work without one, and with the session it was made of."""
    plain, live = recorded.plain * 1e6, recorded.live * 1e3
    cost = f"bridge CPU per streamed word while it is recorded, {_LABELS[cli]} (without: {plain:.1f} us)"
    turn = f"replay of a turn of {UPDATES} words, {_LABELS[cli]} (live: {live:.0f} ms)"
    return [
        Row(cost, "us", recorded.recorded * 1e6, None, None, plain, 1.1),
        Row(turn, "ms", recorded.replayed * 1e3, None, None, live, 0.5),
    ]


def idle_rows(idle: Idle) -> list[Row]:
    """The lines about sessions that nobody uses. The official adapter keeps a process for each."""
    name = f"{idle.sessions} idle sessions after unload, Claude Code"
    return [
        _absolute(f"bridge memory (PSS), {name}", "MB", idle.memory, 60.0),
        _absolute(f"CLI processes, {name}", "", float(idle.clis), 0.0),
    ]


def list_rows(ours: Sequence[Lists], peer: Sequence[Lists]) -> list[Row]:
    """The lines about a long history of Claude Code; each figure is the median of its runs."""

    def row(name: str, get: Callable[[Lists], float], at_most: float) -> Row:
        mine = statistics.median(map(get, ours)) * 1e3
        theirs = statistics.median(map(get, peer)) * 1e3 if peer else None
        return Row(f"`session/list`, {name}", "ms", mine, theirs, None, theirs, at_most)

    store = f"{TRANSCRIPTS} transcripts in {PROJECTS} projects"
    growth = statistics.median(lists.growth for lists in ours)
    return [
        row(f"first page, first time ever, {store}", lambda lists: lists.first, 0.8),
        row("first page after a restart", lambda lists: lists.restarted, 0.35),
        row("later pages and calls", lambda lists: lists.later, 0.05),
        _absolute("memory growth (PSS) by that", "MB", growth, 30.0),
    ]


def load_rows(found: Mapping[tuple[Cli, bool], Sequence[Load]]) -> list[Row]:
    """The lines about opening a long conversation; each figure is the median of its runs."""

    def row(cli: Cli, name: str, get: Callable[[Load], float], at_most: float) -> Row:
        mine, theirs = (
            statistics.median(map(get, loads)) * 1e3 if (loads := found.get((cli, ours))) else None
            for ours in (True, False)
        )
        title = f"load of a session of {TURNS:,} turns, {_LABELS[cli]}, {name}"
        claude, codex = (theirs, None) if cli == "claude" else (None, theirs)
        return Row(title, "ms", mine, claude, codex, theirs, at_most)

    return [
        line
        for cli in CLIS
        for line in (
            row(cli, "first update", lambda load: load.first, 0.5),
            row(cli, "whole replay", lambda load: load.whole, 1.0),
        )
    ]


def rename_rows(renames: Renames) -> list[Row]:
    """The lines about renames by other programs."""
    return [
        _absolute("a rename by another program to the update at the client", "ms", renames.heard * 1e3, 200.0),
        _absolute(f"CPU while {TRANSCRIPTS} transcripts are watched and nothing goes on", "%", renames.idle, 1.0),
    ]


def tui_rows(found: Sequence[Tui]) -> list[Row]:
    """The lines about the interactive program; each figure is the median of its runs."""
    own, ready, rename, told = (
        statistics.median(getattr(tui, name) for tui in found) * 1e3
        for name in ("own_start", "ready", "rename", "text")
    )
    return [
        Row("`claude-tui`: ready, to the program's own start", "ms", ready, None, None, own, 2.5),
        _absolute("`claude-tui`: title set while nothing runs", "ms", rename, 150.0),
        _absolute("`claude-tui`: hook's call to the text at the client", "ms", told, 150.0),
    ]


def _absolute(name: str, unit: str, ours: float, limit: float) -> Row:
    return Row(name, unit, ours, None, None, None, None, limit)


def table(lines: Sequence[Row], names: Mapping[Cli, str]) -> str:
    """The table in Markdown.

    Args:
        lines: Its lines.
        names: What the columns of the peers are called.
    """
    head = f"| | acp-manifold | {names['claude']} | {names['codex']} | ratio | at most |"
    out = [head, "| --- | ---: | ---: | ---: | ---: | ---: |"]
    for row in lines:
        cells = [_number(value, row.unit) for value in (row.ours, row.claude_peer, row.codex_peer)]
        verdict = ["" if row.ratio is None else f"{row.ratio:.2f}", "**missed**" if row.held is False else ""]
        ratio = " ".join(word for word in verdict if word)
        out.append(f"| {row.name} | {' | '.join(cells)} | {ratio} | {_budget(row)} |")
    return "\n".join(out)


def _budget(row: Row) -> str:
    if row.limit is not None:
        return _number(row.limit, row.unit)
    return "" if row.at_most is None else f"{row.at_most:.2f}"


def as_json(lines: Sequence[Row], results: Results) -> dict[str, object]:
    """Everything, for machines: the lines with their ratios, and each run's figures."""
    runs = {
        f"{'acp-manifold' if ours else 'peer'}, {cli}": [asdict(figures) for figures in found]
        for (cli, ours), found in results.items()
    }
    return {"rows": [{**asdict(row), "ratio": row.ratio, "held": row.held} for row in lines], "runs": runs}


def _worst(values: Sequence[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if not unit:
        return f"{value:.0f}"
    return f"{value:.0f} {unit}" if value >= 20 else f"{value:.1f} {unit}"
