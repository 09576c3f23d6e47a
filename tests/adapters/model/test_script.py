"""What the words of the model's script language mean."""

from __future__ import annotations

import pytest

from acp_manifold.adapters.model.script import (
    CLOSING_REPLY,
    DEFAULT_REPLY,
    AtGate,
    Fail,
    Hold,
    Reason,
    Say,
    Shell,
    Step,
    Text,
    Tool,
    choose,
    numbered,
    parse,
    pieces,
    step_after,
)


def test_actions_keep_their_order_and_prose_means_nothing() -> None:
    assert parse("please REASON[hm] SAY[2] then GATE[mid] HOLD[0.5] TEXT<<so;; it [is]>> and FAIL[500]") == (
        Step((Reason("hm"), Say(2), AtGate("mid"), Hold(0.5), Text("so;; it [is]"), Fail(500))),
    )


def test_steps_are_parted_and_calls_stand_apart() -> None:
    assert parse('SAY[1] RUN[a] RUNBG[b] ;; RUNESC[c] TOOL[Read {"file_path": "/x", "n": [1]}] ;; SAY[3]') == (
        Step((Say(1),), (Shell("a"), Shell("b", background=True))),
        Step((), (Shell("c", escalated=True), Tool("Read", {"file_path": "/x", "n": [1]}))),
        Step((Say(3),)),
    )


def test_pace_and_lines_hold_for_the_whole_step() -> None:
    assert parse("SAY[6] DELAY[20] LINES ;; SAY[1]") == (Step((Say(6),), delay=0.02, lines=True), Step((Say(1),)))


def test_brackets_in_a_command_pair_up() -> None:
    assert parse('RUN[[ -f x ] && echo "${a[0]}"]') == (Step((), (Shell('[ -f x ] && echo "${a[0]}"'),)),)


@pytest.mark.parametrize("prompt", ["", "hello", "an outline of BASIC[3] LINES"])
def test_a_prompt_without_a_script_gets_a_friendly_answer(prompt: str) -> None:
    assert parse(prompt) == (Step((Text(DEFAULT_REPLY),)),)


def test_the_step_follows_from_the_results_that_came_back() -> None:
    steps = parse("RUN[a] RUN[b] ;; RUN[c] ;; SAY[1]")
    assert [step_after(steps, results) for results in (0, 2, 3, 9)] == [steps[0], steps[1], steps[2], steps[2]]


def test_a_script_that_ends_with_a_call_is_closed_with_a_word() -> None:
    assert step_after(parse("RUN[a]"), 1) == Step((Text(CLOSING_REPLY),))


@pytest.mark.parametrize(
    ("blocks", "prompt"),
    [
        (["<system-reminder>SAY[9]</system-reminder>", "SAY[1]"], "SAY[1]"),
        (["SAY[1]", "[Request interrupted by user]", "SAY[2]"], "SAY[2]"),
        (["SAY[1]", "[a file](file:///x)"], "SAY[1]"),
        (["one", "two"], "two"),
        (["<only>theirs</only>"], None),
        (["<x><summary>Command SAY[3] ended</summary></x>"], "Command SAY[3] ended"),
        (["<x><objective>no script</objective></x>"], None),
    ],
)
def test_the_prompt_is_told_from_what_a_cli_puts_beside_it(blocks: list[str], prompt: str | None) -> None:
    assert choose(blocks) == prompt


def test_pieces_lose_nothing() -> None:
    text = "  two  words\n and more \n"
    assert "".join(pieces(text)) == text
    assert len(pieces(text)) == 4
    assert pieces("   ") == ["   "]


def test_each_fifth_numbered_word_ends_its_line() -> None:
    assert numbered(3, 3, lines=True) == ["word3 ", "word4\n", "word5 "]
