"""Questions of the real CLIs to the person: forms, pages, choices, and what becomes of those nobody answers."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .client import Client, Form, Question, reject
from .conftest import all_and_codex_in_v2, all_and_v2
from .eliciting import eliciting
from .lab import Lab, started

pytestmark = [pytest.mark.anyio, pytest.mark.live]

all_backends = pytest.mark.parametrize("backend", ["claude", "claude-tui", "codex"])

DB: JsonObject = {
    "question": "Which db?",
    "header": "DB",
    "options": [{"label": "Postgres", "description": "big"}, {"label": "SQLite", "description": "small"}],
}
PARTS: JsonObject = {
    "question": "Which parts?",
    "header": "Parts",
    "options": [{"label": "a, b", "description": "both"}, {"label": "c", "description": "third"}],
}


def question(backend: str, *, then: str = "TEXT<<and on >>") -> str:
    """A prompt whose model asks two questions, the second with several answers where the CLI has that."""
    if backend != "codex":
        asks: JsonObject = {"questions": [{**DB, "multiSelect": False}, {**PARTS, "multiSelect": True}]}
        return f"TOOL[AskUserQuestion {json.dumps(asks)}] ;; {then}"
    asks = {"questions": [{**DB, "id": "db"}, {**PARTS, "id": "parts"}]}
    return f"TOOL[request_user_input {json.dumps(asks)}] ;; {then}"


def with_questions(lab: Lab) -> Lab:
    """Codex 0.163.0 has its tool in plan mode alone, but for this feature."""
    config = Path(lab.env["CODEX_HOME"]) / "config.toml"
    config.write_text(config.read_text() + "\n[features]\ndefault_mode_request_user_input = true\n")
    return lab


@pytest.fixture
async def asking(both: Lab, version: int) -> AsyncGenerator[tuple[Client, Lab]]:
    """A bridge whose CLIs may ask, and its lab; not initialized."""
    world = with_questions(both)
    async with started(world, "--titles", "off", "--verbose", version=version) as client:
        yield client, world


FORMS: JsonObject = {"elicitation": {"form": {}, "url": {}}}


async def session_with_server(agent: Client, lab: Lab, backend: str) -> str:
    params: JsonObject = {
        "cwd": lab.cwd,
        "mcpServers": [{"type": "stdio", **eliciting(lab)}],
        "_meta": {"acp-manifold": {"backend": backend}},
    }
    return text(await agent.request("session/new", params), "sessionId")


def model_heard(lab: Lab) -> str:
    """What the model was last told: the result of the tool call, its quotes as they were."""
    return json.dumps(lab.model.requests[-1].body, ensure_ascii=False).replace("\\", "")


def fill(form: Form) -> None:
    """Pick the second of the first question, and both of the second, with an own word where that can be."""
    first, _, second, _ = form.fields
    many = obj(form.fields, second)["type"] == "array"
    form.accept(**{first: "SQLite", f"{first}_other": "it is fast", second: ["c", "a, b"] if many else "a, b"})


@all_and_v2
async def test_questions_are_a_form_and_its_answers_reach_the_model(asking: tuple[Client, Lab], backend: str) -> None:
    agent, lab = asking
    await agent.initialize(**FORMS)
    agent.on_form = fill
    session = await agent.new_session(lab.cwd, backend)
    assert await agent.ask(session, question(backend)) == "end_turn"
    (form,) = agent.forms
    assert form.session == session and agent.questions == []
    assert "Postgres" in str(form.fields) and "Which parts?" in str(form.fields)
    if backend != "codex":
        assert '"Which db?"="SQLite"' in model_heard(lab) and "it is fast" in model_heard(lab)
        assert '"Which parts?"="c, "a, b""' in model_heard(lab)
        assert form.params["toolCallId"] in {call["toolCallId"] for call in agent.calls(session)}
    else:
        assert '"db":{"answers":["SQLite","user_note: it is fast"]}' in model_heard(lab)
        assert '"parts":{"answers":["a, b"]}' in model_heard(lab)
    assert "it is fast" not in lab.log.read_text()
    assert agent.said(session).strip() == "and on"


@pytest.mark.case("P03")
@all_backends
async def test_a_no_a_dismissal_and_an_answer_that_does_not_fit_are_no_answers_and_the_turn_goes_on(
    asking: tuple[Client, Lab], backend: str
) -> None:
    agent, lab = asking
    await agent.initialize(**FORMS)
    session = await agent.new_session(lab.cwd, backend)
    answers: list[Callable[[Form], None]] = [
        Form.decline,
        Form.dismiss,
        lambda form: form.answer({"action": "accept", "content": {next(iter(form.fields)): "Oracle"}}),
    ]
    for answer in answers:
        agent.on_form = answer
        assert await agent.ask(session, question(backend)) == "end_turn"
        assert "Oracle" not in model_heard(lab)
        assert "Oracle" not in lab.log.read_text()
    assert agent.said(session).split() == ["and", "on"] * 3
    assert "does not fit the form" in lab.log.read_text()


def choosing(*names: str) -> Callable[[Question], None]:
    """Choose the options of these names, one a question."""
    wanted = iter(names)

    def choose(question: Question) -> None:
        name = next(wanted)
        (option,) = [o for o in as_objects(question.params["options"]) if text(o, "name").startswith(name)]
        question.choose(text(option, "optionId"))

    return choose


@all_backends
async def test_without_forms_questions_are_choices_one_after_the_other(
    asking: tuple[Client, Lab], backend: str
) -> None:
    agent, lab = asking
    await agent.initialize()
    picks = ["c"] if backend == "codex" else ["a, b", "c"]
    agent.on_question = choosing("SQLite", *picks)
    session = await agent.new_session(lab.cwd, backend)
    assert await agent.ask(session, question(backend)) == "end_turn"
    assert agent.forms == [] and len(agent.questions) == 1 + len(picks)
    assert {question.tool_call["toolCallId"] for question in agent.questions} == {
        call["toolCallId"] for call in agent.heard(session, "tool_call")
    }
    heard = model_heard(lab)
    assert ('"parts":{"answers":["c"]}' if backend == "codex" else '"Which parts?"=""a, b", c"') in heard
    states = [update.get("status") for update in agent.heard(session, "tool_call_update")]
    assert states[-1] == "completed"
    agent.on_question = reject
    assert await agent.ask(session, question(backend)) == "end_turn"
    assert agent.said(session).split() == ["and", "on"] * 2


@all_backends
async def test_cancel_takes_a_form_back_a_late_answer_reaches_nobody_and_a_client_that_goes_leaves_none_behind(
    asking: tuple[Client, Lab], backend: str
) -> None:
    """That everything ends in time, also with a form open, is what `started` looks at."""
    agent, lab = asking
    await agent.initialize(**FORMS)
    session = await agent.new_session(lab.cwd, backend)
    turn = agent.prompt(session, question(backend))
    form = await agent.form(session)
    agent.notify("session/cancel", {"sessionId": session})
    assert (await turn.answer())["stopReason"] == "cancelled"
    assert form.withdrawn.is_set()
    fill(form)
    assert await agent.ask(session, "TEXT<<the next>>") == "end_turn"
    assert "SQLite" not in agent.said(session) and "it is fast" not in model_heard(lab)
    agent.prompt(session, question(backend))
    assert (await agent.form(session)).id != form.id


async def on_newer_model(agent: Client, lab: Lab) -> str:
    """A Codex session with a model that may ask without waiting."""
    session = await agent.new_session(lab.cwd, "codex")
    choice = {"sessionId": session, "configId": "model", "value": "gpt-6-sol"}
    await agent.request("session/set_config_option", choice)
    return session


OPEN: JsonObject = {"questions": [{"title": "Which db?", "options": ["Postgres", "SQLite"]}, {"title": "Why?"}]}
ASKS_ON = f"TOOL[request_user_input_async {json.dumps(OPEN)}] ;; "


async def test_codex_goes_on_while_it_asks_and_the_answer_is_a_message_into_the_turn(
    asking: tuple[Client, Lab],
) -> None:
    agent, lab = asking
    await agent.initialize(**FORMS, session={"notices": {}})
    session = await on_newer_model(agent, lab)
    turn = agent.prompt(session, ASKS_ON + "TEXT<<at work >> GATE[on] TEXT<<and on>>")
    form = await agent.form(session)
    await agent.hears(session, "at work")
    assert agent.said(session).startswith("Which db?") and list(form.fields) == [
        "question_0",
        "question_0_other",
        "question_1",
    ]
    form.accept(question_0="SQLite", question_1="It is small.")
    answer = "> Which db?\n\nSQLite\n\n> Why?\n\nIt is small."
    assert (await turn.answer())["stopReason"] == "end_turn"
    assert json.dumps(answer) in json.dumps(lab.model.requests[-1].body), "it cut the answer short"
    assert agent.heard(session, "notice")[-1]["title"] != "Your answer came too late"

    assert await agent.ask(session, ASKS_ON + "TEXT<<bye>>") == "end_turn"
    assert agent.forms[-1] is not form
    await agent.forms[-1].withdrawn.wait()


async def test_questions_of_two_sessions_at_once_never_mix(asking: tuple[Client, Lab]) -> None:
    agent, lab = asking
    await agent.initialize(**FORMS)
    sessions = {backend: await agent.new_session(lab.cwd, backend) for backend in ("claude", "codex")}
    turns = {backend: agent.prompt(session, question(backend)) for backend, session in sessions.items()}
    forms = {backend: await agent.form(session) for backend, session in sessions.items()}
    assert len({form.id for form in forms.values()}) == 2
    forms["codex"].decline()
    assert (await turns["codex"].answer())["stopReason"] == "end_turn"
    assert not turns["claude"].done
    fill(forms["claude"])
    assert (await turns["claude"].answer())["stopReason"] == "end_turn"
    assert "it is fast" in model_heard(lab)


@all_and_codex_in_v2
async def test_an_mcp_server_asks_by_form_and_by_page_and_a_cancel_takes_the_form_back(
    asking: tuple[Client, Lab], backend: str
) -> None:
    agent, lab = asking
    await agent.initialize(**FORMS)
    session = await session_with_server(agent, lab, backend)
    agent.on_form = lambda form: form.accept(name="Ann", color="blue", many=["b"])
    await agent.ask(session, "SAY[1]")  # by then the server is up
    calls = "TOOL[mcp__probe__form {}] ;; TOOL[mcp__probe__page {}] ;; TEXT<<and on>>"
    assert await agent.ask(session, calls) == "end_turn"
    form, page = agent.forms
    assert text(form.params, "message") == "The MCP server probe asks: Who are you?"
    known = {call["toolCallId"] for call in agent.calls(session)}
    assert form.params["toolCallId"] in known and page.params["toolCallId"] in known
    assert page.params["mode"] == "url" and page.params["url"] == "https://example.org/login"
    told = model_heard(lab)
    values = re.search(r'answered (\{.*?"content": \{.*?\}\})', told)
    assert values is not None
    assert json.loads(values[1]) == {"action": "accept", "content": {"name": "Ann", "color": "blue", "many": ["b"]}}
    await agent.wait_for(lambda: agent.pages_done or None, "the end of the page")
    assert agent.pages_done == [page.params["elicitationId"]]
    assert agent.said(session).strip().endswith("and on")
    agent.on_form = lambda form: None
    turn = agent.prompt(session, "TOOL[mcp__probe__form {}] ;; TEXT<<not this>>")
    await agent.wait_for(lambda: len(agent.forms) == 3 or None, "the form")
    agent.notify("session/cancel", {"sessionId": session})
    assert (await turn.answer())["stopReason"] == "cancelled" and agent.forms[-1].withdrawn.is_set()
    assert await agent.ask(session, "TEXT<<the next>>") == "end_turn"
    assert agent.said(session).endswith("the next") and "not this" not in agent.said(session)


@all_backends
async def test_what_a_client_can_not_show_is_declined_and_the_person_is_told(
    asking: tuple[Client, Lab], backend: str
) -> None:
    agent, lab = asking
    await agent.initialize()
    session = await session_with_server(agent, lab, backend)
    await agent.ask(session, "SAY[1]")
    assert (
        await agent.ask(session, "TOOL[mcp__probe__form {}] ;; TOOL[mcp__probe__page {}] ;; TEXT<<and on>>")
        == "end_turn"
    )
    told = model_heard(lab)
    assert 'answered {"action": "decline"}' in told and 'answered {"action": "accept"' in told
    assert "Who are you?" in agent.said(session) and "'Name' has to be typed" in agent.said(session)
    assert "https://example.org/login" in str(agent.questions[-1].params)
    assert agent.forms == [] and agent.pages_done == []


def write_plan(path: Path) -> None:
    """Do what the model does while it plans."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# The plan\n\n1. Write it\n")


