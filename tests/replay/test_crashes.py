"""A CLI that ended by itself ends so in a replay: with the same words, for every session, and never with a hang."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_manifold.adapters.replay.agent import connected
from acp_manifold.adapters.replay.conversation import Conversation, Talk
from acp_manifold.bridge.recording.reader import Recording, read
from acp_manifold.translators.narrow import JsonObject, obj, text

from .corpus import Case, case, cases

pytestmark = pytest.mark.anyio

CRASHES = [each for each in cases() if each.scenario.name.startswith("crash")]


async def heard(path: Path, cwd: Path, *steps: str) -> list[JsonObject]:
    async with connected(path) as client:
        await Talk(client, str(cwd)).have(Conversation.of(*steps))
        return client.heard


def failures(messages: list[JsonObject]) -> list[str]:
    return [text(obj(message, "error"), "message") for message in messages if "error" in message]


def recorded(recording: Recording) -> list[JsonObject]:
    return [entry.line or {} for entry in recording.entries if (entry.leg, entry.dir) == ("client", "out")]


def test_there_are_crashes_of_both_clis_in_two_versions_each() -> None:
    assert len({each.path.parent for each in CRASHES}) == 4
    assert len(CRASHES) >= 12


@pytest.mark.parametrize("case", CRASHES, ids=lambda case: case.name)
async def test_the_error_is_the_one_that_the_client_got_then(case: Case, tmp_path: Path) -> None:
    then = failures(recorded(read(case.path)))
    assert then and all("was killed by SIGKILL" in words for words in then)
    assert failures(await heard(case.path, tmp_path, *case.scenario.steps)) == then
    if case.backend == "codex":
        # What codex-cli 0.163.0 said on stderr before, which is not all of one line.
        assert all("; last on stderr:\nWARNING" in words for words in then)


async def test_a_crash_of_two_threads_comes_though_the_other_is_not_at_work(tmp_path: Path) -> None:
    path = case("codex", "crash-of-two").path
    steps = ("new a", "new b", "prompt SAY[2] GATE[g] SAY[1]", "hear word1", "fail SIGKILL")
    await heard(path, tmp_path, *steps, "prompt SAY[1] b goes on", "end")
