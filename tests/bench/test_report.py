"""The bench's arithmetic: medians, ratios, budgets, and the table."""

from __future__ import annotations

from acp_manifold.translators.narrow import obj
from bench.contestants import Cli
from bench.delay import Delays
from bench.idle import Idle
from bench.lists import Lists
from bench.loads import Load
from bench.renames import Renames
from bench.report import Results, as_json, delay_rows, idle_rows, list_rows, load_rows, rename_rows, rows, table
from bench.work import Figures


def figures(scale: float, *, titles: bool = True) -> list[Figures]:
    """Three runs around `scale`, of which the middle one counts."""
    return [
        Figures(
            initialize=0.1 * s,
            new=0.2 * s,
            first_token=0.5 * s,
            short_prompt=0.05 * s,
            cpu_per_word=50e-6 * s,
            pss_one=40 * s,
            set_title=0.003 * s if titles else None,
            set_title_at_rest=0.006 * s if titles else None,
            stream_many=2 * s,
            cpu_many=0.3 * s,
        )
        for s in (scale, 9 * scale, scale / 9)
    ]


RESULTS: Results = {
    ("claude", True): figures(1),
    ("codex", True): figures(1),
    ("claude", False): figures(4, titles=False),
    ("codex", False): figures(2),
}
NAMES_OF_PEERS: dict[Cli, str] = {"claude": "claude-agent-acp 1", "codex": "codex-acp 2"}


def test_ratios_are_taken_between_medians_and_judged() -> None:
    found = {row.name: (row.ratio, row.held) for row in rows(RESULTS)}
    assert found["start to `initialize` answer"] == (0.5, True)
    assert found["`session/new`, Claude Code"] == (0.25, True)
    assert found["bridge CPU per streamed word, Codex"] == (0.5, True)
    assert found["bridge memory (PSS), one session"] == (0.5, True)
    for label in ("Claude Code", "Codex"):
        assert found[f"`session/set_title`, {label}, live"] == (0.5, True)
        assert found[f"`session/set_title`, {label}, at rest"] == (1.0, True)
    assert found["8 sessions streaming 400 words each at once, Claude Code"] == (0.25, True)
    assert found["bridge CPU for that, 8 sessions, Codex"] == (0.5, True)


def test_a_missed_budget_is_seen() -> None:
    slow: Results = {key: figures(3) if key == ("codex", True) else found for key, found in RESULTS.items()}
    assert [row.name for row in rows(slow) if row.held is False] == [
        "start to `initialize` answer",
        "`session/new`, Codex",
        "start to first token, Codex",
        "bridge CPU per streamed word, Codex",
        "`session/set_title`, Codex, live",
        "`session/set_title`, Codex, at rest",
        "bridge memory (PSS), one session",
        "8 sessions streaming 400 words each at once, Codex",
        "bridge CPU for that, 8 sessions, Codex",
    ]


def test_without_peers_there_are_figures_and_no_verdict() -> None:
    alone = {key: found for key, found in RESULTS.items() if key[1]}
    assert {row.held for row in rows(alone)} == {None}
    assert rows(alone)[0].ours == 100


def test_the_table_is_markdown_with_one_line_a_figure() -> None:
    lines = table(rows(RESULTS), NAMES_OF_PEERS).splitlines()
    assert lines[0] == "| | acp-manifold | claude-agent-acp 1 | codex-acp 2 | ratio | at most |"
    assert lines[2] == "| start to `initialize` answer | 100 ms | 400 ms | 200 ms | 0.50 | 0.80 |"
    assert {line.count("|") for line in lines} == {7}


def test_a_budget_of_the_figure_itself_is_judged_without_anybody_to_compare_with() -> None:
    median, p99 = delay_rows(Delays(0.0011, 0.0204))
    assert (median.held, p99.held) == (True, False)
    memory, clis = idle_rows(Idle(50, 60.0, 1))
    assert (memory.held, clis.held) == (True, False)
    assert (memory.ratio, clis.ratio) == (None, None)


def test_lists_are_compared_with_the_adapter_that_lists_the_same_store() -> None:
    ours, peer = [Lists(0.5, 0.2, 0.1, 31.0)], [Lists(1.0, 1.0, 1.0, 300.0)]
    assert [(row.ratio, row.held) for row in list_rows(ours, peer)] == [
        (0.5, True),
        (0.2, True),
        (0.1, False),
        (None, False),
    ]
    assert [row.held for row in list_rows(ours, [])] == [None, None, None, False]
    assert [row.held for row in rename_rows(Renames(0.05, 1.5))] == [True, False]


def test_loads_are_compared_with_the_adapter_on_the_same_cli() -> None:
    found: dict[tuple[Cli, bool], list[Load]] = {
        ("claude", True): [Load(0.1, 0.5)],
        ("claude", False): [Load(0.2, 1.0)],
        ("codex", True): [Load(1, 2)],
        ("codex", False): [],
    }
    lines = load_rows(found)
    assert [(row.ratio, row.held) for row in lines] == [(0.5, True), (0.5, True), (None, None), (None, None)]
    assert [(row.claude_peer, row.codex_peer) for row in lines[::2]] == [(200, None), (None, None)]


def test_the_table_shows_such_a_budget_in_the_unit_of_the_figure() -> None:
    lines = table([*delay_rows(Delays(0.0011, 0.0204)), *idle_rows(Idle(50, 30.0, 0))], NAMES_OF_PEERS).splitlines()[2:]
    cells = [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines]
    assert cells == [
        ["1.1 ms", "", "", "", "2.0 ms"],
        ["20 ms", "", "", "**missed**", "20 ms"],
        ["30 MB", "", "", "", "60 MB"],
        ["0", "", "", "", "0"],
    ]


def test_the_json_holds_every_run() -> None:
    report = as_json(rows(RESULTS), RESULTS)
    assert set(obj(report, "runs")) == {"acp-manifold, claude", "acp-manifold, codex", "peer, claude", "peer, codex"}