async def test_a_plan_is_approved_into_the_mode_the_person_chose(asking: tuple[Client, Lab]) -> None:
    agent, lab = asking
    settings = Path(lab.env["CLAUDE_CONFIG_DIR"]) / "settings.json"
    settings.write_text(json.dumps({"permissions": {"defaultMode": "plan"}}))
    await agent.initialize()
    session = await agent.new_session(lab.cwd, "claude")
    await agent.ask(session, "SAY[1]")
    paths = re.findall(r'[^\s"`\\]*/plans/[^\s"`\\]*\.md', json.dumps([r.body for r in lab.model.requests]))
    write_plan(Path(paths[0]))
    agent.on_question = reject
    assert await agent.ask(session, "TOOL[ExitPlanMode {}] ;; TEXT<<planning on>>") == "end_turn"
    (asked,) = agent.questions
    assert "# The plan" in str(asked.tool_call["content"])
    assert "keep planning" in model_heard(lab)
    agent.on_question = choosing("Yes, and accept all edits")
    write = f"TOOL[Write {json.dumps({'file_path': str(Path(lab.cwd) / 'made.txt'), 'content': 'x'})}]"
    assert await agent.ask(session, f"TOOL[ExitPlanMode {{}}] ;; {write} ;; SAY[1]") == "end_turn"
    assert (Path(lab.cwd) / "made.txt").read_text() == "x" and len(agent.questions) == 2
