"""A replay as a client meets it: what was not recorded is refused with its reason, and nothing real is touched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acp_manifold.adapters.replay import close, replay
from acp_manifold.adapters.replay.agent import command, connected, started
from acp_manifold.adapters.replay.client import Unexpected
from acp_manifold.adapters.replay.conversation import Conversation, Talk
from acp_manifold.adapters.replay.golden import Normal
from acp_manifold.adapters.replay.lane import PATIENCE
from acp_manifold.bridge.backends import NoBackend
from acp_manifold.bridge.recording.format import Entry
from acp_manifold.bridge.recording.reader import Recording, read
from acp_manifold.bridge.recording.writer import write
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text

from .corpus import case

pytestmark = pytest.mark.anyio

both = pytest.mark.parametrize("backend", ["claude", "codex"])


async def had(path: Path | str, cwd: Path, *steps: str, version: int = 1) -> list[JsonObject]:
    """Have a conversation with a replay and give what was heard."""
    async with connected(path, version) as client:
        await Talk(client, str(cwd)).have(Conversation.of(*steps))
        return client.heard


def test_what_is_missed_is_missed_within_two_seconds() -> None:
    assert PATIENCE < 2.0


@both
async def test_another_prompt_is_refused_with_entry_expected_and_given(backend: str, tmp_path: Path) -> None:
    path = case(backend, "two-turns").path
    with pytest.raises(Unexpected) as caught:
        await had(path, tmp_path, "new", "prompt SAY[9] something else", "end")
    words = str(caught.value)
    assert f"the recording {path} differs: entry " in words
    assert '"SAY[3] first"' in words and '"SAY[9] something else"' in words


@both
async def test_after_a_refusal_the_right_prompt_goes_on(backend: str, tmp_path: Path) -> None:
    steps = ("new", "prompt SAY[9]", "fail differs", "prompt SAY[3] first", "end", "prompt SAY[2] second", "end")
    await had(case(backend, "two-turns").path, tmp_path, *steps)


@both
async def test_a_cancel_that_does_not_come_is_missed_and_not_waited_for(backend: str, tmp_path: Path) -> None:
    path = case(backend, "cancel-while-talking").path
    method = {"claude": "interrupt", "codex": "turn/interrupt"}[backend]
    await had(path, tmp_path, "new", "prompt SAY[3] GATE[g] SAY[9]", f"fail expects {method}, given was nothing")


@both
async def test_a_cancel_that_was_not_recorded_ends_the_turn_all_the_same(backend: str, tmp_path: Path) -> None:
    scenario = {"claude": "edit-allowed", "codex": "outside-allowed"}[backend]
    found = case(backend, scenario)
    await had(found.path, tmp_path, "new", found.scenario.steps[1], "asked", "cancel", "end cancelled")


@both
async def test_another_answer_to_a_question_is_named(backend: str, tmp_path: Path) -> None:
    scenario = {"claude": "edit-allowed", "codex": "outside-allowed"}[backend]
    found = case(backend, scenario)
    with pytest.raises(Unexpected, match=r"entry \d+, answer: expected .* given "):
        await had(found.path, tmp_path, "new", found.scenario.steps[1], "answer reject_once", "end")


@both
async def test_another_title_is_refused(backend: str, tmp_path: Path) -> None:
    path = case(backend, "title-after-turn").path
    with pytest.raises(Unexpected, match='expected "Mine after all" in .*, given "Another"'):
        await had(path, tmp_path, "new", "prompt SAY[2]", "end", "rename Another")


@both
async def test_a_file_cut_in_mid_line_plays_up_to_there_and_says_so(backend: str, tmp_path: Path) -> None:
    data = case(backend, "two-turns").path.read_bytes()
    lines = data.split(b"\n")
    second = next(n for n, line in enumerate(lines) if b"second" in line and b'"leg":"backend","dir":"out"' in line)
    path = tmp_path / "cut.jsonl"
    path.write_bytes(b"\n".join(lines[: second + 2]) + b"\n" + lines[second + 2][:30])
    words = await had(
        path, tmp_path, "new", "prompt SAY[3] first", "end", "prompt SAY[2] second", "fail is cut off after 30 bytes"
    )
    assert words


@both
async def test_sessions_are_begun_in_their_order_and_found_by_id(backend: str, tmp_path: Path) -> None:
    path = case(backend, "two-sessions").path
    async with connected(path) as client:
        rows = as_objects((await client.ask("session/list", {})).get("sessions"))
        assert {text(row, "title") for row in rows} == {"A", "B"}
        await Talk(client, str(tmp_path)).have(Conversation.of("new a", "new b"))
        answers = [message for message in client.heard if message.get("answer") == "session/new"]
        begun = [text(obj(message, "result"), "sessionId") for message in answers]
        assert begun == recorded_order(read(path))
    async with connected(path) as client:
        await client.ask("session/load", {"sessionId": begun[0], "cwd": str(tmp_path), "mcpServers": []})
        assert "word0 word1" in client.said(begun[0])
        await Talk(client, str(tmp_path)).have(Conversation.of("load A", "prompt SAY[3] in a", "end"))


def recorded_order(recording: Recording) -> list[str]:
    answers = [entry.line or {} for entry in recording.entries if entry.leg == "client" and entry.dir == "out"]
    return [text(obj(answer, "result"), "sessionId") for answer in answers if "sessionId" in obj(answer, "result")]


@both
async def test_the_sessions_of_a_folder_are_played_beside_each_other(backend: str, tmp_path: Path) -> None:
    """Recordings that begin at the same time, and whose ids of requests are the same."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for scenario in ("five-words", "two-turns"):
        path = case(backend, scenario).path
        (folder / path.name).write_bytes(path.read_bytes())
    steps = ("new a", "new b", "prompt SAY[3] first", "end", "on a", "prompt SAY[5]", "hear word4", "end")
    heard = await had(folder, tmp_path, *steps, "on b", "prompt SAY[2] second", "end", "list")
    assert len(as_objects(obj(heard[-1], "result").get("sessions"))) == 2


