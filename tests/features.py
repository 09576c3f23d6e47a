"""The feature table of README: what works on each CLI, what the official adapters have, the tests that show it.

`make features` writes it into README.md. A row is one `Feature`; who adds something adds a row or
changes one, names the tests, and runs that. `test_features.py` sees to it that the table in README is
this one, that every row of which something works names tests, and that those exist.

What stands under the adapters was read from and run against claude-agent-acp 0.101.0 and codex-acp 2.6.0.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- features: made by `make features` from tests/features.py -->", "<!-- /features -->"
HEAD = ("", "Claude Code", "Codex", "claude-agent-acp 0.101", "codex-acp 2.6")


class Feature(NamedTuple):
    """One row."""

    what: str
    claude: str
    """What it is on Claude Code; it begins with yes, no, not yet, or as (what instead)."""
    codex: str
    claude_agent_acp: str
    codex_acp: str
    tests: tuple[str, ...] = ()
    """The tests that show each yes of ours, as pytest names them, below `tests/`."""

    @property
    def works(self) -> bool:
        """Whether it is there on one of the CLIs at least."""
        return self.claude.startswith("yes") or self.codex.startswith("yes")


_METHODS = "live/test_methods.py::"
_UPDATES = (
    "live/test_updates.py::test_claude_code_tells_what_a_turn_holds",
    "live/test_updates.py::test_codex_tells_what_a_turn_holds",
)
_ISOLATION = "reports/test_isolation.py::"

FEATURES: tuple[Feature, ...] = (
    Feature(
        "many sessions on one connection, of both CLIs",
        "yes",
        "yes",
        "of Claude Code",
        "of Codex",
        ("live/test_smoke.py::test_two_backends_stream_at_once_on_one_connection",),
    ),
    Feature(
        "prompts: text, resource links",
        "yes",
        "yes",
        "yes",
        "yes",
        (_METHODS + "test_text_links_and_thoughts_of_a_turn",),
    ),
    Feature(
        "a load tells links as links, and text with its blanks",
        "yes",
        "yes",
        "",
        "",
        (_METHODS + "test_a_load_tells_links_as_links_and_text_as_it_was",),
    ),
    Feature(
        "prompts: images, embedded text",
        "yes: PNG, JPEG, GIF, WebP; up to 20 MiB of base64",
        "yes: the same",
        "yes",
        "yes",
        _UPDATES,
    ),
    Feature(
        "prompts: embedded PDFs",
        "yes",
        "as a link, if they are files on disk",
        "",
        "",
        _UPDATES,
    ),
    Feature(
        "prompts: images by address",
        "yes",
        "as a link",
        "",
        "",
        _UPDATES,
    ),
    Feature("prompts: audio", "no: refused", "no: refused; its models are not given it", "no", "no", ()),
    Feature(
        "text and thoughts as they come",
        "yes",
        "yes",
        "yes",
        "yes",
        (
            _METHODS + "test_text_links_and_thoughts_of_a_turn",
            "live/test_smoke.py::test_a_prompt_streams_its_words_and_ends_its_turn",
        ),
    ),
    Feature(
        "tool calls with kind, title, places, diffs and what they print",
        "yes",
        "yes",
        "yes",
        "yes",
        (
            _METHODS + "test_a_permission_is_asked_and_a_yes_runs_the_command",
            _METHODS + "test_edits_are_told_as_diffs_with_their_place",
        ),
    ),
    Feature(
        "what commands print: in the tool call, or in a terminal (`_meta.terminal_output` and its kind)",
        "yes, when the command ends",
        "yes, as it is printed",
        "yes",
        "yes",
        _UPDATES,
    ),
    Feature(
        "notices: failed MCP servers, close limits, retries, warnings; errors as messages to clients without them",
        "yes",
        "yes",
        "to clients that take them",
        "to clients that take them",
        _UPDATES,
    ),
    Feature(
        "compaction as `compaction_update`, as a tool call to clients without it",
        "yes",
        "yes",
        "to clients that take it",
        "to clients that take it",
        _UPDATES,
    ),
    Feature(
        "refusals and token limits as stop reasons, other limits and failures as errors, with the CLI's words",
        "yes",
        "yes",
        "",
        "an error is an `end_turn`",
        (
            "live/test_updates.py::test_claude_code_tells_what_a_turn_holds",
            "live/test_updates.py::test_codex_tells_what_a_turn_holds",
            "live/test_methods.py::test_a_failing_model_is_an_error_with_its_words_and_the_session_goes_on",
        ),
    ),
    Feature(
        "permission questions, withdrawn with their turn",
        "yes",
        "yes",
        "yes",
        "yes",
        (
            _METHODS + "test_a_permission_is_asked_and_a_yes_runs_the_command",
            _METHODS + "test_cancel_with_a_question_open_withdraws_it_and_the_next_prompt_works",
        ),
    ),
    Feature(
        "prompts that wait: a turn each, in order",
        "yes",
        "yes",
        "one turn for all that wait",
        "yes",
        (_ISOLATION + "test_a_second_prompt_waits_and_a_cancel_ends_it_unsent",),
    ),
    Feature(
        "`session/cancel` ends all of a session",
        "yes",
        "yes",
        "yes",
        "what waits still runs",
        (
            _METHODS + "test_cancel_of_one_session_leaves_the_other_streaming",
            _ISOLATION + "test_a_second_prompt_waits_and_a_cancel_ends_it_unsent",
        ),
    ),
    Feature(
        "`$/cancel_request` takes back one prompt, at once",
        "yes",
        "yes",
        "cancels the session",
        "answers in its turn",
        (_METHODS + "test_cancel_request_takes_back_one_waiting_prompt",),
    ),
    Feature(
        "a message into the running turn ([steering](#steering))",
        "yes",
        "yes",
        "yes; it breaks off a running command",
        "yes",
        (
            "live/test_steering.py::test_a_message_joins_the_running_turn_and_no_command_is_broken_off",
            "live/test_steering.py::test_without_a_running_turn_the_client_prompts_or_a_turn_begins",
        ),
    ),
    Feature(
        "`session/list` by directory and in pages",
        "yes, from an index",
        "yes",
        "yes; reads all for each page",
        "yes",
        (
            _METHODS + "test_one_list_over_both_backends_newest_first",
            "live/test_list.py::test_the_list_is_the_same_after_a_restart_and_has_renames_of_other_programs_at_once",
        ),
    ),
    Feature(
        "`session/load`, `session/resume`, `session/close`",
        "yes",
        "yes",
        "yes",
        "yes",
        (
            _METHODS + "test_load_tells_the_history_before_its_answer_and_resume_tells_none",
            _METHODS + "test_close_frees_a_session_that_can_be_loaded_again",
        ),
    ),
    Feature(
        "`session/delete`, for good",
        "yes",
        "yes: what copies are built on is gone for everybody, and removed with the last copy",
        "yes",
        "archives instead",
        (
            _METHODS + "test_delete_is_final_also_in_mid_turn_and_after_a_restart",
            "live/test_deletion.py::test_what_was_forked_is_deleted_while_it_runs_and_when_closed_and_its_copies_go_on",
        ),
    ),
    Feature(
        "a session that another process has open is neither opened nor deleted",
        "yes",
        "yes",
        "no: two writers",
        "yes",
        (
            "live/test_titles.py::test_a_codex_thread_of_another_process_takes_the_title_and_keeps_it",
            "adapters/claude/test_registry.py::test_the_real_cli_is_seen_to_hold_its_session_until_it_ends",
        ),
    ),
    Feature(
        "titles: `session/set_title`, answered with what is stored",
        "yes",
        "yes",
        "no",
        "yes",
        (_METHODS + "test_by_every_spelling_of_the_rename_the_answer_the_list_and_the_store_hold_the_same_title",),
    ),
    Feature(
        "titles that no generated one replaces",
        "yes",
        "yes",
        "yes, by the vendor's method",
        "yes",
        (
            _METHODS + "test_a_title_generated_too_late_is_dropped",
            "live/test_titles.py::test_generated_titles_in_the_transcript_never_replace_the_clients",
        ),
    ),
    Feature(
        "renames by other programs are told to the editor",
        "yes",
        "yes",
        "at the turn's end",
        "no",
        ("live/test_titles.py::test_a_person_who_renames_in_the_other_process_has_the_last_word",),
    ),
    Feature(
        "a title in `session/new`",
        "yes",
        "yes",
        "yes",
        "no",
        (_METHODS + "test_a_session_named_at_its_start_keeps_that_name",),
    ),
    Feature(
        "a list that is followed: `_session/list/subscribe`, `_session/batch_get` ([session index](#session-index))",
        "yes",
        "yes",
        "yes",
        "yes",
        ("live/test_session_index.py::test_a_followed_list_tells_own_and_foreign_changes",),
    ),
    Feature(
        "its rows with model, source of a copy, cost",
        "yes",
        "yes: the model; its list has no others",
        "yes",
        "",
        (
            "live/test_session_index.py::test_a_row_of_claude_code_tells_model_cost_and_source",
            "live/test_session_index.py::test_a_followed_list_tells_own_and_foreign_changes",
        ),
    ),
    Feature(
        "`session/fork`, also of a session that somebody has open",
        "yes",
        "yes",
        "yes",
        "yes",
        ("live/test_lifecycle.py::test_a_fork_is_there_before_its_first_prompt_and_goes_on_by_itself",),
    ),
    Feature(
        "archive: `session/archive`, `session/unarchive`, the filter of `session/list`",
        "yes; the prefix `[archived] ` of claude-agent-acp is read as archived",
        "yes",
        "no",
        "no",
        (
            "live/test_lifecycle.py::test_the_archive_hides_a_session_and_gives_it_back",
            "live/test_lifecycle.py::test_the_archive_of_claude_agent_acp_is_read_and_taken_back",
        ),
    ),
    Feature(
        "archive, as the vendor's clients ask for it: `_session/archive`, `_session/unarchive`",
        "yes",
        "yes",
        "yes, as a prefix of the title",
        "yes",
        ("live/test_session_index.py::test_a_followed_list_tells_own_and_foreign_changes",),
    ),
    Feature(
        "`session/status`",
        "yes",
        "yes",
        "no",
        "no",
        ("bridge/test_lifecycle.py::test_the_status_tells_what_is_open_and_changes_nothing",),
    ),
    Feature(
        "`_meta.claudeCode.options`: the model to begin with, fewer tools, instructions, directories, MCP servers",
        "yes, without what gives permissions",
        "as far as it is no matter of Claude Code",
        "yes",
        "no",
        (
            "live/test_vendor.py::test_a_session_begins_with_what_the_vendors_options_ask_for",
            "live/test_vendor.py::test_vendors_options_give_nothing_away",
        ),
    ),
    Feature(
        "`customInstructions` of the vendors' clients",
        "yes",
        "yes",
        "yes",
        "yes",
        ("live/test_vendor.py::test_custom_instructions_reach_the_model_of_both_clis",),
    ),
    Feature(
        "`systemPrompt`, behind the CLI's own or in its place",
        "yes",
        "yes",
        "yes",
        "append only",
        ("live/test_opening.py::test_a_system_prompt_of_the_client_comes_behind_the_clis_own_or_in_its_place",),
    ),
    Feature(
        "`additionalDirectories`",
        "yes",
        "yes",
        "yes",
        "yes",
        ("live/test_lifecycle.py::test_the_cli_reads_and_writes_in_further_directories",),
    ),
    Feature(
        "a load of a session that is open here: the turn and its question go on",
        "yes",
        "yes",
        "",
        "",
        ("live/test_lifecycle.py::test_a_load_in_mid_turn_tells_all_so_far_once_and_the_turn_and_its_question_go_on",),
    ),
    Feature(
        "logins: [`authMethods`, `authenticate`, `logout`, `auth/status` with updates](#logging-in)",
        "yes",
        "yes",
        "yes, without `auth/status`",
        "yes, without `auth/status`",
        ("live/test_auth.py::test_a_login_made_in_a_terminal_counts_at_once_and_a_logout_ends_it",),
    ),
    Feature(
        "endpoints of the client (`providers/*`)",
        "yes: `anthropic`, `bedrock`",
        "yes: `openai`",
        "as a login method",
        "as a login method",
        ("live/test_auth.py::test_an_endpoint_set_by_the_client_serves_sessions_without_any_login",),
    ),
    Feature(
        "[MCP servers](#mcp-servers) of the client: stdio, http; their faults are told",
        "yes",
        "yes",
        "yes; faults are not told",
        "yes",
        (
            "live/test_mcp.py::test_the_tools_of_a_server_are_the_models_in_its_session_alone",
            "live/test_mcp.py::test_a_server_that_can_not_be_used_is_said_to_a_client_without_notices",
        ),
    ),
    Feature(
        "MCP servers of the client: sse",
        "yes",
        "no: refused",
        "yes",
        "no",
        ("live/test_mcp.py::test_the_tools_of_a_server_are_the_models_in_its_session_alone",),
    ),
    Feature(
        "[slash commands](#slash-commands): built in, of the project, of the person, skills; told again on a change",
        "yes",
        "yes, without custom prompts, which Codex no longer has",
        "yes",
        "yes",
        (
            "live/test_slash.py::test_commands_are_offered_and_run",
            "live/test_mcp.py::test_the_prompts_of_a_server_that_comes_up_late_are_offered_then",
        ),
    ),
    Feature(
        "`/compact`, `/clear`, `/rename`, `/status`, `/mcp`, `/skills`, `/init`, `/review`",
        "yes",
        "yes",
        "",
        "",
        (
            "live/test_slash.py::test_commands_are_offered_and_run",
            "live/test_slash.py::test_codex_reviews_what_it_is_told_to_and_a_cancel_ends_a_review",
        ),
    ),
    Feature(
        "[modes, model, effort, fast mode](#modes-models-options) as config options, `modes` for older clients",
        "yes, with ultracode, output style and agent",
        "yes, with collaboration mode, and your permission profiles as modes",
        "yes",
        "yes",
        (
            "live/test_options.py::test_each_option_is_listed_set_and_what_the_model_is_asked_with",
            "live/test_options.py::test_permission_profiles_of_the_person_are_modes_of_codex",
        ),
    ),
    Feature(
        "context usage, tokens of a prompt (cached ones and thoughts too)",
        "yes, with cost",
        "yes",
        "yes, with cost",
        "yes",
        ("live/test_core_cases.py::test_the_core_cases_hold_in_one_session",),
    ),
    Feature(
        "plans",
        "yes, where its model has the tool",
        "yes, with `[tools.update_plan] enabled = true` in its config",
        "yes",
        "yes",
        (
            "translators/claude/test_turn.py::test_todos_are_a_plan_and_no_call",
            "translators/codex/test_turn.py::test_a_plan_is_told_whole",
        ),
    ),
    Feature(
        "[questions](#questions) of the model and of MCP servers, as forms, pages to open or choices",
        "yes",
        "yes",
        "yes, as forms and pages",
        "yes, as forms and pages",
        (
            "live/test_questions.py::test_questions_are_a_form_and_its_answers_reach_the_model",
            "live/test_questions.py::test_without_forms_questions_are_choices_one_after_the_other",
            "live/test_questions.py::test_codex_goes_on_while_it_asks_and_the_answer_is_a_message_into_the_turn",
            "live/test_questions.py::test_an_mcp_server_asks_by_form_and_by_page_and_a_cancel_takes_the_form_back",
        ),
    ),
    Feature(
        "another model after a refusal, if you say so",
        "yes, where the CLI offers it",
        "no: Codex does not offer it",
        "yes, as a form",
        "",
        ("adapters/claude/test_session.py::test_another_model_is_asked_after_a_refusal_only_if_the_person_says_so",),
    ),
    Feature(
        "approval of a plan, and the mode it goes on in",
        "yes",
        "no: Codex does not ask",
        "yes",
        "",
        ("live/test_questions.py::test_a_plan_is_approved_into_the_mode_the_person_chose",),
    ),
    Feature(
        "plans in words (its plan mode), as `plan_update` where the client can",
        "no",
        "yes",
        "",
        "yes",
        _UPDATES,
    ),
    Feature(
        "sub-agents: their calls as tool calls, or sessions of their own (`subagent_update`)",
        "yes",
        "yes",
        "yes",
        "yes",
        (
            *_UPDATES,
            "live/test_subagents.py::test_codex_sub_agents_are_sessions_of_their_own_and_nothing_of_them_is_the_parents",
            "live/test_subagents.py::"
            "test_claude_codes_sub_agents_are_conversations_of_their_own_and_prompts_go_on_beside_them",
        ),
    ),
    Feature(
        "background work: its tool call goes on; listed, read and ended by [methods of ours](#background-work)",
        "yes",
        "yes",
        "as the vendor's tasks",
        "as the vendor's tasks",
        ("live/test_background.py::test_a_background_command_is_its_own_sessions_alone",),
    ),
    Feature(
        "what a CLI does of its own accord (a task has ended, a goal): `session/cancel` stops it; a state in v2",
        "yes",
        "yes",
        "",
        "",
        ("live/test_own_turns.py::test_what_a_cli_does_of_its_own_accord_is_cancelled_like_a_turn",),
    ),
    Feature(
        "idle CLIs are let go and come back unseen",
        "yes: the process ends",
        "yes: the thread is unloaded, unless it never had a turn",
        "",
        "",
        ("live/test_background.py::test_an_idle_session_costs_no_process_and_comes_back",),
    ),
    Feature(
        "a session that was closed, or let go while idle, goes on in the terminal at once",
        "yes",
        "yes",
        "",
        "",
        (
            "live/test_release.py::test_what_was_closed_goes_on_in_the_terminal_at_once",
            "live/test_release.py::test_what_is_idle_goes_on_in_the_terminal_and_comes_back",
        ),
    ),
    Feature(
        "a CLI that dies costs the running turn; the next prompt goes on",
        "yes",
        "yes",
        "no: the session ends",
        "yes",
        (
            "live/test_many.py::test_a_killed_claude_fails_its_own_prompt_and_its_next_one_resumes",
            "live/test_many.py::test_a_killed_codex_server_fails_its_prompts_at_once_and_one_new_server_goes_on",
        ),
    ),
    Feature(
        "sessions on the [command line](#on-the-command-line), `doctor`",
        "yes",
        "yes",
        "no",
        "no",
        (
            "live/test_commands.py::test_sessions_are_listed_shown_renamed_and_deleted_without_an_editor",
            "live/test_commands.py::test_doctor_tells_the_versions_and_who_has_which_session",
        ),
    ),
    Feature(
        "driven in tests by the SDKs in TypeScript and Python and by acpx",
        "yes",
        "yes",
        "",
        "",
        (
            "live/test_typescript_sdk.py::test_the_typescript_sdk_drives_two_backends_on_one_connection",
            "live/test_python_sdk.py::test_the_python_sdk_drives_two_backends_on_one_connection",
            "live/test_acpx.py::test_acpx_runs_a_prompt_and_allows_what_it_asks",
            "live/test_acpx.py::test_acpx_goes_on_with_a_session_cancels_lists_and_loads",
        ),
    ),
    Feature(
        "file and terminal requests to the client",
        "no: the CLIs do that themselves",
        "no: the CLIs do that themselves",
        "no",
        "no",
    ),
    Feature(
        "[the interactive program as a backend](#the-interactive-program), `--backend claude-tui`",
        "yes: prompts, pictures, tools, questions, titles, commands, modes, models, background, sub-agents",
        "no",
        "no",
        "no",
        (
            "live/test_smoke.py::test_a_prompt_streams_its_words_and_ends_its_turn",
            "live/test_tui.py::test_whatever_stands_in_a_prompt_is_words_and_arrives_whole",
            "live/test_tui.py::test_what_stands_in_the_way_is_told_for_what_it_is_and_not_answered",
            "live/test_tui.py::test_a_program_that_dies_in_mid_turn_is_an_error_and_resumes",
            "live/test_slash.py::test_what_the_interactive_program_offers_runs_and_nothing_else_is_a_command",
            "live/test_options.py::test_the_interactive_program_goes_round_its_modes_and_is_started_anew_for_a_model",
            "live/test_tui.py::test_a_picture_is_a_private_file_for_as_long_as_its_turn",
        ),
    ),
    Feature(
        "[ACP v2](#acp-v2), a draft, beside v1: on the same sessions, chosen in `initialize`",
        "yes",
        "yes",
        "a draft of it",
        "a draft of it",
        (
            "live/test_typescript_sdk.py::"
            "test_the_typescript_sdks_draft_of_v2_drives_the_whole_life_of_a_session_on_both_backends",
            "bridge/test_v2.py::test_a_v1_and_a_v2_client_hear_the_same_turn_each_in_its_words",
            "bridge/test_v2_advertised.py::test_each_method_of_v2_is_served_if_and_only_if_it_is_advertised",
            _METHODS + "test_a_permission_is_asked_and_a_yes_runs_the_command",
        ),
    ),
    Feature(
        "recordings [as a page to look at, checked, compared, cut](#on-the-command-line)",
        "yes",
        "yes",
        "no",
        "no",
        (
            "live/test_recorded.py::test_a_recording_of_both_clis_is_shown_with_a_lane_for_each_session",
            "live/test_recorded.py::test_two_takes_of_one_scene_are_without_fault_and_alike",
            "view/test_in_browser.py::test_whatever_a_message_holds_is_text_and_nothing_else",
        ),
    ),
    Feature(
        "[recordings](#recordings) of what crosses, scrubbed, from the start or on request",
        "yes",
        "yes",
        "no",
        "no",
        (
            "live/test_recording.py::test_every_line_of_both_legs_is_recorded_and_no_secret_is",
            "replay/test_recording.py::test_one_session_is_recorded_on_request_until_it_is_ended",
            "replay/test_recording.py::test_a_folder_gets_a_file_for_each_session_and_each_can_be_replayed",
        ),
    ),
    Feature(
        "[replayed agents](#recordings) without a CLI, with a pytest plugin",
        "yes",
        "yes",
        "no",
        "no",
        (
            "replay/test_corpus.py::test_a_replay_is_heard_as_it_was_and_the_same_each_time",
            "replay/test_replay.py::test_as_a_process_it_needs_no_cli_and_touches_no_store",
            "replay/test_round_trip.py::test_the_recording_of_a_replay_is_the_recording_but_for_times",
            "live/test_recording.py::test_a_killed_cli_is_killed_in_the_replay_with_the_same_words",
            "replay/test_crashes.py::test_the_error_is_the_one_that_the_client_got_then",
            "replay/test_speed.py::test_a_recording_is_played_as_fast_as_its_name_says",
            "replay/test_plugin.py::test_the_project_of_a_client_runs_with_pytest_and_the_wheel_alone",
        ),
    ),
    Feature("Windows", "no", "no", "", ""),
)


def table() -> str:
    """The table as Markdown, with its marks."""
    cells = [(f.what, f.claude, f.codex, f.claude_agent_acp, f.codex_acp) for f in FEATURES]
    lines = [f"| {' | '.join(row)} |" for row in (HEAD, ("---",) * len(HEAD), *cells)]
    return "\n".join([BEGIN, *(" ".join(line.split()) for line in lines), END])


def with_table(readme: str) -> str:
    """The text of README with this table in it.

    Raises:
        ValueError: It has no place for one.
    """
    head, begin, rest = readme.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md has no {BEGIN} ... {END}")
    return head + table() + tail


def missing(test: str) -> str | None:
    """What is wrong with the name of a test; None if there is such a test."""
    file, _, function = test.partition("::")
    path = ROOT / "tests" / file
    if not path.is_file():
        return f"{test}: there is no file tests/{file}"
    names = {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    return None if function in names else f"{test}: there is no such test in tests/{file}"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text()))
    sys.stdout.write("README.md has the table of tests/features.py\n")
