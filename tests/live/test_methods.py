"""Every method of this agent on both real CLIs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from acp_manifold.adapters.claude.program import config_dir
from acp_manifold.adapters.codex.program import codex_home
from acp_manifold.translators.acp.requests import TITLE_METHODS
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .client import Answerer, Client, Question, leave_open, reject
from .conftest import all_and_v2, both_versions
from .lab import Lab, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]
both_backends = pytest.mark.parametrize("backend", ["claude", "codex"])
all_backends = pytest.mark.parametrize("backend", ["claude", "claude-tui", "codex"])

ESCALATES = {"claude": "RUN[{}]", "claude-tui": "RUN[{}]", "codex": "RUNESC[{}]"}
"""A command that each CLI asks about as it is configured out of the box."""


def command(backend: str, words: str) -> str:
    return ESCALATES[backend].format(words)


def rows_by_id(rows: list[JsonObject]) -> dict[str, JsonObject]:
    return {text(row, "sessionId"): row for row in rows}


def transcripts(both: Lab) -> list[Path]:
    stores = (config_dir(both.env) / "projects", codex_home(both.env) / "sessions")
    return sorted(path for store in stores for path in store.rglob("*.jsonl"))


async def listed_title(agent: Client, session: str) -> object:
    return rows_by_id(await agent.list_sessions())[session].get("title")


def tool_states(agent: Client, session: str) -> list[tuple[object, object]]:
    """(id, status) of every tool call event that holds a status."""
    events = [u for u in agent.heard(session) if u["sessionUpdate"] in ("tool_call", "tool_call_update")]
    return [(u["toolCallId"], u["status"]) for u in events if "status" in u]


@all_and_v2
async def test_text_links_and_thoughts_of_a_turn(agent: Client, both: Lab, backend: str) -> None:
    session = await agent.new_session(both.cwd, backend)
    link = {"type": "resource_link", "uri": "file:///tmp/notes.md", "name": "notes.md"}
    words = {"type": "text", "text": "REASON[thinking it over] TEXT<<one <two> “three”\n>>"}
    assert (await agent.say(session, [link, words]).answer())["stopReason"] == "end_turn"
    assert agent.said(session) == "one <two> “three”\n"
    assert "thinking it over" in agent.said(session, "agent_thought_chunk")
    assert any("notes.md" in json.dumps(request.body) for request in both.model.requests)
    ids = {u.get("messageId") for u in agent.heard(session, "agent_message_chunk")}
    assert len(ids) == 1 and None not in ids
    assert agent.heard(session, "user_message_chunk") == []


@both_backends
async def test_a_load_tells_links_as_links_and_text_as_it_was(agent: Client, both: Lab, backend: str) -> None:
    at = f"file://{both.cwd}"
    sent: list[JsonObject] = [
        {"type": "text", "text": "TEXT<<ok>> Look at "},
        {"type": "resource_link", "uri": f"{at}/my%20notes%20%281%29.md#L1-2", "name": "my notes (1).md"},
        {"type": "text", "text": " and  "},
        {"type": "resource_link", "uri": "https://example.org/a(b)", "name": "Page [1]"},
        {"type": "text", "text": "\n"},
        {"type": "resource_link", "uri": f"{at}/other.md", "name": "other.md"},
    ]
    session = await agent.new_session(both.cwd, backend)
    assert (await agent.say(session, sent).answer())["stopReason"] == "end_turn"
    await agent.request("session/close", {"sessionId": session})
    await agent.load(session, both.cwd)
    assert [chunk["content"] for chunk in agent.heard(session, "user_message_chunk")] == sent


@all_and_v2
async def test_a_permission_is_asked_and_a_yes_runs_the_command(agent: Client, both: Lab, backend: str) -> None:
    session = await agent.new_session(both.cwd, backend)
    assert (
        await agent.ask(session, command(backend, "echo made > made.txt && cat made.txt") + " ;; SAY[2]") == "end_turn"
    )
    (question,) = agent.questions
    assert question.session == session and question.tool_call["toolCallId"]
    assert (Path(both.cwd) / "made.txt").read_text() == "made\n"
    states = tool_states(agent, session)
    assert states[-1] == (question.tool_call["toolCallId"], "completed")
    (call,) = agent.calls(session)
    titles = [text(u, "title") for u in [call, *agent.heard(session, "tool_call_update")] if "title" in u]
    assert call["kind"] == "execute" and "made.txt" in titles[-1]
    assert "made" in agent.shown(session)
    assert agent.said(session).split() == ["word0", "word1"]
    commands = [text(body, "command") for body in agent.heard(session, "terminal_update") if "command" in body]
    assert commands == (["echo made > made.txt && cat made.txt"] if agent.version == 2 else [])


@pytest.mark.case("P03")
@all_and_v2
async def test_a_no_refuses_the_call_and_the_turn_goes_on(agent: Client, both: Lab, backend: str) -> None:
    session = await agent.new_session(both.cwd, backend)
    agent.on_question = reject
    turn = command(backend, "touch refused.txt") + " ;; TEXT<<other way>>"
    assert await agent.ask(session, turn) == "end_turn"
    assert not (Path(both.cwd) / "refused.txt").exists()
    assert agent.said(session).strip() == "other way"
    assert tool_states(agent, session)[-1][1] == "failed"
    (question,) = agent.questions
    options = as_objects(question.params["options"])
    rejections = [text(option, "name") for option in options if option["kind"] == "reject_once"]
    assert "stop" not in rejections[0].lower()


@pytest.mark.case("P03")
@all_backends
async def test_an_answer_that_is_none_runs_nothing(agent: Client, both: Lab, backend: str) -> None:
    def break_down(question: Question) -> None:
        agent.send({"jsonrpc": "2.0", "id": question.id, "error": {"code": -32603, "message": "broken client"}})

    answers: list[Answerer] = [lambda question: question.choose("never offered"), break_down, Question.dismiss]
    session = await agent.new_session(both.cwd, backend)
    for number, answer in enumerate(answers):
        agent.on_question = answer
        assert await agent.ask(session, command(backend, f"touch never{number}.txt") + " ;; SAY[1]") == "end_turn"
        assert len(agent.questions) == number + 1 and os.listdir(both.cwd) == []


@all_and_v2
async def test_cancel_with_a_question_open_withdraws_it_and_the_next_prompt_works(
    agent: Client, both: Lab, backend: str
) -> None:
    session = await agent.new_session(both.cwd, backend)
    agent.on_question = leave_open
    turn = agent.prompt(session, command(backend, "touch late.txt") + " ;; SAY[1]")
    question = await agent.question(session)
    agent.notify("session/cancel", {"sessionId": session})
    assert (await turn.answer())["stopReason"] == "cancelled"
    assert question.withdrawn.is_set()
    question.choose(question.option("allow_once"))
    assert await agent.ask(session, "TEXT<<to the next>>") == "end_turn"
    assert agent.said(session) == "to the next"
    assert not (Path(both.cwd) / "late.txt").exists()


@pytest.mark.case("C01")
@all_and_v2
async def test_cancel_of_one_session_leaves_the_other_streaming(agent: Client, both: Lab, backend: str) -> None:
    kept = await agent.new_session(both.cwd, backend)
    stopped = await agent.new_session(both.cwd, backend)
    keeps = agent.prompt(kept, "SAY[2] TEXT<<\n>> GATE[kept] TEXT<<to the end>>")
    stops = agent.prompt(stopped, "SAY[2] TEXT<<\n>> GATE[never] SAY[9]")
    await agent.hears(kept, "word1")
    await agent.hears(stopped, "word1")
    agent.notify("session/cancel", {"sessionId": stopped})
    assert (await stops.answer())["stopReason"] == "cancelled"
    both.model.gate("kept").set()
    assert (await keeps.answer())["stopReason"] == "end_turn"
    assert "to the end" in agent.said(kept) and "word2" not in agent.said(stopped)
    assert await agent.ask(stopped, "TEXT<<again>>") == "end_turn"


@pytest.mark.case("C02")
@all_and_v2
async def test_a_cancel_right_behind_its_prompt_cancels_it(
    agent: Client, both: Lab, backend: str, version: int
) -> None:
    session = await agent.new_session(both.cwd, backend)
    turn = agent.prompt(session, "GATE[never] SAY[3]")
    agent.notify("session/cancel", {"sessionId": session})
    if version == 1:
        assert (await turn.answer())["stopReason"] == "cancelled"
    else:
        # No CLI has said by then that it has the prompt.
        assert (await turn.error()).code == -32800
    assert await agent.ask(session, "TEXT<<usable>>") == "end_turn"
    assert "usable" in agent.said(session)


@all_and_v2
async def test_cancel_request_takes_back_one_waiting_prompt(agent: Client, both: Lab, backend: str) -> None:
    session = await agent.new_session(both.cwd, backend)
    first = agent.prompt(session, "SAY[1] TEXT<<\n>> GATE[first] SAY[1]")
    await agent.hears(session, "word0")
    second, third = agent.prompt(session, "TEXT<<second>>"), agent.prompt(session, "TEXT<<third>>")
    agent.notify("$/cancel_request", {"requestId": second.id})
    assert (await second.error()).code == -32800
    both.model.gate("first").set()
    assert (await first.answer())["stopReason"] == (await third.answer())["stopReason"] == "end_turn"
    assert "third" in agent.said(session) and "second" not in agent.said(session)


@pytest.mark.case("T01")
@all_and_v2
async def test_a_title_set_in_mid_turn_outlives_the_bridge(both: Lab, backend: str, version: int) -> None:
    async with started(both, version=version) as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd, backend)
        turn = agent.prompt(session, "Some work on payments SAY[2] TEXT<<\n>> GATE[mid] SAY[1]")
        await agent.hears(session, "word1")
        assert await agent.request("session/set_title", {"sessionId": session, "title": "Payments rework"}) == {
            "title": "Payments rework"
        }
        assert not turn.done
        both.model.gate("mid").set()
        await turn.answer()
        assert await listed_title(agent, session) == "Payments rework"
        assert agent.titles(session).count("Payments rework") == 1
    async with started(both, version=version) as agent:
        await agent.initialize()
        assert await listed_title(agent, session) == "Payments rework"
        stored = await agent.request("session/set_title", {"sessionId": session, "title": "At\trest"})
        assert stored == {"title": "At rest"}
        assert await listed_title(agent, session) == "At rest"
        await agent.request("session/resume", {"sessionId": session, "cwd": both.cwd, "mcpServers": []})
        assert await agent.ask(session, "Go on with the payments SAY[1]") == "end_turn"
        assert await listed_title(agent, session) == "At rest"


@pytest.mark.case("T06")
@all_and_v2
async def test_by_every_spelling_of_the_rename_the_answer_the_list_and_the_store_hold_the_same_title(
    agent: Client, both: Lab, backend: str
) -> None:
    session = await agent.new_session(both.cwd, backend)
    await agent.ask(session, "SAY[1]")
    for number, (method, key) in enumerate(TITLE_METHODS.items()):
        await agent.request(method, {"sessionId": session, key: f" Name  {number}"})
        assert await listed_title(agent, session) == f"Name {number}"
    asked = len(both.model.requests)
    assert await agent.ask(session, "/rename By a prompt") == "end_turn"
    assert await listed_title(agent, session) == "By a prompt"
    assert len(both.model.requests) == asked
    for sent in ("  Fix\tthe\r\n build  ", "a" * 5000, "\x1b[31mred\u202e\u200b ünï", "U+2028 \u2028 in it"):
        stored = (await agent.request("session/set_title", {"sessionId": session, "title": sent}))["title"]
        assert stored == await listed_title(agent, session)
        assert agent.titles(session)[-1] == stored
    for wrong in ("", " \n", "\u200b", None, 5):
        assert (await agent.fails("session/set_title", {"sessionId": session, "title": wrong})).code == -32602


@pytest.mark.case("R01")
@all_backends
async def test_a_session_named_at_its_start_keeps_that_name(both: Lab, backend: str) -> None:
    both.model.titles.answer("A model's idea")
    async with started(both) as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd, backend, title="Incident 42")
        await agent.ask(session, "Please look into the incident SAY[2]")
        assert await listed_title(agent, session) == "Incident 42"
        assert not any("Incident 42" in prompt for prompt in both.model.prompts())
    async with started(both) as agent:
        await agent.initialize()
        assert await listed_title(agent, session) == "Incident 42"


def naming(lab: Lab, backend: str) -> Lab:
    """The lab, in which the interactive program has a model name its sessions: as a rule it is kept from that."""
    if backend == "claude-tui":
        del lab.env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"]
    return lab


@pytest.mark.case("T09")
@all_backends
async def test_a_generated_title_is_told_once_and_listed(both: Lab, backend: str) -> None:
    both.model.titles.answer("Parser repair")
    async with started(naming(both, backend)) as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd, backend)
        await agent.ask(session, "Please repair the parser LINES SAY[2]")
        await agent.wait_for(lambda: agent.titles(session), "a title")
        await agent.ask(session, "And now something else SAY[2]")
        assert agent.titles(session) == ["Parser repair"]
        assert await listed_title(agent, session) == "Parser repair"


@all_backends
async def test_a_title_generated_too_late_is_dropped(both: Lab, backend: str) -> None:
    both.model.titles.answer("Too late", gate="title")
    async with started(naming(both, backend)) as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd, backend)
        turn = agent.prompt(session, "Please repair the parser LINES SAY[5] GATE[mid]")
        await agent.hears(session, "word4")
        await both.model.gate("title").reached()
        await agent.request("session/set_title", {"sessionId": session, "title": "Mine"})
        both.model.gate("title").set()
        both.model.gate("mid").set()
        await turn.answer()
        await agent.ask(session, "And another long enough prompt SAY[2]")
        assert agent.titles(session) == ["Mine"]
        assert await listed_title(agent, session) == "Mine"


@all_backends
async def test_no_model_names_a_session_with_titles_off(both: Lab, backend: str) -> None:
    async with started(naming(both, backend), "--titles", "off") as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd, backend)
        for words in ("Please repair the parser SAY[1]", "And now something else SAY[1]"):
            assert await agent.ask(session, words) == "end_turn"
        assert agent.titles(session) == [] and both.model.titles.asked == 0
        assert await listed_title(agent, session) == "Please repair the parser SAY[1]"


@all_and_v2
async def test_load_tells_the_history_before_its_answer_and_resume_tells_none(
    both: Lab, backend: str, version: int
) -> None:
    async with started(both, version=version) as agent:
        await agent.initialize()
        session = await agent.new_session(both.cwd, backend)
        await agent.ask(session, "TEXT<<two>> " + command(backend, "echo out-put") + " ;; TEXT<<three>>")
    setup: JsonObject = {"sessionId": session, "cwd": both.cwd, "mcpServers": []}
    async with started(both, version=version) as agent:
        await agent.initialize()
        result = await agent.load(session, both.cwd)
        assert as_objects(result["configOptions"])[0]["currentValue"] == backend
        assert agent.said(session, "user_message_chunk").startswith("TEXT<<two>>")
        assert [word.strip() for word in ("two", "three") if word in agent.said(session)] == ["two", "three"]
        assert agent.said(session).count("three") == 1
        (call,) = agent.calls(session)
        assert "out-put" in text(call, "title")
        assert tool_states(agent, session)[-1] == (call["toolCallId"], "completed")
        before = len(agent.updates)
        assert await agent.ask(session, "TEXT<<four>>") == "end_turn"
        assert "two" not in "".join(text(obj(u.body, "content"), "text") for u in agent.updates[before:])
    async with started(both, version=version) as agent:
        await agent.initialize()
        await agent.request("session/resume", setup)
        assert agent.said(session) == agent.said(session, "user_message_chunk") == ""
        assert agent.calls(session) == []
        assert await agent.ask(session, "TEXT<<five>>") == "end_turn"
        assert agent.said(session) == "five"


async def test_one_list_over_both_backends_newest_first(agent: Client, both: Lab) -> None:
    elsewhere = both.directory("elsewhere")
    sessions = [
        await agent.new_session(cwd, backend)
        for backend, cwd in (("claude", both.cwd), ("codex", both.cwd), ("codex", elsewhere), ("claude", elsewhere))
    ]
    for session in sessions:
        await agent.ask(session, "SAY[1]")
    rows = await agent.list_sessions()
    # Codex tells its times in whole seconds, so only the order of the times themselves is sure.
    stamps = [text(row, "updatedAt") for row in rows]
    assert stamps == sorted(stamps, reverse=True)
    by_backend = {text(row, "sessionId"): obj(obj(row, "_meta"), "acp-manifold")["backend"] for row in rows}
    assert by_backend == dict(zip(sessions, ("claude", "codex", "codex", "claude"), strict=True))
    assert {row["sessionId"] for row in await agent.list_sessions(cwd=elsewhere)} == set(sessions[2:])
    assert {row["cwd"] for row in rows} == {both.cwd, elsewhere}
    assert (await agent.fails("session/list", {"cursor": "made up"})).code == -32602


@all_and_v2
async def test_close_frees_a_session_that_can_be_loaded_again(agent: Client, both: Lab, backend: str) -> None:
    closed, kept = [await agent.new_session(both.cwd, backend) for _ in range(2)]
    await agent.ask(closed, "TEXT<<hello>>")
    turn = agent.prompt(closed, "GATE[never]")
    running = agent.prompt(kept, "SAY[1] TEXT<<\n>> GATE[kept]")
    await agent.hears(kept, "word0")
    assert await agent.request("session/close", {"sessionId": closed}) == {}
    assert (await turn.answer())["stopReason"] == "cancelled"
    assert (await agent.prompt(closed, "x").error()).code == -32002
    both.model.gate("kept").set()
    assert (await running.answer())["stopReason"] == "end_turn"
    await agent.load(closed, both.cwd)
    assert await agent.ask(closed, "SAY[1]") == "end_turn"


@pytest.mark.case("L10")
@all_and_v2
async def test_delete_is_final_also_in_mid_turn_and_after_a_restart(both: Lab, backend: str, version: int) -> None:
    async with started(both, version=version) as agent:
        await agent.initialize()
        gone, kept = [await agent.new_session(both.cwd, backend) for _ in range(2)]
        await agent.ask(kept, "SAY[1]")
        await agent.ask(gone, "SAY[1]")
        turn = agent.prompt(gone, "TEXT<<at work>> GATE[never]")
        if version == 2:
            # A prompt that was not taken in yet would be refused there.
            await agent.hears(gone, "at work")
        assert await agent.request("session/delete", {"sessionId": gone}) == {}
        assert (await turn.answer())["stopReason"] == "cancelled"
        assert list(rows_by_id(await agent.list_sessions())) == [kept]
        assert await agent.request("session/delete", {"sessionId": gone}) == {}
    async with started(both, version=version) as agent:
        await agent.initialize()
        assert list(rows_by_id(await agent.list_sessions())) == [kept]
        for method in ("session/resume", "session/set_title", "session/fork"):
            params: JsonObject = {"sessionId": gone, "cwd": both.cwd, "mcpServers": [], "title": "x"}
            assert (await agent.fails(method, params)).code == -32002


UNKNOWN = (
    "11111111-2222-4333-8444-555555555555",
    "01a00000-0000-7000-8000-000000000000",
    "../../x",
    "",
    "x" * 9999,
)


@both_versions
@pytest.mark.case("L01")
async def test_unknown_ids_are_not_found_and_make_nothing(agent: Client, both: Lab, version: int) -> None:
    before = transcripts(both)
    opening = ("session/load", "session/resume") if version == 1 else ("session/resume",)
    for unknown in UNKNOWN:
        for method in (*opening, "session/prompt", "session/set_title", "session/close"):
            params = {
                "sessionId": unknown,
                "cwd": both.cwd,
                "mcpServers": [],
                "title": "t",
                "prompt": [{"type": "text", "text": "x"}],
            }
            error = await agent.fails(method, params)
            assert (error.code, error.data) == (-32002, {"sessionId": unknown[:200]}), method
        assert await agent.request("session/delete", {"sessionId": unknown}) == {}
        assert transcripts(both) == before, unknown


@both_backends
async def test_the_backend_can_be_switched_before_the_first_prompt(agent: Client, both: Lab, backend: str) -> None:
    other = {"claude": "codex", "codex": "claude"}[backend]
    session = await agent.new_session(both.cwd, other)
    choice = {"sessionId": session, "configId": "backend", "value": backend}
    options = as_objects((await agent.request("session/set_config_option", choice))["configOptions"])
    assert [option["currentValue"] for option in options if option["id"] == "backend"] == [backend]
    await agent.ask(session, "SAY[1]")
    assert await agent.request("session/set_title", {"sessionId": session, "title": "Switched"}) == {
        "title": "Switched"
    }
    row = rows_by_id(await agent.list_sessions())[session]
    assert (row["title"], obj(obj(row, "_meta"), "acp-manifold")["backend"]) == ("Switched", backend)
    assert (await agent.fails("session/set_config_option", {**choice, "value": other})).code == -32600


@both_versions
@pytest.mark.parametrize("backend", ["claude", "codex"])
async def test_slash_commands_are_told_once_and_in_v2_by_the_answer_that_opens_the_session(
    agent: Client, both: Lab, backend: str, version: int
) -> None:
    session = await agent.new_session(both.cwd, backend)
    names = {text(c, "name") for c in await agent.wait_for(lambda: agent.commands(session), "commands")}
    assert "compact" in names and not any(name.startswith("/") for name in names)
    opening: JsonObject = {"sessionId": session, "cwd": both.cwd, "mcpServers": []}
    told = len(agent.heard(session, "available_commands_update"))
    answer = await agent.request("session/resume", opening)
    assert ({text(c, "name") for c in as_objects(answer.get("availableCommands"))} == names) == (version == 2)
    assert await agent.ask(session, "SAY[1]") == "end_turn"
    assert len(agent.heard(session, "available_commands_update")) == told


@both_versions
async def test_edits_are_told_as_diffs_with_their_place(agent: Client, both: Lab, version: int) -> None:
    path = Path(both.cwd) / "new.txt"
    claude = await agent.new_session(both.cwd, "claude")
    write = f'TOOL[Write {{"file_path": "{path}", "content": "hello\\n"}}]'
    assert await agent.ask(claude, write + " ;; SAY[1]") == "end_turn"
    codex = await agent.new_session(both.cwd, "codex")
    patch = "*** Begin Patch\\n*** Update File: new.txt\\n@@\\n-hello\\n+bye\\n*** End Patch"
    assert await agent.ask(codex, f'TOOL[exec_command {{"cmd": "apply_patch \'{patch}\'"}}] ;; SAY[1]') == "end_turn"
    items = [
        item
        for session in (claude, codex)
        for update in agent.heard(session)
        for item in as_objects(update.get("content"))
        if item.get("type") == "diff"
    ]
    if version == 1:
        assert (str(path), None, "hello\n") in [(item["path"], item.get("oldText"), item["newText"]) for item in items]
    else:
        changes = [change for item in items for change in as_objects(item["changes"])]
        assert {(change["operation"], change["path"]) for change in changes} == {("add", str(path))}
        assert text(obj(items[0], "patch"), "text").endswith("@@ -0,0 +1,1 @@\n+hello\n")
    (call,) = agent.calls(claude)
    assert call["kind"] == "edit"


@both_versions
async def test_a_failing_model_is_an_error_with_its_words_and_the_session_goes_on(agent: Client, both: Lab) -> None:
    for backend in ("claude", "codex"):
        session = await agent.new_session(both.cwd, backend)
        error = await agent.prompt(session, "FAIL[400]").error()
        assert error.code == -32603 and "scripted" in error.message.lower(), error
        assert await agent.ask(session, "SAY[1]") == "end_turn"


@pytest.mark.case("F01")
async def test_long_prompts_arrive_whole_and_codex_says_its_limit(agent: Client, both: Lab) -> None:
    long = "SAY[1] " + "0123456789abcde\n" * (200 * 1024 // 16)
    for backend in ("claude", "codex"):
        session = await agent.new_session(both.cwd, backend)
        assert await agent.ask(session, long) == "end_turn"
        assert any(long.strip() in prompt for prompt in both.model.prompts())
    error = await agent.prompt(session, "x" * 1_048_577).error()
    assert error.code == -32602 and "1,048,576" in error.message
    assert await agent.ask(session, "SAY[1]") == "end_turn"


async def test_garbage_lines_and_wrong_calls_cost_one_error_each(agent: Client, both: Lab) -> None:
    session = await agent.new_session(both.cwd, "claude")
    agent.send_line(b"\xff\xfe{")
    agent.send_line(b'[{"jsonrpc":"2.0","id":1,"method":"session/list"}]')
    agent.send_line(b'{"jsonrpc":"2.0","method":"$/no_such_note","params":{}}')
    assert (await agent.fails("no/such", {})).code == -32601
    assert (await agent.fails("session/prompt", {"sessionId": session})).code == -32602
    codes = [obj(line, "error")["code"] for line in agent.lines if line.get("id", 0) is None]
    assert codes == [-32700, -32600]
    assert await agent.ask(session, "SAY[1]") == "end_turn"


@both_versions
@pytest.mark.case("A04")
async def test_a_bad_directory_is_named_and_nothing_starts(agent: Client, both: Lab) -> None:
    for cwd in (None, 5, "rel/dir", "~/x", "/no/such", "/etc/passwd"):
        params: JsonObject = {"mcpServers": [], **({} if cwd is None else {"cwd": cwd})}
        error = await agent.fails("session/new", params)
        assert error.code == -32602 and "cwd" in error.message, cwd
        assert isinstance(cwd, int | None) or cwd in error.message