@pytest.mark.parametrize("version", [1, 2])
@both
async def test_as_a_process_it_needs_no_cli_and_touches_no_store(backend: str, version: int, tmp_path: Path) -> None:
    found = case(backend, "title-after-turn")
    home, cwd = tmp_path / "home", tmp_path / "cwd"
    home.mkdir()
    cwd.mkdir()
    env = {"PATH": "", "HOME": str(home), "CODEX_HOME": str(home / "codex"), "CLAUDE_CONFIG_DIR": str(home / "claude")}
    env["TMPDIR"] = str(tmp_path)
    async with started(found.path, version, env=env) as client:
        await Talk(client, str(cwd)).have(Conversation.of(*found.scenario.steps))
    assert os.listdir(home) == []
    assert sorted(os.listdir(tmp_path)) == ["cwd", "home"]


@both
async def test_what_a_replay_is_recorded_as_is_the_recording_but_for_times(backend: str, tmp_path: Path) -> None:
    found = case(backend, "title-after-turn")
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    again = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    source = found.path
    for path in again:
        env = {**os.environ, "PATH": "", "HOME": str(tmp_path)}
        async with started(source, env=env, record=path) as client:
            await Talk(client, str(cwd), backend).have(Conversation.of(*found.scenario.steps))
        source = path
    assert lanes(read(again[0])) == lanes(read(again[1]))
    assert heard_by_us(read(again[0])) == heard_by_us(read(found.path))


def heard_by_us(recording: Recording) -> dict[tuple[str, str, str], int]:
    """How many lines of the CLIs there are of each session."""
    return {key: len(lines) for key, lines in lanes(recording).items() if key[:2] == ("backend", "in") and key[2]}


def lanes(recording: Recording) -> dict[tuple[str, str, str], list[str]]:
    """The lines of each leg, way and session, in their order; ids that are minted anew are named by their order."""
    found: dict[tuple[str, str, str], list[str]] = {}
    normal: dict[tuple[str, str, str], Normal] = {}
    for entry in recording.entries:
        if entry.leg != "bridge":
            key = entry.leg, entry.dir or "", entry.session or ""
            # Requests of all sessions are numbered in one row: which comes first is chance.
            numbered = entry.leg == "backend" and isinstance((entry.line or {}).get("id"), int)
            told = {**(entry.line or {}), "id": None} if numbered else entry.line
            line = normal.setdefault(key, Normal({})).value(told)
            found.setdefault(key, []).append(json.dumps(line, sort_keys=True))
    return found


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("replay:", "replay needs a recording: --backend replay:FILE"),
        ("replay:/nowhere.jsonl", "/nowhere.jsonl can't be read: No such file or directory"),
        ("replay:{here}", "holds no recordings: no file in it ends in .jsonl"),
        ("replay:{file}?speed=fast", "speed=fast: must be `instant`, or how many times as fast"),
        ("replay:{file}?sped=1", "replay knows no option 'sped'; there is: speed"),
        ("replay", "the backend replay needs to be told what: --backend replay:"),
        ("claude:x", "the backend claude takes nothing behind a colon"),
    ],
)
def test_what_makes_no_sense_is_said_on_the_command_line(argument: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "made" / "a.jsonl"
    write(file, read(case("claude", "five-words").path).header, ())
    empty = tmp_path / "empty"
    empty.mkdir()
    name = argument.format(here=empty, file=file)
    done = subprocess.run(
        [sys.executable, "-m", "acp_manifold.bridge", "--backend", name],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def made_by(path: Path, *backends: str) -> Path:
    """A recording of these backends that holds a line of each."""
    entries = [Entry(0.0, "backend", "in", backend=name, session="s", line={"type": "x"}) for name in backends]
    write(path, read(case("claude", "five-words").path).header._replace(backend=None), entries)
    return path


def test_the_interactive_program_s_sessions_are_named_as_what_can_not_be_replayed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    alone = made_by(tmp_path / "alone.jsonl", "claude-tui")
    with pytest.raises(NoBackend, match="holds sessions of claude-tui alone; what can be replayed are those of claude"):
        replay(str(alone))
    backends = replay(str(made_by(tmp_path / "both.jsonl", "claude-tui", "codex")))
    close(backends)
    assert [backend.name for backend in backends] == ["codex"]
    assert "sessions of claude-tui are left out: they can't be replayed" in caplog.text


def test_a_replay_is_served_alone(tmp_path: Path) -> None:
    words = [*command(case("claude", "five-words").path), "--backend", "codex"]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "is served alone: name no other backend beside it" in done.stderr
