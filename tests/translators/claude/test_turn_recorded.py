"""Turns of the real CLI, record by record."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.endings import Failure
from acp_manifold.translators.updates import OwnTurn, Subagent, ToolCall, ToolCallUpdate, TurnEnd, Usage
from tests.translators.claude.recorded import RECORDINGS, play, tell

SCENARIOS = sorted(path.stem for path in RECORDINGS.glob("*.jsonl") if not path.stem.startswith("transcript-"))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_line_of_a_recording_is_known(scenario: str) -> None:
    assert play(scenario).unknown == []


def test_thought_and_text_come_once_as_they_are_streamed() -> None:
    played = play("text")
    assert played.told == ["thought: Thinking it over.", *(f"agent: word{i} " for i in range(6))]
    assert played.outcomes == [TurnEnd("end_turn", 10, 20, 0, 0, 0)]
    assert [update for update in played.updates if isinstance(update, Usage)] == [Usage(30, 1_000_000, 0.00044)]


def test_an_allowed_command_shows_its_input_then_its_output_and_is_completed() -> None:
    assert play("permission-allow").told == [
        "agent: word0 ",
        "agent: word1 ",
        "call Bash [execute] Bash pending",
        "update touch made.txt && echo one && echo two >&2 in_progress <scripted>",
        "output one\ntwo",
        "update completed",
        "agent: word0 ",
        "agent: word1 ",
    ]


@pytest.mark.case("P03")
def test_a_denied_command_fails_and_the_turn_goes_on() -> None:
    played = play("permission-deny")
    assert played.told[-5:] == ["output No.", "update failed", "agent: Another ", "agent: way ", "agent: then."]
    assert isinstance(played.outcomes[0], TurnEnd) and played.outcomes[0].stop_reason == "end_turn"


def test_edits_show_the_whole_file_before_and_after() -> None:
    told = play("edits").told
    assert told[:3] == [
        "call Read [read] Read pending",
        "update Read a.py in_progress",
        "update completed <```\n1\tone\n2\ttwo\n3\tthree\n4\t\n```>",
    ]
    assert told[3:] == [
        "call Edit [edit] Edit pending",
        "update Edit a.py in_progress /project/a.py: 'two' -> '2'",
        "update completed /project/a.py: 'one\\ntwo\\nthree\\n' -> 'one\\n2\\nthree\\n'",
        "call Write [edit] Write pending",
        "update Write new.py in_progress /project/new.py: None -> 'x = 1\\n'",
        "update completed /project/new.py: None -> 'x = 1\\n'",
        "call Write [edit] Write pending",
        "update Write new.py in_progress /project/new.py: None -> 'y\\n'",
        "update completed /project/new.py: 'x = 1\\n' -> 'y\\n'",
        "agent: Changed.",
    ]


def test_failing_tools_are_failed_with_their_words() -> None:
    told = play("failing-command").told
    assert "output Exit code 1\ncat: missing.txt: No such file or directory" in told
    failures = [line for line in told if line.startswith("update failed")]
    assert len(failures) == 2
    assert "File does not exist" in failures[1] and "tool_use_error" not in failures[1]


@pytest.mark.parametrize("scenario", ["interrupt-streaming", "interrupt-permission", "interrupt-early"])
def test_an_interrupted_turn_is_cancelled_once_and_leaves_no_call_open(scenario: str) -> None:
    played = play(scenario)
    assert [outcome.stop_reason for outcome in played.outcomes if isinstance(outcome, TurnEnd)] == ["cancelled"]
    assert len(played.outcomes) == 1
    assert not any("interrupted by user" in line for line in played.told)


def test_a_call_that_waits_for_permission_is_cancelled_with_the_interrupt() -> None:
    updates = play("interrupt-permission").updates
    assert [update.status for update in updates if isinstance(update, ToolCallUpdate)][-1] == "cancelled"


def test_a_rename_in_mid_turn_is_told_as_a_title_and_changes_nothing_else() -> None:
    played = play("rename-mid-turn")
    assert played.titles == ["Early", "Payments rework"]
    assert played.told == [f"agent: word{i} " for i in range(8)]


def test_a_generated_title_adds_nothing_to_the_conversation() -> None:
    played = play("generate-title")
    assert played.told == [f"agent: word{i} " for i in range(8)]
    assert played.titles == []


@pytest.mark.case("A02")
def test_a_failing_api_is_a_failure_in_its_words_and_the_next_turn_works() -> None:
    failed, worked = play("failing-api").outcomes
    assert isinstance(failed, Failure) and failed.kind == "failed"
    assert failed.text.startswith("API Error: 500 scripted failure")
    assert isinstance(worked, TurnEnd) and worked.stop_reason == "end_turn"


@pytest.mark.case("A02")
def test_a_refused_login_is_a_failure_of_kind_login() -> None:
    (outcome,) = play("login-expired").outcomes
    assert isinstance(outcome, Failure) and outcome.kind == "login"
    assert outcome.text == "Failed to authenticate. API Error: 401 scripted failure"


@pytest.mark.case("M05")
def test_a_turn_that_the_cli_begins_itself_ends_no_prompt() -> None:
    played = play("background-task")
    assert len(played.outcomes) == 2
    said = [line for line in played.told if line.startswith("agent: ")]
    assert said == ["agent: word0 ", "agent: word1 "] * 3
    begun, ended = (update for update in played.updates if isinstance(update, OwnTurn))
    assert (begun, ended.running) == (OwnTurn(running=True), False)
    assert ended.end is not None and ended.end.stop_reason == "end_turn"


def test_what_a_local_command_prints_is_said_once() -> None:
    played = play("local-command")
    (said,) = played.told
    assert said.startswith("agent: Estimated cost:")
    assert played.outcomes == [TurnEnd("end_turn", 0, 0, 0, 0, 0)]


def test_a_sub_agent_is_one_call_and_none_of_its_words_are_the_agents() -> None:
    updates = play("subagent").updates
    call = next(update for update in updates if isinstance(update, ToolCall))
    agents = [update for update in updates if isinstance(update, Subagent)]
    assert [(agent.id, agent.state) for agent in agents] == [(call.id, "running"), (call.id, "idle")]
    told = [tell(update) for update in updates if not isinstance(update, Usage | Subagent)]
    assert told[:5] == [
        "agent: word0 ",
        "agent: word1 ",
        "agent: word2 ",
        "call Task [think] Task pending",
        "update Count words in_progress <SAY[3]>",
    ]
    assert told[5].startswith("update completed <[Subagent hand-back]")
    assert told[6:] == ["agent: Counted."]
